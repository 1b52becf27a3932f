"""Layer and root mean square normalization as loops over the rows of a matrix.

A mean is a sum in float64: what it is off by, squared, would be added to the variance. Squares of what is left are all
positive, so that the tensor's own type is enough for their sum, and faster.

In PyTorch: `aten/src/ATen/native/cpu/layer_norm_kernel.cpp`; mean and variance by Welford's recurrence, `moments_utils.h`.
"""

import math

import numpy as np

from readtorch.aten.cpu.compile import fast_kernel


@fast_kernel
def layer_norm(x, weight, bias, eps, out, mean, rstd, begin, end):
    """out = (x - mean) · rstd · weight + bias; mean and rstd of each row are kept."""
    number, width = x.dtype.type, x.shape[1]
    for i in range(begin, end):
        row, result, total, squares = x[i], out[i], 0.0, number(0)
        for j in range(width):
            total += row[j]
        m = number(total / width)
        for j in range(width):
            d = row[j] - m
            squares += d * d
        r = number(1 / math.sqrt(squares / width + eps))
        mean[i], rstd[i] = m, r
        for j in range(width):
            result[j] = (row[j] - m) * r * weight[j] + bias[j]


@fast_kernel
def layer_norm_backward(dy, x, weight, mean, rstd, dx, begin, end):
    """Writes dx, unless it is empty. Returns sums over these rows: the gradients of weight and bias."""
    number, width = x.dtype.type, x.shape[1]
    dw, db = np.zeros(width, x.dtype), np.zeros(width, x.dtype)
    for i in range(begin, end):
        row, grad, m, r = x[i], dy[i], mean[i], rstd[i]
        total, along = number(0), number(0)
        for j in range(width):
            xhat, g = (row[j] - m) * r, grad[j]
            dw[j] += g * xhat
            db[j] += g
            total += g * weight[j]
            along += g * weight[j] * xhat
        if dx.size:
            result, total, along = dx[i], number(total / width), number(along / width) * r
            for j in range(width):
                result[j] = (grad[j] * weight[j] - total - (row[j] - m) * along) * r
    return dw, db


@fast_kernel
def rms_norm(x, weight, eps, out, begin, end):
    """out = x / √(mean of x² + eps) · weight."""
    number, width = x.dtype.type, x.shape[1]
    for i in range(begin, end):
        row, result, squares = x[i], out[i], number(0)
        for j in range(width):
            squares += row[j] * row[j]
        r = number(1 / math.sqrt(squares / width + eps))
        for j in range(width):
            result[j] = row[j] * r * weight[j]
