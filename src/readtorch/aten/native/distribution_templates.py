"""The types in which random numbers are drawn, and the range of integers that `random_(from, to)` may draw in each.

In PyTorch: `update_from`, `update_to` and `check_from_to_in_range` in `aten/src/ATen/native/DistributionTemplates.h`.
"""

import warnings
from functools import lru_cache

import ml_dtypes
import numpy as np

from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
# The types that most kernels are compiled for.
DRAWN_FLOATS = frozenset({scalar_type.float16, scalar_type.bfloat16, scalar_type.float32, scalar_type.float64})
DRAWN_INTEGERS = frozenset(
    {scalar_type.uint8, scalar_type.int8, scalar_type.int16, scalar_type.int32, scalar_type.int64}
)
LARGEST = {dtype: float(ml_dtypes.finfo(dtype.numpy).max) for dtype in DRAWN_FLOATS}
# Binary digits of a floating type: all whole numbers up to 2**digits are among its numbers.
DIGITS = {dtype: ml_dtypes.finfo(dtype.numpy).nmant + 1 for dtype in DRAWN_FLOATS}
DRAWN = DRAWN_FLOATS | DRAWN_INTEGERS | {scalar_type.bool}

# What C++ calls the types: some messages print these.
CPP_NAMES = {
    scalar_type.uint8: "unsigned char",
    scalar_type.int8: "signed char",
    scalar_type.int16: "short int",
    scalar_type.int32: "int",
    scalar_type.int64: "long int",
    scalar_type.float16: "c10::Half",
    scalar_type.float32: "float",
    scalar_type.float64: "double",
    scalar_type.complex64: "c10::complex<float>",
    scalar_type.complex128: "c10::complex<double>",
    scalar_type.bool: "bool",
    scalar_type.bfloat16: "c10::BFloat16",
    scalar_type.uint16: "short unsigned int",
    scalar_type.uint32: "unsigned int",
    scalar_type.uint64: "long unsigned int",
}

# Note [Whole numbers in floating types]
# Drawn numbers are rounded to the tensor's type, and rounding may carry the largest ones out of [from, to):
# in float16, 65503 becomes 65504. So for floating types the ends are first moved inwards to numbers that the
# type has.


@lru_cache(maxsize=1000)
def closed_range(dtype, low, to):
    """The first and the last number to draw for [low, to)."""
    if not low < to:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={to}")
    if dtype in DRAWN_FLOATS:
        low, to = first_representable(dtype, low), end_representable(dtype, to)
        if not low < to:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                f"from={low} >= to={to}"
            )
    return low, to - 1


@lru_cache(maxsize=1000)
def open_range(dtype, low):
    """The first and the last number to draw from `low` on."""
    if dtype in DRAWN_FLOATS:
        last = 2 ** DIGITS[dtype]
        low = first_representable(dtype, low)
        if not low < last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to "
                f"dtype, but got from={low} > to_inc={last}"
            )
        return low, last
    if dtype.category >= FLOAT:
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    return low, 1 if dtype is scalar_type.bool else int(np.iinfo(dtype.numpy).max)


def rounded(dtype, number):
    """The whole number that `number` becomes in `dtype`; outside of its range, what x86 makes of infinity."""
    wide = np.int64(number).astype(scalar_type.op_math_type(dtype).numpy)
    with np.errstate(over="ignore"):
        value = float(wide.astype(dtype.numpy))
    return int(value) if abs(value) < 2.0**63 else INT64_MIN


def first_representable(dtype, low):
    above = rounded(dtype, low + 1)
    if above < low:
        return above + (1 << max((abs(low + 1)).bit_length() - DIGITS[dtype], 0))
    return low


def end_representable(dtype, to):
    below = rounded(dtype, to - 1)
    if below >= to:
        return below - (1 << max((abs(to - 1)).bit_length() - DIGITS[dtype], 0))
    return to


def limits(dtype):
    """The smallest and the largest number of a type, as far as int64 reaches."""
    if dtype.is_floating_point:
        return -LARGEST[dtype], LARGEST[dtype]
    if dtype is scalar_type.bool:
        return 0, 1
    info = np.iinfo(dtype.numpy)
    return int(info.min), min(int(info.max), INT64_MAX)


LIMITS = {dtype: limits(dtype) for dtype in CPP_NAMES if not dtype.is_complex}


def check_from_to_in_range(dtype, low, last):
    """RuntimeError if the ends are not numbers of `dtype`; a warning if some numbers between them are not."""
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    smallest, largest = LIMITS[dtype]
    for name, value in (("from", low), ("to - 1", last)):
        if not smallest <= value <= largest:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAMES[dtype]}")
    if dtype.is_floating_point:
        warn_of_gaps(dtype, "from", low)
        warn_of_gaps(dtype, "to - 1", last)


def warn_of_gaps(dtype, name, value):
    digits = DIGITS[dtype]
    if abs(value) > 1 << digits:
        warnings.warn(
            f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
            f"{CPP_NAMES[dtype]} can support discrete uniform distribution only within this range. This "
            "warning will become an error in version 1.7 release, please fix the code in "
            "advance",
            stacklevel=5,
        )
