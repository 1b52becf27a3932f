"""Moving elements between channels and pixels: pixel_shuffle, pixel_unshuffle, channel_shuffle.

In PyTorch: `aten/src/ATen/native/PixelShuffle.cpp` and `aten/src/ATen/native/ChanelShuffle.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import in_format_of, like


def check_arguments(x, operator, name, factor):
    if x.ndim < 3:
        raise RuntimeError(
            f"{operator} expects input to have at least 3 dimensions, but got input with {x.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{operator} expects a positive {name}, but got {factor}")


def as_blocks(deep, wide, r):
    """The arrays (*, C r², H, W) and (*, C, H r, W r), both seen as (*, C, H, r, W, r)."""
    *batch, c, height, width = wide.shape
    height, width, n = height // r, width // r, len(batch)
    blocks = deep.reshape(*batch, c, r, r, height, width).transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return blocks, wide.reshape(blocks.shape)


# ----------------------------------------------------------------------------------------------- pixel_shuffle

pixel_shuffle = native_function("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")


@pixel_shuffle.meta
def pixel_shuffle_meta(self, upscale_factor):
    """(*, C r², H, W) -> (*, C, H r, W r)."""
    x, r = self._array, upscale_factor
    check_arguments(x, "pixel_shuffle", "upscale_factor", r)
    *batch, channels, height, width = x.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    return in_format_of(self, (*batch, channels // (r * r), height * r, width * r))


@pixel_shuffle.impl()
def pixel_shuffle_cpu(self, upscale_factor, out):
    blocks, pixels = as_blocks(self._array, out._array, upscale_factor)
    pixels[...] = blocks


@pixel_shuffle.backward
class PixelShuffleBackward0:
    def self(grad, upscale_factor):
        return pixel_unshuffle.call(grad, upscale_factor)

    result = "auto_linear"


# --------------------------------------------------------------------------------------------- pixel_unshuffle

pixel_unshuffle = native_function("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")


@pixel_unshuffle.meta
def pixel_unshuffle_meta(self, downscale_factor):
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
        return like(self)  # in PyTorch too: without elements the shape stays as it is
    return in_format_of(self, (*batch, c * r * r, height // r, width // r))


@pixel_unshuffle.impl()
def pixel_unshuffle_cpu(self, downscale_factor, out):
    if self._array.size:
        blocks, pixels = as_blocks(out._array, self._array, downscale_factor)
        blocks[...] = pixels


@pixel_unshuffle.backward
class PixelUnshuffleBackward0:
    def self(grad, downscale_factor):
        return pixel_shuffle.call(grad, downscale_factor)

    result = "auto_linear"


# --------------------------------------------------------------------------------------------- channel_shuffle

channel_shuffle = native_function("channel_shuffle(Tensor self, SymInt groups) -> Tensor")
native_channel_shuffle = native_function("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")


@channel_shuffle.meta
@native_channel_shuffle.meta
def channel_shuffle_meta(self, groups):
    """(N, groups · n, *) -> (N, n · groups, *): the first channel of each group, then the second of each …"""
    shape = self._array.shape
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return in_format_of(self, shape)


def as_groups(x, out, groups):
    """Both arrays seen as (N, n, groups, *)."""
    batch, channels, *rest = x.shape
    shuffled = x.reshape(batch, groups, channels // groups, *rest).swapaxes(1, 2)
    return shuffled, out.reshape(shuffled.shape)


@channel_shuffle.impl()
@native_channel_shuffle.impl()
def channel_shuffle_cpu(self, groups, out):
    shuffled, result = as_groups(self._array, out._array, groups)
    result[...] = shuffled


@channel_shuffle.backward
class ChannelShuffleBackward0:
    def self(grad, groups):
        return channel_shuffle.call(grad, grad._array.shape[1] // groups)

    result = "auto_linear"


native_channel_shuffle.backward(NOT_IMPLEMENTED)
