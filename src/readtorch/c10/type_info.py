"""`finfo` and `iinfo`: what the numbers of a dtype can hold.

In PyTorch: `torch/csrc/TypeInfo.cpp`. Explained in the chapter "Tensor and Storage".
"""

import math

import ml_dtypes
import numpy as np

from . import scalar_type
from .scalar_type import BOOL, INTEGRAL

# C++ asks std::numeric_limits, and PyTorch's for this type gives half of the distance from 1 to the next number.
_EPS_AS_PYTORCH_HAS_IT = {scalar_type.float8_e5m2fnuz: 0.125}


class _TypeInfo:
    """Facts about one dtype; none of them can be set. Two are equal if they are about the same dtype."""

    __slots__ = ("_dtype",)

    @property
    def dtype(self):
        return self._dtype.name

    @property
    def bits(self):
        return 8 * self._dtype.itemsize

    def __eq__(self, other):
        return self._dtype is other._dtype if type(other) is type(self) else NotImplemented

    __hash__ = None

    def __setattr__(self, name, value):
        raise AttributeError(f"attribute '{name}' of 'torch.{type(self).__name__}' objects is not writable")


class finfo(_TypeInfo):
    """The limits of a floating-point dtype, by default the default dtype; of a complex one, those of its parts.

    bits, eps (from 1 to the next number), max, min, tiny = smallest_normal, resolution (the decimals to trust).
    Raises TypeError for any other dtype.
    """

    __slots__ = ("_limits",)

    def __init__(self, type=None):
        dtype = scalar_type.get_default_dtype() if type is None else _as_dtype(type, "finfo")
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        object.__setattr__(self, "_dtype", dtype.to_real())
        object.__setattr__(self, "_limits", ml_dtypes.finfo(self._dtype.numpy))

    @property
    def eps(self):
        return _EPS_AS_PYTORCH_HAS_IT.get(self._dtype, float(self._limits.eps))

    @property
    def max(self):
        return float(self._limits.max)

    @property
    def min(self):
        return float(self._limits.min)

    @property
    def smallest_normal(self):
        return float(self._limits.smallest_normal)

    tiny = smallest_normal

    @property
    def resolution(self):
        decimals = math.floor(self._limits.nmant * math.log10(2))
        return 10.0**-decimals

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        facts = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({facts}, dtype={self.dtype})"


class iinfo(_TypeInfo):
    """The limits of an integer dtype: bits, max, min. Raises TypeError for any other."""

    __slots__ = ()

    def __init__(self, type):
        dtype = _as_dtype(type, "iinfo")
        if dtype.category == BOOL:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if dtype.category != INTEGRAL:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        object.__setattr__(self, "_dtype", dtype)

    @property
    def max(self):
        return int(np.iinfo(self._dtype.numpy).max)

    @property
    def min(self):
        return int(np.iinfo(self._dtype.numpy).min)

    def __repr__(self):
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _as_dtype(given, caller):
    found = given if isinstance(given, scalar_type.dtype) else None
    if isinstance(given, type):
        found = scalar_type.from_python_type(given)
    if found is None:
        raise TypeError(f"{caller}(): argument 'type' (position 1) must be torch.dtype, not {type(given).__name__}")
    return found
