"""Sliding windows and shuffled pixels. In PyTorch: part of `torch/nn/functional.py`."""
import readtorch
from readtorch._C import _nn
from readtorch.nn.modules.utils import _pair

__all__ = [
    "unfold", "fold", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle",
]

# (*, C r², H, W) -> (*, C, H r, W r), and back.
pixel_shuffle = readtorch.pixel_shuffle
pixel_unshuffle = readtorch.pixel_unshuffle
# (N, groups · n, *) -> (N, n · groups, *).
channel_shuffle = readtorch.channel_shuffle
native_channel_shuffle = readtorch.native_channel_shuffle


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The blocks under a sliding window, one a column: (N, C, H, W) -> (N, C · kernel elements, places)."""
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Columns added up to images, each where `unfold` takes it from: (N, C · kernel elements, places) -> (N, C, H, W)."""
    return _nn.col2im(
        input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    )
