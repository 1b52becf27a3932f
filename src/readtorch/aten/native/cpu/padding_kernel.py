"""Padding of images as a loop. In PyTorch: `aten/src/ATen/native/cpu/PaddingKernel.cpp`."""

from readtorch.aten.cpu.compile import kernel


@kernel
def pad(x, rows, columns, left, value, out, begin, end):
    """out[p, i, j] = x[p, rows[i], columns[j]], or `value` where a source is -1. The rows of x stand at `left`."""
    width = x.shape[2]
    for p in range(begin, end):
        for i in range(rows.size):
            line = out[p, i]
            if rows[i] < 0:
                for j in range(line.size):
                    line[j] = value
                continue
            source = x[p, rows[i]]
            for j in range(left):
                line[j] = source[columns[j]] if columns[j] >= 0 else value
            middle = line[left : left + width]
            for j in range(width):
                middle[j] = source[j]
            for j in range(left + width, line.size):
                line[j] = source[columns[j]] if columns[j] >= 0 else value
