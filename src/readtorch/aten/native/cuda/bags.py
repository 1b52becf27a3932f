"""embedding_bag: of several rows of a matrix the sum, the mean or the greatest elements, without the rows in
between.

Grid: (blocks of 256 columns, bags). A thread goes along its bag for one column.

In PyTorch: `aten/src/ATen/native/cuda/EmbeddingBag.cu`.
"""
import functools

from numba import cuda

from ....c10.cuda.launch import launch
from .embedding import grid
from .loops import THREADS
from .rows import flat


def reduce_bags(weight, indices, offsets, factors, takes_max, takes_mean, padding_idx, out, sizes, maxima):
    """out (bags, columns), sizes (bags): of the bags without padding. factors: one for each index, or None.
    maxima: the row that each greatest element comes from. The results begin as zeros."""
    if out.size:
        indices = flat(indices)
        rest = (factors, maxima) if takes_max else (factors, out)
        rest = tuple(indices if a is None else flat(a) if a is factors else a for a in rest)
        kernel = max_kernel if takes_max else sum_kernel(factors is not None, takes_mean)
        launch(kernel, grid(out.shape[0], out.shape[1]), THREADS, weight, indices, flat(offsets), padding_idx, *rest,
               out, sizes)


def end_of(b, offsets, count):
    """Where a bag ends: the offset of the next, if there is one."""
    return offsets[b + 1] if b + 1 < offsets.size else count


@functools.cache
def sum_kernel(has_factors, takes_mean):
    def sums(weight, indices, offsets, padding_idx, factors, _, out, sizes):
        c = cuda.grid(1)
        if c < out.shape[1]:
            for b in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
                total, size = weight.dtype.type(0), 0
                for i in range(offsets[b], end_of(b, offsets, indices.size)):
                    if indices[i] != padding_idx:
                        x = weight[indices[i], c]
                        total += x * factors[i] if has_factors else x
                        size += 1
                out[b, c] = total / weight.dtype.type(max(size, 1)) if takes_mean else total
                if c == 0:
                    sizes[b] = size
    return sums


def max_kernel(weight, indices, offsets, padding_idx, _, maxima, out, sizes):
    """A later row must be greater to win: a nan stays only in first place."""
    c = cuda.grid(1)
    if c < out.shape[1]:
        for b in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
            greatest, size, row = weight.dtype.type(0), 0, 0
            for i in range(offsets[b], end_of(b, offsets, indices.size)):
                if indices[i] != padding_idx:
                    x = weight[indices[i], c]
                    if size == 0 or x > greatest:
                        greatest, row = x, indices[i]
                    size += 1
            out[b, c], maxima[b, c] = greatest, row
            if c == 0:
                sizes[b] = size
