"""pixel_shuffle, pixel_unshuffle and channel_shuffle: copies of permuted views.

In PyTorch: `aten/src/ATen/native/PixelShuffle.cpp`, `aten/src/ATen/native/ChanelShuffle.cpp`.
"""

from readtorch.aten.native.pixel_shuffle import as_blocks, as_groups

from .copy import copy
from .register_dispatch_key import cuda_impl, operator_named


@cuda_impl(operator_named("pixel_shuffle"))
def pixel_shuffle_cuda(self, upscale_factor, out):
    copy(*as_blocks(self._array, out._array, upscale_factor))


@cuda_impl(operator_named("pixel_unshuffle"))
def pixel_unshuffle_cuda(self, downscale_factor, out):
    if self._array.size:
        blocks, pixels = as_blocks(out._array, self._array, downscale_factor)
        copy(pixels, blocks)


@cuda_impl(operator_named("channel_shuffle"), operator_named("native_channel_shuffle"))
def channel_shuffle_cuda(self, groups, out):
    copy(*as_groups(self._array, out._array, groups))
