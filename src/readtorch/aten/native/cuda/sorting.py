"""kthvalue, median and mode: an element of each sorted row.

    pick(rank, x, dim, values, indices, scalars)           rank: kth, median, nanmedian or mode

Grid: blocks of 256 threads with a grid-stride loop, a thread for each row.

In PyTorch: `aten/src/ATen/native/cuda/Sorting.cpp`, `aten/src/ATen/native/cuda/TensorModeKernel.cu`.
"""

import functools
import math

import numpy as np
from numba import cuda

from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.scalar_type import BOOL
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import LONG
from .register_dispatch_key import cuda_impl, empty, operator_named
from .rows import as_rows
from .sort import sorted_rows


def pick(rank, x, dim, values, indices, scalars=(0,)):
    """Of each row the element that `rank(sorted row, length, scalars)` names, and its place. Both contiguous."""
    if values.size:
        length = as_rows(x, dim).shape[1]
        keys, places = sorted_rows(as_rows(x, dim), False)
        launch(
            pick_kernel(rank),
            blocks_of(values.size, THREADS),
            THREADS,
            keys,
            places,
            length,
            scalars,
            values.reshape(-1),
            indices.reshape(-1),
        )


def kth(row, n, scalars):
    """scalars: k, counted from 0."""
    return scalars[0]


def median(row, n, scalars):
    """The lower one of two in the middle; the first nan if there is one, and a nan comes last."""
    known = without_nans(row, n)
    return known if known < n else (n - 1) // 2


def nanmedian(row, n, scalars):
    return (max(1, without_nans(row, n)) - 1) // 2


def without_nans(row, n):
    """How many elements come before the first nan."""
    while n > 0 and row[n - 1] != row[n - 1]:
        n -= 1
    return n


def mode(row, n, scalars):
    """The end of the first among the longest runs of equal elements."""
    best, longest, begin = 0, 0, 0
    for i in range(n):
        if row[i] != row[begin]:
            begin = i
        if i - begin + 1 > longest:
            best, longest = i, i - begin + 1
    return best


@functools.cache
def pick_kernel(rank):
    def pick(keys, places, length, scalars, values, indices):
        for r in range(cuda.grid(1), values.size, cuda.gridsize(1)):
            k = rank(keys[r], length, scalars)
            values[r], indices[r] = keys[r, k], places[r, k]

    return pick


def fill_picked(rank, self, dim, values, indices, *scalars):
    """Of each row one element, named by its rank."""
    pick(rank, self._array, wrap_dim(dim, self._array.ndim), values._array, indices._array, scalars or (0,))


@cuda_impl(operator_named("kthvalue"))
def kthvalue_cuda(self, k, dim, keepdim, values, indices):
    fill_picked(kth, self, dim, values, indices, k - 1)


@cuda_impl(operator_named("mode"))
def mode_cuda(self, dim, keepdim, values, indices):
    fill_picked(mode, self, dim, values, indices)


def median_operators(name, rank):
    @cuda_impl(operator_named(f"{name}.dim"))
    def along(self, dim, keepdim, values, indices):
        refuse("median_out", self)
        fill_picked(rank, self, dim, values, indices)

    @cuda_impl(operator_named(name))
    def of_all(self, out):
        refuse("median", self)
        if self._array.size:
            fill_picked(rank, self.reshape(-1), 0, out, empty((), LONG))
        else:
            dtype = out._array.dtype
            filled(out, math.nan if dtype.kind not in "iu" else np.iinfo(dtype).min)


def refuse(kernel_name, t):
    if dtype_of(t).is_complex or dtype_of(t).category == BOOL:
        raise not_implemented(kernel_name)(dtype_of(t))


median_operators("median", median)
median_operators("nanmedian", nanmedian)
