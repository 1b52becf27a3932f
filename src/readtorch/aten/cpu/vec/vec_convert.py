"""bfloat16 and float16, given as 16 bits, to float32 and back, in operations on whole numbers that LLVM turns into vector instructions.

To narrow rounds to the nearest number, a half to the even one: what is added below the last bit that stays carries into it, and from the
largest number into infinity. A nan stays one, with its sign.

In PyTorch: `aten/src/ATen/cpu/vec/vec_convert.h`; `c10/util/BFloat16.h`, and `torch/headeronly/util/Half.h` or the processor's instruction.
"""

import numpy as np

from readtorch.aten.cpu.compile import scalar

from . import bits_of, float_of, i32

u16, u32 = np.uint16, np.uint32
SIGN, MANTISSA_AND_EXPONENT = u32(0x80000000), u32(0x7FFFFFFF)


@scalar
def as_float(bits):
    return float_of(i32(bits))


@scalar
def from_bfloat16(bits):
    """A bfloat16 is the upper half of a float32."""
    return as_float(u32(bits) << u32(16))


@scalar
def to_bfloat16(x):
    bits = u32(bits_of(x))
    high = u32(bits >> u32(16))
    rounded = u32(bits + u32(0x7FFF) + (high & u32(1))) >> u32(16)
    return u16(rounded if x == x else high & u32(0x8000) | u32(0x7FC0))


# float16 has 5 bits of exponent, which count from -15, and 10 of mantissa; float32 has 8, which count from -127, and 23.
EXPONENT = u32((127 - 15) << 23)  # between the two counts
SMALLEST_NORMAL, TOO_LARGE, INFINITY = u32((127 - 14) << 23), u32((127 + 16) << 23), u32(255 << 23)
# The last bit of this number, and of those around it, weighs as much as float16's smallest number: to add it rounds.
ROUNDS_SMALL = u32((127 - 1) << 23)


@scalar
def from_float16(bits):
    bits = u32(bits)
    magnitude = u32(bits & u32(0x7FFF)) << u32(13)
    normal = u32(magnitude + EXPONENT)
    # Of a small number the exponent says 2⁻¹⁵ too much, and its leading bit is not there: with 2⁻¹⁴ for a leading bit, it is taken off again.
    small = u32(bits_of(as_float(u32(magnitude + SMALLEST_NORMAL)) - as_float(SMALLEST_NORMAL)))
    special = u32(magnitude | INFINITY)
    exponent = bits & u32(0x7C00)
    wide = small if exponent == 0 else (special if exponent == u32(0x7C00) else normal)
    return as_float(u32(wide | u32(u32(bits & u32(0x8000)) << u32(16))))


@scalar
def to_float16(x):
    bits = u32(bits_of(x))
    magnitude = u32(bits & MANTISSA_AND_EXPONENT)
    normal = u32(magnitude - EXPONENT + u32(0xFFF) + (u32(magnitude >> u32(13)) & u32(1))) >> u32(13)
    small = u32(u32(bits_of(as_float(magnitude) + as_float(ROUNDS_SMALL))) - ROUNDS_SMALL)
    special = u32(0x7C00) if magnitude <= INFINITY else u32(0x7E00)
    narrow = special if magnitude >= TOO_LARGE else (small if magnitude < SMALLEST_NORMAL else normal)
    return u16(narrow | u32(u32(bits & SIGN) >> u32(16)))


# What the text of a loop calls them.
CONVERSIONS = {f.__name__: f for f in (from_bfloat16, to_bfloat16, from_float16, to_float16)}
