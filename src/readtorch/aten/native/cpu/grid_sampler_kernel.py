"""Bilinear sampling of images as loops: where the points lie is worked out once, for all channels.

Outside the image stands an extra element, 0, behind the last one.

In PyTorch: `aten/src/ATen/native/cpu/GridSamplerKernel.cpp`.
"""

import numpy as np

from readtorch.aten.cpu.compile import kernel
from readtorch.aten.native import grid_sampler
from readtorch.aten.native.dispatch_stub import register_dispatch
from readtorch.aten.native.grid_sampler_utils import BILINEAR, REFLECTION, ZEROS
from readtorch.aten.parallel import parallel_for


@register_dispatch(grid_sampler.sample)
def sample(result, images, points, sizes, mode, *how):
    if mode != BILINEAR or len(sizes) != 2:
        return grid_sampler.sample.plain(result, images, points, sizes, mode, *how)
    parallel_for(0, len(images), 1, lambda b, e: sample_images(images, points, *sizes, *how, result, b, e))


@register_dispatch(grid_sampler.sample_backward)
def sample_backward(grad, images, points, sizes, mode, *how_and_outputs):
    if mode != BILINEAR or len(sizes) != 2:
        return grid_sampler.sample_backward.plain(grad, images, points, sizes, mode, *how_and_outputs)
    *how, of_images, of_points = how_and_outputs
    of_images = np.empty_like(images) if of_images is None else of_images
    of_points = np.empty_like(points) if of_points is None else of_points
    of_points[...] = 0
    given = (grad, images, points, *sizes, *how, of_images, of_points)
    parallel_for(0, len(images), 1, lambda b, e: sample_images_backward(*given, b, e))


@kernel
def lie(points, dim, size, padding_mode, align_corners, place, slope):
    """Where the points lie along one dimension, counted in elements, and the slope of that: `grid_sampler_utils.positions`.

    size, like all that is computed here, has the type of the points.
    """
    half = place.dtype.type(0.5)
    one, nothing = half + half, half - half
    scale = (size - one) * half if align_corners else size * half
    shift = nothing if align_corners else half
    low, span = (nothing, size - one) if align_corners else (-half, size)
    for p in range(place.size):
        place[p] = (points[p, dim] + one) * scale - shift
        slope[p] = scale
    if padding_mode == REFLECTION and span == nothing:
        place[:] = 0
        slope[:] = 0
    elif padding_mode == REFLECTION:
        for p in range(place.size):
            is_before = place[p] < low
            distance = abs(place[p] - low)
            flips = np.floor(distance / span)
            beyond = distance - flips * span
            is_odd = flips - (one + one) * np.floor(flips * half)
            place[p] = low + (span - beyond if is_odd > half else beyond)
            slope[p] = -scale if is_before != (is_odd > half) else scale
    if padding_mode != ZEROS:
        last = size - one
        for p in range(place.size):
            x = place[p]
            slope[p] = slope[p] if x > nothing and x < last else nothing
            x = x if x > nothing else nothing
            place[p] = x if x < last else last


@kernel
def find(x, y, height, width, index, part):
    """For points at (x, y): the places of their four corners in the flat image, and how far behind the first they lie."""
    nothing = height * width
    for p in range(x.size):
        left, top = np.floor(x[p]), np.floor(y[p])
        part[0, p], part[1, p] = x[p] - left, y[p] - top
        column = int(left if left >= -1 and left < width else -2)
        row = int(top if top >= -1 and top < height else -2)
        first = row * width + column
        is_left, is_right = column >= 0, column >= -1 and column < width - 1
        is_top, is_bottom = row >= 0, row >= -1 and row < height - 1
        index[0, p] = first if is_top and is_left else nothing
        index[1, p] = first + 1 if is_top and is_right else nothing
        index[2, p] = first + width if is_bottom and is_left else nothing
        index[3, p] = first + width + 1 if is_bottom and is_right else nothing


@kernel
def look(points, height, width, padding_mode, align_corners, index, part, slope):
    """`find` for the points of one image."""
    place = np.empty_like(part)
    real = part.dtype.type
    lie(points, 0, real(width), padding_mode, align_corners, place[0], slope[0])
    lie(points, 1, real(height), padding_mode, align_corners, place[1], slope[1])
    find(place[0], place[1], height, width, index, part)


@kernel
def sample_images(images, points, height, width, padding_mode, align_corners, out, begin, end):
    count = points.shape[1]
    index = np.empty((4, count), np.int64)
    part, slope = np.empty((2, count), points.dtype), np.empty((2, count), points.dtype)
    image = np.zeros(images.shape[2] + 1, images.dtype)
    one = image.dtype.type(1)
    for n in range(begin, end):
        look(points[n], height, width, padding_mode, align_corners, index, part, slope)
        for c in range(images.shape[1]):
            image[:-1] = images[n, c]
            line = out[n, c]
            for p in range(count):
                x, y = part[0, p], part[1, p]
                top = image[index[0, p]] * (one - x) + image[index[1, p]] * x
                bottom = image[index[2, p]] * (one - x) + image[index[3, p]] * x
                line[p] = top * (one - y) + bottom * y


@kernel
def sample_images_backward(
    grad, images, points, height, width, padding_mode, align_corners, of_images, of_points, begin, end
):
    count = points.shape[1]
    index = np.empty((4, count), np.int64)
    part, slope = np.empty((2, count), points.dtype), np.empty((2, count), points.dtype)
    image = np.zeros(images.shape[2] + 1, images.dtype)
    total = np.zeros_like(image)
    one = image.dtype.type(1)
    for n in range(begin, end):
        look(points[n], height, width, padding_mode, align_corners, index, part, slope)
        of_point = of_points[n]
        for c in range(images.shape[1]):
            image[:-1] = images[n, c]
            total[:] = 0
            line = grad[n, c]
            for p in range(count):
                x, y, g = part[0, p], part[1, p], line[p]
                i, j, k, m = index[0, p], index[1, p], index[2, p], index[3, p]
                of_point[p, 0] += g * ((image[j] - image[i]) * (one - y) + (image[m] - image[k]) * y)
                of_point[p, 1] += g * ((image[k] - image[i]) * (one - x) + (image[m] - image[j]) * x)
                total[i] += g * (one - x) * (one - y)
                total[j] += g * x * (one - y)
                total[k] += g * (one - x) * y
                total[m] += g * x * y
            of_images[n, c] = total[:-1]
        for p in range(count):
            of_point[p, 0] *= slope[0, p]
            of_point[p, 1] *= slope[1, p]
