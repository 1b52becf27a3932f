"""The elements of an image between which a point lies, and the weight of each in the point's value.

Note [ Taps ]
A grid holds points; its last dimension is (x, y) or (x, y, z), where -1 and 1 are the edges of the image. Along each
dimension a point's value is mixed from a few elements, the *taps*: one (nearest), two (bilinear), four (bicubic), each
with a weight that depends on the point's coordinate. In more dimensions every combination of taps is a *corner*, whose
weight is the product. The gradient of the grid needs the derivatives of the weights, its own gradient the second ones.

In PyTorch: `aten/src/ATen/native/GridSamplerUtils.h` and `aten/src/ATen/native/GridSampler.h`.
"""

import itertools
from typing import NamedTuple

import numpy as np

from .upsample import inner_cubic, outer_cubic

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2


class Tap(NamedTuple):
    """index: of the element (0 where there is none). inside: whether there is one. slope: of the weight, by the grid's
    coordinate."""

    index: np.ndarray
    inside: np.ndarray
    weight: np.ndarray
    slope: np.ndarray


class Corner(NamedTuple):
    """One tap of each dimension. index: in the flattened image."""

    index: np.ndarray
    inside: np.ndarray
    taps: list

    def weight(self):
        return self.product(*[tap.weight for tap in self.taps])

    def slope(self, dim):
        """The derivative of the weight by coordinate `dim`."""
        return self.product(*[tap.slope if d == dim else tap.weight for d, tap in enumerate(self.taps)])

    def product(self, first, *others):
        for other in others:
            first = first * other
        # in PyTorch: the loop over volumes skips what is outside, the one over images multiplies it by a masked 0
        return np.where(self.inside, first, 0) if len(self.taps) == 3 else first


def corners(grid, sizes, mode, padding_mode, align_corners):
    """All corners of the points `grid` (N, P, D) in images of `sizes`; coordinate 0 belongs to the last size."""
    taps = [taps_along(grid[..., d], size, mode, padding_mode, align_corners) for d, size in enumerate(reversed(sizes))]
    steps = np.cumprod([1, *reversed(sizes)])
    for chosen in itertools.product(*reversed(taps)):
        chosen = chosen[::-1]
        index = sum([tap.index * step for tap, step in zip(chosen, steps)])
        inside = np.logical_and.reduce([tap.inside for tap in chosen])
        yield Corner(index, inside, chosen)


def taps_along(coordinate, size, mode, padding_mode, align_corners):
    """The taps of each point along one dimension."""
    if mode == BICUBIC:
        place, slope = positions(coordinate, size, ZEROS, align_corners)
        return cubic_taps(place, slope, size, padding_mode, align_corners)
    place, slope = positions(coordinate, size, padding_mode, align_corners)
    if mode == NEAREST:
        return [tap(np.rint(place), size, np.ones_like(place), np.zeros_like(place))]
    before = np.floor(place)
    part = place - before
    return [tap(before, size, 1 - part, -slope), tap(before + 1, size, part, slope)]


def tap(position, size, weight, slope):
    inside = (position >= 0) & (position < size)
    return Tap(np.where(inside, position, 0).astype(np.int64), inside, weight, slope)


def positions(coordinate, size, padding_mode, align_corners):
    """The position of each point, in elements, and its derivative."""
    real = coordinate.dtype.type
    scale = real((size - 1) / 2 if align_corners else size / 2)
    place = (coordinate + 1) * scale
    if not align_corners:
        place = place - real(0.5)
    slope = np.full_like(place, scale)
    if padding_mode == REFLECTION:
        place, sign = reflect(place, size, align_corners)
        slope *= sign
    if padding_mode != ZEROS:
        slope[~((place > 0) & (place < size - 1))] = 0
        place = clip(place, size)
    return place, slope


def clip(place, size):
    """The nearest position on the image; for nan, 0."""  # in PyTorch: in volumes, size - 1
    return np.minimum(np.fmax(place, place.dtype.type(0)), place.dtype.type(size - 1))


def reflect(place, size, align_corners):
    """Positions beyond the image's edges mirrored at them as often as needed, and the sign of the derivative then."""
    low, span = (0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        return np.zeros_like(place), np.zeros_like(place)
    real = place.dtype.type
    distance = place - real(low)
    sign = np.where(distance < 0, real(-1), real(1))
    distance = np.abs(distance)
    beyond = np.fmod(distance, real(span))
    is_forward = np.floor(distance / real(span)) % 2 == 0
    return np.where(is_forward, beyond, span - beyond) + real(low), np.where(is_forward, sign, -sign)


def cubic_taps(place, slope, size, padding_mode, align_corners):
    before = np.floor(place)
    t = place - before
    a = np.array(-0.75, t.dtype)  # not a Python number, beside which bfloat16 would become float32
    weights = outer_cubic(t + 1, a), inner_cubic(t, a), inner_cubic(1 - t, a), outer_cubic(2 - t, a)
    slopes = outer_slope(t + 1, a), inner_slope(t, a), -inner_slope(1 - t, a), -outer_slope(2 - t, a)
    taps = []
    for k in range(4):
        position = before + (k - 1)
        if padding_mode == REFLECTION:
            position = reflect(position, size, align_corners)[0]
        if padding_mode != ZEROS:
            position = clip(position, size)
        taps.append(tap(position, size, weights[k], slope * slopes[k]))
    return taps


def inner_slope(x, a):
    return (3 * (a + 2) * x - 2 * (a + 3)) * x


def outer_slope(x, a):
    return (3 * a * x - 10 * a) * x + 8 * a
