"""Names for annotations: what may be given as a number, a size, a device, a file. In PyTorch: `torch/types.py`.

Those of quantized and symbolic numbers are missing, as these are.
"""
import os
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str  # noqa: F401
from collections.abc import Sequence
from typing import IO, Union

from . import Size, Tensor
from . import device as _device
from . import dtype as _dtype  # noqa: F401
from . import layout as _layout  # noqa: F401

__all__ = ["Number", "Device", "FileLike"]

_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge = Union[Tensor, Sequence[Tensor], "GradientEdge", Sequence["GradientEdge"]]  # noqa: F821

_size = Size | list[int] | tuple[int, ...]

Number = int | float | bool
_Number = (int, float, bool)  # the same for isinstance

FileLike = str | os.PathLike[str] | IO[bytes]
Device = _device | str | int | None
