"""Names for annotations: what may be given as a number, a size, a device, a file. In PyTorch: `torch/types.py`.

Those of quantized and symbolic numbers are missing, as these are.
"""

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, Union

from . import Size, Tensor
from . import device as _device
from . import dtype as _dtype
from . import layout as _layout

__all__ = ["Number", "Device", "FileLike"]

_TensorOrTensors = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge = Union[Tensor, Sequence[Tensor], "GradientEdge", Sequence["GradientEdge"]]  # noqa: F821

_size = Size | list[int] | tuple[int, ...]

Number = int | float | bool
_Number = (int, float, bool)  # the same for isinstance

FileLike = str | os.PathLike[str] | IO[bytes]
Device = _device | str | int | None
