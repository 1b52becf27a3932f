"""segment_reduce: sum, mean, product or extreme of stretches of rows, and its gradient.

    reduce_each_segment(how, x, edges, start, out, of_empty)
    reduce_backward(how, grad, out, x, edges, start, result)         result: zeros

x is (outer, rows, inner), edges (outer, segments + 1), out (outer, segments, inner).

Grid: blocks of 256 threads with a grid-stride loop, a thread for each result: it goes over its segment.

In PyTorch: `aten/src/ATen/native/cuda/SegmentReduce.cu`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.segment_reduce import REDUCTIONS, WRONG_SUMS, how_to_reduce
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .block_reduce import greater, plus, smaller, times
from .fill_kernel import fill, filled
from .loops import THREADS
from .reduce_ops import LONG, converted, store
from .register_dispatch_key import cuda_impl, empty, operator_named
from .rows import as_rows, contiguous

HOW = {"sum": plus, "mean": plus, "prod": times, "amax": greater, "amin": smaller}


def reduce_each_segment(how, x, edges, start, out, of_empty):
    """start: what a segment begins with; of_empty: the mean of no rows. Both of x's dtype, 32 or 64 bits."""
    if out.size:
        launch(kernel(how), blocks_of(out.size, THREADS), THREADS, x, edges, start, of_empty, out)


def reduce_backward(how, grad, out, x, edges, start, result):
    if out.size:
        grid = blocks_of(out.size, THREADS)
        launch(backward_kernel(how), grid, THREADS, grad, out, x, edges, start, result)


def place(e, shape):
    """(outer, segment, inner) of the e-th result."""
    return e // (shape[1] * shape[2]), e // shape[2] % shape[1], e % shape[2]


@functools.cache
def kernel(how):
    combine = HOW[how]

    def reduce_segments(x, edges, start, of_empty, out):
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            o, s, i = place(e, out.shape)
            total, begin, end = start, edges[o, s], edges[o, s + 1]
            for r in range(begin, end):
                total = combine(total, x[o, r, i])
            if how == "mean":
                total = total / type(start)(end - begin) if end > begin else of_empty
            out[o, s, i] = total

    return reduce_segments


@functools.cache
def backward_kernel(how):
    def backward(grad, out, x, edges, start, result):
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            o, s, i = place(e, out.shape)
            begin, end, share = edges[o, s], edges[o, s + 1], grad[o, s, i]
            if how == "mean" and end > begin:
                share /= type(start)(end - begin)
            if how == "amax" or how == "amin":
                winners = 0
                for r in range(begin, end):
                    if x[o, r, i] == out[o, s, i] or x[o, r, i] != x[o, r, i]:
                        winners += 1
                share /= type(start)(max(winners, 1))
            for r in range(begin, end):
                if how == "prod":
                    others = start
                    for k in range(begin, end):
                        if k != r:
                            others *= x[o, k, i]
                    result[o, r, i] = share * others
                elif how == "sum" or how == "mean" or x[o, r, i] == out[o, s, i] or x[o, r, i] != x[o, r, i]:
                    result[o, r, i] = share

    return backward


def edges_of(lengths, offsets):
    """Where the segments begin and where the last one ends, along the last dimension; int64, a matrix."""
    if offsets is None:
        zero = filled(empty((*lengths._array.shape[:-1], 1), LONG), 0)
        offsets = at.cat([zero, lengths.cumsum(-1)], -1)
    array = contiguous(converted(offsets, LONG)._array)
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def check_lengths(lengths, size):
    """The host waits for the sums."""
    if lengths._array.size and lengths.min().item() < 0:
        raise RuntimeError("lengths contains negative value!")
    if lengths._array.size and at.ne(lengths.sum(-1), size).any().item():
        raise RuntimeError(WRONG_SUMS)


def how_and_start(reduce, initial):
    how = how_to_reduce(reduce)
    return how, REDUCTIONS[how][1] if initial is None else initial


@cuda_impl(operator_named("segment_reduce"))
def segment_reduce_cuda(data, reduce, lengths, indices, offsets, axis, unsafe, initial, out):
    axis = wrap_dim(axis, data._array.ndim)
    how, start = how_and_start(reduce, initial)
    if offsets is None and not unsafe:
        check_lengths(lengths, data._array.shape[axis])
    edges, wide = edges_of(lengths, offsets), op_math_type(dtype_of(data)).numpy
    rows, start, of_empty = (
        as_rows(converted(data, wide)._array, axis),
        wide.type(start),
        math.nan if initial is None else initial,
    )
    store(
        lambda array: reduce_each_segment(how, rows, edges, start, as_rows(array, axis), wide.type(of_empty)), out, wide
    )


@cuda_impl(operator_named("_segment_reduce_backward"))
def segment_reduce_backward_cuda(grad, output, data, reduce, lengths, offsets, axis, initial, out):
    axis = wrap_dim(axis, data._array.ndim)
    how, start = how_and_start(reduce, initial)
    wide = op_math_type(dtype_of(data)).numpy
    g, y, x = (as_rows(converted(t, wide)._array, axis) for t in (grad, output, data))
    edges = edges_of(lengths, offsets)

    def compute(array):
        fill(array, wide.type(0))
        reduce_backward(how, g, y, x, edges, wide.type(start), as_rows(array, axis))

    store(compute, out, wide)
