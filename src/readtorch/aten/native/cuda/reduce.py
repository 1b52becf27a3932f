"""Sums, products, extremes, means and norms over some dimensions.

    reduce(SUM, x, dims, out)       out: x's shape without `dims`

Note [ Two ways to reduce ]
An array to be reduced is seen as (outer, n, inner): n elements become one. If the n elements lie closer together than the
inner ones, a block takes one result: its threads walk along n side by side, then combine by shuffles (`rows`; grid: inner ×
parts × outer, block: up to 256 threads). Short rows stay in registers instead, most of them a warp's: Note [ A row in
registers ] in persistent_softmax.py. Otherwise neighbouring threads take neighbouring results and walk down together, 8
threads for one result (`columns`; block: 32 × 8). All read memory in order.

Memory is busy only if much is asked for at once. So a thread asks for four elements before it adds one of them, to four
totals that do not wait for each other (`four`): neighbours, 16 bytes in one access, where alignment allows it. And there
must be blocks enough, eight for each of the chip's 132 multiprocessors: where there are fewer results, n is cut into parts,
and a second launch reduces the parts. No atomics: the result does not depend on which block comes first.

In PyTorch: `aten/src/ATen/native/cuda/Reduce.cuh`, `ReduceSumProdKernel.cu`, `ReduceMaxValuesKernel.cu` and
others.
"""

import functools
import math
import typing

import numpy as np
from numba import cuda

from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import address, launch, scratch, strided
from readtorch.c10.cuda.sizes import round_up

from . import block_reduce as combining
from .block_reduce import block_reduce, whole_warps
from .loops import pointwise
from .memory_access import load, load4, store
from .offset_calculator import laid_out
from .persistent_softmax import bounded, launch_rows, row_functions, rows_in_fours, share_of
from .rows import contiguous

ENOUGH_BLOCKS = 8 * 132  # eight for each multiprocessor of an H100
LEAST_ROW, LEAST_COLUMN = 4096, 64  # elements of one result that are worth a block of their own
IN_REGISTERS = ("float32", "float64", "int32", "int64")


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
    x = as_outer_n_inner(x if min(x.strides, default=0) >= 0 else contiguous(x), dims)
    out = strided(out, x.shape[::2], result_strides(out, x.shape))
    identity = reduction.identity(out.dtype) if callable(reduction.identity) else reduction.identity
    computing = np.int32 if out.dtype == bool else out.dtype.type  # a shuffle moves 32 or 64 bits
    pass_over(reduction, x, out, computing(identity), parts)


def pass_over(reduction, x, out, identity, parts):
    n = x.shape[1]
    parts = parts or parts_for(x)
    if parts == 1:
        run(reduction, x, strided(out, (1, *out.shape), (0, *out.strides)), identity, n)
        return
    partial = scratch(out, (parts, *out.shape), out.dtype)
    run(reduction._replace(finish=same), x, partial, identity, n)
    merged = strided(partial, (out.shape[0], parts, out.shape[1]), tuple(partial.strides[d] for d in (1, 0, 2)))
    run(reduction._replace(prepare=itself), merged, strided(out, (1, *out.shape), (0, *out.strides)), identity, n)


def parts_for(x):
    """Into how many parts n is cut, so that there are blocks enough."""
    outer, n, inner = x.shape
    along = goes_along(x)
    blocks, least = (outer * inner, LEAST_ROW) if along else (outer * -(-inner // (32 * columns_of(x))), LEAST_COLUMN)
    return max(1, min(n // least, -(-ENOUGH_BLOCKS // blocks)))


def goes_along(x):
    """Whether the n elements lie closer together than the inner ones."""
    return x.shape[2] == 1 or x.strides[1] < x.strides[2]


def columns_of(x):
    """How many neighbouring columns a thread takes."""
    rows = x.strides[0] % 16 == 0 == x.strides[1] % 16 and address(x) % 16 == 0
    return 4 if x.dtype == "float32" and x.strides[2] == 4 and x.shape[2] % 4 == 0 and rows else 1


def run(reduction, x, out, identity, n):
    """One launch: x (outer, n, inner) to out (parts, outer, inner)."""
    functions = (reduction.combine, reduction.prepare, reduction.finish, identity.dtype.type)
    (parts, outer, inner), length = out.shape, x.shape[1]
    (row, steps), results = laid_out(x), flat(out)
    if not goes_along(x):
        vector = columns_of(x)
        grid = (-(-inner // (32 * vector)), parts, min(outer, 65535))
        launch(columns_kernel(*functions, vector), grid, (32, ACROSS), row, results, x.shape, steps, identity, n)
        return
    close = length == 1 or x.strides[1] == x.itemsize
    if parts == inner == 1 and close and x.dtype in IN_REGISTERS and (share := share_of(length, x[:, :, 0])):
        kernel = rows_in_registers(*functions, share, x.dtype.type)
        launch_rows(kernel, share, outer, length, row, results, outer, length, steps[0], identity, n)
        return
    vector = 4 if close and inner == 1 and rows_in_fours(x[:, :, 0]) else 1
    part = round_up(-(-length // parts), 4)
    grid, threads = (inner, parts, min(outer, 65535)), whole_warps(-(-part // 4))
    launch(rows_kernel(*functions, vector), grid, threads, row, results, x.shape, steps, part, identity, n)


def flat(out):
    """A contiguous result as one row."""
    return strided(out, (out.size,), (out.itemsize,))


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
    [n], one = n or [(1, 0)], (1, 0)
    if len(rest) < 2:
        rest = [*rest, one] if rest and n[1] < rest[0][1] else [one, *rest] if rest else [one, one]
    outer, inner = rest
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


def four_neighbours(x, begin, k, apart):
    return load4(x, begin + k)


def four_apart(x, begin, k, apart):
    at = begin + k
    return load(x, at), load(x, at + apart), load(x, at + 2 * apart), load(x, at + 3 * apart)


@functools.cache
def rows_in_registers(combine, prepare, finish, dtype, share, own_dtype):
    """A warp or a block for each result. See Note [ A row in registers ]."""
    row, (pieces, vector, _), own = row_functions(share), share, share.elements
    first_row, rows_apart, place, load_share = row[:4]
    across, nothing = row.across(combine), own_dtype(0)

    def rows(x, out, count, length, step, identity, n):
        shared = cuda.shared.array(32, dtype)
        v = cuda.local.array(own, own_dtype)
        for r in range(first_row(), count, rows_apart()):
            load_share(x, r * step, length, v, nothing)
            total = identity
            for p in range(pieces):
                if place(p) < length:
                    for e in range(vector):
                        total = combine(total, dtype(prepare(v[p * vector + e])))
            total = across(total, shared, identity)
            if place(0) == 0:
                store(out, r, finish(total, n))

    return bounded(rows, share)


@functools.cache
def rows_kernel(combine, prepare, finish, dtype, vector):
    """A block for each result and part. See Note [ Two ways to reduce ]."""
    across_block = block_reduce(combine)
    four = four_neighbours if vector == 4 else four_apart

    def rows(x, out, shape, steps, part, identity, n):
        shared = cuda.shared.array(32, dtype)
        t, threads, j = cuda.threadIdx.x, cuda.blockDim.x, cuda.blockIdx.x
        begin, end = cuda.blockIdx.y * part, min((cuda.blockIdx.y + 1) * part, shape[1])
        for i in range(cuda.blockIdx.z, shape[0], cuda.gridDim.z):
            start = i * steps[0] + j * steps[2]
            a = b = c = d = identity
            k, reach = (begin + 4 * t, 3) if vector == 4 else (begin + t, 3 * threads)
            while k + reach < end:
                w, x1, y, z = four(x, start, k if vector == 4 else k * steps[1], threads * steps[1])
                a, b = combine(a, dtype(prepare(w))), combine(b, dtype(prepare(x1)))
                c, d = combine(c, dtype(prepare(y))), combine(d, dtype(prepare(z)))
                k += 4 * threads
            k = begin + max(end - begin, 0) // 4 * 4 + t if vector == 4 else k
            while k < end:
                a = combine(a, dtype(prepare(load(x, start + k * steps[1]))))
                k += threads
            total = across_block(combine(combine(a, b), combine(c, d)), shared, identity)
            if t == 0:
                store(out, (cuda.blockIdx.y * shape[0] + i) * shape[2] + j, finish(total, n))

    return rows


ACROSS = 8  # threads for one result


@functools.cache
def columns_kernel(combine, prepare, finish, dtype, vector):
    """32 threads side by side, for 32 neighbouring results or, four each, for 128."""
    column_kernel = four_columns_kernel if vector == 4 else one_column_kernel
    return column_kernel(combine, prepare, finish, dtype)


def one_column_kernel(combine, prepare, finish, dtype):
    def columns(x, out, shape, steps, identity, n):
        shared = cuda.shared.array((ACROSS, 32), dtype)
        t, y = cuda.threadIdx.x, cuda.threadIdx.y
        j, part = cuda.blockIdx.x * 32 + t, (shape[1] + cuda.gridDim.y - 1) // cuda.gridDim.y
        end, apart = min((cuda.blockIdx.y + 1) * part, shape[1]), ACROSS * steps[1]
        for i in range(cuda.blockIdx.z, shape[0], cuda.gridDim.z):
            k, start = cuda.blockIdx.y * part + y, i * steps[0] + j * steps[2]
            a = b = c = d = identity
            if j < shape[2]:
                while k + 3 * ACROSS < end:
                    w, x1, y1, z = four_apart(x, start, k * steps[1], apart)
                    a, b = combine(a, dtype(prepare(w))), combine(b, dtype(prepare(x1)))
                    c, d = combine(c, dtype(prepare(y1))), combine(d, dtype(prepare(z)))
                    k += 4 * ACROSS
                while k < end:
                    a = combine(a, dtype(prepare(load(x, start + k * steps[1]))))
                    k += ACROSS
            shared[y, t] = combine(combine(a, b), combine(c, d))
            cuda.syncthreads()
            if y == 0 and j < shape[2]:
                total = shared[0, t]
                for other in range(1, ACROSS):
                    total = combine(total, shared[other, t])
                store(out, (cuda.blockIdx.y * shape[0] + i) * shape[2] + j, finish(total, n))
            cuda.syncthreads()

    return columns


def four_columns_kernel(combine, prepare, finish, dtype):
    def columns(x, out, shape, steps, identity, n):
        shared = cuda.shared.array((ACROSS, 32, 4), dtype)
        t, y = cuda.threadIdx.x, cuda.threadIdx.y
        j, part = (cuda.blockIdx.x * 32 + t) * 4, (shape[1] + cuda.gridDim.y - 1) // cuda.gridDim.y
        end = min((cuda.blockIdx.y + 1) * part, shape[1])
        for i in range(cuda.blockIdx.z, shape[0], cuda.gridDim.z):
            k, start = cuda.blockIdx.y * part + y, i * steps[0] + j
            a = b = c = d = identity
            if j < shape[2]:
                while k < end:
                    w, x1, y1, z = load4(x, start + k * steps[1])
                    a, b = combine(a, dtype(prepare(w))), combine(b, dtype(prepare(x1)))
                    c, d = combine(c, dtype(prepare(y1))), combine(d, dtype(prepare(z)))
                    k += ACROSS
            shared[y, t, 0], shared[y, t, 1], shared[y, t, 2], shared[y, t, 3] = a, b, c, d
            cuda.syncthreads()
            if y < 4 and j < shape[2]:
                total = shared[0, t, y]
                for other in range(1, ACROSS):
                    total = combine(total, shared[other, t, y])
                store(out, (cuda.blockIdx.y * shape[0] + i) * shape[2] + j + y, finish(total, n))
            cuda.syncthreads()

    return columns
