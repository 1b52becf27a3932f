"""Functions of single elements, for `pointwise` (loops.py). Each computes in the width of its arguments.

The last argument is a tuple of numbers: what PyTorch's operators take as Scalar. A nan goes through.

In PyTorch: `aten/src/ATen/native/cuda/{UnaryOpsKernel,BinaryMulKernel,ActivationGeluKernel,…}.cu`.
"""
import math

import numpy as np

from .rounding import ceil_of, floor_of

f32 = np.float32


# ----------------------------------------------------------------------------------------------- one argument


def copy(x, numbers):
    return x


def neg(x, numbers):
    return -x


def absolute(x, numbers):
    return abs(x)


def exp(x, numbers):
    return math.exp(x)


def log(x, numbers):
    return math.log(x)


def sqrt(x, numbers):
    return math.sqrt(x)


def rsqrt(x, numbers):
    return type(x)(1) / math.sqrt(x)


def reciprocal(x, numbers):
    return type(x)(1) / x


def sin(x, numbers):
    return math.sin(x)


def cos(x, numbers):
    return math.cos(x)


def tanh(x, numbers):
    return math.tanh(x)


def erf(x, numbers):
    return math.erf(x)


def square(x, numbers):
    return x * x


def sign(x, numbers):
    return type(x)(int(x > 0) - int(x < 0))


def logistic(x):
    one = type(x)(1)
    return one / (one + math.exp(-x))


def sigmoid(x, numbers):
    return logistic(x)


def relu(x, numbers):
    zero = type(x)(0)
    return zero if x < zero else x


def silu(x, numbers):
    return x * logistic(x)


SQRT_HALF, DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)
SQRT_2_OVER_PI, CUBIC = math.sqrt(2 / math.pi), 0.044715


def normal_cdf(x):
    return type(x)(0.5) * (type(x)(1) + math.erf(x * type(x)(SQRT_HALF)))


def gelu(x, numbers):
    return x * normal_cdf(x)


def gelu_inner(x):
    return type(x)(SQRT_2_OVER_PI) * (x + type(x)(CUBIC) * x * x * x)


def gelu_tanh(x, numbers):
    return type(x)(0.5) * x * (type(x)(1) + math.tanh(gelu_inner(x)))


def leaky_relu(x, numbers):
    return x if x > type(x)(0) else x * type(x)(numbers[0])


def elu(x, numbers):
    """numbers: what it is times below 0 (alpha · scale), above 0 (scale), and inside the exponential."""
    zero = type(x)(0)
    below = type(x)(numbers[0]) * math.expm1(x * type(x)(numbers[2]))
    return below if x <= zero else x * type(x)(numbers[1])


def softplus(x, numbers):
    """numbers: beta, threshold."""
    beta = type(x)(numbers[0])
    return x if x * beta > type(x)(numbers[1]) else math.log1p(math.exp(x * beta)) / beta


def clamp(x, numbers):
    """numbers: least, greatest. A nan stays."""
    low, high = type(x)(numbers[0]), type(x)(numbers[1])
    x = low if x < low else x
    return high if x > high else x


def hardswish(x, numbers):
    zero, three, six = type(x)(0), type(x)(3), type(x)(6)
    y = x + three
    y = zero if y < zero else y
    return x * (six if y > six else y) / six


def power_of_number(x, numbers):
    return x ** type(x)(numbers[0])


def scale_and_shift(x, numbers):
    return x * type(x)(numbers[0]) + type(x)(numbers[1])


# ---------------------------------------------------------------------------------------------- two arguments


def add(x, y, numbers):
    """x + alpha · y; numbers: alpha."""
    return x + y * type(y)(numbers[0])


def sub(x, y, numbers):
    return x - y * type(y)(numbers[0])


def mul(x, y, numbers):
    return x * y


def div(x, y, numbers):
    return x / y


def power(x, y, numbers):
    return x ** y


def maximum(x, y, numbers):
    return x if x > y or x != x else y


def minimum(x, y, numbers):
    return x if x < y or x != x else y


def atan2(x, y, numbers):
    return math.atan2(x, y)


def equal(x, y, numbers):
    return x == y


def not_equal(x, y, numbers):
    return x != y


def less(x, y, numbers):
    return x < y


def less_equal(x, y, numbers):
    return x <= y


def greater(x, y, numbers):
    return x > y


def greater_equal(x, y, numbers):
    return x >= y


def threshold_backward(grad, x, numbers):
    """numbers: threshold. ReLU's gradient with threshold 0."""
    return type(grad)(0) if x <= type(x)(numbers[0]) else grad


def sigmoid_backward(grad, y, numbers):
    return grad * (type(y)(1) - y) * y


def tanh_backward(grad, y, numbers):
    return grad * (type(y)(1) - y * y)


def silu_backward(grad, x, numbers):
    s, one = logistic(x), type(x)(1)
    return grad * s * (one + x * (one - s))


def gelu_backward(grad, x, numbers):
    density = type(x)(DENSITY) * math.exp(type(x)(-0.5) * x * x)
    return grad * (normal_cdf(x) + x * density)


def gelu_tanh_backward(grad, x, numbers):
    one = type(x)(1)
    t = math.tanh(gelu_inner(x))
    slope = type(x)(SQRT_2_OVER_PI) * (one + type(x)(3 * CUBIC) * x * x)
    return grad * type(x)(0.5) * ((one + t) + x * (one - t * t) * slope)


def leaky_relu_backward(grad, x, numbers):
    return grad if x > type(x)(0) else grad * type(x)(numbers[0])


# -------------------------------------------------------------------------------------------- three arguments


def where(condition, x, y, numbers):
    return x if condition else y


def addcmul(x, a, b, numbers):
    """numbers: value."""
    return x + type(x)(numbers[0]) * a * b


def addcdiv(x, a, b, numbers):
    return x + type(x)(numbers[0]) * a / b


def lerp(start, end, weight, numbers):
    """From the nearer end, as PyTorch: exact for weight 0 and 1."""
    one = type(weight)(1)
    near = start + weight * (end - start)
    return near if abs(weight) < type(weight)(0.5) else end - (end - start) * (one - weight)


# ------------------------------------------------------------------------------------------ used by the fuser


def log1p(x, numbers):
    return math.log1p(x)


def expm1(x, numbers):
    return math.expm1(x)


def pow(x, y, numbers):
    """Of floats. `power` serves integers, too."""
    return math.pow(x, y)


def cube(x, numbers):
    return x * x * x


def inverse_square(x, numbers):
    return type(x)(1) / (x * x)


def floor(x, numbers):
    return floor_of(x)


def ceil(x, numbers):
    return ceil_of(x)


def elu_of(x, numbers):
    """numbers as PyTorch's operator has them: alpha, scale, input_scale."""
    zero = type(x)(0)
    below = type(x)(numbers[0] * numbers[1]) * math.expm1(x * type(x)(numbers[2]))
    return below if x <= zero else x * type(x)(numbers[1])


def logical_and(x, y, numbers):
    return x & y


def logical_or(x, y, numbers):
    return x | y


def logical_not(x, numbers):
    return not x


def masked_fill(x, mask, value, numbers):
    return value if mask else x
