"""sin and cos of one float32, for loops over many: see Note [ Functions that vectorize ] in `__init__.py`. Errors stay below 3
units in the last place. Those of a float64 are libm's.

Note [ Turns ] An angle is first counted in whole turns, of which only what is left over matters: for
x = 10³⁰ that is what comes after the thirtieth digit of x / 2π, and float64 has sixteen digits. So 1 / 2π is cut into
pieces of 29 bits. As x has 24, its product with a piece is exact, and the whole turns of each product are dropped
before it is added to the others. With the sixth piece, which may be of any length, even the largest float32 leaves
less than half a turn. (M. Payne and R. Hanek, 1983, look up the pieces that matter for one x; for a loop over many it
is quicker to take them all.)

In PyTorch: SLEEF's functions, called by `aten/src/ATen/cpu/vec/vec.h`'s classes (`vec512/vec512_float.h`).
"""

import math

import numpy as np

from readtorch.aten.cpu.compile import scalar

from . import bits_of_f64, by_width, constants, float_of_f64, horner, nearest

f32, f64, i64 = np.float32, np.float64, np.int64

TURN = [0x517CC1B, 0xE4E4415, 0x53F84EA, 0x1F47D4D3, 0xEE06DB1]  # 1 / 2π, 29 bits each
T0, T1, T2, T3, T4 = (math.ldexp(bits, -29 * (k + 1)) for k, bits in enumerate(TURN))
T5 = 6.551007954373285e-45  # what remains of it
SINE = constants(-2.3909374e-8, 2.7526628e-6, -1.9840895e-4, 8.333331e-3, -1.6666667e-1, 1)
TO_WHOLE = 1.5 * 2.0**52  # as `to_whole` in `__init__.py`, for float64
SIGN = i64(63)


@scalar
def left_over(x):
    return x - nearest(x)


@scalar
def turns(x):
    """x / 2π in float64, without most of its whole part. See Note [ Turns ]."""
    x = f64(x)
    few = (x * T5 + left_over(x * T4)) + (left_over(x * T3) + left_over(x * T2))
    return few + (left_over(x * T1) + left_over(x * T0))


@scalar
def sine_of_turns(t):
    """sin 2πt: with 2t = n + h, the sine of hπ, a polynomial times hπ; for an odd n its negative."""
    shifted = (t + t) + TO_WHOLE
    h = (t + t) - (shifted - TO_WHOLE)
    angle = f32(float_of_f64(bits_of_f64(h * math.pi) ^ (bits_of_f64(shifted) << SIGN)))
    return angle * horner(angle * angle, SINE)


@scalar
def sin_f32(x):
    return sine_of_turns(turns(x)) if x != 0 else x


@scalar
def cos_f32(x):
    return sine_of_turns(turns(x) + 0.25)


sin = by_width("sin", sin_f32, math.sin)
cos = by_width("cos", cos_f32, math.cos)
