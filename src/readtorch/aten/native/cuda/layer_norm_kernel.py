"""layer_norm and group_norm, forward and backward. Group norm is layer norm of rows (sample, group), with a
weight for each channel instead of each element; what differs is the function that finds an element's weight.

A row of up to 16384 elements stays in registers: Note [ A row in registers ] in persistent_softmax.py. Longer ones are walked
along in slices (Note [ A row in slices ] there), once for the mean, again for the variance and for the result. Mean and variance are taken one after
the other: no cancellation as with Σx² - (Σx)². Weight gradients go down the columns (layer norm; block: 32 × 8) or over a
channel's samples (group norm).

In PyTorch: `aten/src/ATen/native/cuda/layer_norm_kernel.cu`.
"""

import contextlib
import functools
import math

from numba import cuda

from readtorch.aten.native.layer_norm import check_dtype
from readtorch.c10.cuda.launch import launch, scratch

from .block_reduce import block_sum, plus
from .fill_kernel import fill
from .memory_access import load
from .offset_calculator import divided, divider, i32, remainder
from .persistent_softmax import bounded, launch_rows, launch_slices, row_functions, share_of, slices_of
from .pool import in_wide
from .reduce import SUM, reduce
from .register_dispatch_key import cuda_impl, operator_named
from .rows import flat, matrix
from .softmax import row, wide


def layer_norm(x, n, weight, bias, eps, out, mean, rstd):
    """Over the last dimensions, together n elements. weight, bias: n elements or None. mean, rstd: one a row."""
    run_forward(matrix(x, n), weight, bias, eps, matrix(out, n), mean, rstd, None)


def layer_norm_backward(grad, x, n, mean, rstd, weight, grad_input, grad_weight, grad_bias):
    """Results that are None are not computed."""
    grad, x = matrix(grad, n), matrix(x, n)
    if grad_input is not None:
        run_backward(grad, x, mean, rstd, weight, matrix(grad_input, n), None)
    if grad_weight is not None or grad_bias is not None:
        down_the_columns(grad, x, mean, rstd, grad_weight, grad_bias)


def run_forward(x, weight, bias, eps, out, mean, rstd, each):
    """x, out: (rows, n). each: see row_of_group."""
    if out.size:
        affine = (weight is not None, bias is not None)
        given = [a for a in (weight, bias) if a is not None]
        weight, bias = (mean if a is None else a for a in (weight, bias))
        arrays = flat(x), weight, bias, x.dtype.type(eps), flat(out), mean, rstd
        over_rows(forward_in_registers, forward_in_slices, affine, [x, out, *given], each, arrays)


def run_backward(grad, x, mean, rstd, weight, out, each):
    if out.size:
        given = [] if weight is None else [weight]
        arrays = flat(grad), flat(x), mean, rstd, mean if weight is None else weight, flat(out)
        over_rows(backward_in_registers, backward_in_slices, (bool(given),), [grad, x, out, *given], each, arrays)


def over_rows(in_registers, in_slices, affine, arrays, each, arguments):
    """arrays: those whose alignment counts, the first of them (rows, n). each: None, where every element has its weight."""
    rows, n = arrays[0].shape
    dtype, by_channel = arrays[0].dtype.type, each is not None
    channels, spatial, groups = each or (1, 1, 1)
    arguments = *arguments, rows, n, (i32(channels), divider(spatial), divider(groups))
    share = share_of(n, *arrays)
    if share is None:
        launch_slices(in_slices(*affine, by_channel, dtype, slices_of(n, *arrays)), rows, *arguments)
    else:
        launch_rows(in_registers(*affine, by_channel, dtype, share), share, rows, n, *arguments)


ROWS_OF_A_PART = 256


def down_the_columns(grad, x, mean, rstd, grad_weight, grad_bias):
    """Parts of the rows are summed by different blocks, and the parts by a second launch."""
    parts = max(1, min(-(-len(x) // ROWS_OF_A_PART), 64))
    sums = [scratch(x, (parts, x.shape[1]), x.dtype) for _ in range(2)]
    launch(columns_kernel(x.dtype.type), (-(-x.shape[1] // 32), parts), (32, DOWN), grad, x, mean, rstd, *sums)
    for part, out in zip(sums, (grad_weight, grad_bias)):
        if out is not None:
            reduce(SUM, part, (0,), out)


def element_weight(weight, row, k, places):
    return load(weight, k)


def channel_weight(weight, row, k, places):
    """The weight of element k of a row (sample, group): `places` = (channels of a group, and as dividers, elements that
    share one, and groups)."""
    channels, spatial, groups = places
    group = remainder(row, divided(row, groups), groups)
    return load(weight, group * channels + divided(k, spatial))


def weights_of(has_weight, has_bias, by_channel):
    """Two functions (v, weight or bias, row, k, places): v times the weight, and plus the bias."""
    weight_at = channel_weight if by_channel else element_weight

    def times_weight(v, weight, row, k, places):
        return v * weight_at(weight, row, k, places)

    def plus_bias(v, bias, row, k, places):
        return v + weight_at(bias, row, k, places)

    return times_weight if has_weight else without, plus_bias if has_bias else without


def without(v, parameter, row, k, places):
    return v


@functools.cache
def with_weights(has_weight, has_bias, by_channel, share):
    """A function that finishes a thread's numbers of what begins at element k of row r: normalized, times weight, plus bias."""
    scaled, shifted = weights_of(has_weight, has_bias, by_channel)
    place, (pieces, vector, _) = row_functions(share).place, share

    def finish(v, center, scale, weight, bias, r, k, n, places):
        for p in range(pieces):
            for e in range(vector):
                i, at = p * vector + e, k + place(p) + e
                if at < n:
                    y = scaled((v[i] - center) * scale, weight, r, at, places)
                    v[i] = shifted(y, bias, r, at, places)

    return finish


@functools.cache
def gradients_of(has_weight, by_channel, share):
    """A function that loads a thread's numbers of what begins at element k of row r: g = grad · weight, and y, the normalized x.
    Beyond the row's end both are 0."""
    scaled, _ = weights_of(has_weight, False, by_channel)
    row, (pieces, vector, _) = row_functions(share), share
    place, load_share = row.place, row.load

    def load_both(grad, x, weight, g, y, r, k, n, center, scale, places):
        load_share(grad, r * n + k, n - k, g, type(center)(0))
        load_share(x, r * n + k, n - k, y, center)
        for p in range(pieces):
            for e in range(vector):
                i, at = p * vector + e, k + place(p) + e
                if at < n:
                    g[i] = scaled(g[i], weight, r, at, places)
                y[i] = (y[i] - center) * scale

    return load_both


@functools.cache
def forward_in_registers(has_weight, has_bias, by_channel, dtype, share):
    finish = with_weights(has_weight, has_bias, by_channel, share)
    row, (pieces, vector, _), own = row_functions(share), share, share.elements
    first_row, rows_apart, place, load_share, store_share = row[:5]
    sum_of_row = row.across(plus)

    def forward(x, weight, bias, eps, out, mean, rstd, rows, n, places):
        shared = cuda.shared.array(32, dtype)
        v = cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            load_share(x, r * n, n, v, dtype(0))
            total = dtype(0)
            for e in range(own):
                total += v[e]
            center, total = sum_of_row(total, shared, dtype(0)) / dtype(n), dtype(0)
            for p in range(pieces):
                for e in range(vector):
                    v[p * vector + e] -= center
                    if place(p) < n:
                        total += v[p * vector + e] * v[p * vector + e]
            variance = sum_of_row(total, shared, dtype(0)) / dtype(n)
            scale = dtype(1) / (variance + eps) ** dtype(0.5)
            finish(v, dtype(0), scale, weight, bias, r, 0, n, places)
            store_share(out, r * n, n, v)
            if place(0) == 0:
                mean[r], rstd[r] = center, scale

    return bounded(forward, share)


@functools.cache
def backward_in_registers(has_weight, by_channel, dtype, share):
    """With g = grad · weight and y the normalized row: rstd (g - mean(g) - y mean(g y))."""
    load_both = gradients_of(has_weight, by_channel, share)
    row, own = row_functions(share), share.elements
    sum_of_row, first_row, rows_apart, store_share = row.across(plus), row.first_row, row.rows_apart, row.store

    def backward(grad, x, mean, rstd, weight, out, rows, n, places):
        shared = cuda.shared.array(32, dtype)
        g, y = cuda.local.array(own, dtype), cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            center, scale = load(mean, r), load(rstd, r)
            load_both(grad, x, weight, g, y, r, 0, n, center, scale, places)
            total, along = dtype(0), dtype(0)
            for e in range(own):
                total += g[e]
                along += g[e] * y[e]
            total = sum_of_row(total, shared, dtype(0)) / dtype(n)
            along = sum_of_row(along, shared, dtype(0)) / dtype(n)
            for e in range(own):
                g[e] = scale * (g[e] - total - y[e] * along)
            store_share(out, r * n, n, g)

    return bounded(backward, share)


@functools.cache
def forward_in_slices(has_weight, has_bias, by_channel, dtype, share):
    finish = with_weights(has_weight, has_bias, by_channel, share)
    row, own = row_functions(share), share.elements
    first_row, rows_apart, place, load_share, store_share, slice_ = *row[:5], row.slice

    def forward(x, weight, bias, eps, out, mean, rstd, rows, n, places):
        shared = cuda.shared.array(32, dtype)
        v = cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            total, k = dtype(0), 0
            while k < n:
                load_share(x, r * n + k, n - k, v, dtype(0))
                for e in range(own):
                    total += v[e]
                k += slice_()
            center, total, k = block_sum(total, shared, dtype(0)) / dtype(n), dtype(0), 0
            while k < n:
                load_share(x, r * n + k, n - k, v, center)
                for e in range(own):
                    total += (v[e] - center) * (v[e] - center)
                k += slice_()
            variance, k = block_sum(total, shared, dtype(0)) / dtype(n), 0
            scale = dtype(1) / (variance + eps) ** dtype(0.5)
            while k < n:
                load_share(x, r * n + k, n - k, v, center)
                finish(v, center, scale, weight, bias, r, k, n, places)
                store_share(out, r * n + k, n - k, v)
                k += slice_()
            if place(0) == 0:
                mean[r], rstd[r] = center, scale

    return forward


@functools.cache
def backward_in_slices(has_weight, by_channel, dtype, share):
    """As `backward_in_registers`."""
    load_both = gradients_of(has_weight, by_channel, share)
    row, own = row_functions(share), share.elements
    first_row, rows_apart, store_share, slice_ = row.first_row, row.rows_apart, row.store, row.slice

    def backward(grad, x, mean, rstd, weight, out, rows, n, places):
        shared = cuda.shared.array(32, dtype)
        g, y = cuda.local.array(own, dtype), cuda.local.array(own, dtype)
        for r in range(first_row(), rows, rows_apart()):
            center, scale = load(mean, r), load(rstd, r)
            total, along, k = dtype(0), dtype(0), 0
            while k < n:
                load_both(grad, x, weight, g, y, r, k, n, center, scale, places)
                for e in range(own):
                    total += g[e]
                    along += g[e] * y[e]
                k += slice_()
            total = block_sum(total, shared, dtype(0)) / dtype(n)
            along, k = block_sum(along, shared, dtype(0)) / dtype(n), 0
            while k < n:
                load_both(grad, x, weight, g, y, r, k, n, center, scale, places)
                for e in range(own):
                    g[e] = scale * (g[e] - total - y[e] * along)
                store_share(out, r * n + k, n - k, g)
                k += slice_()

    return backward


DOWN = 8  # threads that share a column


@functools.cache
def columns_kernel(dtype):
    """Each part of the rows: Σ grad · y and Σ grad of every column."""

    def columns(grad, x, mean, rstd, weight_sums, bias_sums):
        for_weight = cuda.shared.array((DOWN, 32), dtype)
        for_bias = cuda.shared.array((DOWN, 32), dtype)
        t, down = cuda.threadIdx.x, cuda.threadIdx.y
        part, k = cuda.blockIdx.y, cuda.blockIdx.x * 32 + t
        length = (x.shape[0] + cuda.gridDim.y - 1) // cuda.gridDim.y
        along, total = dtype(0), dtype(0)
        if k < x.shape[1]:
            for r in range(part * length + down, min((part + 1) * length, x.shape[0]), DOWN):
                total += grad[r, k]
                along += grad[r, k] * (x[r, k] - mean[r]) * rstd[r]
        for_weight[down, t], for_bias[down, t] = along, total
        cuda.syncthreads()
        if down == 0 and k < x.shape[1]:
            for other in range(1, DOWN):
                along += for_weight[other, t]
                total += for_bias[other, t]
            weight_sums[part, k], bias_sums[part, k] = along, total

    return columns


@contextlib.contextmanager
def rows_to_fill(*outs):
    """Contiguous arrays, wide enough to compute in, whose numbers become those of the outputs. None stays None."""
    with contextlib.ExitStack() as stack:
        yield [None if t is None else stack.enter_context(in_wide(t, row_major=True))._array for t in outs]


@cuda_impl(operator_named("native_layer_norm"))
def native_layer_norm_cuda(input, normalized_shape, weight, bias, eps, *outs):
    """The result, and the mean and 1 / deviation of each row."""
    check_dtype(input)
    n, x = math.prod(normalized_shape), wide(input)._array
    with rows_to_fill(*outs) as (out, *saved):
        layer_norm(x, n, row(weight), row(bias), eps, out, *map(flat, saved))


@cuda_impl(operator_named("native_layer_norm_backward"))
def native_layer_norm_backward_cuda(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask, *grads):
    grad, x = wide(grad_out)._array, wide(input)._array
    with rows_to_fill(*grads) as (grad_input, *features):
        if x.size:
            features = [a if a is None else flat(a) for a in features]
            n, parameters = math.prod(normalized_shape), (row(mean), row(rstd), row(weight))
            layer_norm_backward(grad, x, n, *parameters, grad_input, *features)
        else:
            zero(*features)


def zero(*arrays):
    """Gradients of weights where there is nothing to add up."""
    for a in arrays:
        if a is not None:
            fill(a, a.dtype.type(0))
