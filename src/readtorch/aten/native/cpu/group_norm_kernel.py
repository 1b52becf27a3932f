"""Group normalization as loops over the groups of all examples. Sums are taken as in layer_norm_kernel.py.

In PyTorch: `aten/src/ATen/native/cpu/group_norm_kernel.cpp`.
"""

import math

from readtorch.aten.cpu.compile import fast_kernel


@fast_kernel
def group_norm(x, weight, bias, eps, out, mean, rstd, begin, end):
    """x, out: (N · groups, channels of a group, pixels); weight, bias: (groups, channels of a group)."""
    number, channels, pixels = x.dtype.type, x.shape[1], x.shape[2]
    count = channels * pixels
    for i in range(begin, end):
        total, squares = 0.0, 0.0
        for c in range(channels):
            row = x[i, c]
            for j in range(pixels):
                total += row[j]
        m = number(total / count)
        for c in range(channels):
            row, part = x[i, c], number(0)
            for j in range(pixels):
                d = row[j] - m
                part += d * d
            squares += part
        r = number(1 / math.sqrt(squares / count + eps))
        mean[i], rstd[i] = m, r
        for c in range(channels):
            row, result = x[i, c], out[i, c]
            slope = r * weight[i % weight.shape[0], c]
            start = bias[i % weight.shape[0], c] - m * slope
            for j in range(pixels):
                result[j] = row[j] * slope + start


@fast_kernel
def group_norm_backward(dy, x, weight, mean, rstd, dx, alongs, totals, begin, end):
    """Writes dx, unless it is empty, and Σ dy · x̂ and Σ dy of each channel: (N · groups, channels)."""
    number, channels, pixels = x.dtype.type, x.shape[1], x.shape[2]
    for i in range(begin, end):
        m, r, along, total = mean[i], rstd[i], 0.0, 0.0
        for c in range(channels):
            row, grad, part_along, part = x[i, c], dy[i, c], number(0), number(0)
            for j in range(pixels):
                part += grad[j]
                part_along += grad[j] * (row[j] - m)
            alongs[i, c], totals[i, c] = part_along * r, part
            w = weight[i % weight.shape[0], c]
            along += w * part_along * r
            total += w * part
        if dx.size:
            across, along = number(total / (channels * pixels)), number(along / (channels * pixels)) * r
            for c in range(channels):
                row, grad, result, w = x[i, c], dy[i, c], dx[i, c], weight[i % weight.shape[0], c]
                for j in range(pixels):
                    result[j] = (grad[j] * w - across - (row[j] - m) * along) * r
