"""Sums, sums of squares and running sums over float32 arrays.

A float32 sum of many terms loses digits with its length. So at most `STEP` terms are added up in float32, and those
sums in float64 (rows) or in a second row of float32 (columns).

In PyTorch: `aten/src/ATen/native/cpu/SumKernel.cpp`, which cascades likewise, and `cpu/ReduceOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.cpu.compile import fast_kernel, kernel

ZERO = np.float32(0)
STEP = 1024


@fast_kernel
def sum_of(x):
    total = 0.0
    for start in range(0, x.size, STEP):
        part, few = ZERO, x[start : start + STEP]
        for i in range(few.size):
            part += few[i]
        total += part
    return total


@fast_kernel
def squares_of(x):
    total = 0.0
    for start in range(0, x.size, STEP):
        part, few = ZERO, x[start : start + STEP]
        for i in range(few.size):
            part += few[i] * few[i]
        total += part
    return total


@kernel
def sum_pieces(x, length, out):
    """The sum of each `length` numbers of x."""
    for i in range(out.size):
        out[i] = sum_of(x[i * length : (i + 1) * length])


@kernel
def squares_pieces(x, length, out):
    for i in range(out.size):
        out[i] = squares_of(x[i * length : (i + 1) * length])


@kernel
def sum_rows(x, out):
    for i in range(out.size):
        out[i] = sum_of(x[i])


@kernel
def squares_rows(x, out):
    for i in range(out.size):
        out[i] = squares_of(x[i])


@kernel
def sum_columns(x, out):
    """(outer, n, inner) to (outer, inner)."""
    for block in range(x.shape[0]):
        add_rows(x[block], out[block], False)


@kernel
def squares_columns(x, out):
    for block in range(x.shape[0]):
        add_rows(x[block], out[block], True)


@kernel
def add_rows(x, total, squared):
    part = np.empty(x.shape[1], np.float32)
    total[:] = ZERO
    for start in range(0, x.shape[0], STEP):
        part[:] = ZERO
        for i in range(start, min(start + STEP, x.shape[0])):
            row = x[i]
            if squared:
                for j in range(row.size):
                    part[j] += row[j] * row[j]
            else:
                for j in range(row.size):
                    part[j] += row[j]
        for j in range(part.size):
            total[j] += part[j]


@kernel
def cumsum_rows(x, out):
    """Running sums along the rows, carried in float64."""
    for i in range(x.shape[0]):
        row, sums, total = x[i], out[i], 0.0
        for j in range(row.size):
            total += row[j]
            sums[j] = total
