"""Average pooling as loops over volumes, as in max_pool_kernel.py.

In PyTorch: `aten/src/ATen/native/cpu/AvgPoolKernel.cpp`, `aten/src/ATen/native/cpu/AdaptiveAvgPoolKernel.cpp`.
"""

import numpy as np

from readtorch.aten.cpu.compile import kernel
from readtorch.aten.native.dispatch_stub import register_dispatch
from readtorch.aten.native.pooling import average as plain

from .max_pool_kernel import for_planes, volumes


@register_dispatch(plain.average)
def average(planes, windows, divisors, means):
    outputs = by_results(divisors, windows, planes.dtype), volumes(means, windows.outputs)
    given = (volumes(planes, windows.sizes), *windows.bounds, *outputs)
    for_planes(*planes.shape, lambda begin, end: sum_windows(*given, begin, end))


@register_dispatch(plain.distribute)
def distribute(grads, windows, divisors, sums):
    sums[...] = 0
    divisors = by_results(divisors, windows, grads.dtype)
    given = (volumes(grads, windows.outputs), *windows.bounds, divisors, volumes(sums, windows.sizes))
    for_planes(*sums.shape, lambda begin, end: share_out(*given, begin, end))


def by_results(divisors, windows, dtype):
    """The divisors as numbers of that type: (layers, rows, columns)."""
    return volumes(divisors.astype(dtype), windows.outputs)[0]


@kernel
def sum_windows(x, layers, rows, columns, divisors, out, begin, end):
    """The means of all windows of the planes begin … end: first down the columns, many side by side, then
    along the row."""
    line = np.empty(x.shape[3], x.dtype)
    for p in range(begin, end):
        for k in range(layers.shape[1]):
            for i in range(rows.shape[1]):
                line[:] = 0
                for d in range(layers[0, k], layers[1, k]):
                    for h in range(rows[0, i], rows[1, i]):
                        seen = x[p, d, h]
                        for w in range(line.size):
                            line[w] += seen[w]
                means, by = out[p, k, i], divisors[k, i]
                for j in range(means.size):
                    total = line.dtype.type(0)
                    for w in range(columns[0, j], columns[1, j]):
                        total += line[w]
                    means[j] = total / by[j]


@kernel
def share_out(grads, layers, rows, columns, divisors, out, begin, end):
    """Each gradient, divided, to all places of its window: along a row, then up the columns. `out`: zeros."""
    line = np.empty(out.shape[3], out.dtype)
    for p in range(begin, end):
        for k in range(layers.shape[1]):
            for i in range(rows.shape[1]):
                line[:] = 0
                given, by = grads[p, k, i], divisors[k, i]
                for j in range(given.size):
                    share = given[j] / by[j]
                    for w in range(columns[0, j], columns[1, j]):
                        line[w] += share
                for d in range(layers[0, k], layers[1, k]):
                    for h in range(rows[0, i], rows[1, i]):
                        sums = out[p, d, h]
                        for w in range(line.size):
                            sums[w] += line[w]
