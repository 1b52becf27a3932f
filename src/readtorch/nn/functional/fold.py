"""Sliding windows and shuffled pixels. In PyTorch: part of `torch/nn/functional.py`."""

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch._jit_internal import BroadcastingList2
from readtorch.csrc.utils.disable_torch_function import hand_on, has_torch_function_unary
from readtorch.nn.modules.utils import _pair

__all__ = ["unfold", "fold", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle"]

# (*, C r², H, W) -> (*, C, H r, W r), and back.
pixel_shuffle = readtorch.pixel_shuffle
pixel_unshuffle = readtorch.pixel_unshuffle
# (N, groups · n, *) -> (N, n · groups, *).
channel_shuffle = readtorch.channel_shuffle
native_channel_shuffle = readtorch.native_channel_shuffle


def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    """The blocks under a sliding window, one a column: (N, C, H, W) -> (N, C · kernel elements, positions)."""
    if has_torch_function_unary(input):
        return hand_on(unfold, (input,), locals())
    return _nn.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    """The sum of the columns, each where `unfold` takes it from: (N, C · kernel elements, positions) -> (N, C, H, W)."""
    if has_torch_function_unary(input):
        return hand_on(fold, (input,), locals())
    return _nn.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
