"""Padding of images as a loop. In PyTorch: `aten/src/ATen/native/cpu/PaddingKernel.cpp`."""

import functools

import numpy as np

from readtorch.aten.cpu.compile import kernel
from readtorch.aten.native import pad_nd, padding
from readtorch.aten.native.dispatch_stub import register_dispatch
from readtorch.aten.parallel import parallel_for

GRAIN = 1 << 16  # elements that make a piece of work for a thread


@register_dispatch(padding.pad_array)
def pad_array(x, pad, sources, result):
    if are_images(x, pad, result):
        pad_images(x, pad, sources, 0, result)
    else:
        padding.pad_array.plain(x, pad, sources, result)


@register_dispatch(pad_nd.surround)
def surround(x, pad, value, result):
    if are_images(x, pad, result):
        pad_images(x, pad, nothing_around, value, result)
    else:
        pad_nd.surround.plain(x, pad, value, result)


@functools.lru_cache(128)
def nothing_around(size, left, right):
    """The source indices of a constant: none, which is -1."""
    places = np.arange(-left, size + right)
    return np.where((places >= 0) & (places < size), places, -1)


def are_images(x, pad, result):
    """Whether the last two dimensions are padded, of arrays without gaps."""
    return len(pad) == 4 and min(pad) >= 0 and x.flags.c_contiguous and result.flags.c_contiguous


def pad_images(x, pad, sources, value, result):
    height, width = x.shape[-2:]
    rows, columns = sources(height, *pad[2:]), sources(width, *pad[:2])
    planes, out = x.reshape(-1, height, width), result.reshape(-1, len(rows), len(columns))
    grain = max(1, GRAIN // max(1, out.shape[1] * out.shape[2]))
    given = (planes, rows, columns, pad[0], x.dtype.type(value), out)
    parallel_for(0, len(planes), grain, lambda begin, end: copy_lines(*given, begin, end))


@kernel
def copy_lines(x, rows, columns, left, value, out, begin, end):
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
