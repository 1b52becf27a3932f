"""Layers that trade channels for resolution. In PyTorch: `torch/nn/modules/pixelshuffle.py`."""

from readtorch.nn import functional as F

from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """(*, C r², H, W) -> (*, C, H r, W r), where r is `upscale_factor`: each r² channels become one r by r block.

    W. Shi and others: Real-time single image and video super-resolution using an efficient sub-pixel
    convolutional neural network (2016).
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(*, C, H r, W r) -> (*, C r², H, W), where r is `downscale_factor`: the inverse of `PixelShuffle`."""

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
