"""exp, expm1, log, tanh, erf, sigmoid of one float32 or float64, without a branch or a call, so that LLVM turns a loop over
them into vector instructions. sin and cos are in sine.py; log1p and pow in vector_math.py.

Note [ Functions that vectorize ]
A loop that calls libm computes one number at a time. So the forms here are polynomials, with conditions written as
choices between two values. log of float32 goes back to the Cephes library (S. Moshier), that of float64 to fdlibm (Sun
Microsystems); erf of float32 is the rational approximation of Eigen and XLA. The other coefficients minimize the
largest relative error in their interval (found with the algorithms of E. Remez and C. Lawson). Errors stay below 2
units in the last place; for sigmoid and float64's tanh below 3, for float32's tanh below 6 and erf below 8. `exp` of a
very negative number underflows through the denormal numbers to 0, as it should: attention relies on exp(-inf) = 0.

In PyTorch: `aten/src/ATen/cpu/vec/vec.h`; in `vec512/vec512_float.h` these functions call the SLEEF library.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from .multiply_add import fma
from readtorch.aten.cpu.compile import scalar

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64
ZERO, HALF, ONE, TWO = f32(0), f32(0.5), f32(1), f32(2)


def reinterpreted(given, wanted):
    """A function from one type to another of the same width that keeps the bits."""

    @intrinsic
    def convert(typing_context, x):
        def emit(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(wanted))

        return wanted(given), emit

    return convert


bits_of, float_of = reinterpreted(types.float32, types.int32), reinterpreted(types.int32, types.float32)
bits_of_f64, float_of_f64 = reinterpreted(types.float64, types.int64), reinterpreted(types.int64, types.float64)


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


def bound(name, comparison):
    """The same with a nan kept: `limit` if `x` is beyond it. (Two of Python's `if`s LLVM would make one choice of three.)"""

    @intrinsic
    def pick(typing_context, x, limit):
        def emit(context, builder, signature, arguments):
            x, limit = arguments
            return builder.select(builder.fcmp_ordered(comparison, x, limit), limit, x)

        return x(x, x), emit

    pick.__name__ = name
    return pick


at_least, at_most = bound("at_least", "<"), bound("at_most", ">")


@scalar
def horner(x, c):
    """c₀ xⁿ + … + cₙ, each step a multiply-add."""
    y = c[0]
    for i in range(1, len(c)):
        y = fma(y, x, c[i])
    return y


def constants(*values):
    return tuple(f32(v) for v in values)


# ----------------------------------------------------------------------------------------------------------- exp


def exponentials(number, digits, bits_of, float_of, smallest, largest, high, low, coefficients):
    """exp and expm1 for one floating-point format. digits: binary ones of its mantissa, after the point.

    smallest, largest: beyond these eˣ is 0 or infinity. high + low: log 4. coefficients: of (eʳ - 1 - r) / r².
    """
    # The numbers around this one are whole: to add it rounds, and the sum's last bits are the rounded number.
    to_whole = number(1.5 * 2.0**digits)
    per_log_4, one = number(1 / (float(high) + float(low))), number(1)
    large = number(int(digits))  # beyond it eˣ has no place for the 1 that expm1 takes off

    @scalar
    def parts(x):
        """x = n log 4 + r: (eʳ - 1, 2ⁿ)."""
        x = at_most(at_least(x, smallest), largest)
        shifted = fma(x, per_log_4, to_whole)
        n = shifted - to_whole
        r = fma(n, -low, fma(n, -high, x))
        power = float_of((bits_of(shifted) << digits) + bits_of(one))  # n goes into the exponent
        return fma(horner(r, coefficients), r * r, r), power

    @scalar
    def exp(x):
        """eʳ 2ⁿ 2ⁿ: in two steps, since 4ⁿ may not be a normal number."""
        more, power = parts(x)
        return fma(more, power, power) * power

    @scalar
    def expm1(x):
        """4ⁿ (eʳ - 1) + (4ⁿ - 1), which keeps the digits of a small x; of -0, too."""
        more, power = parts(x)
        whole = power * power
        few = fma(whole, more, whole - one) if x != 0 else x
        return fma(more, power, power) * power if x > large else few

    return exp, expm1


exp_f32, expm1_f32 = exponentials(
    f32,
    i32(23),
    bits_of,
    float_of,
    f32(-104),
    f32(89),
    f32(1.38671875),
    f32(-4.2438888e-4),
    constants(1.960930967e-4, 1.410633442e-3, 8.336154744e-3, 4.166117683e-2, 1.666660905e-1, 5.000003576e-1),
)
exp_f64, expm1_f64 = exponentials(
    f64,
    i64(52),
    bits_of_f64,
    float_of_f64,
    -746.0,
    710.0,
    1.3862943611197807,
    1.0995846037416742e-13,
    (
        1.5935543673751773e-10,
        2.106242319149735e-09,
        2.50550358444504e-08,
        2.755615696267179e-07,
        2.7557300627675395e-06,
        2.480159083443528e-05,
        0.00019841269892862504,
        0.001388888888356935,
        0.008333333333269794,
        0.04166666666670213,
        0.16666666666666938,
        0.4999999999999993,
    ),
)

LOG_2, LOG_2_HIGH, LOG_2_LOW = 0.6931471805599453, f32(0.693359375), f32(-2.12194440e-4)
EXP_NARROW = constants(1.38131448e-3, 8.36941879e-3, 4.16684560e-2, 1.66665152e-1, 4.99999940e-1)
TO_WHOLE, DIGITS = f32(1.5 * 2**23), i32(23)
NORMAL_LEAST, NORMAL_GREATEST = f32(-86.6), f32(88.73)


@scalar
def exp_normal(x):
    """eˣ for sums like 1 + eˣ, and quicker: below -86.6 it stays e^-86.6."""
    x = at_most(at_least(x, NORMAL_LEAST), NORMAL_GREATEST)
    shifted = fma(x, f32(1 / LOG_2), TO_WHOLE)
    n = shifted - TO_WHOLE
    r = fma(n, -LOG_2_LOW, fma(n, -LOG_2_HIGH, x))
    twice = fma(fma(horner(r, EXP_NARROW), r * r, r), TWO, TWO)
    return twice * float_of((bits_of(shifted) << DIGITS) + bits_of(HALF))  # 2ⁿ⁻¹: 2¹²⁸ would be infinite


# ----------------------------------------------------------------------------------------------------------- log


LOG = constants(
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
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


LOG_F64 = (
    0.1479742422410504,
    0.15313912163270227,
    0.18183569362948215,
    0.2222219848395708,
    0.28571428743175215,
    0.3999999999941155,
    0.6666666666666735,
)
SQRT_HALF_BITS = i64(np.float64(np.sqrt(0.5)).view(np.int64))
MANTISSA, LEAST_NORMAL_F64 = i64(2**52 - 1), 2.0**-1022
LOG_2_HIGH_F64, LOG_2_LOW_F64 = 0.693147180559663, 2.8235290563031577e-13


@scalar
def log_f64(x):
    """The same, but for the polynomial: with s = t / (2 + t), log(1 + t) = 2 artanh s."""
    denormal = x < LEAST_NORMAL_F64
    bits = bits_of_f64(x * 2.0**54 if denormal else x) - SQRT_HALF_BITS
    exponent = f64(bits >> i64(52)) - (54.0 if denormal else 0.0)
    t = float_of_f64((bits & MANTISSA) + SQRT_HALF_BITS) - 1.0
    s, half = t / (2.0 + t), 0.5 * t * t
    y = fma(exponent, LOG_2_LOW_F64, s * fma(horner(s * s, LOG_F64), s * s, half))
    y = fma(exponent, LOG_2_HIGH_F64, t - (half - y))
    y = y if x < np.inf else x
    return y if x > 0 else (-np.inf if x == 0 else np.nan)


# ---------------------------------------------------------------------------------------------------------- tanh


TANH_ODD = constants(1.37147680e-8, 2.08654637e-5, 3.51105793e-3, 1.33940235e-1, 1)
TANH_EVEN = constants(7.92282833e-7, 3.31100455e-4, 2.59357467e-2, 4.67273414e-1, 1)
TANH_GREATEST = f32(8.202901)  # where the quotient is 1; above it rounding would make it more


@scalar
def tanh_f32(x):
    """x times a quotient of polynomials in x². The division comes last: 1 + tanh x must be 0 where tanh x is -1."""
    t = at_least(at_most(x, TANH_GREATEST), -TANH_GREATEST)
    square = t * t
    return t * horner(square, TANH_ODD) / horner(square, TANH_EVEN)


@scalar
def tanh_f64(x):
    """(e²ˣ - 1) / (e²ˣ + 1)."""
    more = expm1_f64(2 * at_most(at_least(x, -20.0), 20.0))
    return more / (more + 2)


# ----------------------------------------------------------------------------------------------------------- erf


ERF_ODD = constants(
    1.91110559e-8, -1.94232894e-6, 1.47287938e-4, 3.99061386e-3, 5.15249968e-2, 2.07126096e-1, 1.12837911
)
ERF_EVEN = constants(1.02112431e-3, 1.49581460e-2, 1.17971100e-1, 5.16891956e-1, 1)
ERF_GREATEST = f32(3.6518462)  # as for tanh


@scalar
def erf_f32(x):
    """As tanh."""
    t = at_least(at_most(x, ERF_GREATEST), -ERF_GREATEST)
    square = t * t
    return t * horner(square, ERF_ODD) / horner(square, ERF_EVEN)


# 1.1283791670955126 is 2/√π, the derivative at 0.
ERF_NEAR = (
    -7.775949753591502e-10,
    1.370911930865474e-08,
    -1.6205889327095021e-07,
    1.6447076958714514e-06,
    -1.4924707945920248e-05,
    0.00012055293354091474,
    -0.0008548325922008779,
    0.005223977605969401,
    -0.02686617064309375,
    0.11283791670944077,
    -0.37612638903183515,
    1.1283791670955126,
)
ERF_FAR = (
    1.264495958707079e-06,
    2.006874818442368e-06,
    -8.006956197764108e-06,
    -1.2842926108427281e-05,
    6.406264906618936e-05,
    4.525389841174799e-05,
    -0.000597062513024901,
    0.0007077465007321185,
    0.004269136358887628,
    -0.02439249932020855,
    0.07166583719741128,
    -0.1501159365007573,
    0.24560380171233545,
    -0.32623356004303733,
    0.17900115118138996,
)


@scalar
def erf_f64(x):
    """Up to 1 a polynomial in x²; from there on 1 - e^-x² times one in (x - 3) / (x + 3). At 6 it rounds to 1."""
    a = at_most(abs(x), 6.0)
    far = 1 - exp_f64(-a * a) * horner((a - 3) / (a + 3), ERF_FAR)
    return x * horner(a * a, ERF_NEAR) if a < 1 else (far if x > 0 else -far)


# ------------------------------------------------------------------------------------------------ of either width


def by_width(name, narrow, wide):
    """A function for kernels: `narrow` for float32 arguments, `wide` for float64."""

    def function(x):
        raise TypeError(f"{name} is for compiled loops")

    @overload(function, inline="always")
    def compiled(x):
        return (lambda x: narrow(x)) if x is types.float32 else (lambda x: wide(x))

    return function


exp = by_width("exp", exp_f32, exp_f64)
expm1 = by_width("expm1", expm1_f32, expm1_f64)
log = by_width("log", log_f32, log_f64)
tanh = by_width("tanh", tanh_f32, tanh_f64)
erf = by_width("erf", erf_f32, erf_f64)


@scalar
def sigmoid_f32(x):
    return ONE / (ONE + exp_normal(-x))


@scalar
def sigmoid_f64(x):
    return 1 / (1 + exp_f64(-x))


sigmoid = by_width("sigmoid", sigmoid_f32, sigmoid_f64)
