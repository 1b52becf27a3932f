"""Bilinear sampling of images as loops: where the points lie is worked out once, for all channels.

Outside the image stands an extra element, 0, behind the last one. In PyTorch: `cpu/GridSamplerKernel.cpp`.
"""
import math

import numpy as np

from ...cpu.compile import kernel, scalar
from ..grid_sampler_taps import REFLECTION, ZEROS


@scalar
def place_of(coordinate, size, padding_mode, align_corners):
    """Where a coordinate lies, counted in elements, and the slope of that. See `grid_sampler_taps.places`."""
    slope = (size - 1) / 2 if align_corners else size / 2
    place = (coordinate + 1) * slope - (0 if align_corners else 0.5)
    if padding_mode == ZEROS:
        return place, slope
    if padding_mode == REFLECTION:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, size + 0.0)
        if span == 0:
            return 0.0, 0.0
        distance = place - low
        if distance < 0:
            distance, slope = -distance, -slope
        beyond, flips = math.fmod(distance, span), math.floor(distance / span)
        if flips % 2 == 0:
            place = beyond + low
        else:
            place, slope = span - beyond + low, -slope
    if place > 0 and place < size - 1:
        return place, slope
    return (size - 1.0 if place > 0 else 0.0), 0.0


@kernel
def find(points, height, width, padding_mode, align_corners, index, part, slope):
    """For each point: the places of its four corners, how far it lies behind the first, and the slopes of that."""
    nothing = height * width
    for p in range(points.shape[0]):
        x, slope[0, p] = place_of(points[p, 0], width, padding_mode, align_corners)
        y, slope[1, p] = place_of(points[p, 1], height, padding_mode, align_corners)
        left, top = math.floor(x), math.floor(y)
        part[0, p], part[1, p] = x - left, y - top
        has_left, has_right = left >= 0 and left < width, left >= -1 and left < width - 1
        has_top, has_bottom = top >= 0 and top < height, top >= -1 and top < height - 1
        first = int(top) * width + int(left) if (has_left or has_right) and (has_top or has_bottom) else 0
        index[0, p] = first if has_top and has_left else nothing
        index[1, p] = first + 1 if has_top and has_right else nothing
        index[2, p] = first + width if has_bottom and has_left else nothing
        index[3, p] = first + width + 1 if has_bottom and has_right else nothing


@kernel
def sample(images, points, height, width, padding_mode, align_corners, out, begin, end):
    count = points.shape[1]
    index = np.empty((4, count), np.int64)
    part, slope = np.empty((2, count), points.dtype), np.empty((2, count), points.dtype)
    image = np.zeros(images.shape[2] + 1, images.dtype)
    one = image.dtype.type(1)
    for n in range(begin, end):
        find(points[n], height, width, padding_mode, align_corners, index, part, slope)
        for c in range(images.shape[1]):
            image[:-1] = images[n, c]
            line = out[n, c]
            for p in range(count):
                x, y = part[0, p], part[1, p]
                top = image[index[0, p]] * (one - x) + image[index[1, p]] * x
                bottom = image[index[2, p]] * (one - x) + image[index[3, p]] * x
                line[p] = top * (one - y) + bottom * y


@kernel
def sample_backward(grad, images, points, height, width, padding_mode, align_corners, of_images, of_points, begin, end):
    count = points.shape[1]
    index = np.empty((4, count), np.int64)
    part, slope = np.empty((2, count), points.dtype), np.empty((2, count), points.dtype)
    image = np.zeros(images.shape[2] + 1, images.dtype)
    total = np.zeros_like(image)
    one = image.dtype.type(1)
    for n in range(begin, end):
        find(points[n], height, width, padding_mode, align_corners, index, part, slope)
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
