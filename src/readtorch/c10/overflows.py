"""Numbers that a dtype does not have.

In PyTorch: `checked_convert` in `c10/util/TypeCast.h`, `c10/util/overflows.h`.
"""

import math

import ml_dtypes
import numpy as np

from . import scalar_type


def number_as(value, dtype):
    """A number, or the one in a tensor, as a 0-dimensional array. Raises RuntimeError if `dtype` has no such number."""
    if not isinstance(value, (int, float, complex)):
        value = value.item()
    if isinstance(value, complex) and not dtype.is_complex:
        value = value.real if value.imag == 0 else overflow(dtype)
    if dtype.category == scalar_type.INTEGRAL and not isinstance(value, bool):
        limits = np.iinfo(dtype.numpy)
        lowest = limits.min if dtype.is_signed or isinstance(value, float) else -limits.max  # negative ints wrap around
        if not lowest <= value <= limits.max:
            overflow(dtype)
        return np.array(int(value) % (limits.max + 1) if value < limits.min else int(value), dtype.numpy)
    if dtype.is_floating_point or dtype.is_complex:
        largest = float(ml_dtypes.finfo(dtype.numpy).max)
        if any(math.isfinite(part) and abs(part) > largest for part in (value.real, value.imag)):
            overflow(dtype)
    return np.array(value).astype(dtype.numpy)


_SCALAR_NAMES = {
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int",
    "int64": "int64_t",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
}


def overflow(dtype):
    name = _SCALAR_NAMES.get(dtype.name, dtype.name)
    raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def check_fits(number, dtype):
    """Raises RuntimeError if `dtype` has no such number."""
    kind = type(number)
    if (
        kind is complex
        or kind is not bool
        and not -100 <= number <= 100
        and number == number
        and dtype is not scalar_type.bool
    ):
        number_as(number, dtype)


def every_dtype_has(*numbers):
    """Whether these are so small that no dtype of numbers needs to be asked."""
    for number in numbers:
        if type(number) is complex or not -100 <= number <= 100:
            return False
    return True
