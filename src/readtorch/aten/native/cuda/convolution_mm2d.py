"""Convolutions over one to three dimensions, forward and backward, by the kernels of conv_shared.py; and conv_tbc.

One dimension is two of which the first has size 1. A transposed convolution is the gradient of a convolution with
respect to its input.

In PyTorch: `aten/src/ATen/native/cuda/ConvolutionMM2d.cu`, `aten/src/ATen/native/cuda/NaiveConvolutionTranspose2d.cu`.
"""

from typing import NamedTuple

from readtorch.aten.functions import at
from readtorch.aten.native.convolution.params import (
    check_room,
    check_same_type,
    check_shapes,
    geometry_of,
    output_shape,
)
from readtorch.aten.native.convolution_tbc import overlaps
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.tensor_utils import check_dim_sizes
from readtorch.c10.tensor_impl import dtype_of

from .conv_shared import PLANES, convolve, convolve_backward_input, convolve_backward_weight
from .fill_kernel import filled
from .naive_convolution_transpose3d import VOLUMES
from .pool import in_wide
from .reduce_ops import converted
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named, owned
from .softmax import row, wide


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


def as_batch_of_images(t, rank):
    """(N, C, H, W) or (N, C, D, H, W), in the dtype to compute in."""
    return wide(t).unsqueeze(2) if rank == 1 else wide(t)


def image_shape(shape, rank):
    return (*shape[:2], 1, *shape[2:]) if rank == 1 else shape


def elements_of(rank):
    return VOLUMES if rank == 3 else PLANES


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
    x, w = as_batch_of_images(input, rank), as_batch_of_images(weight, rank)
    elements, out = elements_of(rank), filled(empty(image_shape(shape, rank), x._array.dtype), 0)
    if transposed:
        convolve_backward_input(elements, x._array, w._array, *window, out._array)
        out = out if bias is None else out + wide(bias).reshape(-1, *[1] * (x._array.ndim - 2))
    else:
        convolve(elements, x._array, w._array, row(bias), *window, out._array)
    return converted(owned(out.view(shape)), input._array.dtype)


@cuda_kernel(operator_named("convolution_backward"))
def convolution_backward_cuda(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """The gradients of input, weight and bias that `output_mask` asks for; None for the others."""
    geometry = geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups)
    check_dim_sizes(grad_output, output_shape(input._array.shape, weight._array.shape, geometry))
    rank = input._array.ndim - 2
    window = window_of(geometry, rank)
    grad, x, w = (as_batch_of_images(t, rank) for t in (grad_output, input, weight))
    elements, grads = elements_of(rank), [None, None, None]
    if output_mask[0]:
        grads[0] = filled(empty(x._array.shape, x._array.dtype), 0)
        if transposed:
            convolve(elements, grad._array, w._array, None, *window, grads[0]._array)
        else:
            convolve_backward_input(elements, grad._array, w._array, *window, grads[0]._array)
    if output_mask[1]:
        grads[1] = filled(empty(w._array.shape, x._array.dtype), 0)
        pair = (x, grad) if transposed else (grad, x)
        convolve_backward_weight(elements, *[t._array for t in pair], *window, grads[1]._array)
    if output_mask[2]:
        grads[2] = at.sum(grad, (0, *range(2, grad._array.ndim)))
    shapes = input._array.shape, weight._array.shape, (grad._array.shape[1],)
    return tuple(
        None if g is None else converted(owned(g.view(shape)), input._array.dtype) for g, shape in zip(grads, shapes)
    )


@cuda_impl(operator_named("conv_tbc"))
def conv_tbc_cuda(self, weight, bias, pad, out):
    x, w = wide(self), wide(weight)
    with in_wide(out) as result:
        at.copy_(result, wide(bias))
        for k, (source, target) in enumerate(overlaps(len(x._array), len(result._array), len(w._array), pad)):
            result[target].add_(x[source] @ w[k])


@cuda_impl(operator_named("conv_tbc_backward"))
def conv_tbc_backward_cuda(self, input, weight, bias, pad, *outs):
    grad, x, w = wide(self), wide(input), wide(weight)
    dx, pieces = at.zeros_like(x), []
    for k, (source, target) in enumerate(overlaps(len(x._array), len(grad._array), len(w._array), pad)):
        dx[source].add_(grad[target] @ w[k].t())
        seen, given = x[source].reshape(-1, x._array.shape[2]), grad[target].reshape(-1, w._array.shape[2])
        pieces.append(seen.t() @ given)
    for out, gradient in zip(outs, (dx, at.stack(pieces), grad.sum((0, 1)))):
        at.copy_(out, gradient)
