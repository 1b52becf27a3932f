"""Moving elements between channels and pixels: pixel_shuffle, pixel_unshuffle, channel_shuffle.

In PyTorch: `aten/src/ATen/native/PixelShuffle.cpp` and `aten/src/ATen/native/ChanelShuffle.cpp`.
Explained in the chapter "Layers, functional, init".
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native_function import native_function
from readtorch.c10.tensor_impl import wrap

from .copy import copy_in_format, empty_in_format_of

pixel_shuffle = native_function("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
pixel_unshuffle = native_function("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
channel_shuffle = native_function("channel_shuffle(Tensor self, SymInt groups) -> Tensor")
native_channel_shuffle = native_function("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")


def check_arguments(x, operator, name, factor):
    if x.ndim < 3:
        raise RuntimeError(
            f"{operator} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{operator} expects a positive {name}, but got {factor}")


@pixel_shuffle.kernel
def pixel_shuffle_cpu(self, upscale_factor):
    """(*, C r², H, W) -> (*, C, H r, W r)."""
    x, r = self._array, upscale_factor
    check_arguments(x, "pixel_shuffle", "upscale_factor", r)
    *batch, channels, height, width = x.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    c = channels // (r * r)
    result = empty_in_format_of(x, (*batch, c, height * r, width * r))
    blocks = x.reshape(*batch, c, r, r, height, width)
    pixels = result.reshape(*batch, c, height, r, width, r)
    pixels[...] = np.moveaxis(blocks, (-4, -3), (-3, -1))
    return wrap(result)


@pixel_unshuffle.kernel
def pixel_unshuffle_cpu(self, downscale_factor):
    """(*, C, H r, W r) -> (*, C r², H, W)."""
    x, r = self._array, downscale_factor
    check_arguments(x, "pixel_unshuffle", "downscale_factor", r)
    *batch, c, height, width = x.shape
    for name, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={size} is not divisible by {r}"
            )
    if not x.size:
        return wrap(copy_in_format(x, None))  # in PyTorch too: without elements the shape stays as it is
    height, width = height // r, width // r
    result = empty_in_format_of(x, (*batch, c * r * r, height, width))
    pixels = x.reshape(*batch, c, height, r, width, r)
    blocks = result.reshape(*batch, c, r, r, height, width)
    blocks[...] = np.moveaxis(pixels, (-3, -1), (-4, -3))
    return wrap(result)


def check_groups(shape, groups):
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )


def shuffle_channels(self, groups):
    """(N, groups · n, *) -> (N, n · groups, *): the first channel of each group, then the second of each …"""
    x = self._array
    check_groups(x.shape, groups)
    batch, channels, *rest = x.shape
    result = empty_in_format_of(x, x.shape)
    result.reshape(batch, channels // groups, groups, *rest)[...] = x.reshape(
        batch, groups, channels // groups, *rest
    ).swapaxes(1, 2)
    return wrap(result)


channel_shuffle.kernel(shuffle_channels)
native_channel_shuffle.kernel(shuffle_channels)


@pixel_shuffle.backward
class PixelShuffleBackward0:
    def self(grad, upscale_factor):
        return pixel_unshuffle.call(grad, upscale_factor)


@pixel_unshuffle.backward
class PixelUnshuffleBackward0:
    def self(grad, downscale_factor):
        return pixel_shuffle.call(grad, downscale_factor)


@channel_shuffle.backward
class ChannelShuffleBackward0:
    def self(grad, groups):
        return channel_shuffle.call(grad, grad._array.shape[1] // groups)


native_channel_shuffle.backward(NOT_IMPLEMENTED)
