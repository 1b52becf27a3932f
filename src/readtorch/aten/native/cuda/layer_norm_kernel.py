"""layer_norm and group_norm, forward and backward. Group norm is layer norm of rows (sample, group), with a
weight for each channel instead of each element; what differs is the function that finds an element's weight.

Grid: one block for each row; block: whole warps, up to 256 threads. Mean and variance are taken one after the
other over the same row, which by then is in the cache: no cancellation as with Σx² - (Σx)². Weight gradients
go down the columns (layer norm; block: 32 × 8) or over a channel's samples (group norm).

In PyTorch: `aten/src/ATen/native/cuda/layer_norm_kernel.cu`.
"""

import contextlib
import functools
import math

from numba import cuda

from readtorch.aten.native.layer_norm import check_dtype
from readtorch.c10.cuda.launch import launch, scratch

from .block_reduce import block_sum, whole_warps
from .fill_kernel import fill
from .pool import in_wide
from .reduce import SUM, reduce
from .register_dispatch_key import cuda_impl, operator_named
from .rows import flat, matrix
from .softmax import row, wide


def layer_norm(x, n, weight, bias, eps, out, mean, rstd):
    """Over the last dimensions, together n elements. weight, bias: n elements or None. mean, rstd: one a row."""
    run_forward(matrix(x, n), weight, bias, eps, matrix(out, n), mean, rstd, (n, 1))


def layer_norm_backward(grad, x, n, mean, rstd, weight, grad_input, grad_weight, grad_bias):
    """Results that are None are not computed."""
    grad, x = matrix(grad, n), matrix(x, n)
    if grad_input is not None:
        run_backward(grad, x, mean, rstd, weight, matrix(grad_input, n), (n, 1))
    if grad_weight is not None or grad_bias is not None:
        down_the_columns(grad, x, mean, rstd, grad_weight, grad_bias)


def run_forward(x, weight, bias, eps, out, mean, rstd, each):
    """x, out: (rows, n). each: see row_of_group."""
    if out.size == 0:
        return
    affine = (weight is not None, bias is not None)
    weight, bias = (x[0] if a is None else a for a in (weight, bias))
    launch(
        forward_kernel(*affine, x.dtype.type),
        min(len(x), 65535),
        whole_warps(x.shape[1]),
        x,
        weight,
        bias,
        x.dtype.type(eps),
        out,
        mean,
        rstd,
        each,
    )


def run_backward(grad, x, mean, rstd, weight, out, each):
    if out.size == 0:
        return
    scaled = weight is not None
    launch(
        backward_kernel(scaled, x.dtype.type),
        min(len(x), 65535),
        whole_warps(x.shape[1]),
        grad,
        x,
        mean,
        rstd,
        weight if scaled else x[0],
        out,
        each,
    )


ROWS_OF_A_PART = 256


def down_the_columns(grad, x, mean, rstd, grad_weight, grad_bias):
    """Parts of the rows are summed by different blocks, and the parts by a second launch."""
    parts = max(1, min(-(-len(x) // ROWS_OF_A_PART), 64))
    sums = [scratch(x, (parts, x.shape[1]), x.dtype) for _ in range(2)]
    launch(columns_kernel(x.dtype.type), (-(-x.shape[1] // 32), parts), (32, DOWN), grad, x, mean, rstd, *sums)
    for part, out in zip(sums, (grad_weight, grad_bias)):
        if out is not None:
            reduce(SUM, part, (0,), out)


def element_weight(weight, row, k, each):
    """The weight of element k: `each` = (weights in a row, elements that share one)."""
    groups = weight.size // each[0]
    return weight[row % groups * each[0] + k // each[1]]


def times_weight(v, weight, row, k, each):
    return v * element_weight(weight, row, k, each)


def plus_bias(v, bias, row, k, each):
    return v + element_weight(bias, row, k, each)


def without(v, parameter, row, k, each):
    return v


@functools.cache
def forward_kernel(has_weight, has_bias, dtype):
    scaled, shifted = times_weight if has_weight else without, plus_bias if has_bias else without

    def forward(x, weight, bias, eps, out, mean, rstd, each):
        shared = cuda.shared.array(32, dtype)
        n, t, step = x.shape[1], cuda.threadIdx.x, cuda.blockDim.x
        for r in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
            total = dtype(0)
            for k in range(t, n, step):
                total += x[r, k]
            center = block_sum(total, shared, dtype(0)) / dtype(n)
            total = dtype(0)
            for k in range(t, n, step):
                total += (x[r, k] - center) * (x[r, k] - center)
            variance = block_sum(total, shared, dtype(0)) / dtype(n)
            scale = dtype(1) / (variance + eps) ** dtype(0.5)
            for k in range(t, n, step):
                y = scaled((x[r, k] - center) * scale, weight, r, k, each)
                out[r, k] = shifted(y, bias, r, k, each)
            if t == 0:
                mean[r], rstd[r] = center, scale

    return forward


@functools.cache
def backward_kernel(has_weight, dtype):
    """With g = grad · weight and y the normalized row: rstd (g - mean(g) - y mean(g y))."""
    scaled = times_weight if has_weight else without

    def backward(grad, x, mean, rstd, weight, out, each):
        shared = cuda.shared.array(32, dtype)
        n, t, step = x.shape[1], cuda.threadIdx.x, cuda.blockDim.x
        for r in range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x):
            center, scale = mean[r], rstd[r]
            total, along = dtype(0), dtype(0)
            for k in range(t, n, step):
                g = scaled(grad[r, k], weight, r, k, each)
                total += g
                along += g * (x[r, k] - center) * scale
            total = block_sum(total, shared, dtype(0)) / dtype(n)
            along = block_sum(along, shared, dtype(0)) / dtype(n)
            for k in range(t, n, step):
                g = scaled(grad[r, k], weight, r, k, each)
                out[r, k] = scale * (g - total - (x[r, k] - center) * scale * along)

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
