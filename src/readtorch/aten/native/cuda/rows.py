"""Arrays seen as (outer, n, inner), where kernels work along n.

In PyTorch: the `outer_size`, `dim_size`, `inner_size` of `aten/src/ATen/native/cuda/SoftMax.cu` and of
others.
"""

import math

import numpy as np

from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import scratch, strided

from .loops import pointwise


def as_rows(x, dim):
    """x as (outer, n, inner) around one dimension: a view where the strides allow it, else of a copy.

    Results must be contiguous: a copy of a result would not be written back.
    """
    if x.ndim == 0:
        return strided(x, (1, 1, 1), (0, 0, 0))
    dim %= x.ndim
    if 0 in x.shape:  # its strides say nothing
        return strided(x, (math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])), (0, 0, 0))
    outer, inner = one_step(x, range(dim)), one_step(x, range(dim + 1, x.ndim))
    if outer is None or inner is None:
        return as_rows(contiguous(x), dim)
    return strided(x, (outer[0], x.shape[dim], inner[0]), (outer[1], x.strides[dim], inner[1]))


def one_step(x, dims):
    """(size, stride) of these dimensions as one, or None."""
    size, stride = 1, 0
    for d in reversed(dims):
        if x.shape[d] == 1:
            continue
        if size == 1:
            stride = x.strides[d]
        elif x.strides[d] != size * stride:
            return None
        size *= x.shape[d]
    return size, stride


def contiguous(x):
    """x, or a contiguous copy of it."""
    if x.flags.c_contiguous:
        return x
    fresh = scratch(x, x.shape, x.dtype)
    pointwise(copy, [x], fresh)
    return fresh


def matrix(x, columns):
    """x as a contiguous matrix whose rows have so many elements."""
    x = contiguous(x)
    return strided(x, (x.size // columns if columns else 0, columns), (columns * x.itemsize, x.itemsize))


def flat(x):
    """x as one contiguous row."""
    x = contiguous(x)
    return x.reshape(-1) if isinstance(x, np.ndarray) else strided(x, (math.prod(x.shape),), (x.itemsize,))
