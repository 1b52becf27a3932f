"""Images looked at where a grid says: grid_sampler, and affine_grid_generator, which makes such grids.

In PyTorch: `aten/src/ATen/native/{GridSampler,AffineGridGenerator}.cpp`. Explained in the chapter "Layers, functional, init".
"""
import functools
import math

import numpy as np

from ...c10.tensor_impl import dtype_of, type_name, wrap
from .. import parallel
from ..native_function import below_autograd, native_function
from .copy import constant_beside
from .grid_sampler_double_backward import double_backward
from .grid_sampler_taps import BICUBIC, BILINEAR, corners
from .tensor_iterator import F4, F8, not_implemented

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
        raise RuntimeError("grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
                           f"{list(shape)} and grid with sizes {list(grid_shape)}")
    if grid_shape[-1] != len(shape) - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but got "
                           f"grid with sizes {list(grid_shape)}")
    for dim in range(2, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError("grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
                               f"sizes {list(shape)} with dimension {dim} being empty")


def check_dimensions(shape, grid_shape, dims):
    if len(shape) != dims + 2 or len(grid_shape) != len(shape):
        raise RuntimeError(f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, but "
                           f"got input with sizes {list(shape)} and grid with sizes {list(grid_shape)}")


def check_dtypes(input, grid, dims):
    if not dtype_of(input).is_floating_point:
        raise not_implemented(f"grid_sampler_{dims}d_cpu{'_kernel_impl' if dims == 2 else ''}")(dtype_of(input))
    if input._array.dtype != grid._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(input)} but found {type_name(grid)}")


# --------------------------------------------------------------------------------------------------- computing

@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import grid_sampler_kernels
    return grid_sampler_kernels


FROM_SIZE = 4096  # fewer elements are not worth loading the compiler for


def serves(x, points, mode):
    """Whether the compiled loops serve: bilinear sampling of many float32 or float64 points in images."""
    return mode == BILINEAR and x.ndim == 4 and x.dtype in (F4, F8) and points.size * x.shape[1] >= FROM_SIZE


def flattened(x, grid):
    """Images (N, C, elements) and points (N, P, D)."""
    return (np.ascontiguousarray(x).reshape(*x.shape[:2], math.prod(x.shape[2:])),
            np.ascontiguousarray(grid).reshape(len(grid), math.prod(grid.shape[1:-1]), grid.shape[-1]))


def sample(x, grid, mode, padding_mode, align_corners):
    """x (N, C, *sizes) at the points grid (N, *shape, D): (N, C, *shape)."""
    images, points = flattened(x, grid)
    n, c, _ = images.shape
    result = np.zeros((n, c, points.shape[1]), x.dtype)
    if serves(x, points, mode):
        settings = (*x.shape[2:], padding_mode, align_corners)
        parallel.parallel_for(0, n, 1, lambda b, e: loops().sample(images, points, *settings, result, b, e))
    elif mode == BICUBIC:
        four_by_four = list(corners(points, x.shape[2:], mode, padding_mode, align_corners))
        for row in (four_by_four[i:i + 4] for i in range(0, 16, 4)):  # in PyTorch too: along the rows first
            along = sum([values_at(images, corner) * corner.taps[0].weight[:, None] for corner in row])
            result += along * row[0].taps[1].weight[:, None]
    else:
        for corner in corners(points, x.shape[2:], mode, padding_mode, align_corners):
            result += values_at(images, corner) * corner.weight()[:, None]
    return result.reshape(n, c, *grid.shape[1:-1])


def values_at(images, corner):
    """The elements at a corner of each point: (N, C, P); 0 outside."""
    return np.where(corner.inside[:, None], np.take_along_axis(images, corner.index[:, None], 2), images.dtype.type(0))


def sample_backward(grad, x, grid, mode, padding_mode, align_corners, output_mask):
    """The gradients of x and grid; None for one that is not wanted."""
    images, points = flattened(x, grid)
    n, c, _ = images.shape
    grad = np.ascontiguousarray(grad).reshape(n, c, points.shape[1])
    grad_images, grad_points = np.zeros_like(images), np.zeros_like(points)
    if serves(x, points, mode):
        settings = (*x.shape[2:], padding_mode, align_corners)
        parallel.parallel_for(0, n, 1, lambda b, e: loops().sample_backward(
            grad, images, points, *settings, grad_images, grad_points, b, e))
    else:
        for corner in corners(points, x.shape[2:], mode, padding_mode, align_corners):
            if output_mask[0]:
                add_at(grad_images, corner, grad * corner.weight()[:, None])
            if output_mask[1]:
                part = (grad * values_at(images, corner)).sum(1)
                for d in range(points.shape[-1]):
                    grad_points[..., d] += part * corner.slope(d)
    return (grad_images.reshape(x.shape) if output_mask[0] else None,
            grad_points.reshape(grid.shape) if output_mask[1] else None)


def add_at(images, corner, values):
    """images[n, c, index] += values[n, c], where the index is inside."""
    n, c, size = images.shape
    places = np.arange(n * c).reshape(n, c, 1) * size + corner.index[:, None]
    inside = np.broadcast_to(corner.inside[:, None], values.shape)
    np.add.at(images.reshape(-1), places[inside], values[inside])


# --------------------------------------------------------------------------------------------------- operators

def wide(array):
    return array.astype(F4) if array.dtype.itemsize == 2 else array


def narrow(result, like):
    """`result` as a tensor with the dtype of the array `like`."""
    return None if result is None else wrap(result.astype(like.dtype, copy=False))


def declare(dims):
    sampler = native_function(f"grid_sampler_{dims}d(Tensor input, Tensor grid, {_SETTINGS}) -> Tensor", direct=True)
    backward = native_function(f"grid_sampler_{dims}d_backward(Tensor grad_output, Tensor input, Tensor grid, "
                               f"{_SETTINGS}, bool[2] output_mask) -> (Tensor, Tensor)", "")

    @sampler.kernel
    def sample_cpu(input, grid, *settings):
        x, points = input._array, grid._array
        check_shapes(x.shape, points.shape)
        check_dimensions(x.shape, points.shape, dims)
        check_dtypes(input, grid, dims)
        return wrap(sample(x, points, *settings))

    @backward.kernel
    def sample_backward_cpu(grad_output, input, grid, *settings):
        x, points = input._array, grid._array
        of_input, of_grid = sample_backward(wide(grad_output._array), wide(x), wide(points), *settings)
        return narrow(of_input, x), narrow(of_grid, points)

    @sampler.backward
    class GridSamplerBackward:
        def input__grid(grad, input, grid, interpolation_mode, padding_mode, align_corners, grad_input_mask):
            return backward.call(grad, input, grid, interpolation_mode, padding_mode, align_corners,
                                 tuple(grad_input_mask))

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
    grid = np.ones((size[0], *sizes, len(sizes) + 1), np.float64)
    for d, n in enumerate(reversed(sizes)):
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        grid[..., d] = (line if align_corners else line * (n - 1) / n).reshape(-1, *[1] * d)
    return constant_beside(theta, grid.reshape(size[0], -1, len(sizes) + 1).astype(theta._array.dtype))


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
