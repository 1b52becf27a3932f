"""Images in other sizes: interpolation, padding by what stands at the edges, windows as columns, points of a
grid.

In PyTorch: `aten/src/ATen/native/cuda/{UpSample*,ReflectionPad,ReplicationPadding,Im2Col,Col2Im,
AdaptiveAveragePooling3d}.cu`.
"""

import math

import numpy as np

from .....c10.cuda.device_memory import tensor_on
from .....c10.memory_format import contiguous_format, format_strides
from .....c10.tensor_impl import dtype_of
from ... import im2col as columns
from ... import padding as checks
from ... import upsample
from ....tensor_utils import check_adaptive, check_resized
from ...pixel_shuffle import check_arguments
from ...pooling.adaptive import check_dimensions
from ...pooling.adaptive import check_not_empty as check_pooled
from ...tensor_iterator import not_implemented
from ...upsample import Band, band_of
from ...grid_sampler import check_dimensions as check_dimensions_of_grid
from ...grid_sampler import check_dtypes, check_shapes
from .. import bands, grid_sampler
from .. import padding as kernels
from ..copy import copy as copy_kernel
from ..rows import contiguous
from .copies import clone_cuda
from .factories import filled
from .normalization import wide
from .pointwise import operator_named
from .reductions import converted
from .registration import cuda_kernel, empty, here, owned

# ---------------------------------------------------------------------------------------------- interpolation


def times_bands(t, bands_of_axes, last_first=False):
    """The product of `t` (N, C, *sizes) with a band for each of the sizes, in its dtype and memory format."""
    x, axes = wide(t), list(enumerate(bands_of_axes, 2))
    for axis, one in reversed(axes) if last_first else axes:
        x = product_along(x, axis, one)
    return in_format_of(t, x)


def product_along(x, axis, one):
    """The band depends on sizes alone: the host works it out and sends it."""
    array, rows = contiguous(x._array), len(one.start)
    before, size, after = array.shape[:axis], array.shape[axis], array.shape[axis + 1:]
    result = empty((*before, rows, *after), array.dtype)
    sent = [tensor_on(here(), np.ascontiguousarray(a)) for a in one]
    outer, inner = math.prod(before), math.prod(after)
    bands.times_band(*[t._array for t in sent], array.reshape(outer, size, inner),
                     result._array.reshape(outer, rows, inner))
    return result


def in_format_of(t, x):
    """The elements of `x` with the dtype and the memory format of `t`."""
    strides = format_strides(t._array, x._array.shape)
    result = empty(x._array.shape, t._array.dtype, strides)
    copy_kernel(x._array, result._array)
    return result


METHODS = {
    **{f"upsample_nearest{d}d": ("nearest", d) for d in (1, 2, 3)},
    **{f"_upsample_nearest_exact{d}d": ("nearest_exact", d) for d in (1, 2, 3)},
    "upsample_linear1d": ("linear", 1),
    "upsample_bilinear2d": ("linear", 2),
    "upsample_trilinear3d": ("linear", 3),
    "upsample_bicubic2d": ("cubic", 2),
    "_upsample_bilinear2d_aa": ("linear_aa", 2),
    "_upsample_bicubic2d_aa": ("cubic_aa", 2),
    "_upsample_lanczos2d_aa": ("lanczos_aa", 2),
}


def resizing(name, method, dims):
    has_corners = not method.startswith("nearest")

    def bands_for(make, input_size, output_size, dtype, settings):
        wide_dtype = np.dtype(np.float64) if dtype == np.float64 else np.dtype(np.float32)
        return upsample.bands_of(make, method, input_size, output_size, has_corners and settings[0],
                                 settings[has_corners:], wide_dtype)

    @cuda_kernel(operator_named(name))
    def forward(self, output_size, *settings):
        x = self._array
        upsample.check_sizes(x.shape, output_size, dims)
        upsample.check_not_empty(x)
        if not dtype_of(self).is_floating_point:
            raise not_implemented(f"{name.removeprefix('_')}_out_frame")(dtype_of(self))
        found = bands_for(upsample.band, x.shape, output_size, x.dtype, settings)
        return times_bands(self, found, last_first=True)

    @cuda_kernel(operator_named(f"{name}_backward"))
    def backward(grad_output, output_size, input_size, *settings):
        upsample.check_sizes(input_size, output_size, dims)
        check_resized(grad_output, (*input_size[:2], *output_size))
        found = bands_for(upsample.transposed_band, input_size, output_size, grad_output._array.dtype, settings)
        return times_bands(grad_output, found)


for _name, _arguments in METHODS.items():
    resizing(_name, *_arguments)

# -------------------------------------------------------------------------- adaptive average pooling, volumes


def shares(size, places):
    """The matrix (places, size) of adaptive windows: each takes the mean of what it sees."""
    o = np.arange(places)
    begin, end = o * size // places, -(-(o + 1) * size // places)
    seen = (begin[:, None] <= np.arange(size)) & (np.arange(size) < end[:, None])
    return seen / (end - begin)[:, None], seen


def adaptive_bands(sizes, output_size, transposed, dtype):
    for size, places in zip(sizes, output_size):
        matrix, seen = shares(size, places)
        matrix, seen = (matrix.T, seen.T) if transposed else (matrix, seen)
        yield Band(*band_of(matrix.astype(dtype), seen))


def as_batch(t, rank):
    return t if t._array.ndim == rank else t.unsqueeze(0)


@cuda_kernel(operator_named("_adaptive_avg_pool3d"))
def adaptive_avg_pool3d_cuda(self, output_size):
    """A mean over a box is one over each of its edges in turn."""
    shape = self._array.shape
    check_dimensions("adaptive_avg_pool3d", shape, 3)
    check_pooled("adaptive_avg_pool3d", shape, len(shape) - 3)
    x = wide(self)
    found = adaptive_bands(shape[-3:], output_size, False, x._array.dtype)
    result = times_bands(as_batch(x, 5), list(found))
    return converted(owned(result.view((*shape[:-3], *output_size))), self._array.dtype)


@cuda_kernel(operator_named("_adaptive_avg_pool3d_backward"))
def adaptive_avg_pool3d_backward_cuda(grad_output, self):
    check_adaptive("adaptive_avg_pool3d_backward_cuda", grad_output, self, 3, "gradOutput_")
    shape, g = self._array.shape, wide(grad_output)
    found = adaptive_bands(shape[-3:], grad_output._array.shape[-3:], True, g._array.dtype)
    result = times_bands(as_batch(g, 5), list(found))
    return converted(owned(result.view(shape)), self._array.dtype)


# ---------------------------------------------------------------------------------------------------- padding


def as_volumes(array, dims):
    """(planes, depth, height, width) of an array whose last `dims` dimensions are padded."""
    return array.reshape(-1, *[1] * (3 - dims), *array.shape[array.ndim - dims:])


def padding_operators(name, dims, source):
    is_reflection = source is kernels.mirrored

    def before(padding):
        return (*[0] * (3 - dims), *padding[2 * dims - 2::-2])

    @cuda_kernel(operator_named(name))
    def pad(self, padding):
        x = self._array
        checks.check_input(x, padding, dims, is_reflection)
        if is_reflection:
            checks.check_reflection(x, padding)
        shape = checks.check_output(x, padding, dims, name)
        if x.dtype.kind == "b":
            raise not_implemented(name)(dtype_of(self))
        result = empty(shape, x.dtype)
        if result._array.size:
            kernels.pad(source, as_volumes(contiguous(x), dims), before(padding),
                        as_volumes(result._array, dims))
        return in_format_of(self, result)

    @cuda_kernel(operator_named(f"{name}_backward"))
    def unpad(grad_output, self, padding):
        """The sums are atomic: their last digit is not fixed."""
        checks.check_gradient(grad_output._array, self._array.shape, padding)
        g = wide(grad_output)
        result = filled(empty(self._array.shape, g._array.dtype), 0)
        if g._array.size:
            kernels.pad_backward(source, as_volumes(contiguous(g._array), dims), before(padding),
                                 as_volumes(result._array, dims))
        return in_format_of(self, result)


for _dims in (1, 2, 3):
    padding_operators(f"reflection_pad{_dims}d", _dims, kernels.mirrored)
    padding_operators(f"replication_pad{_dims}d", _dims, kernels.nearest)

# ----------------------------------------------------------------------------------------- windows as columns


def window_numbers(kernel_size, counts, dilation, padding, stride):
    return (*kernel_size, *counts, *dilation, *padding, *stride)


@cuda_kernel(operator_named("im2col"))
def im2col_cuda(self, kernel_size, dilation, padding, stride):
    x = self._array
    columns.check_window(kernel_size, dilation, padding, stride)
    columns.check_images(x)
    counts = columns.window_counts(x.shape[-2:], kernel_size, dilation, padding, stride)
    columns.check_counts(x, counts, kernel_size, dilation, padding)
    columns.check_dtype(self, "im2col_out_cuda")
    result = empty((*x.shape[:-3], x.shape[-3] * math.prod(kernel_size), math.prod(counts)), x.dtype)
    kernels.im2col(as_batch(self, 4)._array, window_numbers(kernel_size, counts, dilation, padding, stride),
                   as_batch(result, 3)._array)
    return result


@cuda_kernel(operator_named("col2im"))
def col2im_cuda(self, output_size, kernel_size, dilation, padding, stride):
    x = self._array
    columns.check_pairs(output_size=output_size)
    columns.check_window(kernel_size, dilation, padding, stride)
    counts = columns.window_counts(output_size, kernel_size, dilation, padding, stride)
    columns.check_columns(x, output_size, kernel_size, dilation, padding, stride, counts)
    columns.check_dtype(self, "col2im_out_cuda")
    result = empty((*x.shape[:-2], x.shape[-2] // math.prod(kernel_size), *output_size), x.dtype)
    kernels.col2im(as_batch(self, 3)._array, window_numbers(kernel_size, counts, dilation, padding, stride),
                   as_batch(result, 4)._array)
    return result


# ------------------------------------------------------------------------------------- channels become pixels


@cuda_kernel(operator_named("pixel_shuffle"))
def pixel_shuffle_cuda(self, upscale_factor):
    """(*, C r², H, W) -> (*, C, H r, W r): one copy of a permuted view."""
    shape, r = self._array.shape, upscale_factor
    check_arguments(self._array, "pixel_shuffle", "upscale_factor", r)
    *batch, channels, height, width = shape
    if channels % (r * r):
        raise RuntimeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                           f"upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}")
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
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                               f"input.size({dim})={size} is not divisible by {r}")
    if not self._array.size:
        return clone_cuda(self, None)
    n, height, width = len(batch), height // r, width // r
    pixels = self.reshape((*batch, c, height, r, width, r))
    blocks = pixels.permute((*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    result = owned(clone_cuda(blocks, contiguous_format).view((*batch, c * r * r, height, width)))
    return in_format_of(self, result)


# -------------------------------------------------------------------------------------------- grids of points


def points_of(grid):
    n, *sizes, dims = grid._array.shape
    return contiguous(wide(grid)._array).reshape(n, math.prod(sizes), dims)


def samplers(dims):
    name = f"grid_sampler_{dims}d"

    @cuda_kernel(operator_named(name))
    def sample(input, grid, mode, padding_mode, align_corners):
        check_shapes(input._array.shape, grid._array.shape)
        check_dimensions_of_grid(input._array.shape, grid._array.shape, dims)
        check_dtypes(input, grid, dims)
        n, *sizes, _ = grid._array.shape
        x = wide(input)
        result = filled(empty((n, x._array.shape[1], *sizes), x._array.dtype), 0)
        grid_sampler.sample(x._array, points_of(grid), mode, padding_mode, align_corners,
                            result._array.reshape(n, -1, math.prod(sizes)))
        return converted(result, input._array.dtype)

    @cuda_kernel(operator_named(f"{name}_backward"))
    def backward(grad_output, input, grid, mode, padding_mode, align_corners, output_mask):
        x, g, points = wide(input), contiguous(wide(grad_output)._array), points_of(grid)
        grad_x = filled(empty(x._array.shape, x._array.dtype), 0)
        grad_grid = empty(grid._array.shape, x._array.dtype)
        grid_sampler.sample_backward(g.reshape(*g.shape[:2], points.shape[1]), x._array, points, mode,
                                     padding_mode, align_corners, grad_x._array,
                                     grad_grid._array.reshape(points.shape))
        wanted = zip((grad_x, grad_grid), output_mask)
        return tuple(converted(t, input._array.dtype) if is_wanted else None for t, is_wanted in wanted)


samplers(2)
samplers(3)
