"""More functions of single elements, as in functions.py: the less common operators and gradients of
activations.

In PyTorch:
`aten/src/ATen/native/cuda/{UnaryFractionKernels,UnaryLogKernels,ActivationKernels,LossKernels}.cu` and
others.
"""

import math

from .rounding import rint_of, trunc_of

# ----------------------------------------------------------------------------------------------- one argument


def trunc(x, scalars):
    return trunc_of(x)


def nearest(x, scalars):
    """Half to even."""
    return rint_of(x)


def itself(x, scalars):
    return x


def exp2(x, scalars):
    return type(x)(2) ** x


def expm1(x, scalars):
    return math.expm1(x)


def log2(x, scalars):
    return math.log2(x)


def log10(x, scalars):
    return math.log10(x)


def log1p(x, scalars):
    return math.log1p(x)


def tan(x, scalars):
    return math.tan(x)


def asin(x, scalars):
    return math.asin(x)


def acos(x, scalars):
    return math.acos(x)


def atan(x, scalars):
    return math.atan(x)


def sinh(x, scalars):
    return math.sinh(x)


def cosh(x, scalars):
    return math.cosh(x)


def asinh(x, scalars):
    return math.asinh(x)


def acosh(x, scalars):
    return math.acosh(x)


def atanh(x, scalars):
    return math.atanh(x)


def erfc(x, scalars):
    return math.erfc(x)


def logical_not(x, scalars):
    return x == type(x)(0)


def isnan(x, scalars):
    return x != x


def isfinite(x, scalars):
    return x - x == type(x)(0)


def isinf(x, scalars):
    return x == x and x - x != type(x)(0)


def round_to_parts(x, scalars):
    """Half to even, of x · scalars[0]."""
    return rint_of(x * type(x)(scalars[0])) / type(x)(scalars[0])


def round_to_multiples(x, scalars):
    return rint_of(x / type(x)(scalars[0])) * type(x)(scalars[0])


def hardsigmoid(x, scalars):
    zero, six = type(x)(0), type(x)(6)
    y = x + type(x)(3)
    y = zero if y < zero else y
    return (six if y > six else y) / six


def clamp_min(x, scalars):
    low = type(x)(scalars[0])
    return low if x < low else x


def clamp_max(x, scalars):
    high = type(x)(scalars[0])
    return high if x > high else x


def log_sigmoid(x, scalars):
    least = x if x < type(x)(0) else type(x)(0)
    return least - math.log1p(math.exp(-abs(x)))


def softplus_of(x):
    zero = type(x)(0)
    return (x if x > zero else zero) + math.log1p(math.exp(-abs(x)))


def mish(x, scalars):
    return x * math.tanh(softplus_of(x))


def number_to_the_power(x, scalars):
    return type(x)(scalars[0]) ** x


# ---------------------------------------------------------------------------------------------- two arguments


def floor_divide(x, y, scalars):
    return x // y


def trunc_divide(x, y, scalars):
    return trunc_of(x / y)


def remainder(x, y, scalars):
    """With the sign of y."""
    r = math.fmod(x, y)
    return r + y if r != type(x)(0) and (r < type(x)(0)) != (y < type(x)(0)) else r


def integer_remainder(x, y, scalars):
    return x % y


def fmod(x, y, scalars):
    return math.fmod(x, y)


def fmax(x, y, scalars):
    return x if x > y or y != y else y


def fmin(x, y, scalars):
    return x if x < y or y != y else y


def logical_and(x, y, scalars):
    return x != type(x)(0) and y != type(y)(0)


def logical_or(x, y, scalars):
    return x != type(x)(0) or y != type(y)(0)


def logical_xor(x, y, scalars):
    return (x != type(x)(0)) != (y != type(y)(0))


def bitwise_and(x, y, scalars):
    return x & y


def bitwise_or(x, y, scalars):
    return x | y


def bitwise_xor(x, y, scalars):
    return x ^ y


def rsub(x, y, scalars):
    """y - alpha · x; scalars: alpha."""
    return y - x * type(x)(scalars[0])


def lerp_by_number(start, end, scalars):
    """scalars: weight."""
    weight = type(start)(scalars[0])
    near = start + weight * (end - start)
    return near if abs(weight) < type(start)(0.5) else end - (end - start) * (type(start)(1) - weight)


def squared_difference(x, y, scalars):
    return (x - y) * (x - y)


def absolute_difference(x, y, scalars):
    return abs(x - y)


def smooth_l1(x, y, scalars):
    """scalars: beta."""
    z, beta = abs(x - y), type(x)(scalars[0])
    return type(x)(0.5) * z * z / beta if z < beta else z - type(x)(0.5) * beta


def huber(x, y, scalars):
    """scalars: delta."""
    z, delta = abs(x - y), type(x)(scalars[0])
    return type(x)(0.5) * z * z if z <= delta else delta * (z - type(x)(0.5) * delta)


def soft_margin(x, y, scalars):
    return math.log1p(math.exp(-y * x))


def is_close(x, y, scalars):
    """scalars: rtol, atol, whether two nans are close."""
    if x == y:
        return True
    if x != x or y != y:
        return scalars[2] != 0 and x != x and y != y
    difference = abs(x - y)
    return difference - difference == type(x)(0) and difference <= type(x)(scalars[1]) + abs(
        type(x)(scalars[0]) * y
    )


# -------------------------------------------------------------------------------------- gradients of
# activations


def elu_backward(grad, x, scalars):
    """scalars: as for elu, then whether x is elu's result."""
    zero = type(x)(0)
    below, above, inside = type(x)(scalars[0]), type(x)(scalars[1]), type(x)(scalars[2])
    if x > zero:
        return grad * above
    if scalars[3] != 0:
        return grad * inside * (x + below)
    return grad * inside * below * math.exp(x * inside)


def softplus_backward(grad, x, scalars):
    z = math.exp(x * type(x)(scalars[0]))
    return grad if x * type(x)(scalars[0]) > type(x)(scalars[1]) else grad * z / (z + type(x)(1))


def hardtanh_backward(grad, x, scalars):
    return type(grad)(0) if x <= type(x)(scalars[0]) or x >= type(x)(scalars[1]) else grad


def hardsigmoid_backward(grad, x, scalars):
    return grad / type(x)(6) if x > type(x)(-3) and x < type(x)(3) else type(grad)(0)


def hardswish_backward(grad, x, scalars):
    if x <= type(x)(-3):
        return type(grad)(0)
    return grad * (x / type(x)(3) + type(x)(0.5)) if x < type(x)(3) else grad


def mish_backward(grad, x, scalars):
    t = math.tanh(softplus_of(x))
    s = type(x)(1) / (type(x)(1) + math.exp(-x))
    return grad * (t + x * s * (type(x)(1) - t * t))


def log_sigmoid_backward(grad, x, scalars):
    return grad / (type(x)(1) + math.exp(x))


def prelu(x, slope, scalars):
    return x if x > type(x)(0) else x * slope


def prelu_slope_backward(grad, x, scalars):
    return type(x)(0) if x > type(x)(0) else grad * x


def gated(x, gate, scalars):
    """x · sigmoid(gate)"""
    return x / (type(x)(1) + math.exp(-gate))


def gated_backward(grad, x, gate, scalars):
    """By the gate."""
    s = type(x)(1) / (type(x)(1) + math.exp(-gate))
    return grad * x * s * (type(x)(1) - s)


def xlogy(x, y, scalars):
    """0 where x is 0, but for a nan in y."""
    if y != y:
        return y
    return x * math.log(y) if x != type(x)(0) else type(x)(0)


# ------------------------------------------------------------------------------------------- three arguments


def clamp_between(x, low, high, scalars):
    x = low if x < low else x
    return high if x > high else x


def masked_fill(x, mask, scalars):
    return type(x)(scalars[0]) if mask else x


def dropped(x, kept, scalars):
    """scalars: scale."""
    return x * type(x)(scalars[0]) if kept else type(x)(0)


def squared_difference_backward(grad, x, y, scalars):
    """scalars: 2, or 2 / count for the mean."""
    return type(x)(scalars[0]) * (x - y) * grad


def smooth_l1_backward(grad, x, y, scalars):
    """scalars: 1 or 1 / count, beta."""
    z, beta, norm = x - y, type(x)(scalars[1]), type(x)(scalars[0])
    if z <= -beta:
        return -norm * grad
    return norm * grad if z >= beta else norm * z * grad / beta


def huber_backward(grad, x, y, scalars):
    """scalars: 1 or 1 / count, delta."""
    z, delta, norm = x - y, type(x)(scalars[1]), type(x)(scalars[0])
    if z <= -delta:
        return -norm * grad * delta
    return norm * grad * delta if z >= delta else norm * z * grad


def soft_margin_backward(grad, x, y, scalars):
    """scalars: 1 or 1 / count."""
    z = math.exp(-y * x)
    return -y * z / (z + type(x)(1)) * grad * type(x)(scalars[0])


def prelu_backward(grad, x, slope, scalars):
    return grad if x > type(x)(0) else grad * slope
