"""Convolutions over one to three dimensions, forward and backward, by the kernels of conv_shared.py; and conv_tbc.

One dimension is two of which the first has size 1. A transposed convolution is the gradient of a convolution with
respect to its input.

In PyTorch: `aten/src/ATen/native/cuda/ConvolutionMM2d.cu`, `aten/src/ATen/native/cuda/NaiveConvolutionTranspose2d.cu`.
"""

from typing import NamedTuple

from readtorch.aten.functions import at
from readtorch.aten.native.convolution.params import geometry_of
from readtorch.aten.native.convolution_tbc import overlaps
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.tensor_impl import dtype_of

from .conv_shared import PLANES, convolve, convolve_backward_input, convolve_backward_weight
from .fill_kernel import filled
from .naive_convolution_transpose3d import VOLUMES
from .pool import in_wide
from .register_dispatch_key import cuda_impl, operator_named
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


def images(t, rank):
    """(N, C, H, W) or (N, C, D, H, W): the array of a signal as that of an image of height 1."""
    return t._array[:, :, None] if rank == 1 else t._array


def elements_of(rank):
    return VOLUMES if rank == 3 else PLANES


@cuda_impl(operator_named("convolution"))
def convolution_cuda(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, out):
    if not dtype_of(input).is_floating_point:
        raise not_implemented("convolution_cuda")(dtype_of(input))
    rank = input._array.ndim - 2
    window = window_of(geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups), rank)
    x, w = [images(wide(t), rank) for t in (input, weight)]
    with in_wide(out, row_major=True) as result:
        y = images(filled(result, 0), rank)
        if transposed:
            convolve_backward_input(elements_of(rank), x, w, *window, y)
            if bias is not None:
                result.add_(wide(bias).reshape(-1, *[1] * rank))
        else:
            convolve(elements_of(rank), x, w, row(bias), *window, y)


@cuda_impl(operator_named("convolution_backward"))
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
    grad_input,
    grad_weight,
    grad_bias,
):
    rank = input._array.ndim - 2
    window = window_of(geometry_of(weight, stride, padding, dilation, transposed, output_padding, groups), rank)
    elements, wide_grad = elements_of(rank), wide(grad_output)
    grad, x, w = [images(t, rank) for t in (wide_grad, wide(input), wide(weight))]
    if grad_input is not None:
        with in_wide(grad_input, row_major=True) as result:
            dx = images(filled(result, 0), rank)
            if transposed:
                convolve(elements, grad, w, None, *window, dx)
            else:
                convolve_backward_input(elements, grad, w, *window, dx)
    if grad_weight is not None:
        with in_wide(grad_weight, row_major=True) as result:
            pair = (x, grad) if transposed else (grad, x)
            convolve_backward_weight(elements, *pair, *window, images(filled(result, 0), rank))
    if grad_bias is not None:
        at.copy_(grad_bias, at.sum(wide_grad, (0, *range(2, rank + 2))))


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
