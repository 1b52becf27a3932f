"""Convolutions over one to three dimensions and pooling over one and two, forward and backward.

One dimension is two of which the first has size 1. A transposed convolution is the gradient of a convolution
with respect to its input.

In PyTorch: `aten/src/ATen/native/cudnn/ConvShared.cpp`,
`aten/src/ATen/native/cuda/{DilatedMaxPool2d,AveragePool2d, AdaptiveAveragePooling}.cu`.
"""

from typing import NamedTuple

from .....c10.memory_format import format_strides
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ...convolution.params import check_room, check_same_type, check_shapes, geometry_of, output_shape
from ....tensor_utils import check_adaptive, check_dim_sizes, check_like_indices, check_pooled
from ...pooling.adaptive import check_dimensions, check_not_empty
from ...pooling.average import window_of_2d
from ...pooling.windows import pool2d_outputs, sliding
from ...tensor_iterator import not_implemented
from .. import convolution as kernels
from .. import pooling
from ..volumes import VOLUMES
from .factories import filled
from .normalization import row, wide
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import cuda_kernel, empty, owned

# ----------------------------------------------------------------------------------------------------
# convolution


class Window(NamedTuple):
    """How a kernel moves over two or three dimensions."""

    stride: tuple
    padding: tuple
    dilation: tuple
    groups: int


def window_of(geometry, rank):
    """The geometry; of one dimension, for two."""
    if rank == 1:
        return Window((1, *geometry.stride), (0, *geometry.padding), (1, *geometry.dilation), geometry.groups)
    return Window(*geometry[:3], geometry.groups)


def as_images(t, rank):
    """(N, C, H, W) or (N, C, D, H, W), in the dtype to compute in."""
    return wide(t).unsqueeze(2) if rank == 1 else wide(t)


def image_shape(shape, rank):
    return (*shape[:2], 1, *shape[2:]) if rank == 1 else shape


def elements_of(rank):
    return VOLUMES if rank == 3 else kernels.PLANES


@cuda_kernel(operator_named("convolution"))
def convolution_cuda(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    check_shapes(input, weight, bias, geometry)
    check_same_type(input, weight, bias)
    if not dtype_of(input).is_floating_point:
        raise not_implemented("convolution_cuda")(dtype_of(input))
    rank = input._array.ndim - 2
    shape = output_shape(input._array.shape, weight._array.shape, geometry)
    if transposed:
        check_room(input, geometry, shape[2:])
    window = window_of(geometry, rank)
    x, w = as_images(input, rank), as_images(weight, rank)
    elements, out = elements_of(rank), filled(empty(image_shape(shape, rank), x._array.dtype), 0)
    if transposed:
        kernels.convolve_backward_input(elements, x._array, w._array, *window, out._array)
        out = out if bias is None else out + wide(bias).reshape(-1, *[1] * (x._array.ndim - 2))
    else:
        kernels.convolve(elements, x._array, w._array, row(bias), *window, out._array)
    return converted(owned(out.view(shape)), input._array.dtype)


@cuda_kernel(operator_named("convolution_backward"))
def convolution_backward_cuda(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    """The gradients of input, weight and bias that `output_mask` asks for; None for the others."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    check_dim_sizes(grad_output, output_shape(input._array.shape, weight._array.shape, geometry))
    rank = input._array.ndim - 2
    window = window_of(geometry, rank)
    grad, x, w = (as_images(t, rank) for t in (grad_output, input, weight))
    elements, grads = elements_of(rank), [None, None, None]
    if output_mask[0]:
        grads[0] = filled(empty(x._array.shape, x._array.dtype), 0)
        if transposed:
            kernels.convolve(elements, grad._array, w._array, None, *window, grads[0]._array)
        else:
            kernels.convolve_backward_input(elements, grad._array, w._array, *window, grads[0]._array)
    if output_mask[1]:
        grads[1] = filled(empty(w._array.shape, x._array.dtype), 0)
        pair = (x, grad) if transposed else (grad, x)
        kernels.convolve_backward_weight(elements, *[t._array for t in pair], *window, grads[1]._array)
    if output_mask[2]:
        grads[2] = at.sum(grad, (0, *range(2, grad._array.ndim)))
    shapes = input._array.shape, weight._array.shape, (grad._array.shape[1],)
    return tuple(
        None if g is None else converted(owned(g.view(shape)), input._array.dtype) for g, shape in zip(grads, shapes)
    )


# --------------------------------------------------------------------------------------------------------
# pooling


def planes(t):
    """(N, C, H, W) of an input with or without N."""
    return t._array if t._array.ndim == 4 else t._array[None]


def empty_like_format(t, shape):
    """A new tensor with the dtype and the memory format of `t`."""
    return empty(shape, t._array.dtype, format_strides(t._array, shape))


def numbers_of(slide):
    return slide.kernel, slide.stride, slide.padding


@cuda_kernel(operator_named("max_pool2d_with_indices"))
def max_pool2d_cuda(self, kernel_size, stride, padding, dilation, ceil_mode):
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode)
    shape = (*self._array.shape[:-2], *pool2d_outputs(slide, self._array.shape))
    strides = format_strides(self._array, shape)
    values, indices = empty(shape, self._array.dtype, strides), empty(shape, LONG, strides)
    pooling.max_pool2d(planes(self), *numbers_of(slide), slide.dilation, planes(values), planes(indices))
    return values, indices


@cuda_kernel(operator_named("max_pool2d_with_indices_backward"))
def max_pool2d_backward_cuda(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode)
    check_pooled((*self._array.shape[:-2], *pool2d_outputs(slide, self._array.shape)), 2, grad_output, indices)
    result = empty_like_format(self, self._array.shape)
    pooling.max_pool2d_backward(
        planes(grad_output), planes(indices), *numbers_of(slide), slide.dilation, planes(result)
    )
    return result


@cuda_kernel(operator_named("avg_pool2d"))
def avg_pool2d_cuda(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    slide, outputs = window_of_2d(self._array, kernel_size, stride, padding, ceil_mode, divisor_override)
    result = empty_like_format(self, (*self._array.shape[:-2], *outputs))
    pooling.avg_pool2d(
        planes(self), *numbers_of(slide), count_include_pad, divisor_override or 0, planes(result)
    )
    return result


@cuda_kernel(operator_named("avg_pool2d_backward"))
def avg_pool2d_backward_cuda(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    slide, outputs = window_of_2d(self._array, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled((*self._array.shape[:-2], *outputs), 2, grad_output)
    result = empty_like_format(self, self._array.shape)
    pooling.avg_pool2d_backward(
        planes(grad_output), *numbers_of(slide), count_include_pad, divisor_override or 0, planes(result)
    )
    return result


@cuda_kernel(operator_named("_adaptive_avg_pool2d"))
def adaptive_avg_pool2d_cuda(self, output_size):
    result = empty_like_format(self, (*self._array.shape[:-2], *output_size))
    pooling.adaptive_avg_pool2d(planes(self), planes(result))
    return result


@cuda_kernel(operator_named("_adaptive_avg_pool2d_backward"))
def adaptive_avg_pool2d_backward_cuda(grad_output, self):
    check_adaptive("adaptive_avg_pool2d_backward_cuda", grad_output, self, 2, "grad_output")
    result = empty_like_format(self, self._array.shape)
    pooling.adaptive_avg_pool2d_backward(planes(grad_output), planes(result))
    return result


@cuda_kernel(operator_named("adaptive_max_pool2d"))
def adaptive_max_pool2d_cuda(self, output_size):
    shape = self._array.shape
    check_dimensions("adaptive_max_pool2d", shape, 2, ":")
    check_not_empty("adaptive_max_pool2d", shape)
    sizes = (*shape[:-2], *output_size)
    strides = format_strides(self._array, sizes)
    values, indices = empty(sizes, self._array.dtype, strides), empty(sizes, LONG, strides)
    pooling.adaptive_max_pool2d(planes(self), planes(values), planes(indices))
    return values, indices


@cuda_kernel(operator_named("adaptive_max_pool2d_backward"))
def adaptive_max_pool2d_backward_cuda(grad_output, self, indices):
    check_not_empty("adaptive_max_pool2d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pooling2d_backward", grad_output, indices, self, 2, "grad_output")
    result = empty_like_format(self, self._array.shape)
    pooling.adaptive_max_pool2d_backward(planes(grad_output), planes(indices), planes(result))
    return result
