"""Box-Muller in float32, with the vector logarithm, sine and cosine that PyTorch's AVX2 kernel uses.

Note [The vector normal]
`randn` of 16 or more float32 does not call libm. PyTorch's kernel computes log, sin and cos with polynomials that work
on eight numbers at once (they go back to the Cephes library), and their last bits differ from libm's. So we evaluate
the same polynomials in the same order, with every `a * b + c` rounded once, where PyTorch's compiler rounds once. All
arguments are in range here (uniform numbers in (0, 1], angles in [0, 2 pi)), so what the general functions do for
negative, denormal or huge arguments is left out.

In PyTorch: `NormalFill16<float, true>` (`native/cpu/DistributionTemplates.h`) and
`aten/src/ATen/native/cpu/avx_mathfun.h`.
"""

import math

import numpy as np
from numba import njit

from readtorch.aten.cpu.vec import LOG, LOG_2_HIGH, LOG_2_LOW, SQRT_HALF, bits_of, float_of
from readtorch.aten.cpu.vec.multiply_add import fma
from readtorch.c10.codecache import cached

from .distribution_templates import CHUNK, uniform_float

f32 = np.float32
ONE, HALF, TWO_PI, FOUR_OVER_PI = f32(1), f32(0.5), f32(2 * math.pi), f32(4 / math.pi)
# pi / 4 in three pieces, negated
EIGHTH_1, EIGHTH_2, EIGHTH_3 = f32(-0.78515625), f32(-2.4187564849853515625e-4), f32(-3.77489497744594108e-8)
SIN_0, SIN_1, SIN_2 = f32(-1.9515295891e-4), f32(8.3321608736e-3), f32(-1.6666654611e-1)
COS_0, COS_1, COS_2 = f32(2.443315711809948e-5), f32(-1.388731625493765e-3), f32(4.166664568298827e-2)


@njit(inline="always")
def log(x):
    """Natural logarithm for 0 < x <= 1: exponent and mantissa apart, then a polynomial around 1."""
    bits = bits_of(x)
    exponent = f32(np.int32((bits >> np.int32(23)) - np.int32(0x7F))) + ONE
    mantissa = float_of(np.int32((bits & np.int32(0x007FFFFF)) | np.int32(0x3F000000)))
    small = mantissa < SQRT_HALF
    exponent = exponent - (ONE if small else f32(0))
    t = (mantissa - ONE) + (mantissa if small else f32(0))
    square = t * t
    y = LOG[0]
    for i in range(1, 9):
        y = fma(y, t, LOG[i])
    y = fma(y * t, square, exponent * LOG_2_LOW)
    y = fma(-square, HALF, y)
    return fma(exponent, LOG_2_HIGH, t + y)


@njit(inline="always")
def sin_cos(x):
    """Sine and cosine for x >= 0: distance to the nearest quarter turn, a polynomial each, swap and sign."""
    eighth = np.int32(x * FOUR_OVER_PI)
    eighth = np.int32((eighth + np.int32(1)) & ~np.int32(1))
    count = f32(eighth)
    t = fma(count, EIGHTH_1, x)
    t = fma(count, EIGHTH_2, t)
    t = fma(count, EIGHTH_3, t)
    square = t * t
    cosine = fma(fma(COS_0, square, COS_1), square, COS_2) * square
    cosine = fma(cosine, square, -(square * HALF)) + ONE
    sine = fma(fma(SIN_0, square, SIN_1), square, SIN_2) * square
    sine = fma(sine, t, t)
    swapped = (eighth & np.int32(2)) != 0
    sine_sign = np.int32((eighth & np.int32(4)) << np.int32(29))
    cosine_sign = np.int32((~(eighth - np.int32(2)) & np.int32(4)) << np.int32(29))
    return (
        float_of(bits_of(cosine if swapped else sine) ^ sine_sign),
        float_of(bits_of(sine if swapped else cosine) ^ cosine_sign),
    )


@cached
def box_muller_float(data, mean, std):
    """Turn 16 uniform numbers at a time into normal ones, in place: 8 radii, then 8 angles.

    The numbers are sorted into two arrays first, or LLVM would not see that the loop can be vectorized.
    """
    half = CHUNK // 2
    first, second = np.empty(half, f32), np.empty(half, f32)
    for start in range(0, data.size - 15, CHUNK):
        chunk = data[start : start + CHUNK]
        blocks = chunk.size // 16
        for i in range(8 * blocks):
            first[i] = chunk[i + (i & ~7)]  # i // 8 blocks of 16 lie before it, not of 8
            second[i] = chunk[i + (i & ~7) + 8]
        for i in range(8 * blocks):
            radius = f32(math.sqrt(f32(-2) * log(ONE - first[i])))
            sine, cosine = sin_cos(TWO_PI * second[i])
            first[i] = fma(radius * cosine, std, mean)
            second[i] = fma(radius * sine, std, mean)
        for i in range(8 * blocks):
            chunk[i + (i & ~7)] = first[i]
            chunk[i + (i & ~7) + 8] = second[i]


@cached
def normal_float(state, out, mean, std):
    """The path of 16 numbers and more. If they are no multiple of 16, the last 16 are drawn anew."""
    uniform_float(state, out, 0.0, 1.0)
    box_muller_float(out, f32(mean), f32(std))
    if out.size % 16:
        uniform_float(state, out[-16:], 0.0, 1.0)
        box_muller_float(out[-16:], f32(mean), f32(std))


@cached
def normal_reduced(state, out, mean, std):
    """The same for float16 and bfloat16, before rounding: an incomplete block is not drawn at first here."""
    whole = out.size - out.size % 16
    normal_float(state, out[:whole], mean, std)
    if whole < out.size:
        normal_float(state, out[-16:], mean, std)
