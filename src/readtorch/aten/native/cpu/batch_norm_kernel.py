"""Batch normalization as loops, channel by channel: what a channel holds stays in the cache for all passes.

A tensor (N, C, *) comes as planes (N, C, L), or, where the channels of a pixel are neighbours in memory, as
columns (rows, C). All sums are taken in float64, as PyTorch takes them: a mean of many numbers around a million would be
off by 47 in float32, and their variance by 47².

In PyTorch: `aten/src/ATen/native/cpu/batch_norm_kernel.cpp`.
"""

import math

import numpy as np

from readtorch.aten.cpu.compile import fast_kernel

# ------------------------------------------------------------------------------------------- planes


@fast_kernel
def sum_of_plane(x, c):
    total = 0.0
    for n in range(x.shape[0]):
        row = x[n, c]
        for i in range(row.size):
            total += row[i]
    return total


@fast_kernel
def squares_of_plane(x, c, mean):
    """Σ (x - mean)² over a channel."""
    total = 0.0
    for n in range(x.shape[0]):
        row = x[n, c]
        for i in range(row.size):
            d = row[i] - mean
            total += d * d
    return total


@fast_kernel
def plane_on_a_line(x, c, slope, start, out):
    for n in range(x.shape[0]):
        row, result = x[n, c], out[n, c]
        for i in range(row.size):
            result[i] = row[i] * slope + start


@fast_kernel
def evaluate_planes(x, slope, start, out, begin, end):
    """out = x · slope + start, for the channels begin … end."""
    for c in range(begin, end):
        plane_on_a_line(x, c, slope[c], start[c], out)


@fast_kernel
def train_planes(x, weight, bias, momentum, eps, running_mean, running_var, out, mean, rstd, begin, end):
    """Normalizes by the batch's mean and deviation, and keeps them; moves running statistics, if not empty."""
    count = x.shape[0] * x.shape[2]
    for c in range(begin, end):
        mean[c] = sum_of_plane(x, c) / count
        squares = squares_of_plane(x, c, mean[c])
        finish_statistics(c, squares, count, momentum, eps, running_mean, running_var, mean, rstd)
        slope = rstd[c] * weight[c]
        plane_on_a_line(x, c, slope, bias[c] - mean[c] * slope, out)


@fast_kernel
def finish_statistics(c, squares, count, momentum, eps, running_mean, running_var, mean, rstd):
    rstd[c] = 1 / math.sqrt(squares / count + eps)
    if running_mean.size:
        running_mean[c] = momentum * mean[c] + (1 - momentum) * running_mean[c]
    if running_var.size:
        running_var[c] = momentum * (squares / (count - 1)) + (1 - momentum) * running_var[c]


@fast_kernel
def slopes_of_plane(dy, x, c, mean):
    """Σ dy and Σ dy · (x - mean) over a channel."""
    total, along = 0.0, 0.0
    for n in range(x.shape[0]):
        row, grad = x[n, c], dy[n, c]
        for i in range(row.size):
            total += grad[i]
            along += grad[i] * (row[i] - mean)
    return total, along


@fast_kernel
def plane_backward(dy, x, c, mean, factor, across, along, dx):
    """dx = (dy - across - (x - mean) · along) · factor."""
    for n in range(x.shape[0]):
        row, grad, result = x[n, c], dy[n, c], dx[n, c]
        for i in range(row.size):
            result[i] = (grad[i] - across - (row[i] - mean) * along) * factor


@fast_kernel
def backward_planes(dy, x, weight, mean, rstd, train, dx, dw, db, begin, end):
    """The gradients for x (unless dx is empty), weight and bias."""
    number = x.dtype.type
    count = x.shape[0] * x.shape[2]
    for c in range(begin, end):
        total, along = slopes_of_plane(dy, x, c, mean[c])
        dw[c], db[c] = along * rstd[c], total
        if dx.size:
            # Statistics that were given do not depend on x: nothing flows back through them.
            share = 1 / count if train else 0.0
            plane_backward(
                dy,
                x,
                c,
                mean[c],
                rstd[c] * weight[c],
                number(total * share),
                number(along * rstd[c] * rstd[c] * share),
                dx,
            )


# ------------------------------------------------------------------------------------------ columns


@fast_kernel
def evaluate_columns(x, slope, start, out, begin, end):
    """out = x · slope + start, for the columns begin … end."""
    slope, start = slope[begin:end], start[begin:end]
    for n in range(x.shape[0]):
        row, result = x[n, begin:end], out[n, begin:end]
        for i in range(row.size):
            result[i] = row[i] * slope[i] + start[i]


@fast_kernel
def train_columns(x, weight, bias, momentum, eps, running_mean, running_var, out, mean, rstd, begin, end):
    """As `train_planes`."""
    count = x.shape[0]
    totals, squares = np.zeros(end - begin), np.zeros(end - begin)
    for n in range(count):
        row = x[n, begin:end]
        for i in range(row.size):
            totals[i] += row[i]
    m = mean[begin:end]
    for i in range(m.size):
        m[i] = totals[i] / count
    for n in range(count):
        row = x[n, begin:end]
        for i in range(row.size):
            d = row[i] - m[i]
            squares[i] += d * d
    slope, start = np.empty_like(mean), np.empty_like(mean)
    for c in range(begin, end):
        finish_statistics(c, squares[c - begin], count, momentum, eps, running_mean, running_var, mean, rstd)
        slope[c] = rstd[c] * weight[c]
        start[c] = bias[c] - mean[c] * slope[c]
    evaluate_columns(x, slope, start, out, begin, end)


@fast_kernel
def backward_columns(dy, x, weight, mean, rstd, train, dx, dw, db, begin, end):
    """As `backward_planes`."""
    count = x.shape[0]
    totals, alongs, m = np.zeros(end - begin), np.zeros(end - begin), mean[begin:end]
    for n in range(count):
        row, grad = x[n, begin:end], dy[n, begin:end]
        for i in range(row.size):
            totals[i] += grad[i]
            alongs[i] += grad[i] * (row[i] - m[i])
    across, along, factor = np.empty_like(m), np.empty_like(m), np.empty_like(m)
    share = 1 / count if train else 0.0
    for i in range(m.size):
        r = rstd[begin + i]
        dw[begin + i], db[begin + i] = alongs[i] * r, totals[i]
        across[i], along[i], factor[i] = totals[i] * share, alongs[i] * r * r * share, r * weight[begin + i]
    if dx.size:
        for n in range(count):
            row, grad, result = x[n, begin:end], dy[n, begin:end], dx[n, begin:end]
            for i in range(row.size):
                result[i] = (grad[i] - across[i] - (row[i] - m[i]) * along[i]) * factor[i]
