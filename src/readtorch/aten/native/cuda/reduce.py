"""Sums, products, extremes, means and norms over some dimensions.

    reduce(SUM, x, dims, out)       out: x's shape without `dims`

Note [ Two ways to reduce ]
An array to be reduced is seen as (outer, n, inner): n elements become one. If the
n elements lie closer together than the inner ones, a block takes one result: its threads walk along n side by
side, then combine by shuffles (`rows`; grid: results × parts, block: up to 256 threads). Otherwise
neighbouring threads take neighbouring results and walk down together, 8 threads for one result (`columns`;
block: 32 × 8). Both read memory in order.

Where there are few results and n is large, n is cut into parts, so that there are blocks enough for the chip;
a second launch reduces the parts. No atomics: the result does not depend on which block comes first.

In PyTorch: `aten/src/ATen/native/cuda/Reduce.cuh`, `ReduceSumProdKernel.cu`, `ReduceMaxValuesKernel.cu` and
others.
"""

import functools
import math
import typing

import numpy as np
from numba import cuda

from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import launch, scratch, strided

from . import block_reduce as combining
from .block_reduce import block_reduce, whole_warps
from .loops import pointwise

MOST_BLOCKS = 2048
LEAST_PART = 2048  # elements that are worth a block of their own


class Reduction(typing.NamedTuple):
    """finish(combine(prepare(x₀), prepare(x₁), …), n), beginning with the identity."""

    identity: object
    combine: object
    prepare: object
    finish: object


def itself(x):
    return x


def same(total, n):
    return total


def divided(total, n):
    return total / type(total)(n)


def square(x):
    return x * x


def root(total, n):
    return total ** type(total)(0.5)


def magnitude(x):
    return abs(x)


def nonzero(x):
    return x != 0


def lowest(dtype):
    return -np.inf if dtype.kind == "f" else 0 if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype):
    return np.inf if dtype.kind == "f" else 1 if dtype.kind == "b" else np.iinfo(dtype).max


SUM = Reduction(0, combining.plus, itself, same)
MEAN = Reduction(0, combining.plus, itself, divided)
PROD = Reduction(1, combining.times, itself, same)
AMAX = Reduction(lowest, combining.greater, itself, same)
AMIN = Reduction(highest, combining.smaller, itself, same)
ANY = Reduction(0, combining.either, nonzero, same)
ALL = Reduction(1, combining.both, nonzero, same)
COUNT = Reduction(0, combining.plus, nonzero, same)
NORM_1 = Reduction(0, combining.plus, magnitude, same)
NORM_2 = Reduction(0, combining.plus, square, root)
NORM_INF = Reduction(0, combining.greater, magnitude, same)


def reduce(reduction, x, dims, out, parts=None):
    """Computes in out's dtype (of 32 or 64 bits, or bool). `parts` as in Note [ Two ways to reduce ]; None
    chooses.
    """
    if out.size == 0:
        return
    dims = tuple(d % x.ndim for d in dims)
    x = as_outer_n_inner(x, dims)
    out = strided(out, x.shape[::2], result_strides(out, x.shape))
    identity = reduction.identity(out.dtype) if callable(reduction.identity) else reduction.identity
    computing = np.int32 if out.dtype == bool else out.dtype.type  # a shuffle moves 32 or 64 bits
    pass_over(reduction, x, out, computing(identity), parts)


def pass_over(reduction, x, out, identity, parts):
    n = x.shape[1]
    parts = parts or parts_for(n, out.size)
    if parts == 1:
        run(reduction, x, strided(out, (1, *out.shape), (0, *out.strides)), identity, n)
        return
    partial = scratch(out, (parts, *out.shape), out.dtype)
    run(reduction._replace(finish=same), x, partial, identity, n)
    merged = strided(partial, (out.shape[0], parts, out.shape[1]), tuple(partial.strides[d] for d in (1, 0, 2)))
    run(reduction._replace(prepare=itself), merged, strided(out, (1, *out.shape), (0, *out.strides)), identity, n)


def parts_for(n, results):
    return max(1, min(n // LEAST_PART, MOST_BLOCKS // results, 256))


def run(reduction, x, out, identity, n):
    """One launch: x (outer, n, inner) to out (parts, outer, inner)."""
    functions = (reduction.combine, reduction.prepare, reduction.finish, identity.dtype.type)
    parts, outer, inner = out.shape
    if inner == 1 or x.strides[1] < x.strides[2]:
        threads = whole_warps(-(-x.shape[1] // parts))
        launch(rows_kernel(*functions), (min(outer * inner, 65535), parts), threads, x, out, identity, n)
    else:
        grid = (-(-inner // 32), min(outer, 65535), parts)
        launch(columns_kernel(*functions), grid, (32, ACROSS), x, out, identity, n)


# --------------------------------------------------------------------------------------------------- geometry


def as_outer_n_inner(x, dims):
    """x as (outer, n, inner), n made of `dims`; copied where its strides do not allow it."""
    kept = [d for d in range(x.ndim) if d not in dims]
    if 0 in x.shape:  # its strides say nothing; there is a result, so what is kept is not empty
        return strided(x, (math.prod(x.shape[d] for d in kept), 0, 1), (0, 0, 0))
    n, rest = merged(x, dims), merged(x, kept)
    if len(n) > 1 or len(rest) > 2:
        fresh = scratch(x, tuple(x.shape[d] for d in (*kept, *dims)), x.dtype)
        pointwise(copy, [strided(x, fresh.shape, tuple(x.strides[d] for d in (*kept, *dims)))], fresh)
        return as_outer_n_inner(fresh, tuple(range(len(kept), x.ndim)))
    outer, inner = rest if len(rest) == 2 else ((1, 0), *rest) if rest else ((1, 0), (1, 0))
    [n] = n or [(1, 0)]
    return strided(x, (outer[0], n[0], inner[0]), (outer[1], n[1], inner[1]))


def merged(x, dims):
    """[(size, stride)] of these dimensions in their order, neighbours made one where they lie so."""
    found = []
    for d in dims:
        if x.shape[d] == 1:
            continue
        if found and found[-1][1] == x.shape[d] * x.strides[d]:
            found[-1] = (found[-1][0] * x.shape[d], x.strides[d])
        else:
            found.append((x.shape[d], x.strides[d]))
    return found


def result_strides(out, shape):
    """Strides of a contiguous result that is seen as (outer, inner)."""
    if not out.flags.c_contiguous:
        raise ValueError("the result of a reduction is contiguous")
    return shape[2] * out.itemsize, out.itemsize


# ---------------------------------------------------------------------------------------------------- kernels


@functools.cache
def rows_kernel(combine, prepare, finish, dtype):
    """A block for each result and part. See Note [ Two ways to reduce ]."""
    across_block = block_reduce(combine)

    def rows(x, out, identity, n):
        shared = cuda.shared.array(32, dtype)
        part, (outer, inner) = cuda.blockIdx.y, (out.shape[1], out.shape[2])
        length = (x.shape[1] + out.shape[0] - 1) // out.shape[0]
        for r in range(cuda.blockIdx.x, outer * inner, cuda.gridDim.x):
            i, j = r // inner, r % inner
            total = identity
            for k in range(part * length + cuda.threadIdx.x, min((part + 1) * length, x.shape[1]), cuda.blockDim.x):
                total = combine(total, dtype(prepare(x[i, k, j])))
            total = across_block(total, shared, identity)
            if cuda.threadIdx.x == 0:
                out[part, i, j] = finish(total, n)

    return rows


ACROSS = 8  # threads for one result


@functools.cache
def columns_kernel(combine, prepare, finish, dtype):
    """32 neighbouring results for a block."""

    def columns(x, out, identity, n):
        shared = cuda.shared.array((ACROSS, 32), dtype)
        t, y, part = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.z
        j = cuda.blockIdx.x * 32 + t
        length = (x.shape[1] + out.shape[0] - 1) // out.shape[0]
        for i in range(cuda.blockIdx.y, out.shape[1], cuda.gridDim.y):
            total = identity
            if j < out.shape[2]:
                for k in range(part * length + y, min((part + 1) * length, x.shape[1]), ACROSS):
                    total = combine(total, dtype(prepare(x[i, k, j])))
            shared[y, t] = total
            cuda.syncthreads()
            if y == 0 and j < out.shape[2]:
                for other in range(1, ACROSS):
                    total = combine(total, shared[other, t])
                out[part, i, j] = finish(total, n)
            cuda.syncthreads()

    return columns
