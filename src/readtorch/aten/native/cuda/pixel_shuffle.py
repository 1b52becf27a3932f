"""pixel_shuffle, pixel_unshuffle and channel_shuffle: copies of permuted views.

In PyTorch: `aten/src/ATen/native/PixelShuffle.cpp`, `aten/src/ATen/native/ChanelShuffle.cpp`.
"""

from readtorch.aten.native.pixel_shuffle import check_arguments, check_groups
from readtorch.c10.memory_format import contiguous_format

from .copy import clone_cuda
from .register_dispatch_key import cuda_kernel, operator_named, owned
from .up_sample import in_format_of


@cuda_kernel(operator_named("pixel_shuffle"))
def pixel_shuffle_cuda(self, upscale_factor):
    """(*, C r², H, W) -> (*, C, H r, W r): one copy of a permuted view."""
    shape, r = self._array.shape, upscale_factor
    check_arguments(self._array, "pixel_shuffle", "upscale_factor", r)
    *batch, channels, height, width = shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    c, n = channels // (r * r), len(batch)
    blocks = self.reshape((*batch, c, r, r, height, width))
    pixels = blocks.permute((*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    result = owned(clone_cuda(pixels, contiguous_format).view((*batch, c, height * r, width * r)))
    return in_format_of(self, result)


@cuda_kernel(operator_named("pixel_unshuffle"))
def pixel_unshuffle_cuda(self, downscale_factor):
    """(*, C, H r, W r) -> (*, C r², H, W)."""
    shape, r = self._array.shape, downscale_factor
    check_arguments(self._array, "pixel_unshuffle", "downscale_factor", r)
    *batch, c, height, width = shape
    for name, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={size} is not divisible by {r}"
            )
    if not self._array.size:
        return clone_cuda(self, None)
    n, height, width = len(batch), height // r, width // r
    pixels = self.reshape((*batch, c, height, r, width, r))
    blocks = pixels.permute((*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    result = owned(clone_cuda(blocks, contiguous_format).view((*batch, c * r * r, height, width)))
    return in_format_of(self, result)


def shuffle_channels(self, groups):
    check_groups(self._array.shape, groups)
    batch, channels, *rest = self._array.shape
    if not self._array.size:
        return clone_cuda(self, None)
    grouped = self.reshape(batch, groups, channels // groups, *rest).transpose(1, 2)
    return in_format_of(self, clone_cuda(grouped, contiguous_format).view(self._array.shape))


cuda_kernel(operator_named("channel_shuffle"))(shuffle_channels)
cuda_kernel(operator_named("native_channel_shuffle"))(shuffle_channels)
