"""softmax and log_softmax as loops: along rows that lie in one piece, and along any other dimension.

Each is shifted by the largest element, so that no exp overflows. A nan loses against every number when the
largest is looked for, but then stays in the sum.

In PyTorch: `aten/src/ATen/native/cpu/SoftMaxKernel.cpp`.
"""

import math

import numpy as np

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import fast_kernel

# ------------------------------------------------------------------------ along the rows of a matrix


@fast_kernel
def softmax(x, out, begin, end):
    """out = exp(x) / Σ exp(x)."""
    number, width = x.dtype.type, x.shape[1]
    for i in range(begin, end):
        row, result = x[i], out[i]
        largest, total = number(-np.inf), number(0)
        for j in range(width):
            largest = vec.greater(largest, row[j])
        for j in range(width):
            e = vec.exp(row[j] - largest)
            result[j] = e
            total += e
        share = number(1) / total
        for j in range(width):
            result[j] *= share


@fast_kernel
def log_softmax(x, out, begin, end):
    """out = x - log Σ exp(x). Never takes the logarithm of a rounded probability."""
    number, width = x.dtype.type, x.shape[1]
    for i in range(begin, end):
        row, result = x[i], out[i]
        largest, total = number(-np.inf), number(0)
        for j in range(width):
            largest = vec.greater(largest, row[j])
        for j in range(width):
            total += vec.exp(row[j] - largest)
        log_total = number(math.log(total))
        for j in range(width):
            result[j] = (row[j] - largest) - log_total


@fast_kernel
def softmax_backward(grad, y, out, begin, end):
    """out = y (grad - Σ grad · y)."""
    number, width = y.dtype.type, y.shape[1]
    for i in range(begin, end):
        g, row, result, total = grad[i], y[i], out[i], number(0)
        for j in range(width):
            total += g[j] * row[j]
        for j in range(width):
            result[j] = (g[j] - total) * row[j]


@fast_kernel
def log_softmax_backward(grad, y, out, begin, end):
    """out = grad - exp(y) Σ grad."""
    number, width = y.dtype.type, y.shape[1]
    for i in range(begin, end):
        g, row, result, total = grad[i], y[i], out[i], number(0)
        for j in range(width):
            total += g[j]
        for j in range(width):
            result[j] = g[j] - vec.exp(row[j]) * total


# ------------------------------------------------ along the middle dimension of (outer, length, inner)

# So many columns are worked on together: what they hold should stay in the cache until the last pass.
COLUMNS = 128


@fast_kernel
def block(piece, inner):
    """A piece number as an outer index and a range of columns."""
    blocks = (inner + COLUMNS - 1) // COLUMNS
    start = piece % blocks * COLUMNS
    return piece // blocks, start, min(start + COLUMNS, inner)


@fast_kernel
def largest_of_columns(x, outer, start, stop):
    largest = np.full(stop - start, -np.inf, x.dtype)
    for i in range(x.shape[1]):
        row = x[outer, i, start:stop]
        for j in range(row.size):
            largest[j] = vec.greater(largest[j], row[j])
    return largest


@fast_kernel
def softmax_strided(x, out, begin, end):
    for piece in range(begin, end):
        outer, start, stop = block(piece, x.shape[2])
        largest, total = largest_of_columns(x, outer, start, stop), np.zeros(stop - start, x.dtype)
        for i in range(x.shape[1]):
            row, result = x[outer, i, start:stop], out[outer, i, start:stop]
            for j in range(row.size):
                e = vec.exp(row[j] - largest[j])
                result[j] = e
                total[j] += e
        for i in range(x.shape[1]):
            result = out[outer, i, start:stop]
            for j in range(result.size):
                result[j] /= total[j]


@fast_kernel
def log_softmax_strided(x, out, begin, end):
    for piece in range(begin, end):
        outer, start, stop = block(piece, x.shape[2])
        largest, total = largest_of_columns(x, outer, start, stop), np.zeros(stop - start, x.dtype)
        for i in range(x.shape[1]):
            row = x[outer, i, start:stop]
            for j in range(row.size):
                total[j] += vec.exp(row[j] - largest[j])
        for j in range(total.size):
            total[j] = vec.log(total[j])
        for i in range(x.shape[1]):
            row, result = x[outer, i, start:stop], out[outer, i, start:stop]
            for j in range(row.size):
                result[j] = (row[j] - largest[j]) - total[j]


@fast_kernel
def softmax_backward_strided(grad, y, out, begin, end):
    for piece in range(begin, end):
        outer, start, stop = block(piece, y.shape[2])
        total = np.zeros(stop - start, y.dtype)
        for i in range(y.shape[1]):
            g, row = grad[outer, i, start:stop], y[outer, i, start:stop]
            for j in range(row.size):
                total[j] += g[j] * row[j]
        for i in range(y.shape[1]):
            g, row, result = grad[outer, i, start:stop], y[outer, i, start:stop], out[outer, i, start:stop]
            for j in range(row.size):
                result[j] = (g[j] - total[j]) * row[j]


@fast_kernel
def log_softmax_backward_strided(grad, y, out, begin, end):
    for piece in range(begin, end):
        outer, start, stop = block(piece, y.shape[2])
        total = np.zeros(stop - start, y.dtype)
        for i in range(y.shape[1]):
            g = grad[outer, i, start:stop]
            for j in range(g.size):
                total[j] += g[j]
        for i in range(y.shape[1]):
            g, row, result = grad[outer, i, start:stop], y[outer, i, start:stop], out[outer, i, start:stop]
            for j in range(row.size):
                result[j] = g[j] - vec.exp(row[j]) * total[j]
