"""Resizing as loops: products with banded matrices (Note [ Resizing is a banded matrix ]), and copies.

In PyTorch: `aten/src/ATen/native/cpu/UpSampleKernel.cpp`, `aten/src/ATen/native/cpu/UpSampleMoreKernel.cpp`.
"""

import math

import numpy as np

from readtorch.aten.cpu.compile import fast_kernel, kernel
from readtorch.aten.native import upsample
from readtorch.aten.native.dispatch_stub import register_dispatch
from readtorch.aten.parallel import parallel_for

GRAIN = 1 << 15  # elements of a result that make a piece of work for a thread


def share(count, size, body):
    """`body(begin, end)` over `count` pieces of work that make a result of `size` elements."""
    parallel_for(0, count, max(1, GRAIN * count // max(size, 1)), body)


@register_dispatch(upsample.times_band)
def times_band(out, one, x, axis):
    x = np.ascontiguousarray(x)
    if axis == x.ndim - 1:
        rows, result = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
        share(len(rows), out.size, lambda b, e: band_rows(rows, *one, result, b, e))
        return
    before, after = math.prod(out.shape[:axis]), math.prod(out.shape[axis + 1 :])
    lines, result = x.reshape(before, x.shape[axis], after), out.reshape(before, out.shape[axis], after)
    share(before, out.size, lambda b, e: band_lines(lines, *one, result, b, e))


@register_dispatch(upsample.pick)
def pick(x, indices, out):
    if len(indices) == 3:
        x = x.take(indices[0], 2)
    rows, columns = indices[-2] if len(indices) > 1 else np.arange(x.shape[1]), indices[-1]
    planes = np.ascontiguousarray(x).reshape(-1, *x.shape[-2:])
    result = out.reshape(len(planes), len(rows), len(columns))
    share(len(planes), out.size, lambda b, e: copy_picked(planes, rows, columns, result, b, e))


@register_dispatch(upsample.pick_backward)
def pick_backward(grad, bands, out):
    if len(bands) != 2:
        return upsample.pick_backward.plain(grad, bands, out)
    rows, columns = bands
    planes, result = [np.ascontiguousarray(a).reshape(-1, *a.shape[2:]) for a in (grad, out)]
    given = (planes, rows.start, rows.count, columns.start, columns.count, result)
    share(len(planes), grad.size, lambda b, e: add_blocks(*given, b, e))


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
def copy_picked(x, rows, columns, out, begin, end):
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
def add_blocks(grad, row_start, row_count, column_start, column_count, out, begin, end):
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
