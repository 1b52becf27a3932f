"""log_softmax and nll_loss for matrices with short rows, as loops.

A classifier's scores are a few hundred numbers: NumPy would spend its time between the calls.

In PyTorch: `aten/src/ATen/native/cpu/SoftMaxKernel.cpp` and the loops in `LossNLL.cpp`.
"""
import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def log_softmax(x, out):
    """out = x - log Σ exp(x) row by row, shifted by the greatest element so that no exp overflows."""
    for i in range(x.shape[0]):
        row, result = x[i], out[i]
        greatest = row[0]
        for v in row:
            greatest = max(greatest, v)
        total = np.float32(0)
        for v in row:
            total += math.exp(v - greatest)
        log_total = math.log(total)
        for j in range(row.size):
            result[j] = row[j] - greatest - log_total


@njit(cache=True, nogil=True, error_model="numpy")
def log_softmax_backward(grad, y, out):
    """out = grad - exp(y) Σ grad, row by row."""
    for i in range(y.shape[0]):
        g, row, result = grad[i], y[i], out[i]
        total = np.float32(0)
        for v in g:
            total += v
        for j in range(row.size):
            result[j] = g[j] - math.exp(row[j]) * total


@njit(cache=True, nogil=True, error_model="numpy")
def nll_sum(x, target, ignore_index):
    """-Σ x[i, target[i]], how many terms it has, and the first row whose class does not exist, or -1."""
    total, count = 0.0, 0
    for i in range(target.size):
        label = target[i]
        if label == ignore_index:
            continue
        if label < 0 or label >= x.shape[1]:
            return total, count, i
        total -= x[i, label]
        count += 1
    return total, count, -1


@njit(cache=True, nogil=True, error_model="numpy")
def nll_sum_backward(share, target, ignore_index, out):
    """`share` into out, which holds zeros, wherever a loss was picked. Returns the first wrong row, or -1."""
    for i in range(target.size):
        label = target[i]
        if label == ignore_index:
            continue
        if label < 0 or label >= out.shape[1]:
            return i
        out[i, label] = share
    return -1
