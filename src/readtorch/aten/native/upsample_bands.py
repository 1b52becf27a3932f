"""Which input elements an output element is made of, and with what weights, along one dimension.

Note [ Resizing is a banded matrix ]
Every method of resizing treats the dimensions one after the other, and in each of them an output element is a weighted
sum of a few neighbouring input elements: one (nearest), two (linear), four (cubic), or as many as lie under a stretched
filter (antialias). So a method is a matrix with a narrow band for each dimension. Forward multiplies by the matrices,
backward by their transposes, which have narrow bands too. A Band keeps the band only.

In PyTorch: `aten/src/ATen/native/UpSample.h`, and the HelperInterp classes in `cpu/UpSampleKernel.cpp`.
"""
import functools
from typing import NamedTuple

import numpy as np


class Band(NamedTuple):
    """Row o of the matrix is 0 but for weights[o, :count[o]], which begins in column start[o]."""

    start: np.ndarray
    count: np.ndarray
    weights: np.ndarray


@functools.lru_cache(128)
def band(method, size_in, size_out, align_corners, scale, real, kept=None):
    """The Band of a method for one dimension. scale: what the caller asked for, which may differ from the ratio of the
    sizes by rounding; or None. real: the type in which places are computed. kept: the narrower type in which PyTorch
    keeps the weights, if it does."""
    return METHODS[method](size_in, size_out, align_corners, scale, real, kept or real)


@functools.lru_cache(128)
def transposed_band(method, size_in, size_out, align_corners, scale, real):
    """The transposed matrix: for each input element the output elements that it has a part in."""
    start, count, weights = band(method, size_in, size_out, align_corners, scale, real)
    matrix = np.zeros((size_out, size_in), real)
    is_part = np.zeros((size_out, size_in), bool)
    for o in range(size_out):
        columns = slice(start[o], start[o] + count[o])
        matrix[o, columns] = weights[o, :count[o]]
        is_part[o, columns] = True
    return band_of(matrix.T, is_part.T)


def band_of(matrix, is_part):
    start = is_part.argmax(1)
    count = np.where(is_part.any(1), is_part.shape[1] - is_part[:, ::-1].argmax(1) - start, 0)
    columns = start[:, None] + np.arange(max(count.max(initial=0), 1))
    rows = np.arange(len(start))[:, None]
    return Band(start, count, np.ascontiguousarray(matrix[rows, columns.clip(max=matrix.shape[1] - 1)]))


# ---------------------------------------------------------------------------------- where an output element lies

def scale_of(size_in, size_out, scale, real):
    """Input elements per output element."""
    return real(1 / scale) if scale is not None and scale > 0 else real(size_in) / real(size_out)


def scale_with_corners(size_in, size_out, align_corners, scale, real):
    if align_corners:  # the outermost elements of input and output stand over each other
        return real(size_in - 1) / real(size_out - 1) if size_out > 1 else real(0)
    return scale_of(size_in, size_out, scale, real)


def places(size_in, size_out, align_corners, scale, real):
    """The place of each output element, counted in input elements."""
    step = scale_with_corners(size_in, size_out, align_corners, scale, real)
    places = np.arange(size_out).astype(real)
    if align_corners:
        return step * places
    # PyTorch's compilers make one fused multiply-add of it; for float32, so does this detour through float64.
    return (step * (places + np.float64(0.5)) - 0.5).astype(real)


def split_place(place, size_in):
    """The element at or before each place, and how far behind it the place lies (0 to 1)."""
    before = np.minimum(np.floor(place).astype(np.int64), size_in - 1)
    return before, (place - before.astype(place.dtype)).clip(0, 1)


# ------------------------------------------------------------------------------------------------------ methods

def one_element(index, real):
    return Band(index, np.ones_like(index), np.ones((len(index), 1), real))


def nearest(size_in, size_out, align_corners, scale, real, kept):
    """The element whose cell begins at or before the output element's cell; for the commonest sizes whatever the
    scale."""
    if size_in == size_out:
        return one_element(np.arange(size_out), real)
    if size_out == 2 * size_in:
        return one_element(np.arange(size_out) // 2, real)
    return nearest_by_scale(size_in, size_out, align_corners, scale, real, kept)


def nearest_by_scale(size_in, size_out, align_corners, scale, real, kept):
    """The same by the rule alone."""
    step = scale_of(size_in, size_out, scale, np.float32)
    index = np.floor(np.arange(size_out).astype(np.float32) * step).astype(np.int64)
    return one_element(np.minimum(index, size_in - 1), real)


def nearest_exact(size_in, size_out, align_corners, scale, real, kept):
    """The element whose cell covers the middle of the output element's cell."""
    step = scale_of(size_in, size_out, scale, np.float32)
    index = np.floor((np.arange(size_out).astype(np.float32) + np.float32(0.5)) * step).astype(np.int64)
    return one_element(np.minimum(index, size_in - 1), real)


def linear(size_in, size_out, align_corners, scale, real, kept):
    if size_in == size_out:
        return one_element(np.arange(size_out), real)
    place = places(size_in, size_out, align_corners, scale, real)
    before, part = split_place(np.maximum(place, real(0)), size_in)
    part = part.astype(kept).astype(real)
    weights = np.stack([1 - part, part], 1).astype(kept).astype(real)
    is_last = before == size_in - 1
    weights[is_last] = [1, 0]
    return Band(before, np.where(is_last, 1, 2), weights)


def cubic(size_in, size_out, align_corners, scale, real, kept):
    """Four neighbours; those that would lie outside are the outermost element."""
    place = places(size_in, size_out, align_corners, scale, real)
    before, t = split_place(place, size_in)
    weights = np.stack([outer_cubic(t + 1), inner_cubic(t), inner_cubic(1 - t), outer_cubic(2 - t)], 1)
    weights = weights.astype(kept).astype(real)
    neighbours = (before[:, None] + np.arange(-1, 3)).clip(0, size_in - 1)
    start, end = neighbours[:, 0], neighbours[:, -1]
    joined = np.zeros_like(weights)
    np.add.at(joined, (np.arange(size_out)[:, None], neighbours - start[:, None]), weights)
    return Band(start, end - start + 1, joined)


def inner_cubic(x, a=-0.75):
    """Keys's cubic convolution for distances up to 1."""
    return ((a + 2) * x - (a + 3)) * x * x + 1


def outer_cubic(x, a=-0.75):
    """The same for distances from 1 to 2."""
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a


def antialiased(width, filter_at):
    """A method that lays a filter, `width` elements wide, over the input, stretched when the image shrinks."""
    def method(size_in, size_out, align_corners, scale, real, kept):
        step = scale_with_corners(size_in, size_out, align_corners, scale, real)
        stretch = max(step, real(1))
        center = step * (np.arange(size_out).astype(real) + real(0.5))
        reach = real(width / 2) * stretch
        start = np.maximum((center - reach + real(0.5)).astype(np.int64), 0)
        end = np.minimum((center + reach + real(0.5)).astype(np.int64), size_in)
        count = (end - start).clip(0, int(np.ceil(reach)) * 2 + 1)
        columns = np.arange(max(count.max(initial=0), 1))
        distance = (columns + start[:, None] - center[:, None] + real(0.5)) * (real(1) / stretch)
        weights = np.where(columns < count[:, None], filter_at(distance), 0).astype(real)
        total = weights.sum(1, keepdims=True)
        return Band(start, count, np.divide(weights, total, out=weights, where=total != 0))
    return method


def triangle(x):
    return np.maximum(1 - np.abs(x), 0)


def cubic_filter(x):
    x = np.abs(x)
    return np.where(x < 1, inner_cubic(x, -0.5), np.where(x < 2, outer_cubic(x, -0.5), 0))


def lanczos_filter(x):
    """The middle of sinc, faded out by the middle lobe of a sinc three times as wide."""
    return np.where((x >= -3) & (x < 3), np.sinc(x) * np.sinc(x / 3), 0)


METHODS = {
    "nearest": nearest,
    "nearest_by_scale": nearest_by_scale,
    "nearest_exact": nearest_exact,
    "linear": linear,
    "cubic": cubic,
    "linear_aa": antialiased(2, triangle),
    "cubic_aa": antialiased(4, cubic_filter),
    "lanczos_aa": antialiased(6, lanczos_filter),
}
