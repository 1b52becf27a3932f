"""grid_sampler of images and of volumes: each point of a grid says where to look, and its value is
interpolated between the neighbors there.

    sample_points(x, grid, mode, padding, align_corners, out)      out: zeros
    sample_backward(grad, x, grid, …, grad_x, grad_grid)           grad_x: zeros

What the neighbors are along one dimension, with what weights and slopes, says Note [ Taps ] in
../grid_sampler_utils.py. Grid: blocks of 256 threads with a grid-stride loop, a thread for each point; it
goes over the neighbors and the channels. Gradients of elements are added atomically: points may share them.

In PyTorch: `aten/src/ATen/native/cuda/GridSampler.cuh`, `aten/src/ATen/native/cuda/GridSampler.cu`,
`aten/src/ATen/native/AffineGridGenerator.cpp`.
"""

import functools
import math

from numba import cuda

from readtorch.aten.native.grid_sampler import base_grid, check_dtypes
from readtorch.aten.native.grid_sampler_utils import BICUBIC, NEAREST, REFLECTION, ZEROS
from readtorch.c10.cuda.launch import blocks_of, launch

from .copy import copy
from .fill_kernel import filled
from .loops import THREADS
from .pool import in_wide
from .register_dispatch_key import cuda_impl, empty, operator_named
from .rows import contiguous
from .softmax import wide


def sample_points(x, grid, mode, padding, align_corners, out):
    """x (N, C, H, W), grid (N, points, 2), out (N, C, points); or x (N, C, D, H, W), grid (N, points, 3)."""
    if out.size:
        make = sample_kernel if x.ndim == 4 else volume_kernel
        kernel = make(mode, padding, align_corners, x.dtype.type)
        launch(kernel, points(grid), THREADS, contiguous(x), grid, out)


def sample_backward(grad, x, grid, mode, padding, align_corners, grad_x, grad_grid):
    if grad_grid.size:
        make = backward_kernel if x.ndim == 4 else volume_backward_kernel
        kernel = make(mode, padding, align_corners, x.dtype.type)
        launch(kernel, points(grid), THREADS, grad, contiguous(x), grid, grad_x, grad_grid)


def points(grid):
    return blocks_of(grid.shape[0] * grid.shape[1], THREADS)


@functools.cache
def reflection(align_corners, dtype):
    def reflect(position, size):
        """A position reflected at the image's edges as often as needed, and whether it then runs backwards (-1)."""
        low, span = (dtype(0), dtype(size - 1)) if align_corners else (dtype(-0.5), dtype(size))
        if span == dtype(0):
            return dtype(0), dtype(0)
        distance = abs(position - low)
        flips = int(math.floor(distance / span))
        beyond = distance - dtype(flips) * span
        sign = dtype(-1) if position < low else dtype(1)
        if flips % 2 == 0:
            return beyond + low, sign
        return span - beyond + low, -sign

    return reflect


def clip(position, size):
    number = type(position)
    return min(position, number(size - 1)) if position > number(0) else number(0)


@functools.cache
def source_index_of(padding, align_corners, dtype):
    reflect = reflection(align_corners, dtype)

    def source_index(coordinate, size):
        """Where a point lies, counted in elements, and the slope of that."""
        slope = dtype(size - 1) / dtype(2) if align_corners else dtype(size) / dtype(2)
        position = (coordinate + dtype(1)) * slope
        if not align_corners:
            position -= dtype(0.5)
        if padding == REFLECTION:
            position, sign = reflect(position, size)
            slope *= sign
        if padding != ZEROS:
            if not (position > dtype(0) and position < dtype(size - 1)):
                slope = dtype(0)
            position = clip(position, size)
        return position, slope

    return source_index


@functools.cache
def neighbors(mode, padding, align_corners, dtype):
    """neighbor(k, coordinate, size): of the k-th neighbor the index (-1: there is none), the weight and its
    slope."""
    if mode == BICUBIC:
        return cubic_neighbors(padding, align_corners, dtype)
    source_index = source_index_of(padding, align_corners, dtype)

    def neighbor(k, coordinate, size):
        position, slope = source_index(coordinate, size)
        if mode == NEAREST:
            return inside(rounded(position), size), dtype(1), dtype(0)
        before = int(math.floor(position))
        part = position - dtype(before)
        if k == 0:
            return inside(before, size), dtype(1) - part, -slope
        return inside(before + 1, size), part, slope

    return neighbor


def rounded(position):
    """The nearest whole number, of two the even one."""
    number, below = type(position), int(math.floor(position))
    part = position - number(below)
    if part > number(0.5) or (part == number(0.5) and below % 2 == 1):
        return below + 1
    return below


def inside(i, size):
    return i if 0 <= i and i < size else -1


@functools.cache
def cubic_neighbors(padding, align_corners, dtype):
    source_index, reflect = source_index_of(ZEROS, align_corners, dtype), reflection(align_corners, dtype)

    def inner(x):
        """The weight at a distance up to 1, and its slope."""
        a = dtype(-0.75)
        weight = ((a + dtype(2)) * x - (a + dtype(3))) * x * x + dtype(1)
        return weight, (dtype(3) * (a + dtype(2)) * x - dtype(2) * (a + dtype(3))) * x

    def outer(x):
        """From 1 to 2."""
        a = dtype(-0.75)
        weight = ((a * x - dtype(5) * a) * x + dtype(8) * a) * x - dtype(4) * a
        return weight, (dtype(3) * a * x - dtype(10) * a) * x + dtype(8) * a

    def neighbor(k, coordinate, size):
        position, slope = source_index(coordinate, size)
        before = int(math.floor(position))
        t, position = position - dtype(before), dtype(before + k - 1)
        weight, steep = outer(t + dtype(1) if k == 0 else dtype(2) - t)
        if k == 1 or k == 2:
            weight, steep = inner(t if k == 1 else dtype(1) - t)
        if k > 1:
            steep = -steep
        if padding == REFLECTION:
            position, _ = reflect(position, size)
        if padding != ZEROS:
            position = clip(position, size)
        return inside(int(position), size), weight, slope * steep

    return neighbor


def neighbors_in(mode):
    return 4 if mode == BICUBIC else 1 if mode == NEAREST else 2


@functools.cache
def sample_kernel(mode, padding, align_corners, dtype):
    neighbor, per_axis = neighbors(mode, padding, align_corners, dtype), neighbors_in(mode)

    def sample(x, grid, out):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            for j in range(per_axis):
                iy, wy, _ = neighbor(j, grid[n, p, 1], x.shape[2])
                for i in range(per_axis):
                    ix, wx, _ = neighbor(i, grid[n, p, 0], x.shape[3])
                    if iy >= 0 and ix >= 0:
                        for c in range(x.shape[1]):
                            out[n, c, p] += wy * wx * x[n, c, iy, ix]

    return sample


@functools.cache
def backward_kernel(mode, padding, align_corners, dtype):
    neighbor, per_axis = neighbors(mode, padding, align_corners, dtype), neighbors_in(mode)

    def backward(grad, x, grid, grad_x, grad_grid):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            to_x, to_y = dtype(0), dtype(0)
            for j in range(per_axis):
                iy, wy, sy = neighbor(j, grid[n, p, 1], x.shape[2])
                for i in range(per_axis):
                    ix, wx, sx = neighbor(i, grid[n, p, 0], x.shape[3])
                    if iy >= 0 and ix >= 0:
                        for c in range(x.shape[1]):
                            g = grad[n, c, p]
                            cuda.atomic.add(grad_x, (n, c, iy, ix), g * wy * wx)
                            to_x += g * x[n, c, iy, ix] * wy * sx
                            to_y += g * x[n, c, iy, ix] * sy * wx
            grad_grid[n, p, 0], grad_grid[n, p, 1] = to_x, to_y

    return backward


@functools.cache
def volume_kernel(mode, padding, align_corners, dtype):
    neighbor, per_axis = neighbors(mode, padding, align_corners, dtype), neighbors_in(mode)

    def sample(x, grid, out):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            for corner in range(per_axis * per_axis * per_axis):
                iz, wz, _ = neighbor(corner // (per_axis * per_axis), grid[n, p, 2], x.shape[2])
                iy, wy, _ = neighbor(corner // per_axis % per_axis, grid[n, p, 1], x.shape[3])
                ix, wx, _ = neighbor(corner % per_axis, grid[n, p, 0], x.shape[4])
                if iz >= 0 and iy >= 0 and ix >= 0:
                    for c in range(x.shape[1]):
                        out[n, c, p] += wz * wy * wx * x[n, c, iz, iy, ix]

    return sample


@functools.cache
def volume_backward_kernel(mode, padding, align_corners, dtype):
    neighbor, per_axis = neighbors(mode, padding, align_corners, dtype), neighbors_in(mode)

    def backward(grad, x, grid, grad_x, grad_grid):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            to_x, to_y, to_z = dtype(0), dtype(0), dtype(0)
            for corner in range(per_axis * per_axis * per_axis):
                iz, wz, sz = neighbor(corner // (per_axis * per_axis), grid[n, p, 2], x.shape[2])
                iy, wy, sy = neighbor(corner // per_axis % per_axis, grid[n, p, 1], x.shape[3])
                ix, wx, sx = neighbor(corner % per_axis, grid[n, p, 0], x.shape[4])
                if iz >= 0 and iy >= 0 and ix >= 0:
                    for c in range(x.shape[1]):
                        g, v = grad[n, c, p], grad[n, c, p] * x[n, c, iz, iy, ix]
                        cuda.atomic.add(grad_x, (n, c, iz, iy, ix), g * wz * wy * wx)
                        to_x += v * wz * wy * sx
                        to_y += v * wz * sy * wx
                        to_z += v * sz * wy * wx
            grad_grid[n, p, 0], grad_grid[n, p, 1], grad_grid[n, p, 2] = to_x, to_y, to_z

    return backward


def points_of(grid):
    n, *sizes, dims = grid._array.shape
    return contiguous(wide(grid)._array).reshape(n, math.prod(sizes), dims)


def samplers(dims):
    name = f"grid_sampler_{dims}d"

    @cuda_impl(operator_named(name))
    def sample(input, grid, mode, padding_mode, align_corners, out):
        check_dtypes(input, grid, dims)
        x, points = wide(input)._array, points_of(grid)
        with in_wide(out) as result:
            places = filled(result, 0)._array.reshape(*x.shape[:2], points.shape[1])
            sample_points(x, points, mode, padding_mode, align_corners, places)

    @cuda_impl(operator_named(f"{name}_backward"))
    def backward(grad_output, input, grid, mode, padding_mode, align_corners, output_mask, grad_input, grad_grid):
        x, g, points = wide(input)._array, contiguous(wide(grad_output)._array), points_of(grid)
        grad_x, grad_points = filled(empty(x.shape, x.dtype), 0), empty(grid._array.shape, x.dtype)
        sample_backward(
            g.reshape(*g.shape[:2], points.shape[1]),
            x,
            points,
            mode,
            padding_mode,
            align_corners,
            grad_x._array,
            grad_points._array.reshape(points.shape),
        )
        for out, result in ((grad_input, grad_x), (grad_grid, grad_points)):
            if out is not None:
                copy(result._array, out._array)


samplers(2)
samplers(3)


@cuda_impl(operator_named("affine_grid_generator"))
def affine_grid_cuda(theta, size, align_corners, out):
    points = base_grid(theta, size, align_corners).bmm(theta.transpose(1, 2))
    copy(points._array.reshape(out._array.shape), out._array)
