"""Element types that are only named here: quantized ones, raw bits, integers narrower than a byte, the narrowest floats.

Programs compare with them and write them into tables. Who asks for a tensor of one is refused, because NumPy has no such type.

In PyTorch: `c10/core/ScalarType.h`. Explained in the chapter "Tensor and Storage".
"""

from .scalar_type import dtype, float16


class TypeWithoutTensors(dtype):
    """A dtype of which no tensor can be made: what NumPy would have to know of it raises NotImplementedError."""

    __slots__ = ()

    def __init__(self, name, itemsize=1):
        self.name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_complex = name.startswith("float"), name.startswith("complex")

    def _missing(self):
        raise NotImplementedError(f"readtorch has no tensors of dtype {self}")

    numpy = category = property(_missing)

    @property
    def is_signed(self):
        if self.name.startswith("q"):
            raise RuntimeError("isSignedType not supported for quantized types")
        if self.name.startswith("bits"):
            raise RuntimeError("Bits types are undefined")
        return not self.name.startswith("uint") and self.name != "float8_e8m0fnu"

    def to_real(self):
        return float16 if self.is_complex else self


_NAMES = "quint8 qint8 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 float8_e8m0fnu float4_e2m1fn_x2".split()
_NAMES += [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)]
_WIDER = {"complex32": 4, "qint32": 4, "bits16": 2}

TYPES_WITHOUT_TENSORS = {name: TypeWithoutTensors(name) for name in _NAMES}
TYPES_WITHOUT_TENSORS |= {name: TypeWithoutTensors(name, itemsize) for name, itemsize in _WIDER.items()}
# pickle looks for them by their names.
globals().update(TYPES_WITHOUT_TENSORS)
