"""Pooling over three dimensions, fractional pooling over two and three, and unpooling.

In PyTorch:
`aten/src/ATen/native/cuda/{AveragePool3d,DilatedMaxPool3d,AdaptiveMaxPooling3d,FractionalMaxPool2d,
FractionalMaxPool3d,MaxUnpooling}.cu`.
"""

import math

from .....c10.memory_format import contiguous_format, format_strides, suggested_format
from .....c10.tensor_impl import dtype_of, type_name
from ...pooling import fractional_max_pooling as fractional
from ...pooling import max_unpooling as unpooling
from ....tensor_utils import check_like_indices, check_picked, check_pooled
from ...pooling.adaptive import check_dimensions, check_not_empty
from ...pooling.average import window_of_3d
from ...pooling.windows import check_sizes, pool3d_outputs, sliding
from ...tensor_iterator import not_implemented
from .. import indexing
from .. import volume_pooling as kernels
from ..rows import contiguous
from .factories import filled
from .normalization import wide
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import cuda_kernel, empty

# ----------------------------------------------------------------------------------------- shapes and formats


def volumes(t):
    """(N, C, D, H, W) of a tensor with or without N."""
    return t._array if t._array.ndim == 5 else t._array[None]


def empty_pair(x, like, sizes):
    """New values, in the dtype of `x`, and indices, in the memory format of `like`."""
    strides = format_strides(like._array, sizes)
    return empty(sizes, x._array.dtype, strides), empty(sizes, LONG, strides)


def check_floating(name, self):
    if not dtype_of(self).is_floating_point:
        raise not_implemented(name)(dtype_of(self))


def in_type_of(self, values):
    return converted(values, self._array.dtype)


def put_back(grad_output, self, indices, dims):
    """Zeros in the likeness of `self`, to which each gradient is added where its maximum lay."""
    x, grad = self._array, wide(grad_output)
    result = filled(empty(x.shape, grad._array.dtype), 0)
    if grad._array.size:
        planes = math.prod(x.shape[:-dims])
        rows = [contiguous(t._array).reshape(planes, -1) for t in (result, indices, grad)]
        indexing.scatter_add(rows[0], 1, *rows[1:])
    return in_format_of(self, result)


def in_format_of(self, result):
    """`result` with the dtype and the memory format of `self`."""
    suggested = suggested_format(self._array)
    result = in_type_of(self, result)
    return result if suggested is contiguous_format else result.contiguous(memory_format=suggested)


# --------------------------------------------------------------------------------------------------- averages


@cuda_kernel(operator_named("avg_pool3d"))
def avg_pool3d_cuda(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    slide, outputs = window_of_3d(self._array, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_floating("avg_pool3d_out_cuda", self)
    x, sizes = wide(self), (*self._array.shape[:-3], *outputs)
    result = empty(sizes, x._array.dtype, format_strides(self._array, sizes))
    kernels.avg_pool3d(volumes(x), slide.kernel, slide.stride, slide.padding, count_include_pad,
                       divisor_override or 0, volumes(result))
    return in_type_of(self, result)


@cuda_kernel(operator_named("avg_pool3d_backward"))
def avg_pool3d_backward_cuda(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    slide, outputs = window_of_3d(self._array, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled((*self._array.shape[:-3], *outputs), 3, grad_output)
    grad, sizes = wide(grad_output), self._array.shape
    result = empty(sizes, grad._array.dtype, format_strides(self._array, sizes))
    kernels.avg_pool3d_backward(volumes(grad), slide.kernel, slide.stride, slide.padding, count_include_pad,
                                divisor_override or 0, volumes(result))
    return in_type_of(self, result)


# ----------------------------------------------------------------------------------------------------- maxima


@cuda_kernel(operator_named("max_pool3d_with_indices"))
def max_pool3d_cuda(self, kernel_size, stride, padding, dilation, ceil_mode):
    slide = sliding("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode)
    if self._array.ndim not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    outputs = pool3d_outputs(slide, self._array.shape, "max_pool3d_with_indices_out_cuda_template()")
    x = wide(self)
    values, indices = empty_pair(x, self, (*self._array.shape[:-3], *outputs))
    kernels.max_pool3d(volumes(x), slide.kernel, slide.stride, slide.padding, slide.dilation, volumes(values),
                       volumes(indices))
    return in_type_of(self, values), indices


@cuda_kernel(operator_named("max_pool3d_with_indices_backward"))
def max_pool3d_backward_cuda(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    check_picked("max_pool3d_with_indices_backward", grad_output, indices, self, 3)
    return put_back(grad_output, self, indices, 3)


@cuda_kernel(operator_named("adaptive_max_pool3d"))
def adaptive_max_pool3d_cuda(self, output_size):
    shape = self._array.shape
    check_dimensions("adaptive_max_pool3d", shape, 3, ":")
    check_not_empty("adaptive_max_pool3d", shape)
    check_sizes((*shape[:-3], *output_size))
    check_floating("adaptive_max_pool3d_cuda", self)
    x = wide(self)
    values, indices = empty(sizes := (*shape[:-3], *output_size), x._array.dtype), empty(sizes, LONG)
    kernels.adaptive_max_pool3d(volumes(x), volumes(values), volumes(indices))
    return in_type_of(self, values), indices


@cuda_kernel(operator_named("adaptive_max_pool3d_backward"))
def adaptive_max_pool3d_backward_cuda(grad_output, self, indices):
    check_not_empty("adaptive_max_pool3d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pool3d_backward", grad_output, indices, self, 3, "gradOutput")
    return in_type_of(self, put_back(grad_output, self, indices, 3).contiguous())


# ----------------------------------------------------------------------------------------- fractional windows


def fractional_operators(dims, columns):
    """columns: which of a plane's random numbers belongs to depth, height and width."""
    name = f"fractional_max_pool{dims}d"
    one = (1,) * (3 - dims)

    @cuda_kernel(operator_named(name))
    def pool(self, kernel_size, output_size, random_samples):
        shape = self._array.shape
        fractional.check(name, shape, kernel_size, output_size, dims)
        fractional.check_samples(random_samples._array, self._array, dims)
        check_floating(f"{name}_out_cuda_frame", self)
        x, samples = wide(self), wide(random_samples)._array
        planes = (*(1, *shape)[-dims - 2:-dims], *one)
        sizes = (*shape[:-dims], *output_size)
        values, indices = empty(sizes, x._array.dtype), empty(sizes, LONG)
        seen = contiguous(x._array).reshape(*planes, *shape[-dims:])
        results = [t._array.reshape(*planes, *output_size) for t in (values, indices)]
        kernels.fractional_max_pool(seen, (*one, *kernel_size), samples, columns, *results)
        return in_type_of(self, values), indices

    @cuda_kernel(operator_named(f"{name}_backward"))
    def backward(grad_output, self, kernel_size, output_size, indices):
        check_picked(f"{name}_backward", grad_output, indices, self, dims)
        return put_back(grad_output, self, indices, dims).contiguous()


fractional_operators(2, (0, 1, 0))  # the width's number comes first; a depth of 1 needs none
fractional_operators(3, (0, 1, 2))

# -------------------------------------------------------------------------------------------------- unpooling


def unpooled(name, self, indices, output_size, dims):
    """Zeros of `output_size`, with each element at its index. Indices stay unchecked: to look at them, the
    host would have to wait."""
    if indices._array.dtype != LONG:
        raise RuntimeError(f"elements in indices should be type int64 but got: {type_name(indices)}")
    unpooling.check_length("output_size", output_size, dims, "(height, width)" if dims == 2 else
                           "(depth, height, width)")
    unpooling.check_ndim(self._array, dims)
    unpooling.check_shapes(self, indices, output_size, dims)
    check_floating(name, self)
    result = filled(empty((*self._array.shape[:-dims], *output_size), self._array.dtype), 0)
    if self._array.size and result._array.size:
        planes = math.prod(self._array.shape[:-dims])
        rows = [contiguous(t._array).reshape(planes, -1) for t in (result, indices, self)]
        indexing.scatter(rows[0], 1, *rows[1:])
    return result


@cuda_kernel(operator_named("max_unpool2d"))
def max_unpool2d_cuda(self, indices, output_size):
    return in_format_of(self, unpooled("max_unpooling2d_forward_kernel", self, indices, output_size, 2))


@cuda_kernel(operator_named("max_unpool3d"))
def max_unpool3d_cuda(self, indices, output_size, stride, padding):
    unpooling.check_length("stride", stride, 3, "(depth, height, width)", "but got:")
    unpooling.check_length("padding", padding, 3, "(depth, height, width)", "but got:")
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return unpooled("max_unpooling3d_forward_kernel", self, indices, output_size, 3)
