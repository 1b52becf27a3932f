"""What a convolution of images of some size consists of, worked out once for each size.

See Note [ Rows of pixels ] in cpu/conv_kernels.py.
"""
import functools
import math
from typing import NamedTuple

import numpy as np


class Plan(NamedTuple):
    """The products of one convolution: rows of (tap, first place of x, of out, number of places)."""

    natural: np.ndarray  # places of x counted in the image as it is; each next one is a stride further
    stored: np.ndarray  # places of x counted as they are stored for rows of pixels
    by_line: np.ndarray  # the same line by line of out, for products that cost little more than reading them
    places: np.ndarray  # where each pixel of x is stored
    room: int  # places that x takes: some stay empty if the stride does not divide the width
    size: int  # places of out


@functools.lru_cache(maxsize=256)
def plan_of(size, kernel, out, stride, padding, dilation):
    """The plan for images of `size`: for each tap and line of the output, what the tap sees of its line."""
    natural = np.array(list(_products(size, kernel, out, stride, padding, dilation)), np.int64).reshape(-1, 4)
    places, room = _places(size, stride[-1])
    stored = natural.copy()
    stored[:, 1] = places[natural[:, 1]]
    by_line = stored[np.argsort(stored[:, 2] // out[-1], kind="stable")]
    stored = _joined(stored)
    natural = stored if stride[-1] == 1 else natural
    return Plan(natural, stored, by_line, places, room, math.prod(out))


def exchanged(products):
    """The products of the gradient of x: x and out in each other's place."""
    return np.ascontiguousarray(products[:, (0, 2, 1, 3)])


def _places(size, step):
    """In each line the columns 0, step, 2 * step, … come first, then 1, step + 1, …"""
    phase = -(-size[-1] // step)
    columns = np.arange(size[-1])
    line = columns % step * phase + columns // step
    lines = math.prod(size[:-1])
    return (np.arange(lines)[:, None] * (phase * step) + line).reshape(-1), lines * phase * step


def _products(size, kernel, out, stride, padding, dilation):
    for tap, offsets in enumerate(np.ndindex(*kernel)):
        shifts = [t * d - p for t, d, p in zip(offsets, dilation, padding)]
        first, last = _reached(shifts[-1], size[-1], out[-1], stride[-1])
        if first >= last:
            continue
        for line in np.ndindex(*out[:-1]):
            seen = [o * s + shift for o, s, shift in zip(line, stride, shifts)]
            if all(0 <= y < n for y, n in zip(seen, size)):
                start = _index((*seen, first * stride[-1] + shifts[-1]), size)
                yield tap, start, _index((*line, first), out), last - first


def _reached(shift, size, out, stride):
    """The outputs o from first to last for which o * stride + shift is a column and not padding."""
    return max(0, -(shift // stride)), min(out, (size - 1 - shift) // stride + 1)


def _index(position, size):
    """The number of a place, counted line by line."""
    number = 0
    for p, n in zip(position, size):
        number = number * n + p
    return number


def _joined(products):
    """Products of which one goes on where the last ended become one."""
    joined = []
    for tap, i, o, n in products.tolist():
        last = joined[-1] if joined else None
        if last and (last[0], last[1] + last[3], last[2] + last[3]) == (tap, i, o):
            last[3] += n
        else:
            joined.append([tap, i, o, n])
    return np.array(joined, np.int64).reshape(-1, 4)
