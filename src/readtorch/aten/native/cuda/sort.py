"""sort and topk along one dimension, stable.

Note [ A sorting network ]
A bitonic sort compares and exchanges pairs that do not depend on the data: for k =
2, 4, 8 … the runs of length k become sorted, every other one downwards, by comparing elements j = k/2, k/4 …
1 apart. All pairs of one (k, j) are independent: each thread takes one pair, and a barrier follows.

A piece of up to 1024 elements is sorted in shared memory. Grid: (pieces, rows); block: a thread for each
pair. Of longer rows the pieces are merged: the steps with j beyond a piece run in global memory, one launch
for each, those within it again in shared memory. What is compared is (value, index): equal elements keep
their order, and what fills a row up to a power of two comes last.

In PyTorch: `aten/src/ATen/native/cuda/Sort.cu` (CUB's radix sort, and a bitonic sort for short rows),
`aten/src/ATen/native/cuda/SortUtils.cuh`, `aten/src/ATen/native/cuda/TensorTopK.cu`.
"""

import functools

import numpy as np
from numba import cuda

from readtorch.aten.native import math as f
from readtorch.aten.native.sorting import size_along
from readtorch.c10.cuda.launch import launch, scratch, strided
from readtorch.c10.wrap_dim import wrap_dim

from .loops import pointwise
from .reduce_ops import LONG, store
from .register_dispatch_key import cuda_impl, operator_named
from .rows import as_rows

PIECE = 1024


def sort(x, dim, descending, values, indices):
    """values (x's dtype) and indices (int64): x's shape. A nan is greater than any number."""
    topk(x, x.shape[dim] if x.ndim else 1, dim, descending, values, indices)


def topk(x, k, dim, largest, values, indices):
    """The k first of the sorted rows. (In PyTorch: a radix search for the k-th, then a sort of these.)"""
    if values.size == 0:
        return
    x, values, indices = (as_rows(a, dim) for a in (x, values, indices))
    keys, places = sorted_rows(x, largest)
    for rows, out in ((keys, values), (places, indices)):
        size, length = rows.itemsize, rows.shape[1]
        # (outer, inner), each `length` long
        steps = (out.shape[2] * length * size, size, length * size)
        pointwise(f.copy, [strided(rows, out.shape, steps)], out)


def sorted_rows(x, descending):
    """(values, places), each (rows, a power of two)."""
    length = 1 << max(1, (x.shape[1] - 1).bit_length())
    rows, piece = x.shape[0] * x.shape[2], min(length, PIECE)
    keys, places = scratch(x, (rows, length), x.dtype), scratch(x, (rows, length), np.int64)
    kernels = functools.partial(kernel, descending=descending, dtype=x.dtype.type, piece=piece)
    grid = (length // piece, min(rows, 65535))
    launch(kernels(sort_piece), grid, piece // 2, x, keys, places)
    k = 2 * piece
    while k <= length:
        j = k // 2
        while j >= piece:
            launch(kernels(step), grid, piece // 2, keys, places, x.shape[1], k, j)
            j //= 2
        launch(kernels(merge_piece), grid, piece // 2, keys, places, x.shape[1], k)
        k *= 2
    return keys, places


@functools.cache
def kernel(make, descending, dtype, piece):
    return make(goes_before(descending), dtype, piece)


@functools.cache
def goes_before(descending):
    def before(a, i, b, j, n):
        """Does element a of place i come before b of place j? Places from n on are beyond the row."""
        if i >= n or j >= n:
            return i < j
        if a == b or (a != a and b != b):
            return i < j
        less = b != b or a < b
        return not less if descending else less

    return before


def pair(t, j):
    """The first of the t-th pair of elements j apart."""
    return t // j * 2 * j + t % j


def sort_piece(before, dtype, piece):
    exchange = exchange_in(before)

    def sort(x, keys, places):
        shared_keys, shared_places = cuda.shared.array(piece, dtype), cuda.shared.array(piece, np.int64)
        t, begin = cuda.threadIdx.x, cuda.blockIdx.x * piece
        n, inner = x.shape[1], x.shape[2]
        for r in range(cuda.blockIdx.y, keys.shape[0], cuda.gridDim.y):
            for e in range(t, piece, cuda.blockDim.x):
                if begin + e < n:
                    shared_keys[e] = x[r // inner, begin + e, r % inner]
                else:
                    shared_keys[e] = 0
                shared_places[e] = begin + e
            cuda.syncthreads()
            k = 2
            while k <= piece:
                j = k // 2
                while j > 0:
                    first = pair(t, j)
                    exchange(shared_keys, shared_places, first, first + j, n, (begin + first) & k == 0)
                    cuda.syncthreads()
                    j //= 2
                k *= 2
            for e in range(t, piece, cuda.blockDim.x):
                keys[r, begin + e], places[r, begin + e] = shared_keys[e], shared_places[e]
            cuda.syncthreads()

    return sort


def merge_piece(before, dtype, piece):
    """The steps of one k that stay within a piece."""
    exchange = exchange_in(before)

    def merge(keys, places, n, k):
        shared_keys, shared_places = cuda.shared.array(piece, dtype), cuda.shared.array(piece, np.int64)
        t, begin = cuda.threadIdx.x, cuda.blockIdx.x * piece
        for r in range(cuda.blockIdx.y, keys.shape[0], cuda.gridDim.y):
            for e in range(t, piece, cuda.blockDim.x):
                shared_keys[e], shared_places[e] = keys[r, begin + e], places[r, begin + e]
            cuda.syncthreads()
            j = piece // 2
            while j > 0:
                first = pair(t, j)
                exchange(shared_keys, shared_places, first, first + j, n, begin & k == 0)
                cuda.syncthreads()
                j //= 2
            for e in range(t, piece, cuda.blockDim.x):
                keys[r, begin + e], places[r, begin + e] = shared_keys[e], shared_places[e]
            cuda.syncthreads()

    return merge


def step(before, dtype, piece):
    """One (k, j) in global memory."""
    exchange = exchange_in(before)

    def step(keys, places, n, k, j):
        for r in range(cuda.blockIdx.y, keys.shape[0], cuda.gridDim.y):
            first = pair(cuda.grid(1), j)
            exchange(keys[r], places[r], first, first + j, n, first & k == 0)

    return step


@functools.cache
def exchange_in(before):
    def exchange(keys, places, i, j, n, upwards):
        """Put the elements i and j in order: upwards, or else downwards."""
        if before(keys[j], places[j], keys[i], places[i], n) == upwards:
            keys[i], keys[j] = keys[j], keys[i]
            places[i], places[j] = places[j], places[i]

    return exchange


def fill_sorted(self, k, dim, largest, values, indices):
    """The first `k` of the sorted rows, with their places; neither need lie row by row."""
    x, dim = self._array, wrap_dim(dim, self._array.ndim)
    store(lambda v: store(lambda i: topk(x, k, dim, largest, v, i), indices, LONG), values, x.dtype)


@cuda_impl(operator_named("sort"))
def sort_cuda(self, dim, descending, values, indices):
    k = size_along(self, wrap_dim(dim, self._array.ndim))
    fill_sorted(self, k, dim, descending, values, indices)


@cuda_impl(operator_named("sort.stable"))
def stable_sort_cuda(self, stable, dim, descending, values, indices):
    sort_cuda(self, dim, descending, values, indices)


@cuda_impl(operator_named("topk"))
def topk_cuda(self, k, dim, largest, sorted, values, indices):
    fill_sorted(self, k, dim, largest, values, indices)
