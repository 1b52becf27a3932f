"""Where the largest or the smallest element of a dimension is: argmax, argmin, and max and min with their
indices.

As in reduce.py a block takes one result, and what travels through the shuffles is a pair of value and index.
Of equal elements the first wins, a nan wins over all. Grid: one block for each result; block: up to 256
threads.

In PyTorch: `aten/src/ATen/native/cuda/ReduceArgMaxKernel.cu`.
"""

import functools

import numpy as np
from numba import cuda

from readtorch.c10.cuda.launch import launch, strided

from .block_reduce import ALL_LANES, WARP, whole_warps
from .reduce import as_outer_n_inner, result_strides


def largest(value, index, other, place):
    """Does the other pair win?"""
    if value != value:
        return other != other and place < index
    return other > value or other != other or (other == value and place < index)


def smallest(value, index, other, place):
    if value != value:
        return other != other and place < index
    return other < value or other != other or (other == value and place < index)


def arg_reduce(wins, x, dim, values, indices):
    """wins: `largest` or `smallest`. values (x's dtype), indices (int64): x's shape without `dim`, contiguous."""
    if indices.size == 0:
        return
    x = as_outer_n_inner(x, (dim % max(x.ndim, 1),) if x.ndim else ())
    values, indices = (strided(a, x.shape[::2], result_strides(a, x.shape)) for a in (values, indices))
    launch(arg_kernel(wins, x.dtype.type), min(indices.size, 65535), whole_warps(x.shape[1]), x, values, indices)


@functools.cache
def arg_kernel(wins, dtype):
    def exchange(value, index):
        """The winner of a warp, for every lane."""
        distance = WARP // 2
        while distance > 0:
            other = cuda.shfl_xor_sync(ALL_LANES, value, distance)
            place = cuda.shfl_xor_sync(ALL_LANES, index, distance)
            if wins(value, index, other, place):
                value, index = other, place
            distance //= 2
        return value, index

    def arg(x, values, indices):
        best_values = cuda.shared.array(32, dtype)
        best_indices = cuda.shared.array(32, np.int64)
        t, inner = cuda.threadIdx.x, values.shape[1]
        lane, warp = t % WARP, t // WARP
        for r in range(cuda.blockIdx.x, values.size, cuda.gridDim.x):
            i, j = r // inner, r % inner
            # a thread without an element of its own begins with the first: that changes nothing
            index = np.int64(t if t < x.shape[1] else 0)
            value = x[i, index, j]
            for k in range(t + cuda.blockDim.x, x.shape[1], cuda.blockDim.x):
                if wins(value, index, x[i, k, j], np.int64(k)):
                    value, index = x[i, k, j], np.int64(k)
            value, index = exchange(value, index)
            if lane == 0:
                best_values[warp], best_indices[warp] = value, index
            cuda.syncthreads()
            others = lane if lane < cuda.blockDim.x // WARP else 0
            value, index = exchange(best_values[others], best_indices[others])
            if t == 0:
                values[i, j], indices[i, j] = value, index
            cuda.syncthreads()

    return arg
