"""exp, log, tanh, sigmoid, erf of one number, without a branch or a call: LLVM makes vector instructions of a loop over them.

Note [ Functions that vectorize ]
A loop that calls libm computes one number at a time. So the float32 forms here are polynomials, with conditions written
as choices between two values. exp and log go back to the Cephes library (S. Moshier), tanh and erf are the rational
approximations of Eigen and XLA. Errors stay below 2 units in the last place (tanh, erf: 6). `exp` of a very negative
number underflows through the denormal numbers to 0, as it should: attention relies on exp(-inf) = 0. float64 arguments
go to libm.

In PyTorch: `aten/src/ATen/cpu/vec/vec512/vec512_float.h`, which calls the SLEEF library.
"""
import math

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from .multiply_add import fma
from .compile import scalar

f32, i32 = np.float32, np.int32
ZERO, HALF, ONE, TWO = f32(0), f32(0.5), f32(1), f32(2)
LOG2_E, LOG_2_HIGH, LOG_2_LOW = f32(1.44269504088896341), f32(0.693359375), f32(-2.12194440e-4)


@intrinsic
def bits_of(typing_context, x):
    """The bits of a float32, as an int32."""
    def emit(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))
    return types.int32(types.float32), emit


@intrinsic
def float_of(typing_context, bits):
    """The float32 that has these bits."""
    def emit(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))
    return types.float32(types.int32), emit


@intrinsic
def nearest(typing_context, x):
    """The nearest whole number, a half going to the even one."""
    def emit(context, builder, signature, arguments):
        return builder.call(builder.module.declare_intrinsic("llvm.rint", [arguments[0].type]), arguments)
    return x(x), emit


def choose(name):
    """The greater or smaller of two numbers as one instruction; a nan loses. (Python's `max` in a sum is a branch.)"""
    @intrinsic
    def pick(typing_context, a, b):
        def emit(context, builder, signature, arguments):
            kind = arguments[0].type
            from llvmlite import ir
            function = builder.module.declare_intrinsic(f"llvm.{name}", [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, arguments, fastmath=("nnan", "nsz"))
        return a(a, a), emit
    return pick


greater, smaller = choose("maxnum"), choose("minnum")


@scalar
def horner(x, c):
    """c₀ xⁿ + … + cₙ, each step a multiply-add."""
    y = c[0]
    for i in range(1, len(c)):
        y = fma(y, x, c[i])
    return y


def constants(*values):
    return tuple(f32(v) for v in values)


EXP = constants(1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
EXP_LEAST, EXP_GREATEST = f32(-104), f32(89)


@scalar
def power_of_two(n):
    """2ⁿ for -126 <= n <= 127, made from its exponent; infinity for 128."""
    return float_of((n + i32(127)) << i32(23))


@scalar
def exp_f32(x):
    """x = n log 2 + r, so eˣ = 2ⁿ eʳ. 2ⁿ is multiplied in two halves, as it may not be a normal number."""
    x = EXP_LEAST if x < EXP_LEAST else x
    x = EXP_GREATEST if x > EXP_GREATEST else x
    n = nearest(x * LOG2_E)
    r = fma(n, -LOG_2_LOW, fma(n, -LOG_2_HIGH, x))
    y = fma(horner(r, EXP) * r, r, r) + ONE
    whole = i32(n)
    half = whole >> i32(1)
    return y * power_of_two(half) * power_of_two(whole - half)


NORMAL_LEAST = f32(-87)


@scalar
def exp_normal(x):
    """eˣ of a float32, where it is a normal number: e^-87 for less, infinity from 88.4 on. A nan is not kept.

    A third faster than `exp`: for sums like 1 + eˣ, which feel no difference.
    """
    x = greater(smaller(x, EXP_GREATEST), NORMAL_LEAST)
    n = nearest(x * LOG2_E)
    r = fma(n, -LOG_2_LOW, fma(n, -LOG_2_HIGH, x))
    return (fma(horner(r, EXP) * r, r, r) + ONE) * power_of_two(i32(n))


LOG = constants(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)
LEAST_NORMAL, SQRT_HALF, TO_NORMAL = f32(1.17549435e-38), f32(0.70710678), f32(2**23)
INFINITY, NAN = f32(np.inf), f32(np.nan)


@scalar
def log_f32(x):
    """Exponent and mantissa apart, then a polynomial around 1."""
    denormal = x < LEAST_NORMAL
    bits = bits_of(x * TO_NORMAL if denormal else x)
    exponent = f32((bits >> i32(23)) - i32(126)) - (f32(23) if denormal else ZERO)
    mantissa = float_of((bits & i32(0x007FFFFF)) | i32(0x3F000000))
    low = mantissa < SQRT_HALF
    exponent = exponent - (ONE if low else ZERO)
    t = (mantissa + mantissa if low else mantissa) - ONE
    square = t * t
    y = fma(exponent, LOG_2_LOW, horner(t, LOG) * t * square)
    y = fma(exponent, LOG_2_HIGH, t + fma(square, -HALF, y))
    y = y if x < INFINITY else x  # infinity and nan
    return y if x > ZERO else (-INFINITY if x == ZERO else NAN)


TANH_ODD = constants(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
                     1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)
TANH_EVEN = constants(1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
TANH_GREATEST = f32(7.99881172180175781)  # where tanh rounds to 1


@scalar
def tanh_f32(x):
    """x times a quotient of polynomials in x²."""
    t = TANH_GREATEST if x > TANH_GREATEST else x
    t = -TANH_GREATEST if t < -TANH_GREATEST else t
    square = t * t
    return t * horner(square, TANH_ODD) / horner(square, TANH_EVEN)


ERF_ODD = constants(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
                    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)
ERF_EVEN = constants(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
                     -1.42647390514189e-02)
ERF_GREATEST = f32(4)


@scalar
def erf_f32(x):
    """As tanh."""
    t = ERF_GREATEST if x > ERF_GREATEST else x
    t = -ERF_GREATEST if t < -ERF_GREATEST else t
    square = t * t
    return t * horner(square, ERF_ODD) / horner(square, ERF_EVEN)


def by_width(name, narrow, wide):
    """A function for kernels: `narrow` for float32 arguments, libm for float64."""
    def function(x):
        raise TypeError(f"{name} is for compiled loops")

    @overload(function, inline="always")
    def compiled(x):
        return (lambda x: narrow(x)) if x is types.float32 else (lambda x: wide(x))
    return function


exp = by_width("exp", exp_f32, math.exp)
log = by_width("log", log_f32, math.log)
tanh = by_width("tanh", tanh_f32, math.tanh)
erf = by_width("erf", erf_f32, math.erf)


@scalar
def sigmoid(x):
    """1 / (1 + e⁻ˣ), of either width."""
    one = type(x)(1)
    return one / (one + exp(-x))
