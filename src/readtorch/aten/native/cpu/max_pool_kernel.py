"""Max pooling as loops over volumes (planes, depth, height, width); an image has depth 1, a row height 1 as well.

Windows are given by their bounds: for each dimension an array (2, results) of first indices and ends.

In PyTorch: `aten/src/ATen/native/cpu/MaxPoolKernel.cpp`, `aten/src/ATen/native/cpu/AdaptiveMaxPoolKernel.cpp`.
"""

import numpy as np

from readtorch.aten.cpu.compile import kernel, scalar
from readtorch.aten.native.dispatch_stub import register_dispatch
from readtorch.aten.native.pooling import max as plain
from readtorch.aten.parallel import parallel_for

WORTH_A_THREAD = 100_000  # this many numbers


def volumes(rows, sizes):
    """Rows, one a plane, as (planes, depth, height, width)."""
    return rows.reshape(len(rows), *[1] * (3 - len(sizes)), *sizes)


def for_planes(count, size, body):
    """`body(begin, end)` for `count` planes of `size` elements, shared among threads."""
    parallel_for(0, count, -(-WORTH_A_THREAD // max(size, 1)), body)


@register_dispatch(plain.find_maxima)
def find_maxima(planes, windows, best, places):
    if windows.bounds is None:
        return plain.find_maxima.plain(planes, windows, best, places)
    outputs = [volumes(rows, windows.outputs) for rows in (best, places)]
    given = (volumes(planes, windows.sizes), *windows.bounds, windows.steps, windows.square, *outputs)
    for_planes(*planes.shape, lambda begin, end: search(*given, begin, end))


@register_dispatch(plain.find_maxima_in_rows)
def find_maxima_in_rows(rows, slide, best):
    given = (rows, *[numbers[0] for numbers in slide[:4]], best)
    for_planes(*rows.shape, lambda begin, end: maxima_in_rows(*given, begin, end))


@register_dispatch(plain.put_back)
def put_back(grads, places, sums):
    sums[...] = 0
    for_planes(*sums.shape, lambda begin, end: add_at_places(grads, places, sums, begin, end))


@kernel
def search_row(volume, front, back, top, bottom, columns, steps, best, places, begin, end):
    """The largest number and its place for the windows begin … end of one row."""
    height, width = volume.shape[1:]
    deeper, lower, further = steps
    for j in range(begin, end):
        left, right = columns[0, j], columns[1, j]
        largest, place = volume.dtype.type(-np.inf), (front * height + top) * width + left
        d = front
        while d < back:  # not range(front, back, step), which divides to know how often
            h = top
            while h < bottom:
                row, w = volume[d, h], left
                while w < right:
                    seen = row[w]
                    if seen > largest or seen != seen:
                        largest, place = seen, (d * height + h) * width + w
                    w += further
                h += lower
            d += deeper
        best[j], places[j] = largest, place


@scalar
def search_squares(plane, top, left, size, best, places, begin, end):
    """The same for complete square windows, two columns apart. `size` is a constant, so that the inner loops
    disappear and several windows are searched at once."""
    width = plane.shape[1]
    for j in range(begin, end):
        first = left + 2 * (j - begin)
        largest, place = plane[top, first], top * width + first
        for a in range(size):
            for b in range(size):
                seen = plane[top + a, first + b]
                better = (seen > largest) | (seen != seen)
                largest = seen if better else largest
                place = (top + a) * width + first + b if better else place
        best[j], places[j] = largest, place


@kernel
def search(x, layers, rows, columns, steps, square, best, places, begin, end):
    """The largest number and its place for all windows of the planes begin … end.

    square: 2 or 3 if the windows are images of that size, two places apart, but for what the borders cut off;
    else 0.
    """
    count = columns.shape[1]
    left, right = complete_windows(columns, square)
    for p in range(begin, end):
        for k in range(layers.shape[1]):
            for i in range(rows.shape[1]):
                top, bottom = rows[:, i]
                b, q = best[p, k, i], places[p, k, i]
                start = stop = 0
                if square > 0 and bottom - top == square:
                    start, stop = left, right
                    if square == 2:
                        search_squares(x[p, k], top, columns[0, left], 2, b, q, left, right)
                    else:
                        search_squares(x[p, k], top, columns[0, left], 3, b, q, left, right)
                if start > 0:
                    search_row(x[p], layers[0, k], layers[1, k], top, bottom, columns, steps, b, q, 0, start)
                if stop < count:
                    search_row(x[p], layers[0, k], layers[1, k], top, bottom, columns, steps, b, q, stop, count)


@kernel
def complete_windows(columns, size):
    """The first window that no border cuts off, and the first behind it that one does."""
    first, end = 0, columns.shape[1]
    while first < end and columns[1, first] - columns[0, first] != size:
        first += 1
    while first < end and columns[1, end - 1] - columns[0, end - 1] != size:
        end -= 1
    return first, end


@scalar
def keep_greater(row, stride, found):
    for j in range(found.size):
        seen = row[j * stride]
        found[j] = seen if (seen > found[j]) | (seen != seen) else found[j]


@kernel
def maxima_in_rows(x, kernel, stride, padding, dilation, best, begin, end):
    """The largest number of each window of the rows begin … end, without its place: many windows at once."""
    for i in range(begin, end):
        row, found = x[i], best[i]
        found[:] = -np.inf
        for k in range(kernel):
            shift = k * dilation - padding
            first = max(0, -(shift // stride))
            stop = min(found.size, (row.size - 1 - shift) // stride + 1)
            if first < stop:
                seen, kept = row[first * stride + shift :], found[first:stop]
                if stride == 2:  # a constant again, for which the compiler makes wide loads
                    keep_greater(seen, 2, kept)
                else:
                    keep_greater(seen, stride, kept)


@kernel
def add_at_places(grads, places, out, begin, end):
    """Add each gradient at the place that its number came from. `out` holds zeros."""
    size = np.uint64(out.shape[1])
    for p in range(begin, end):
        sums, given, at = out[p], grads[p], places[p]
        for j in range(given.size):
            place = np.uint64(at[j])  # unsigned: one comparison tells whether the place exists
            if place < size:
                sums[place] += given[j]
