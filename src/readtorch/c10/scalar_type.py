"""Element types: `dtype`, the table of all of them, and how two of them combine.

In PyTorch: `c10/core/ScalarType.h` and `torch/csrc/Dtype.cpp`. Explained in the chapter "Tensor and Storage".
"""

import ml_dtypes
import numpy as np


class dtype:
    """The type of a tensor's elements, such as `readtorch.float32`. There is one object per type.

    In PyTorch: `THPDtype` (`torch/csrc/Dtype.cpp`), the Python binding of `c10::ScalarType`.
    """

    __slots__ = ("name", "numpy", "category", "itemsize", "is_floating_point", "is_complex", "is_signed")

    def __init__(self, name, numpy_type, category):
        self.name = name
        self.numpy = np.dtype(numpy_type)
        self.category = category
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = not (name.startswith("uint") or category == BOOL)

    def to_complex(self):
        """The complex type with this type's precision."""
        return self if self.is_complex else {float16: complex64, float64: complex128}.get(self, complex64)

    def to_real(self):
        """The real type with this type's precision."""
        return {complex64: float32, complex128: float64}.get(self, self)

    def __repr__(self):
        return f"torch.{self.name}"  # the name that PyTorch prints, so that outputs can be compared

    def __reduce__(self):
        return self.name  # the name in this module that a pickle refers to


# Categories, in the order in which promotion climbs: a float and an int give a float.
BOOL, INTEGRAL, FLOAT, COMPLEX = range(4)

uint8 = dtype("uint8", np.uint8, INTEGRAL)
int8 = dtype("int8", np.int8, INTEGRAL)
int16 = dtype("int16", np.int16, INTEGRAL)
int32 = dtype("int32", np.int32, INTEGRAL)
int64 = dtype("int64", np.int64, INTEGRAL)
float16 = dtype("float16", np.float16, FLOAT)
float32 = dtype("float32", np.float32, FLOAT)
float64 = dtype("float64", np.float64, FLOAT)
complex64 = dtype("complex64", np.complex64, COMPLEX)
complex128 = dtype("complex128", np.complex128, COMPLEX)
bool = dtype("bool", np.bool_, BOOL)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, FLOAT)
uint16 = dtype("uint16", np.uint16, INTEGRAL)
uint32 = dtype("uint32", np.uint32, INTEGRAL)
uint64 = dtype("uint64", np.uint64, INTEGRAL)
float8_e4m3fn = dtype("float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOAT)
float8_e5m2 = dtype("float8_e5m2", ml_dtypes.float8_e5m2, FLOAT)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOAT)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOAT)

ALL_TYPES = tuple(value for value in list(globals().values()) if type(value) is dtype)
ALIASES = {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "cfloat": complex64,
    "cdouble": complex128,
}

by_numpy = {t.numpy: t for t in ALL_TYPES}
_by_name = {t.name: t for t in ALL_TYPES}
_by_python_type = {}  # filled below: the names bool, int, float are taken here

# The spelling that error messages use ("expected scalar type Float but found Double").
SCALAR_TYPE_NAMES = {
    uint8: "Byte",
    int8: "Char",
    int16: "Short",
    int32: "Int",
    int64: "Long",
    float16: "Half",
    float32: "Float",
    float64: "Double",
    complex64: "ComplexFloat",
    complex128: "ComplexDouble",
    bool: "Bool",
    bfloat16: "BFloat16",
    uint16: "UInt16",
    uint32: "UInt32",
    uint64: "UInt64",
    float8_e4m3fn: "Float8_e4m3fn",
    float8_e5m2: "Float8_e5m2",
    float8_e4m3fnuz: "Float8_e4m3fnuz",
    float8_e5m2fnuz: "Float8_e5m2fnuz",
}

# The name of the C++ type, which other messages use ("expected dtype float for `end`").
C_TYPE_NAMES = {
    uint8: "unsigned char",
    int8: "signed char",
    int16: "short int",
    int32: "int",
    int64: "long int",
    float16: "c10::Half",
    float32: "float",
    float64: "double",
    complex64: "c10::complex<float>",
    complex128: "c10::complex<double>",
    bool: "bool",
    bfloat16: "c10::BFloat16",
}

# Types too narrow to compute in: a kernel widens them to float32 and rounds once, at the end.
REDUCED_FLOATING = frozenset({float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz})


def dtype_by_name(name):
    return _by_name[name]


def from_python_type(kind):
    """The dtype that `tensor.to(float)` and its like mean by a Python type, or None."""
    return _by_python_type.get(kind)


def op_math_type(t):
    """The type in which a kernel computes on elements of type `t` (`at::OpMathType`)."""
    return float32 if t in REDUCED_FLOATING else t


# ---------------------------------------------------------------------------------------------- promotion

_SIGNED = (int8, int16, int32, int64)
_BAREBONES_UNSIGNED = frozenset({uint16, uint32, uint64})


def _promote_integral(a, b):
    if uint8 in (a, b):
        other = b if a is uint8 else a
        return int16 if other is int8 else other
    return _SIGNED[max(_SIGNED.index(a), _SIGNED.index(b))]


def _promote_floating(a, b):
    if a.itemsize != b.itemsize:
        return a if a.itemsize > b.itemsize else b
    return float32  # float16 with bfloat16: neither holds the other


def _promote_complex(a, b):
    double = complex128 in (a, b) or float64 in (a, b)
    return complex128 if double else complex64


def promote_types(a, b):
    """The smallest dtype to which both `a` and `b` may be cast without leaving their kind.

    In PyTorch: `c10::promoteTypes` (`c10/core/ScalarType.cpp`).
    """
    if a is b:
        return a
    low, high = sorted((a, b), key=lambda t: t.category)
    if _BAREBONES_UNSIGNED & {a, b} and FLOAT not in (a.category, b.category):
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, "
            f"attempted to promote {SCALAR_TYPE_NAMES[a]} and {SCALAR_TYPE_NAMES[b]}"
        )
    if any(t.name.startswith("float8") for t in (a, b)):
        raise RuntimeError(
            "Promotion for Float8 Types is not supported, "
            f"attempted to promote {SCALAR_TYPE_NAMES[a]} and {SCALAR_TYPE_NAMES[b]}"
        )
    if high.category == COMPLEX:
        return _promote_complex(a, b)
    if low.category < high.category:
        return high
    return _promote_floating(a, b) if high.category == FLOAT else _promote_integral(a, b)


def can_cast(from_, to):
    """Whether a result of type `from_` may be written to a tensor of type `to`: never down a category."""
    if from_.is_complex and not to.is_complex:
        return False
    if from_.is_floating_point and to.category < FLOAT:
        return False
    return not (from_ is not bool and to is bool)


# ---------------------------------------------------------------------------------------------- default type

_default = float32


def get_default_dtype():
    """The floating-point dtype of `tensor(1.0)`, `zeros(2)`, and of int / int."""
    return _default


def set_default_dtype(d):
    """Make `d` the default dtype. Raises TypeError unless `d` is a floating-point dtype."""
    global _default
    if type(d) is not dtype:
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d


def get_default_complex_dtype():
    return _default.to_complex()


import builtins  # noqa: E402  (the module's own `bool` shadows the builtin)

_by_python_type.update(
    {builtins.bool: bool, builtins.int: int64, builtins.float: float64, builtins.complex: complex128}
)
