"""Functions of single elements, for `pointwise` (loops.py). Each computes in the width of its arguments.

The last argument is a tuple of scalars: what PyTorch's operators take as Scalar. A nan goes through.

In PyTorch: `aten/src/ATen/native/cuda/{UnaryOpsKernel,BinaryMulKernel,ActivationGeluKernel,…}.cu`.
"""
import math

import numpy as np

from .rounding import ceil_of, floor_of

f32 = np.float32


# ----------------------------------------------------------------------------------------------- one argument


def copy(x, scalars):
    return x


def neg(x, scalars):
    return -x


def absolute(x, scalars):
    return abs(x)


def exp(x, scalars):
    return math.exp(x)


def log(x, scalars):
    return math.log(x)


def sqrt(x, scalars):
    return math.sqrt(x)


def rsqrt(x, scalars):
    return type(x)(1) / math.sqrt(x)


def reciprocal(x, scalars):
    return type(x)(1) / x


def sin(x, scalars):
    return math.sin(x)


def cos(x, scalars):
    return math.cos(x)


def tanh(x, scalars):
    return math.tanh(x)


def erf(x, scalars):
    return math.erf(x)


def square(x, scalars):
    return x * x


def sign(x, scalars):
    return type(x)(int(x > 0) - int(x < 0))


def logistic(x):
    one = type(x)(1)
    return one / (one + math.exp(-x))


def sigmoid(x, scalars):
    return logistic(x)


def relu(x, scalars):
    zero = type(x)(0)
    return zero if x < zero else x


def silu(x, scalars):
    return x * logistic(x)


SQRT_HALF, DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
SQRT_2_OVER_PI, CUBIC = math.sqrt(2 / math.pi), 0.044715


def normal_cdf(x):
    return type(x)(0.5) * (type(x)(1) + math.erf(x * type(x)(SQRT_HALF)))


def gelu(x, scalars):
    return x * normal_cdf(x)


def gelu_inner(x):
    return type(x)(SQRT_2_OVER_PI) * (x + type(x)(CUBIC) * x * x * x)


def gelu_tanh(x, scalars):
    return type(x)(0.5) * x * (type(x)(1) + math.tanh(gelu_inner(x)))


def leaky_relu(x, scalars):
    return x if x > type(x)(0) else x * type(x)(scalars[0])


def elu(x, scalars):
    """scalars: what it is times below 0 (alpha · scale), above 0 (scale), and inside the exponential."""
    zero = type(x)(0)
    below = type(x)(scalars[0]) * math.expm1(x * type(x)(scalars[2]))
    return below if x <= zero else x * type(x)(scalars[1])


def softplus(x, scalars):
    """scalars: beta, threshold."""
    beta = type(x)(scalars[0])
    return x if x * beta > type(x)(scalars[1]) else math.log1p(math.exp(x * beta)) / beta


def clamp(x, scalars):
    """scalars: least, largest. A nan stays."""
    low, high = type(x)(scalars[0]), type(x)(scalars[1])
    x = low if x < low else x
    return high if x > high else x


def hardswish(x, scalars):
    zero, three, six = type(x)(0), type(x)(3), type(x)(6)
    y = x + three
    y = zero if y < zero else y
    return x * (six if y > six else y) / six


def power_of_number(x, scalars):
    return x ** type(x)(scalars[0])


def scale_and_shift(x, scalars):
    return x * type(x)(scalars[0]) + type(x)(scalars[1])


# ---------------------------------------------------------------------------------------------- two arguments


def add(x, y, scalars):
    """x + alpha · y; scalars: alpha."""
    return x + y * type(y)(scalars[0])


def sub(x, y, scalars):
    return x - y * type(y)(scalars[0])


def mul(x, y, scalars):
    return x * y


def div(x, y, scalars):
    return x / y


def power(x, y, scalars):
    return x ** y


def maximum(x, y, scalars):
    return x if x > y or x != x else y


def minimum(x, y, scalars):
    return x if x < y or x != x else y


def atan2(x, y, scalars):
    return math.atan2(x, y)


def equal(x, y, scalars):
    return x == y


def not_equal(x, y, scalars):
    return x != y


def less(x, y, scalars):
    return x < y


def less_equal(x, y, scalars):
    return x <= y


def greater(x, y, scalars):
    return x > y


def greater_equal(x, y, scalars):
    return x >= y


def threshold_backward(grad, x, scalars):
    """scalars: threshold. ReLU's gradient with threshold 0."""
    return type(grad)(0) if x <= type(x)(scalars[0]) else grad


def sigmoid_backward(grad, y, scalars):
    return grad * (type(y)(1) - y) * y


def tanh_backward(grad, y, scalars):
    return grad * (type(y)(1) - y * y)


def silu_backward(grad, x, scalars):
    s, one = logistic(x), type(x)(1)
    return grad * s * (one + x * (one - s))


def gelu_backward(grad, x, scalars):
    density = type(x)(DENSITY) * math.exp(type(x)(-0.5) * x * x)
    return grad * (normal_cdf(x) + x * density)


def gelu_tanh_backward(grad, x, scalars):
    one = type(x)(1)
    t = math.tanh(gelu_inner(x))
    slope = type(x)(SQRT_2_OVER_PI) * (one + type(x)(3 * CUBIC) * x * x)
    return grad * type(x)(0.5) * ((one + t) + x * (one - t * t) * slope)


def leaky_relu_backward(grad, x, scalars):
    return grad if x > type(x)(0) else grad * type(x)(scalars[0])


# -------------------------------------------------------------------------------------------- three arguments


def where(condition, x, y, scalars):
    return x if condition else y


def addcmul(x, a, b, scalars):
    """scalars: value."""
    return x + type(x)(scalars[0]) * a * b


def addcdiv(x, a, b, scalars):
    return x + type(x)(scalars[0]) * a / b


def lerp(start, end, weight, scalars):
    """From the nearer end, as PyTorch: exact for weight 0 and 1."""
    one = type(weight)(1)
    near = start + weight * (end - start)
    return near if abs(weight) < type(weight)(0.5) else end - (end - start) * (one - weight)


# ------------------------------------------------------------------------------------------ used by the fuser


def log1p(x, scalars):
    return math.log1p(x)


def expm1(x, scalars):
    return math.expm1(x)


def pow(x, y, scalars):
    """Of floats. `power` serves integers, too."""
    return math.pow(x, y)


def cube(x, scalars):
    return x * x * x


def inverse_square(x, scalars):
    return type(x)(1) / (x * x)


def floor(x, scalars):
    return floor_of(x)


def ceil(x, scalars):
    return ceil_of(x)


def elu_of(x, scalars):
    """scalars as PyTorch's operator has them: alpha, scale, input_scale."""
    zero = type(x)(0)
    below = type(x)(scalars[0] * scalars[1]) * math.expm1(x * type(x)(scalars[2]))
    return below if x <= zero else x * type(x)(scalars[1])


def logical_and(x, y, scalars):
    return x & y


def logical_or(x, y, scalars):
    return x | y


def logical_not(x, scalars):
    return not x


def masked_fill(x, mask, value, scalars):
    return value if mask else x
