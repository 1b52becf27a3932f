"""grid_sampler of images and of volumes: each point of a grid says where to look, and what lies there is
mixed from its neighbours.

    sample(x, grid, mode, padding, align_corners, out)             out: zeros
    sample_backward(grad, x, grid, …, grad_x, grad_grid)           grad_x: zeros

What the neighbours are along one dimension, with what weights and slopes, is told in Note [ Taps ] in
../grid_sampler_utils.py. Grid: blocks of 256 threads with a grid-stride loop, a thread for each point; it
goes over the taps and the channels. Gradients of elements are added atomically: points may share them.

In PyTorch: `aten/src/ATen/native/cuda/GridSampler.{cu,cuh}`.
"""
import functools
import math

from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from ..grid_sampler_utils import BICUBIC, NEAREST, REFLECTION, ZEROS
from .loops import THREADS
from .rows import contiguous


def sample(x, grid, mode, padding, align_corners, out):
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


# ------------------------------------------------------------------------------------------- device functions


@functools.cache
def reflection(align_corners, dtype):
    def reflect(place, size):
        """A place mirrored at the image's edges as often as needed, and whether it then runs backwards (-1)."""
        low, span = (dtype(0), dtype(size - 1)) if align_corners else (dtype(-0.5), dtype(size))
        if span == dtype(0):
            return dtype(0), dtype(0)
        distance = abs(place - low)
        turns = int(math.floor(distance / span))
        beyond = distance - dtype(turns) * span
        sign = dtype(-1) if place < low else dtype(1)
        if turns % 2 == 0:
            return beyond + low, sign
        return span - beyond + low, -sign
    return reflect


def clip(place, size):
    number = type(place)
    return min(place, number(size - 1)) if place > number(0) else number(0)


@functools.cache
def placing(padding, align_corners, dtype):
    reflect = reflection(align_corners, dtype)

    def place_of(coordinate, size):
        """Where a point lies, counted in elements, and the slope of that."""
        slope = dtype(size - 1) / dtype(2) if align_corners else dtype(size) / dtype(2)
        place = (coordinate + dtype(1)) * slope
        if not align_corners:
            place -= dtype(0.5)
        if padding == REFLECTION:
            place, sign = reflect(place, size)
            slope *= sign
        if padding != ZEROS:
            if not (place > dtype(0) and place < dtype(size - 1)):
                slope = dtype(0)
            place = clip(place, size)
        return place, slope
    return place_of


@functools.cache
def tapping(mode, padding, align_corners, dtype):
    """tap(k, coordinate, size): of the k-th neighbour the index (-1: there is none), the weight and its
    slope."""
    if mode == BICUBIC:
        return cubic_tapping(padding, align_corners, dtype)
    place_of = placing(padding, align_corners, dtype)

    def tap(k, coordinate, size):
        place, slope = place_of(coordinate, size)
        if mode == NEAREST:
            return inside(rounded(place), size), dtype(1), dtype(0)
        before = int(math.floor(place))
        part = place - dtype(before)
        if k == 0:
            return inside(before, size), dtype(1) - part, -slope
        return inside(before + 1, size), part, slope
    return tap


def rounded(place):
    """The nearest whole number, of two the even one."""
    number, below = type(place), int(math.floor(place))
    part = place - number(below)
    if part > number(0.5) or (part == number(0.5) and below % 2 == 1):
        return below + 1
    return below


def inside(i, size):
    return i if 0 <= i and i < size else -1


@functools.cache
def cubic_tapping(padding, align_corners, dtype):
    place_of, reflect = placing(ZEROS, align_corners, dtype), reflection(align_corners, dtype)

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

    def tap(k, coordinate, size):
        place, slope = place_of(coordinate, size)
        before = int(math.floor(place))
        t, position = place - dtype(before), dtype(before + k - 1)
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
    return tap


# ---------------------------------------------------------------------------------------------------- kernels


def taps_in(mode):
    return 4 if mode == BICUBIC else 1 if mode == NEAREST else 2


@functools.cache
def sample_kernel(mode, padding, align_corners, dtype):
    tap, taps = tapping(mode, padding, align_corners, dtype), taps_in(mode)

    def sample(x, grid, out):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            for j in range(taps):
                iy, wy, _ = tap(j, grid[n, p, 1], x.shape[2])
                for i in range(taps):
                    ix, wx, _ = tap(i, grid[n, p, 0], x.shape[3])
                    if iy >= 0 and ix >= 0:
                        for c in range(x.shape[1]):
                            out[n, c, p] += wy * wx * x[n, c, iy, ix]
    return sample


@functools.cache
def backward_kernel(mode, padding, align_corners, dtype):
    tap, taps = tapping(mode, padding, align_corners, dtype), taps_in(mode)

    def backward(grad, x, grid, grad_x, grad_grid):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            to_x, to_y = dtype(0), dtype(0)
            for j in range(taps):
                iy, wy, sy = tap(j, grid[n, p, 1], x.shape[2])
                for i in range(taps):
                    ix, wx, sx = tap(i, grid[n, p, 0], x.shape[3])
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
    tap, taps = tapping(mode, padding, align_corners, dtype), taps_in(mode)

    def sample(x, grid, out):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            for corner in range(taps * taps * taps):
                iz, wz, _ = tap(corner // (taps * taps), grid[n, p, 2], x.shape[2])
                iy, wy, _ = tap(corner // taps % taps, grid[n, p, 1], x.shape[3])
                ix, wx, _ = tap(corner % taps, grid[n, p, 0], x.shape[4])
                if iz >= 0 and iy >= 0 and ix >= 0:
                    for c in range(x.shape[1]):
                        out[n, c, p] += wz * wy * wx * x[n, c, iz, iy, ix]
    return sample


@functools.cache
def volume_backward_kernel(mode, padding, align_corners, dtype):
    tap, taps = tapping(mode, padding, align_corners, dtype), taps_in(mode)

    def backward(grad, x, grid, grad_x, grad_grid):
        count = grid.shape[1]
        for e in range(cuda.grid(1), grid.shape[0] * count, cuda.gridsize(1)):
            n, p = e // count, e % count
            to_x, to_y, to_z = dtype(0), dtype(0), dtype(0)
            for corner in range(taps * taps * taps):
                iz, wz, sz = tap(corner // (taps * taps), grid[n, p, 2], x.shape[2])
                iy, wy, sy = tap(corner // taps % taps, grid[n, p, 1], x.shape[3])
                ix, wx, sx = tap(corner % taps, grid[n, p, 0], x.shape[4])
                if iz >= 0 and iy >= 0 and ix >= 0:
                    for c in range(x.shape[1]):
                        g, v = grad[n, c, p], grad[n, c, p] * x[n, c, iz, iy, ix]
                        cuda.atomic.add(grad_x, (n, c, iz, iy, ix), g * wz * wy * wx)
                        to_x += v * wz * wy * sx
                        to_y += v * wz * sy * wx
                        to_z += v * sz * wy * wx
            grad_grid[n, p, 0], grad_grid[n, p, 1], grad_grid[n, p, 2] = to_x, to_y, to_z
    return backward
