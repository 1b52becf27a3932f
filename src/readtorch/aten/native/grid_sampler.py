"""Images sampled at the points of a grid: grid_sampler, and affine_grid_generator, which makes such grids.

In PyTorch: `aten/src/ATen/native/GridSampler.cpp` and `aten/src/ATen/native/AffineGridGenerator.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools
import itertools
import math
import operator
from typing import NamedTuple

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.tensor_utils import memory_for, put
from readtorch.c10.dispatch_key import META
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, host_array, type_name, wrap

from .copy import constant_beside
from .dispatch_stub import dispatch_stub
from .grid_sampler_utils import BICUBIC, BILINEAR, NEAREST, ZEROS, corners, positions, taps_along
from .tensor_iterator import F4, not_implemented
from .upsample import inner_cubic, outer_cubic

_SETTINGS = "int interpolation_mode, int padding_mode, bool align_corners"
grid_sampler = native_function(f"grid_sampler(Tensor input, Tensor grid, {_SETTINGS}) -> Tensor", direct=True)


@grid_sampler.compose
def grid_sampler_composite(input, grid, interpolation_mode, padding_mode, align_corners):
    check_shapes(input._array.shape, grid._array.shape)
    check_dimensions(input._array.shape, grid._array.shape, input._array.ndim - 2 if input._array.ndim == 4 else 3)
    sampler = samplers[2 if input._array.ndim == 4 else 3]
    if sampler is samplers[3] and interpolation_mode == BICUBIC:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return sampler.call(input, grid, interpolation_mode, padding_mode, align_corners)


# ------------------------------------------------------------------------------------------------------ checks


def check_shapes(shape, grid_shape):
    if shape[0] != grid_shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(shape)} and grid with sizes {list(grid_shape)}"
        )
    if grid_shape[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got "
            f"grid with sizes {list(grid_shape)}"
        )
    for dim in range(2, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
                f"sizes {list(shape)} with dimension {dim} being empty"
            )


def check_dimensions(shape, grid_shape, dims):
    if len(shape) != dims + 2 or len(grid_shape) != len(shape):
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, but "
            f"got input with sizes {list(shape)} and grid with sizes {list(grid_shape)}"
        )


def check_dtypes(input, grid, dims):
    if not dtype_of(input).is_floating_point:
        raise not_implemented(f"grid_sampler_{dims}d_cpu{'_kernel_impl' if dims == 2 else ''}")(dtype_of(input))
    if input._array.dtype != grid._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input)} but found {type_name(grid)}")


# --------------------------------------------------------------------------------------------------- computing


FROM_SIZE = 4096  # fewer elements are not worth loading the compiler for


def flattened(x, grid):
    """Images (N, C, elements) and points (N, P, D)."""
    return (
        np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(x.shape[2:])),
        np.ascontiguousarray(grid).reshape(len(grid), math.prod(grid.shape[1:-1]), grid.shape[-1]),
    )


@dispatch_stub("grid_sampler_kernel", FROM_SIZE)
def sample(result, images, points, sizes, mode, *how):
    """result (N, C, P) = images (N, C, elements) of `sizes` at points (N, P, D)."""
    result[...] = 0
    if mode == BICUBIC:
        four_by_four = list(corners(points, sizes, mode, *how))
        for row in (four_by_four[i : i + 4] for i in range(0, 16, 4)):  # in PyTorch too: along the rows first
            along = sum([values_at(images, corner) * corner.taps[0].weight[:, None] for corner in row])
            result += along * row[0].taps[1].weight[:, None]
    else:
        for corner in corners(points, sizes, mode, *how):
            result += values_at(images, corner) * corner.weight()[:, None]


def values_at(images, corner):
    """The elements at a corner of each point: (N, C, P); 0 outside."""
    return np.where(corner.inside[:, None], np.take_along_axis(images, corner.index[:, None], 2), images.dtype.type(0))


@dispatch_stub("grid_sampler_kernel", FROM_SIZE)
def sample_backward(grad, images, points, sizes, mode, *how_and_outputs):
    """Fill the gradients of images and points; None for one that is not wanted."""
    *how, grad_images, grad_points = how_and_outputs
    for out in (grad_images, grad_points):
        if out is not None:
            out[...] = 0
    for corner in corners(points, sizes, mode, *how):
        if grad_images is not None:
            add_at(grad_images, corner, grad * corner.weight()[:, None])
        if grad_points is not None:
            part = (grad * values_at(images, corner)).sum(1)
            for d in range(points.shape[-1]):
                grad_points[..., d] += part * corner.slope(d)


def add_at(images, corner, values):
    """images[n, c, index] += values[n, c], where the index is inside."""
    n, c, size = images.shape
    positions = np.arange(n * c).reshape(n, c, 1) * size + corner.index[:, None]
    inside = np.broadcast_to(corner.inside[:, None], values.shape)
    np.add.at(images.reshape(-1), positions[inside], values[inside])


# --------------------------------------------------------------------------------------------------- operators


def wide(array):
    return array.astype(F4) if array.dtype.itemsize == 2 else array


def declare(dims):
    sampler = native_function(f"grid_sampler_{dims}d(Tensor input, Tensor grid, {_SETTINGS}) -> Tensor", direct=True)
    backward = native_function(
        f"grid_sampler_{dims}d_backward(Tensor grad_output, Tensor input, Tensor grid, "
        f"{_SETTINGS}, bool[2] output_mask) -> (Tensor, Tensor)",
        "",
    )

    @sampler.meta
    def sample_meta(input, grid, interpolation_mode, padding_mode, align_corners):
        shape, grid_shape = input._array.shape, grid._array.shape
        check_shapes(shape, grid_shape)
        check_dimensions(shape, grid_shape, dims)
        return TensorMeta((*shape[:2], *grid_shape[1:-1]), dtype_of(input))

    @sampler.impl()
    def sample_cpu(input, grid, *settings_and_out):
        check_dtypes(input, grid, dims)
        *settings, out = settings_and_out
        x = input._array
        images, points = flattened(x, grid._array)
        result = out._array.reshape(*images.shape[:2], points.shape[1])
        sample(result, images, points, x.shape[2:], *settings)

    @backward.meta
    def sample_backward_meta(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask):
        return [
            TensorMeta(t._array.shape, dtype_of(t)) if is_wanted else None
            for t, is_wanted in zip((input, grid), output_mask)
        ]

    @backward.impl()
    def sample_backward_cpu(grad_output, input, grid, *rest):
        *settings, output_mask, grad_input, grad_grid = rest
        x = wide(input._array)
        images, points = flattened(x, wide(grid._array))
        grad = np.ascontiguousarray(wide(grad_output._array)).reshape(*images.shape[:2], points.shape[1])
        pairs = [(out, memory_for(out, x.dtype)) if out is not None else None for out in (grad_input, grad_grid)]
        flat = [pair and pair[1].reshape(like.shape) for pair, like in zip(pairs, (images, points))]
        sample_backward(grad, images, points, x.shape[2:], *settings, *flat)
        for out, result in filter(None, pairs):
            put(result, out)

    @sampler.backward
    class GridSamplerBackward:
        def input__grid(grad, input, grid, interpolation_mode, padding_mode, align_corners, grad_input_mask):
            return backward.call(
                grad, input, grid, interpolation_mode, padding_mode, align_corners, tuple(grad_input_mask)
            )

    @backward.backward
    class GridSamplerBackwardBackward:
        def grad_output__input__grid(grads, grad_output, input, grid, interpolation_mode, padding_mode, align_corners):
            return double_backward(grads, grad_output, input, grid, interpolation_mode, padding_mode, align_corners)

    GridSamplerBackward.__name__ = f"GridSampler{dims}DBackward0"
    GridSamplerBackwardBackward.__name__ = f"GridSampler{dims}DBackwardBackward0"
    return sampler


samplers = {dims: declare(dims) for dims in (2, 3)}


# ------------------------------------------------------------------------------------------------- affine grids

_GRID = "SymInt[] size, bool align_corners"
affine_grid_generator = native_function(f"affine_grid_generator(Tensor theta, {_GRID}) -> Tensor")
affine_grid_generator_backward = native_function(f"affine_grid_generator_backward(Tensor grad, {_GRID}) -> Tensor", "")


def base_grid(theta, size, align_corners):
    """(x, y, 1) or (x, y, z, 1) for each pixel: (N, pixels, D + 1), made by the host from sizes alone."""
    sizes = size[2:]
    if theta._keys & META:
        return theta.new_empty((size[0], math.prod(sizes), len(sizes) + 1))
    grid = np.ones((size[0], *sizes, len(sizes) + 1), np.float64)
    for d, n in enumerate(reversed(sizes)):
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        grid[..., d] = (line if align_corners else line * (n - 1) / n).reshape(-1, *[1] * d)
    return constant_beside(theta, grid.reshape(size[0], -1, len(sizes) + 1).astype(theta._array.dtype))


@affine_grid_generator.meta
def affine_grid_generator_meta(theta, size, align_corners):
    return TensorMeta((size[0], *size[2:], len(size) - 2), dtype_of(theta))


@affine_grid_generator.kernel
def affine_grid_generator_cpu(theta, size, align_corners):
    with below_autograd():
        points = base_grid(theta, size, align_corners).bmm(theta.transpose(1, 2))
    return wrap(points._array.reshape(size[0], *size[2:], len(size) - 2))


@affine_grid_generator_backward.compose
def affine_grid_generator_backward_composite(grad, size, align_corners):
    base = base_grid(grad, size, align_corners)
    pixels = base._array.shape[1]
    grad = grad.reshape(size[0], pixels, len(size) - 2)
    return base.transpose(1, 2).bmm(grad).transpose(1, 2)


@affine_grid_generator.backward
class AffineGridGeneratorBackward0:
    def theta(grad, size, align_corners):
        return affine_grid_generator_backward.call(grad, size, align_corners)

    result = "auto_linear"


# -------------------------------------------------------------------------------------- the second derivative
# The gradients of grid_sampler's gradients are made of tensor operations, so they can be differentiated again.
#
# Note [ The second derivative of sampling ]
# A sample is  out = Σ value[k] · w[k](point)  over the corners k (Note [ Taps ]). Backward gives
#     grad_input[k] += grad_output · w[k]          grad_grid[d] = Σ grad_output · value[k] · ∂w[k]/∂d
# Let `v` be the gradient of the first and `t` that of the second. All that both contribute to a loss is
#     Σ grad_output · (v[k] · w[k] + value[k] · Σ t[d] · ∂w[k]/∂d)
# and what follows are the derivatives of this sum by grad_output, by value[k] and by the point.
#
# In PyTorch: `grid_sampler_2d_double_backward` and its 3-D twin, in `torch/csrc/autograd/FunctionsManual.cpp`.


class SmoothTap(NamedTuple):
    """A tap whose weight, and the first two derivatives of that by the coordinate, are tensors (or 0)."""

    index: np.ndarray
    inside: np.ndarray
    weight: TensorImpl
    slope: TensorImpl
    curvature: TensorImpl


def taps_of(coordinate, size, mode, padding_mode, align_corners):
    """The taps of `taps_along`, with weights that autograd can follow back to the coordinate."""
    values = host_array(coordinate)
    fixed = taps_along(values, size, mode, padding_mode, align_corners)
    place, slope = positions(values, size, ZEROS if mode == BICUBIC else padding_mode, align_corners)
    slope = constant_beside(coordinate, slope)
    part = constant_beside(coordinate, place - np.floor(place)) + (coordinate - coordinate.detach()) * slope
    derivatives = {BILINEAR: linear_derivatives, BICUBIC: cubic_derivatives}.get(mode, no_derivatives)
    return [
        SmoothTap(tap.index, tap.inside, *by_place(weights, slope)) for tap, weights in zip(fixed, derivatives(part))
    ]


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
    if grid._keys & META:  # where the points lie is nowhere
        return tuple([at.empty_like(t) for t in (grad_output, input, grid)])
    n, channels, *sizes = input._array.shape
    dims = range(len(sizes))
    images, arriving = input.reshape(n, channels, -1), grad_output.reshape(n, channels, -1)
    v = None if grads[0] is None else grads[0].reshape(n, channels, -1)
    is_flat = grads[1] is None or settings[0] == NEAREST  # weights of 1 throughout: grad_grid is always 0
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
