"""batch_norm, in training and in evaluation, forward and backward.

x is (N, C, …), seen as (N, C, spatial). Grid: one block for each channel, or several where a channel has much
to sum (their partial sums are added by a second launch); block: whole warps, up to 256 threads, which walk
along the elements of the channel. The elementwise parts run over all elements with a grid-stride loop.

In PyTorch: `aten/src/ATen/native/cuda/Normalization.cuh`, `aten/src/ATen/native/cuda/Normalization.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import blocks_of, launch, scratch, strided

from .block_reduce import block_sum, whole_warps
from .layer_norm_kernel import rows_to_fill, zero
from .loops import pointwise
from .reduce import SUM, reduce
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import row, wide

THREADS = 256
LEAST_PART = 8192  # elements of a channel that are worth a block of their own


def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, out, mean, invstd):
    """weight, bias, running_*: C elements or None. mean, invstd (C): what was used, for the backward pass."""
    if out.size == 0:
        return
    x, result = by_channel(x), by_channel(out)
    number = x.dtype.type
    if training:
        statistics(x, mean, invstd)  # invstd holds the variance until the next step
        update_running(running_mean, running_var, mean, invstd, momentum, x.shape[0] * x.shape[2])
        pointwise(inverse_root, [invstd], invstd, (number(eps),))
    else:
        pointwise(copy, [running_mean], mean)
        pointwise(inverse_root, [running_var], invstd, (number(eps),))
    affine = (weight is not None, bias is not None)
    weight, bias = (mean if a is None else a for a in (weight, bias))
    launch(transform_kernel(*affine), blocks_of(x.size, THREADS), THREADS, x, mean, invstd, weight, bias, result)


def batch_norm_backward(grad, x, weight, training, mean, invstd, grad_input, grad_weight, grad_bias):
    """mean, invstd: as batch_norm left them. grad_weight and grad_bias (C) are needed for grad_input in
    training.
    """
    if grad.size == 0:
        return
    grad, x = contiguous(grad), contiguous(x)
    channels = x.shape[1]
    by_sample = [strided(s, (x.shape[0], channels), (0, s.itemsize)) for s in (mean, invstd)]
    channel_sums(grad, x, *by_sample, grad_bias, grad_weight)
    grad, x = by_channel(grad), by_channel(x)
    scale = x.dtype.type(1 / (x.shape[0] * x.shape[2]) if training else 0)
    launch(
        backward_kernel(weight is not None),
        blocks_of(x.size, THREADS),
        THREADS,
        grad,
        x,
        mean,
        invstd,
        mean if weight is None else weight,
        grad_weight,
        grad_bias,
        scale,
        by_channel(grad_input),
    )


def channel_sums(grad, x, mean, invstd, grad_bias, grad_weight):
    """Σ grad and Σ grad · y of each channel, y the normalized x. mean, invstd: (N, C)."""
    grad, x = by_channel(grad), by_channel(x)
    parts = parts_of(x)
    sums = [scratch(x, (parts, x.shape[1]), x.dtype) for _ in range(2)]
    launch(sums_kernel(x.dtype.type), (x.shape[1], parts), threads_of(x, parts), grad, x, mean, invstd, *sums)
    for part, out in zip(sums, (grad_bias, grad_weight)):
        if out is not None:
            reduce(SUM, part, (0,), out)


def statistics(x, mean, variance):
    """Mean and variance (of the elements themselves, not an estimate) of each channel."""
    parts = parts_of(x)
    partial = scratch(x, (parts, x.shape[1]), x.dtype)
    for result, term in ((mean, itself), (variance, squared_distance)):
        launch(total_kernel(term, x.dtype.type), (x.shape[1], parts), threads_of(x, parts), x, mean, partial)
        reduce(SUM, partial, (0,), result)
        pointwise(divided_by, [result], result, (x.dtype.type(x.shape[0] * x.shape[2]),))


def update_running(running_mean, running_var, mean, variance, momentum, count):
    """running ← running + momentum (new - running), the variance as an estimate: divided by count - 1."""
    number = mean.dtype.type
    for running, new, factor in ((running_mean, mean, 1), (running_var, variance, count / max(count - 1, 1))):
        if running is not None:
            pointwise(exponential_average, [running, new], running, (number(momentum), number(factor)))


def by_channel(x):
    """x as (N, C, spatial), contiguous."""
    x = contiguous(x)
    spatial = math.prod(x.shape[2:])
    channels = x.shape[1]
    strides = (channels * spatial * x.itemsize, spatial * x.itemsize, x.itemsize)
    return strided(x, (x.shape[0], channels, spatial), strides)


def parts_of(x):
    return max(1, min(x.shape[0] * x.shape[2] // LEAST_PART, 64))


def threads_of(x, parts):
    return whole_warps(x.shape[0] * x.shape[2] // parts)


def inverse_root(variance, scalars):
    return type(variance)(1) / math.sqrt(variance + scalars[0])


def divided_by(x, scalars):
    return x / scalars[0]


def exponential_average(running, new, scalars):
    return running + scalars[0] * (new * scalars[1] - running)


def times(v, weight, c):
    return v * weight[c]


def plus(v, bias, c):
    return v + bias[c]


def without(v, parameter, c):
    return v


@functools.cache
def transform_kernel(has_weight, has_bias):
    scaled, shifted = times if has_weight else without, plus if has_bias else without

    def transform(x, mean, invstd, weight, bias, out):
        channels, spatial = x.shape[1], x.shape[2]
        for e in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            i, c, s = e // (channels * spatial), e // spatial % channels, e % spatial
            out[i, c, s] = shifted(scaled((x[i, c, s] - mean[c]) * invstd[c], weight, c), bias, c)

    return transform


@functools.cache
def backward_kernel(has_weight):
    """invstd · weight (grad - (Σ grad + y Σ grad y) / count); `scale` is 1 / count, and 0 in evaluation."""
    scaled = times if has_weight else without

    def backward(grad, x, mean, invstd, weight, grad_weight, grad_bias, scale, out):
        channels, spatial = x.shape[1], x.shape[2]
        for e in range(cuda.grid(1), x.size, cuda.gridsize(1)):
            i, c, s = e // (channels * spatial), e // spatial % channels, e % spatial
            y = (x[i, c, s] - mean[c]) * invstd[c]
            g = grad[i, c, s] - scale * (grad_bias[c] + y * grad_weight[c])
            out[i, c, s] = scaled(g * invstd[c], weight, c)

    return backward


def itself(x, center):
    return x


def squared_distance(x, center):
    return (x - center) * (x - center)


@functools.cache
def total_kernel(term, dtype):
    """Each part's sum of a channel, to be divided later; `term`: what an element adds to it, given the channel's mean."""

    def total(x, mean, partial):
        shared = cuda.shared.array(32, dtype)
        c, part, spatial = cuda.blockIdx.x, cuda.blockIdx.y, x.shape[2]
        length = (x.shape[0] * spatial + cuda.gridDim.y - 1) // cuda.gridDim.y
        total, center = dtype(0), mean[c]
        for e in range(
            part * length + cuda.threadIdx.x, min((part + 1) * length, x.shape[0] * spatial), cuda.blockDim.x
        ):
            total += term(x[e // spatial, c, e % spatial], center)
        total = block_sum(total, shared, dtype(0))
        if cuda.threadIdx.x == 0:
            partial[part, c] = total

    return total


@functools.cache
def sums_kernel(dtype):
    """Each part's Σ grad and Σ grad · y of a channel."""

    def sums(grad, x, mean, invstd, totals, alongs):
        shared = cuda.shared.array(32, dtype)
        c, part, spatial = cuda.blockIdx.x, cuda.blockIdx.y, x.shape[2]
        length = (x.shape[0] * spatial + cuda.gridDim.y - 1) // cuda.gridDim.y
        total, along = dtype(0), dtype(0)
        for e in range(
            part * length + cuda.threadIdx.x, min((part + 1) * length, x.shape[0] * spatial), cuda.blockDim.x
        ):
            i, s = e // spatial, e % spatial
            total += grad[i, c, s]
            along += grad[i, c, s] * (x[i, c, s] - mean[i, c]) * invstd[i, c]
        total = block_sum(total, shared, dtype(0))
        along = block_sum(along, shared, dtype(0))
        if cuda.threadIdx.x == 0:
            totals[part, c], alongs[part, c] = total, along

    return sums


@cuda_impl(operator_named("native_batch_norm"))
def native_batch_norm_cuda(input, weight, bias, running_mean, running_var, training, momentum, eps, *outs):
    """The result, and in training the mean and 1 / deviation of each channel."""
    x, running = wide(input)._array, [None if t is None else t._array for t in (running_mean, running_var)]
    with rows_to_fill(*outs) as (out, *saved):
        saved = saved if training else [scratch(x, x.shape[1:2], x.dtype) for _ in range(2)]
        batch_norm(x, row(weight), row(bias), *running, training, momentum, eps, out, *saved)


@cuda_impl(operator_named("native_batch_norm_backward"))
def native_batch_norm_backward_cuda(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask, *grads
):
    x, grad = wide(input)._array, wide(grad_out)._array
    if train:
        mean, invstd = row(save_mean), row(save_invstd)
    else:
        mean, invstd = row(running_mean), row((running_var + eps).rsqrt())
    with rows_to_fill(*grads) as arrays:
        arrays = [
            scratch(x, shape, x.dtype) if a is None else a
            for a, shape in zip(arrays, (x.shape, x.shape[1:2], x.shape[1:2]))
        ]
        if x.size:
            batch_norm_backward(grad, x, row(weight), train, mean, invstd, *arrays)
        else:
            zero(*arrays)
