"""Group normalization, by the kernels of layer_norm_kernel.py: the groups are its rows.

In PyTorch: `aten/src/ATen/native/cuda/group_norm_kernel.cu`.
"""

import math

from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import scratch, strided

from .fill_kernel import fill
from .layer_norm_kernel import rows_to_fill, run_backward, run_forward, zero
from .loops import pointwise
from .normalization import channel_sums
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous, flat, matrix
from .softmax import row, wide


def group_norm(x, groups, weight, bias, eps, out, mean, rstd):
    """x: (N, C, …). weight, bias: C elements or None. mean, rstd: (N · groups)."""
    n, each = row_of_group(x, groups)
    run_forward(matrix(x, n), weight, bias, eps, matrix(out, n), mean, rstd, each)


def group_norm_backward(grad, x, groups, mean, rstd, weight, grad_input, grad_weight, grad_bias):
    n, each = row_of_group(x, groups)
    grad, x = contiguous(grad), contiguous(x)
    if grad_input is not None:
        run_backward(matrix(grad, n), matrix(x, n), mean, rstd, weight, matrix(grad_input, n), each)
    if grad_weight is not None or grad_bias is not None:
        batch, channels = x.shape[:2]
        by_channel = [for_channels(s, batch, groups, channels) for s in (mean, rstd)]
        channel_sums(grad, x, *by_channel, grad_bias, grad_weight)


def row_of_group(x, groups):
    """(elements in a row, (channels of a group, elements of a channel, groups))."""
    channels = x.shape[1] // groups
    spatial = x.size // max(1, x.shape[0] * x.shape[1])
    return channels * spatial, (channels, spatial, groups)


def for_channels(statistic, batch, groups, channels):
    """A number for each (sample, group) as one for each (sample, channel): a matrix of its own."""
    repeated = scratch(statistic, (batch, groups, channels // groups), statistic.dtype)
    size = statistic.itemsize
    pointwise(copy, [strided(statistic, (batch, groups, 1), (groups * size, size, 0))], repeated)
    return strided(repeated, (batch, channels), (channels * repeated.itemsize, repeated.itemsize))


@cuda_impl(operator_named("native_group_norm"))
def native_group_norm_cuda(input, weight, bias, N, C, HxW, group, eps, *outs):
    """The result, and the mean and 1 / deviation of each group: (N, group)."""
    x = wide(input)._array
    with rows_to_fill(*outs) as (out, mean, rstd):
        if x.size:
            group_norm(x, group, row(weight), row(bias), eps, out, flat(mean), flat(rstd))
        else:
            fill(mean, mean.dtype.type(0))
            fill(rstd, rstd.dtype.type(math.nan))


@cuda_impl(operator_named("native_group_norm_backward"))
def native_group_norm_backward_cuda(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask, *grads):
    grad, x = wide(grad_out)._array, wide(input)._array
    with rows_to_fill(*grads) as (grad_input, *features):
        if x.size:
            group_norm_backward(grad, x, group, row(mean), row(rstd), row(weight), grad_input, *features)
        else:
            zero(*features)
