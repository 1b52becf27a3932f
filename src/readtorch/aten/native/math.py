"""Functions of single elements, written once: the CUDA kernels (`pointwise` in cuda/loops.py) and the fuser's loops call them.

Each computes in the width of its arguments. The last argument is a tuple of scalars: what PyTorch's operators take as Scalar.
A nan goes through.

In PyTorch: `aten/src/ATen/native/Math.h`, and the lambdas in `aten/src/ATen/native/cuda/UnaryOpsKernel.cu`,
`BinaryMulKernel.cu`, `ActivationGeluKernel.cu` and their neighbors.
"""

import math

import numpy as np

from readtorch.c10.cuda.compile import Intrinsic

f32 = np.float32


# Rounding to whole numbers that are still floats: `math.floor` gives an integer, which a nan, an infinity or 1e30 do not fit
# into. The chip has an instruction for each of the four, in each width.


def of_libdevice(name):
    """CUDA's function of this name in its argument's width: `floor` for float64, `floorf` for float32."""

    def make():
        from llvmlite import ir
        from numba import types
        from numba.core import cgutils
        from numba.cuda.extending import intrinsic

        @intrinsic
        def rounded(typing, x):
            def emit(context, builder, signature, arguments):
                number = context.get_value_type(x)
                kind = ir.FunctionType(number, [number])
                known = f"__nv_{name}f" if x is types.float32 else f"__nv_{name}"
                function = cgutils.get_or_insert_function(builder.module, kind, known)
                return builder.call(function, arguments)

            return x(x), emit

        return rounded

    return make


floor_of = Intrinsic(np.floor, of_libdevice("floor"))
ceil_of = Intrinsic(np.ceil, of_libdevice("ceil"))
trunc_of = Intrinsic(np.trunc, of_libdevice("trunc"))
rint_of = Intrinsic(np.rint, of_libdevice("rint"))


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
    return x**y


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


def threshold(x, scalars):
    """scalars: threshold, value."""
    return type(x)(scalars[1]) if x <= type(x)(scalars[0]) else x


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


def log2(x, scalars):
    return math.log2(x)


def log10(x, scalars):
    return math.log10(x)


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


def is_zero(x, scalars):
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


def hardshrink(x, scalars):
    """scalars: lambd."""
    return type(x)(0) if abs(x) <= type(x)(scalars[0]) else x


def softshrink(x, scalars):
    lambd = type(x)(scalars[0])
    if x > lambd:
        return x - lambd
    return x + lambd if x < -lambd else x * type(x)(0)


def log_sigmoid(x, scalars):
    least = x if x < type(x)(0) else type(x)(0)
    return least - math.log1p(math.exp(-abs(x)))


def tanh_softplus(x):
    """With e = exp(x): tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2). From 20 on it rounds to 1."""
    most, two = type(x)(20), type(x)(2)
    e = math.exp(most if x > most else x)
    n = e * (e + two)
    return n / (n + two)


def mish(x, scalars):
    return x * tanh_softplus(x)


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


def nonzero_and(x, y, scalars):
    return x != type(x)(0) and y != type(y)(0)


def nonzero_or(x, y, scalars):
    return x != type(x)(0) or y != type(y)(0)


def nonzero_xor(x, y, scalars):
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


def add_number(x, scalars):
    return x + type(x)(scalars[0])


def mul_number(x, scalars):
    return x * type(x)(scalars[0])


def div_by_number(x, scalars):
    return x / type(x)(scalars[0])


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
    return difference - difference == type(x)(0) and difference <= type(x)(scalars[1]) + abs(type(x)(scalars[0]) * y)


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


def hardtanh_backward_vectorized(grad, x, scalars):
    """As PyTorch's vector instructions on the CPU have it: of a nan nothing comes back, while above its gradient does."""
    return grad if x > type(x)(scalars[0]) and x < type(x)(scalars[1]) else type(grad)(0)


def hardsigmoid_backward(grad, x, scalars):
    return grad / type(x)(6) if x > type(x)(-3) and x < type(x)(3) else type(grad)(0)


def hardswish_backward(grad, x, scalars):
    if x <= type(x)(-3):
        return type(grad)(0)
    return grad * (x / type(x)(3) + type(x)(0.5)) if x < type(x)(3) else grad


def hardswish_backward_vectorized(grad, x, scalars):
    """As PyTorch's vector instructions on the CPU have it: of a nan comes a nan."""
    y = grad * (x / type(x)(3) + type(x)(0.5))
    y = grad if x >= type(x)(3) else y
    return type(grad)(0) if x <= type(x)(-3) else y


def mish_backward(grad, x, scalars):
    t = tanh_softplus(x)
    return grad * (t + x * logistic(x) * (type(x)(1) - t * t))


def shrink_backward(grad, x, scalars):
    """scalars: lambd, which may be negative: then nothing is shrunk."""
    lambd = type(x)(scalars[0])
    return type(grad)(0) if x >= -lambd and x <= lambd else grad


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


def fill_masked(x, mask, scalars):
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


# ------------------------------------------------------------------------------------------------------ signs


def copysign(x, y, scalars):
    return math.copysign(x, y)


def signbit(x, scalars):
    """Also of -0."""
    return math.copysign(type(x)(1), x) < type(x)(0)


def is_negative(x, scalars):
    """The sign bit of an integer."""
    return x < type(x)(0)


def never(x, scalars):
    return False


def always(x, scalars):
    return True


def on_real_axis(z, scalars):
    return z.imag == 0


def is_infinite(x, scalars):
    """scalars: which infinity."""
    return x == type(x)(scalars[0])


def heaviside(x, at_zero, scalars):
    return at_zero if x == type(x)(0) else type(x)(int(x > type(x)(0)))


def angle(x, scalars):
    """In the complex plane: π for what is less than 0. A nan stays."""
    return x if x != x else (type(x)(math.pi) if x < type(x)(0) else type(x)(0))


def angle_of_complex(z, scalars):
    return math.atan2(z.imag, z.real)


def conjugate(z, scalars):
    return z.conjugate()


def direction(z, scalars):
    """The number on the unit circle; 0 of 0."""
    return z / math.hypot(z.real, z.imag) if z != type(z)(0) else z


# ------------------------------------------------------------------------------------------ parts of a number


def times(x, scalars):
    return x * type(x)(scalars[0])


def fraction(x, scalars):
    """What is behind the point, with the sign of x; nan of an infinity."""
    return x - x if x - x != type(x)(0) else math.fmod(x, type(x)(1))


def mantissa(x, scalars):
    return math.frexp(x)[0]


def exponent(x, scalars):
    return math.frexp(x)[1]


def nextafter(x, y, scalars):
    return math.nextafter(x, y)


def hypot(x, y, scalars):
    return math.hypot(x, y)


# ---------------------------------------------------------------------------------------- divisors and shifts


def common_divisor(x, y):
    """Euclid's: the remainder takes the place of the larger number until nothing remains."""
    x, y = abs(x), abs(y)
    while y != 0:
        x, y = y, x % y
    return x


def gcd(x, y, scalars):
    return common_divisor(x, y)


def lcm(x, y, scalars):
    divisor = common_divisor(x, y)
    return abs(x) // divisor * abs(y) if divisor != 0 else divisor


def shift_left(x, y, scalars):
    """scalars: how many bits x has. Shifting by so many or more, or by a negative number, gives 0."""
    return x << y if y >= 0 and y < scalars[0] else type(x)(0)


def shift_right(x, y, scalars):
    """Shifting by as many bits as x has, or by a negative number, leaves only the sign."""
    return x >> y if y >= 0 and y < scalars[0] else type(x)(-int(x < 0))
