"""batch_norm, in training and in evaluation, forward and backward.

x is (N, C, …), seen as (N, C, spatial). Sums: one block for each channel, or several where a channel has much to sum (their
partial sums are added by a second launch); block: whole warps, up to 256 threads, of which a power of two goes along the channel's
elements of a sample, and what is left along the samples: no position is divided. The elementwise parts run over all
elements with a grid-stride loop, four at a time where these are of one channel and 16 bytes; the channel is found by
multiplication: Note [ Division by multiplication ] in offset_calculator.py.

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
from .memory_access import in_fours, load, load4, store, store4
from .offset_calculator import LARGEST, divided, divider, laid_out, remainder
from .reduce import SUM, reduce
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous, flat
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
    for_elements(lambda fours: transform_kernel(*affine, fours), [x, result], (mean, invstd, weight, bias))


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
    channel = (mean, invstd, mean if weight is None else weight, grad_weight, grad_bias)
    arrays = [grad, x, by_channel(grad_input)]
    for_elements(lambda fours: backward_kernel(weight is not None, fours), arrays, channel, scale)


def for_elements(kernel_of, arrays, channel, *numbers):
    """Launch over contiguous arrays (N, C, spatial), with arrays that have a number for each channel."""
    for *parts, params in in_32_bits_by_channel(arrays, channel):
        _, channels, spatial = parts[0].shape
        fours = spatial % 4 == 0 and in_fours(*parts)
        count = parts[0].size // 4 if fours else parts[0].size
        kernel, rows = kernel_of(fours), [flat(a) for a in parts]
        dividers = divider(spatial // 4 if fours else spatial), divider(channels)
        launch(kernel, blocks_of(count, THREADS), THREADS, *rows, *params, *numbers, count, dividers)


def in_32_bits_by_channel(arrays, channel):
    """(*arrays, channel), or halves of them, and so on, whose elements can be counted in 31 bits."""
    shape = arrays[0].shape
    if arrays[0].size <= LARGEST:
        yield *arrays, channel
        return
    outermost = next(d for d, n in enumerate(shape) if n > 1)
    for half in (slice(shape[outermost] // 2), slice(shape[outermost] // 2, None)):
        parts = [a[(slice(None),) * outermost + (half,)] for a in arrays]
        yield from in_32_bits_by_channel(parts, [c[half] for c in channel] if outermost == 1 else channel)


def channel_sums(grad, x, mean, invstd, grad_bias, grad_weight):
    """Σ grad and Σ grad · y of each channel, y the normalized x. mean, invstd: (N, C)."""
    grad, x = by_channel(grad), by_channel(x)
    *parts, threads, bits = division_of(x)
    sums = [scratch(x, (math.prod(parts), x.shape[1]), x.dtype) for _ in range(2)]
    (mean, (step, _)), (invstd, _) = laid_out(mean), laid_out(invstd)
    arrays = flat(grad), flat(x), mean, invstd, *sums
    launch(sums_kernel(x.dtype.type), (x.shape[1], *parts), threads, *arrays, x.shape, step, bits)
    for part, out in zip(sums, (grad_bias, grad_weight)):
        if out is not None:
            reduce(SUM, part, (0,), out)


def statistics(x, mean, variance):
    """Mean and variance (of the elements themselves, not an estimate) of each channel."""
    *parts, threads, bits = division_of(x)
    partial = scratch(x, (math.prod(parts), x.shape[1]), x.dtype)
    for result, term in ((mean, itself), (variance, squared_distance)):
        launch(total_kernel(term, x.dtype.type), (x.shape[1], *parts), threads, flat(x), mean, partial, x.shape, bits)
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


def division_of(x):
    """(parts of the samples, parts of a sample's elements, threads, of which 2 to this power go along a sample)."""
    samples, _, spatial = x.shape
    parts = max(1, min(samples * spatial // LEAST_PART, 64))
    of_samples = min(parts, samples)
    bits = min(8, (spatial - 1).bit_length())
    of_spatial = min(parts // of_samples, spatial)
    return of_samples, of_spatial, whole_warps(-(-samples // of_samples) << bits), bits


def inverse_root(variance, scalars):
    return type(variance)(1) / math.sqrt(variance + scalars[0])


def divided_by(x, scalars):
    return x / scalars[0]


def exponential_average(running, new, scalars):
    return running + scalars[0] * (new * scalars[1] - running)


def times(v, weight, c):
    return v * load(weight, c)


def plus(v, bias, c):
    return v + load(bias, c)


def without(v, parameter, c):
    return v


def channel_of(e, dividers):
    """The channel of element e, given (elements of a channel in a sample, channels) as dividers."""
    plane = divided(e, dividers[0])
    return remainder(plane, divided(plane, dividers[1]), dividers[1])


@functools.cache
def transform_kernel(has_weight, has_bias, fours):
    scaled, shifted = times if has_weight else without, plus if has_bias else without

    def normalized(x, mean, invstd, weight, bias, c):
        return shifted(scaled((x - load(mean, c)) * load(invstd, c), weight, c), bias, c)

    def transform(x, out, mean, invstd, weight, bias, count, dividers):
        for e in range(cuda.grid(1), count, cuda.gridsize(1)):
            c = channel_of(e, dividers)
            store(out, e, normalized(load(x, e), mean, invstd, weight, bias, c))

    def transform_fours(x, out, mean, invstd, weight, bias, count, dividers):
        for q in range(cuda.grid(1), count, cuda.gridsize(1)):
            c, v = channel_of(q, dividers), load4(x, 4 * q)
            store4(
                out,
                4 * q,
                normalized(v[0], mean, invstd, weight, bias, c),
                normalized(v[1], mean, invstd, weight, bias, c),
                normalized(v[2], mean, invstd, weight, bias, c),
                normalized(v[3], mean, invstd, weight, bias, c),
            )

    return transform_fours if fours else transform


@functools.cache
def backward_kernel(has_weight, fours):
    """invstd · weight (grad - (Σ grad + y Σ grad y) / count); `scale` is 1 / count, and 0 in evaluation."""
    scaled = times if has_weight else without

    def gradient(grad, x, mean, invstd, weight, grad_weight, grad_bias, scale, c):
        y = (x - load(mean, c)) * load(invstd, c)
        g = grad - scale * (load(grad_bias, c) + y * load(grad_weight, c))
        return scaled(g * load(invstd, c), weight, c)

    def backward(grad, x, out, mean, invstd, weight, grad_weight, grad_bias, scale, count, dividers):
        for e in range(cuda.grid(1), count, cuda.gridsize(1)):
            c = channel_of(e, dividers)
            g = gradient(load(grad, e), load(x, e), mean, invstd, weight, grad_weight, grad_bias, scale, c)
            store(out, e, g)

    def backward_fours(grad, x, out, mean, invstd, weight, grad_weight, grad_bias, scale, count, dividers):
        for q in range(cuda.grid(1), count, cuda.gridsize(1)):
            c, g, v = channel_of(q, dividers), load4(grad, 4 * q), load4(x, 4 * q)
            store4(
                out,
                4 * q,
                gradient(g[0], v[0], mean, invstd, weight, grad_weight, grad_bias, scale, c),
                gradient(g[1], v[1], mean, invstd, weight, grad_weight, grad_bias, scale, c),
                gradient(g[2], v[2], mean, invstd, weight, grad_weight, grad_bias, scale, c),
                gradient(g[3], v[3], mean, invstd, weight, grad_weight, grad_bias, scale, c),
            )

    return backward_fours if fours else backward


def itself(x, center):
    return x


def squared_distance(x, center):
    return (x - center) * (x - center)


def own_samples(samples, bits):
    """(first, end, step) of the samples that this thread sums."""
    part = (samples + cuda.gridDim.y - 1) // cuda.gridDim.y
    first = cuda.blockIdx.y * part + (cuda.threadIdx.x >> bits)
    return first, min((cuda.blockIdx.y + 1) * part, samples), cuda.blockDim.x >> bits


def own_elements(spatial, bits):
    """(first, end, step) of the elements of each."""
    part, across = (spatial + cuda.gridDim.z - 1) // cuda.gridDim.z, 1 << bits
    first = cuda.blockIdx.z * part + (cuda.threadIdx.x & (across - 1))
    return first, min((cuda.blockIdx.z + 1) * part, spatial), across


@functools.cache
def total_kernel(term, dtype):
    """Each part's sum of a channel, to be divided later; `term`: what an element adds to it, given the channel's mean."""

    def total(x, mean, partial, shape, bits):
        shared = cuda.shared.array(32, dtype)
        c, total, center = cuda.blockIdx.x, dtype(0), load(mean, cuda.blockIdx.x)
        i, samples, down = own_samples(shape[0], bits)
        first, end, across = own_elements(shape[2], bits)
        while i < samples:
            s, begin = first, (i * shape[1] + c) * shape[2]
            while s < end:
                total += term(load(x, begin + s), center)
                s += across
            i += down
        total = block_sum(total, shared, dtype(0))
        if cuda.threadIdx.x == 0:
            partial[cuda.blockIdx.y * cuda.gridDim.z + cuda.blockIdx.z, c] = total

    return total


@functools.cache
def sums_kernel(dtype):
    """Each part's Σ grad and Σ grad · y of a channel."""

    def sums(grad, x, mean, invstd, totals, alongs, shape, step, bits):
        shared = cuda.shared.array(32, dtype)
        c, total, along = cuda.blockIdx.x, dtype(0), dtype(0)
        i, samples, down = own_samples(shape[0], bits)
        first, end, across = own_elements(shape[2], bits)
        while i < samples:
            s, begin = first, (i * shape[1] + c) * shape[2]
            center, scale = load(mean, i * step + c), load(invstd, i * step + c)
            while s < end:
                g = load(grad, begin + s)
                total += g
                along += g * (load(x, begin + s) - center) * scale
                s += across
            i += down
        total, along = block_sum(total, shared, dtype(0)), block_sum(along, shared, dtype(0))
        if cuda.threadIdx.x == 0:
            part = cuda.blockIdx.y * cuda.gridDim.z + cuda.blockIdx.z
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
