"""softmax and log_softmax over one dimension, forward and backward.

    softmax(x, dim, out, log=False)      softmax_backward(grad, y, dim, out, log=False)

Grid: one block for each row (a grid-stride loop where there are more than 65535); block: whole warps, up to
256 threads, or one warp for rows of at most 32. A row is read three times: its maximum, the sum of its
exponentials, the result; the second and third time it is in the cache. A dimension that is not the last one
is read with the stride that it has. Sums are float32.

In PyTorch: `aten/src/ATen/native/cuda/SoftMax.cu` (`cunn_SoftMaxForward`), `PersistentSoftmax.cuh` for short
rows.
"""
import functools
import math

import numpy as np
from numba import cuda

from ....c10.cuda.launch import launch
from .block_reduce import block_max, block_sum, whole_warps
from .rows import as_rows


def softmax(x, dim, out, log=False):
    """x, out: one shape, any strides, float32 or float64."""
    if out.size == 0:
        return
    x, out = as_rows(x, dim), as_rows(out, dim)
    grid, block = min(x.shape[0] * x.shape[2], 65535), whole_warps(x.shape[1])
    launch(forward_kernel(log, x.dtype.type), grid, block, x, out)


def softmax_backward(grad, y, dim, out, log=False):
    """grad: of the result y."""
    if out.size == 0:
        return
    grad, y, out = as_rows(grad, dim), as_rows(y, dim), as_rows(out, dim)
    grid, block = min(y.shape[0] * y.shape[2], 65535), whole_warps(y.shape[1])
    launch(backward_kernel(log, y.dtype.type), grid, block, grad, y, out)


@functools.cache
def forward_kernel(log, dtype):
    """Arrays (outer, n, inner): the rows lie along the second dimension."""
    result = logarithm if log else quotient
    lowest = dtype(-np.inf)

    def forward(x, out):
        shared = cuda.shared.array(32, dtype)
        n, inner = x.shape[1], x.shape[2]
        for r in range(cuda.blockIdx.x, x.shape[0] * inner, cuda.gridDim.x):
            i, j = r // inner, r % inner
            greatest, total = lowest, dtype(0)
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                v = x[i, k, j]
                greatest = v if v > greatest or v != v else greatest
            greatest = block_max(greatest, shared, lowest)
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                total += math.exp(x[i, k, j] - greatest)
            total = block_sum(total, shared, dtype(0))
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                out[i, k, j] = result(x[i, k, j] - greatest, total)
    return forward


def quotient(shifted, total):
    return math.exp(shifted) / total


def logarithm(shifted, total):
    return shifted - math.log(total)


@functools.cache
def backward_kernel(log, dtype):
    """y (grad - Σ grad y), or grad - exp(y) Σ grad for the logarithm."""
    weight, gradient = (one, log_gradient) if log else (itself, plain_gradient)

    def backward(grad, y, out):
        shared = cuda.shared.array(32, dtype)
        n, inner = y.shape[1], y.shape[2]
        for r in range(cuda.blockIdx.x, y.shape[0] * inner, cuda.gridDim.x):
            i, j = r // inner, r % inner
            total = dtype(0)
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                total += grad[i, k, j] * weight(y[i, k, j])
            total = block_sum(total, shared, dtype(0))
            for k in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                out[i, k, j] = gradient(grad[i, k, j], y[i, k, j], total)
    return backward


def itself(y):
    return y


def one(y):
    return type(y)(1)


def plain_gradient(grad, y, total):
    return y * (grad - total)


def log_gradient(grad, y, total):
    return grad - math.exp(y) * total
