"""Layers that widen their input, and what they write into the border.

Each takes `padding`: one number for all sides, or (left, right), (left, right, top, bottom), (left, right, top,
bottom, front, back). Negative numbers crop. The chapter "Layers: convolution, embedding, recurrence" explains layers; `F.pad`
does the work.

In PyTorch: `torch/nn/modules/padding.py`.
"""

from readtorch import Tensor
from readtorch.nn import functional as F

from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _PadNd(Module):
    __constants__ = ["padding"]
    _dims: int  # how many dimensions, the last ones, are padded

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def extra_repr(self) -> str:
        return f"{self.padding}"


# The opposite edge: 2 3 | 0 1 2 3 | 0 1


class _CircularPadNd(_PadNd):
    def _check_input_dim(self, input: Tensor) -> None:
        dims = len(self.padding) // 2
        if input.dim() != dims + 1 and input.dim() != dims + 2:
            raise ValueError(f"expected {dims + 1}D or {dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """The opposite edge around (C, W) or (N, C, W)."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """The opposite edges around (C, H, W) or (N, C, H, W)."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """The opposite sides around (C, D, H, W) or (N, C, D, H, W)."""

    _dims = 3


# One number


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding, value) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """`value` around (C, W) or (N, C, W)."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """`value` around (C, H, W) or (N, C, H, W)."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """`value` around (C, D, H, W) or (N, C, D, H, W)."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """0 around (C, W) or (N, C, W)."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad2d(ConstantPad2d):
    """0 around (C, H, W) or (N, C, H, W)."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


class ZeroPad3d(ConstantPad3d):
    """0 around (C, D, H, W) or (N, C, D, H, W)."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _PadNd.extra_repr


# The mirror image, the edge itself not repeated: 2 1 | 0 1 2 3 | 2 1


class _ReflectionPadNd(_PadNd):
    def forward(self, input):
        return F.pad(input, self.padding, "reflect")


class ReflectionPad1d(_ReflectionPadNd):
    """The mirror image around (C, W) or (N, C, W), at most W - 1 wide."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """The mirror image around (C, H, W) or (N, C, H, W), at most H - 1 and W - 1 wide."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """The mirror image around (C, D, H, W) or (N, C, D, H, W), at most D - 1, H - 1 and W - 1 wide."""

    _dims = 3


# The edge itself: 0 0 | 0 1 2 3 | 3 3


class _ReplicationPadNd(_PadNd):
    def forward(self, input):
        return F.pad(input, self.padding, "replicate")


class ReplicationPad1d(_ReplicationPadNd):
    """The edge repeated around (C, W) or (N, C, W)."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """The edges repeated around (C, H, W) or (N, C, H, W)."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """The sides repeated around (C, D, H, W) or (N, C, D, H, W)."""

    _dims = 3
