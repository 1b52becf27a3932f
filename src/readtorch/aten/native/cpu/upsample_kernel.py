"""Resizing as loops: products with banded matrices (Note [ Resizing is a banded matrix ]), and copies.

In PyTorch: `aten/src/ATen/native/cpu/UpSampleKernel.cpp`, `aten/src/ATen/native/cpu/UpSampleMoreKernel.cpp`.
"""

import numpy as np

from readtorch.aten.cpu.compile import fast_kernel, kernel


@fast_kernel
def band_rows(x, start, count, weights, out, begin, end):
    """out[r] = band · x[r]: along the last dimension."""
    zero = weights.dtype.type(0)
    for r in range(begin, end):
        row, result = x[r], out[r]
        for o in range(result.size):
            first = start[o]
            total = zero
            for k in range(count[o]):
                total += weights[o, k] * row[first + k]
            result[o] = total


@fast_kernel
def band_lines(x, start, count, weights, out, begin, end):
    """out[p] = band · x[p], where x[p] and out[p] are matrices: along the last dimension but one."""
    for p in range(begin, end):
        for o in range(out.shape[1]):
            line = out[p, o]
            if count[o] == 0:
                line[:] = 0
                continue
            weight, source = weights[o, 0], x[p, start[o]]
            for j in range(line.size):
                line[j] = weight * source[j]
            for k in range(1, count[o]):
                weight, source = weights[o, k], x[p, start[o] + k]
                for j in range(line.size):
                    line[j] += weight * source[j]


@kernel
def pick(x, rows, columns, out, begin, end):
    """out[p, i, j] = x[p, rows[i], columns[j]]."""
    for p in range(begin, end):
        for i in range(rows.size):
            line = out[p, i]
            if i > 0 and rows[i] == rows[i - 1]:
                line[:] = out[p, i - 1]
                continue
            source = x[p, rows[i]]
            for j in range(line.size):
                line[j] = source[columns[j]]


@kernel
def pick_backward(grad, row_start, row_count, column_start, column_count, out, begin, end):
    """Each element of out[p] is the sum over a block of grad[p]: row_count rows from row_start, and so the columns."""
    total = np.empty(grad.shape[2], grad.dtype)
    for p in range(begin, end):
        for i in range(out.shape[1]):
            total[:] = 0
            for r in range(row_start[i], row_start[i] + row_count[i]):
                source = grad[p, r]
                for j in range(total.size):
                    total[j] += source[j]
            line = out[p, i]
            for j in range(line.size):
                first = column_start[j]
                block = total.dtype.type(0)
                for k in range(column_count[j]):
                    block += total[first + k]
                line[j] = block
