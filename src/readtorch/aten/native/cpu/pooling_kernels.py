"""Pooling as loops over volumes (planes, depth, height, width); a plain image has depth 1, a row height 1 as well.

Windows are given by their bounds: for each dimension an array (2, results) of first places and ends.

In PyTorch: `aten/src/ATen/native/cpu/{MaxPoolKernel,AvgPoolKernel,AdaptiveAvgPoolKernel,AdaptiveMaxPoolKernel}.cpp`.
"""
import numpy as np

from ...cpu.compile import kernel, scalar


@kernel
def search_row(volume, front, back, top, bottom, columns, steps, best, places, begin, end):
    """The greatest number and its place for the windows begin … end of one row. See `greatest` in `pooling_max.py`."""
    height, width = volume.shape[1:]
    for j in range(begin, end):
        greatest, place = volume.dtype.type(-np.inf), (front * height + top) * width + columns[0, j]
        for d in range(front, back, steps[0]):
            for h in range(top, bottom, steps[1]):
                for w in range(columns[0, j], columns[1, j], steps[2]):
                    seen = volume[d, h, w]
                    if seen > greatest or seen != seen:
                        greatest, place = seen, (d * height + h) * width + w
        best[j], places[j] = greatest, place


@scalar
def search_squares(plane, top, left, size, best, places, begin, end):
    """The same for complete square windows, two columns apart. `size` is a constant, so that the inner loops disappear and
    several windows are searched at once."""
    width = plane.shape[1]
    for j in range(begin, end):
        first = left + 2 * (j - begin)
        greatest, place = plane[top, first], top * width + first
        for a in range(size):
            for b in range(size):
                seen = plane[top + a, first + b]
                better = (seen > greatest) | (seen != seen)
                greatest = seen if better else greatest
                place = (top + a) * width + first + b if better else place
        best[j], places[j] = greatest, place


@kernel
def search(x, layers, rows, columns, steps, square, best, places, begin, end):
    """The greatest number and its place for all windows of the planes begin … end.

    square: 2 or 3 if the windows are images of that size, two places apart, but for what the borders cut off; else 0.
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
                search_row(x[p], layers[0, k], layers[1, k], top, bottom, columns, steps, b, q, 0, start)
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


@kernel
def put_back(grads, places, out, begin, end):
    """Add each gradient at the place that its number came from. `out` holds zeros."""
    for p in range(begin, end):
        sums = out[p]
        for j in range(grads.shape[1]):
            place = places[p, j]
            if 0 <= place < sums.size:
                sums[place] += grads[p, j]


@kernel
def average(x, layers, rows, columns, divisors, out, begin, end):
    """The means of all windows of the planes begin … end: first down the columns, many side by side, then along the row."""
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
    """Each gradient, divided, to all places of its window: first along a row, then up the columns. `out` holds zeros."""
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
