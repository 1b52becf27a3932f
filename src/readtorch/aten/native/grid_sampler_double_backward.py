"""The gradients of grid_sampler's gradients, made of tensor operations, so that they have gradients in turn.

Note [ The second derivative of sampling ]
A sample is  out = Σ value[k] · w[k](point)  over the corners k (Note [ Taps ]). Backward gives
    grad_input[k] += grad_output · w[k]          grad_grid[d] = Σ grad_output · value[k] · ∂w[k]/∂d
Let `v` be the gradient of the first and `t` that of the second. All that both contribute to a loss is
    Σ grad_output · (v[k] · w[k] + value[k] · Σ t[d] · ∂w[k]/∂d)
and what stands below are the derivatives of this sum by grad_output, by value[k] and by the point.

In PyTorch: `grid_sampler_2d_double_backward` and its 3-D twin, in `torch/csrc/autograd/FunctionsManual.cpp`.
"""
import functools
import itertools
import operator
from typing import NamedTuple

import numpy as np

from ...c10.tensor_impl import TensorImpl
from ..functions import at
from .copy import constant_beside
from .grid_sampler_taps import BICUBIC, BILINEAR, NEAREST, ZEROS, places, taps_along
from .upsample_bands import inner_cubic, outer_cubic


class SmoothTap(NamedTuple):
    """A tap whose weight, and the first two derivatives of that by the coordinate, are tensors (or 0)."""

    index: np.ndarray
    inside: np.ndarray
    weight: TensorImpl
    slope: TensorImpl
    curvature: TensorImpl


def taps_of(coordinate, size, mode, padding_mode, align_corners):
    """The taps of `taps_along`, with weights that autograd can follow back to the coordinate."""
    values = coordinate._array
    fixed = taps_along(values, size, mode, padding_mode, align_corners)
    place, slope = places(values, size, ZEROS if mode == BICUBIC else padding_mode, align_corners)
    slope = constant_beside(coordinate, slope)
    part = constant_beside(coordinate, place - np.floor(place)) + (coordinate - coordinate.detach()) * slope
    derivatives = {BILINEAR: linear_derivatives, BICUBIC: cubic_derivatives}.get(mode, no_derivatives)
    return [SmoothTap(tap.index, tap.inside, *by_place(weights, slope))
            for tap, weights in zip(fixed, derivatives(part))]


def by_place(weights, slope):
    weight, first, second = weights
    return weight, first * slope, second if second is None else second * slope * slope


def no_derivatives(t):
    return [(at.ones_like(t), at.zeros_like(t), None)]


def linear_derivatives(t):
    return [(1 - t, -at.ones_like(t), None), (t, at.ones_like(t), None)]


def cubic_derivatives(t):
    """(weight, slope, curvature) by t of the four taps; the last two are the first two mirrored."""
    def mirrored(weights):
        return weights[0], -weights[1], weights[2]
    return [outer(t + 1), inner(t), mirrored(inner(1 - t)), mirrored(outer(2 - t))]


def inner(x, a=-0.75):
    return inner_cubic(x), (x * (3 * (a + 2)) - 2 * (a + 3)) * x, x * (6 * (a + 2)) - 2 * (a + 3)


def outer(x, a=-0.75):
    return outer_cubic(x), (x * (3 * a) - 10 * a) * x + 8 * a, x * (6 * a) - 10 * a


class SmoothCorner:
    """One tap of each dimension."""

    def __init__(self, taps, sizes, channels, like):
        self.taps = taps
        steps = np.cumprod([1, *reversed(sizes)])
        index = constant_beside(like, sum([tap.index * step for tap, step in zip(taps, steps)]))
        n, points = index._array.shape
        self.index = index.unsqueeze(1).expand((n, channels, points))
        self.inside = constant_beside(like, np.logical_and.reduce([tap.inside for tap in taps])).unsqueeze(1)

    def values(self, images):
        return images.gather(2, self.index) * self.inside

    def weight(self, *by):
        """The product of the weights, differentiated once by each of the dimensions `by`; None if that is 0."""
        factors = [(tap.weight, tap.slope, tap.curvature)[by.count(d)] for d, tap in enumerate(self.taps)]
        return None if any(f is None for f in factors) else functools.reduce(operator.mul, factors)


def double_backward(grads, grad_output, input, grid, *settings):
    """The gradients of grad_output, input and grid, given those of grad_input and grad_grid (one may be None)."""
    n, channels, *sizes = input._array.shape
    dims = range(len(sizes))
    images, arriving = input.reshape(n, channels, -1), grad_output.reshape(n, channels, -1)
    v = None if grads[0] is None else grads[0].reshape(n, channels, -1)
    is_flat = grads[1] is None or settings[0] == NEAREST  # weights of 1 throughout: grad_grid is 0, come what may
    t = None if is_flat else grads[1].reshape(n, -1, len(sizes)).unbind(-1)
    if v is None and t is None:
        return None, None, None
    points = grid.reshape(n, -1, len(sizes)).unbind(-1)
    of_output, of_images, of_points = (at.zeros_like(x) for x in (arriving, images, points[0]))
    of_points = [of_points for _ in dims]
    taps = [taps_of(coordinate, size, *settings) for coordinate, size in zip(points, reversed(sizes))]
    for chosen in itertools.product(*taps):
        corner = SmoothCorner(chosen, sizes, channels, grid)
        if v is not None:
            values = corner.values(v)
            of_output = of_output + values * corner.weight().unsqueeze(1)
            share = (arriving * values).sum(1)
            of_points = [of_points[d] + share * corner.weight(d) for d in dims]
        if t is not None:
            values, drift = corner.values(images), sum([t[d] * corner.weight(d) for d in dims]).unsqueeze(1)
            of_output = of_output + values * drift
            of_images = of_images.scatter_add(2, corner.index, arriving * corner.inside * drift)
            share = (arriving * values).sum(1)
            bends = [[t[d] * bend for d in dims if (bend := corner.weight(d, e)) is not None] for e in dims]
            of_points = [sum([share * bend for bend in bends[e]], of_points[e]) for e in dims]
    of_output, of_grid = of_output.reshape(grad_output._array.shape), at.stack(of_points, -1).reshape(grid._array.shape)
    return of_output, None if t is None else of_images.reshape(input._array.shape), of_grid
