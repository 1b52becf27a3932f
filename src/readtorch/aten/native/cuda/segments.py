"""segment_reduce: sum, mean, product or extreme of stretches of rows, and its gradient.

    reduce(how, x, edges, start, out)         x (outer, rows, inner), edges (outer, segments + 1), out (outer,
                                              segments, inner)
    reduce_backward(how, grad, out, x, edges, start, result)         result: zeros

Grid: blocks of 256 threads with a grid-stride loop, a thread for each result: it goes over its segment.

In PyTorch: `aten/src/ATen/native/cuda/SegmentReduce.cu`.
"""
import functools

from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from .block_reduce import greater, plus, smaller, times
from .loops import THREADS

HOW = {"sum": plus, "mean": plus, "prod": times, "amax": greater, "amin": smaller}


def reduce(how, x, edges, start, out, of_empty):
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
