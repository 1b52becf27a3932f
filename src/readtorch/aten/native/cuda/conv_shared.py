"""conv2d and its two gradients as matrix products whose operands are read straight from the images.

    out[n, o, y, x]         M: output channels   N: pixels of the output   K: (channel, offset)
    grad_input[n, c, …]     M: input channels    N: pixels of the input    K: (output channel, offset)
    grad_weight[o, c, …]    M: output channels   N: (channel, offset)      K: pixels of the output

One product for each group. Grid, block and loop are those of cuda_blas.py (Note [ A tile in registers ]). The
weight's gradient has few results and a long K, which is cut into parts; a second launch adds them up.

`Geometry` goes to the kernel as a tuple of numbers. One dimension is two with height 1;
naive_convolution_transpose3d.py says how three are read.

In PyTorch: `aten/src/ATen/native/cudnn/ConvShared.cpp`.
"""

import functools
import math
import typing

import numpy as np

from readtorch.aten.native.math import add, copy
from readtorch.c10.cuda.launch import scratch, strided

from .cuda_blas import run_tiles
from .loops import pointwise
from .reduce import SUM, reduce
from .rows import contiguous


class Geometry(typing.NamedTuple):
    """Sizes of a group's part, and how the window moves."""

    channels: int  # of the input, in a group
    height: int
    width: int
    outputs: int  # channels of the output, in a group
    out_height: int
    out_width: int
    rows: int  # of the window
    columns: int
    stride_y: int
    stride_x: int
    padding_y: int
    padding_x: int
    dilation_y: int
    dilation_x: int


class Elements(typing.NamedTuple):
    """How the operands are read off images: device functions for the three products, and the numbers they need."""

    geometry: typing.Callable
    weight: typing.Callable
    image: typing.Callable
    transposed_weight: typing.Callable
    gradient: typing.Callable
    output: typing.Callable
    patch: typing.Callable


def convolve(e, x, weight, bias, stride, padding, dilation, groups, out):
    """x (N, C, *sizes), weight (O, C / groups, *window), bias (O) or None, out (N, O, *sizes), contiguous."""
    if out.size:
        scalars = e.geometry(x, weight, out, stride, padding, dilation, groups)
        x, weight = contiguous(x), contiguous(weight)
        outputs, taps = weight.shape[0] // groups, math.prod(weight.shape[1:])
        sizes = (groups, outputs, out.size // out.shape[1], taps)
        result, by_image = channels_first(out, groups)
        run_tiles(
            (e.weight, e.image, put),
            (True, False),
            sizes,
            (weight, x, x, result),
            scalars,
            x.dtype.type,
            blocks=blocks_for(x),
        )
        if bias is not None:
            rows = strided(bias, (1, *by_image.shape[1:]), (0, outputs * bias.itemsize, bias.itemsize, 0))
            pointwise(add, [by_image, rows], as_images(out, groups), (x.dtype.type(1),))
        elif x.shape[0] > 1:
            pointwise(copy, [by_image], as_images(out, groups))


def convolve_backward_input(e, grad, weight, stride, padding, dilation, groups, grad_input):
    if grad_input.size:
        scalars = e.geometry(grad_input, weight, grad, stride, padding, dilation, groups)
        grad, weight = contiguous(grad), contiguous(weight)
        taps = weight.shape[0] // groups * math.prod(weight.shape[2:])
        sizes = (groups, weight.shape[1], grad_input.size // grad_input.shape[1], taps)
        result, by_image = channels_first(grad_input, groups)
        run_tiles(
            (e.transposed_weight, e.gradient, put),
            (True, False),
            sizes,
            (weight, grad, grad, result),
            scalars,
            grad.dtype.type,
        )
        if grad.shape[0] > 1:
            pointwise(copy, [by_image], as_images(grad_input, groups))


def convolve_backward_weight(e, grad, x, stride, padding, dilation, groups, grad_weight, parts=None):
    if grad_weight.size:
        scalars = e.geometry(x, grad_weight, grad, stride, padding, dilation, groups)
        grad, x = contiguous(grad), contiguous(x)
        outputs, taps = grad.shape[1] // groups, math.prod(grad_weight.shape[1:])
        pixels = grad.size // max(1, grad.shape[1])
        parts = parts or max(1, min(pixels // 1024, 64))
        partial = scratch(x, (parts, groups, outputs, taps), x.dtype)
        run_tiles(
            (e.output, e.patch, put),
            (True, True),
            (groups, outputs, taps, pixels),
            (grad, x, x, partial),
            scalars,
            x.dtype.type,
            parts,
        )
        reduce(SUM, partial, (0,), strided(grad_weight, partial.shape[1:], partial.strides[1:]))


def blocks_for(x):
    """How many blocks a multiprocessor shall hold: there are registers enough for two."""
    return 2 if x.dtype == np.float32 else 1


def as_images(x, groups):
    """(N, groups, channels of a group, pixels)"""
    channels, pixels, size = x.shape[1] // groups, math.prod(x.shape[2:]), x.itemsize
    steps = (x.shape[1] * pixels * size, channels * pixels * size, pixels * size, size)
    return strided(x, (x.shape[0], groups, channels, pixels), steps)


def channels_first(x, groups):
    """Memory for the products (1, groups, channels, all pixels), and the same memory seen as `as_images` sees
    x.

    A product's rows are the channels, its columns the pixels of all images: so the kernel can store it with
    no division. Of one image the result lies like this anyway.
    """
    images = as_images(x, groups)
    n, _, channels, pixels = images.shape
    size = x.itemsize
    memory = x if n == 1 else scratch(x, (groups, channels, n, pixels), x.dtype)
    steps = (0, channels * n * pixels * size, n * pixels * size, size)
    whole = strided(memory, (1, groups, channels, n * pixels), steps)
    return whole, strided(memory, images.shape, (pixels * size, *steps[1:]))


def geometry(x, weight, out, stride, padding, dilation, groups):
    return tuple(
        Geometry(
            x.shape[1] // groups,
            *x.shape[2:],
            weight.shape[0] // groups,
            *out.shape[2:],
            *weight.shape[2:],
            *stride,
            *padding,
            *dilation,
        )
    )


def weight_element(weight, g, z, o, offset):
    """Of output channel o, the offset-th weight: (channel, row, column) counted through."""
    _, _, _, outputs, _, _, rows, columns, _, _, _, _, _, _ = g
    return weight[z * outputs + o, offset // (rows * columns), offset // columns % rows, offset % columns]


def image_element(x, g, z, offset, pixel):
    """What an offset of the window sees at an output pixel; 0 in the padding."""
    channels, height, width, _, out_height, out_width, rows, columns, sy, sx, py, px, dy, dx = g
    n, oy, ox = pixel // (out_height * out_width), pixel // out_width % out_height, pixel % out_width
    y = oy * sy - py + offset // columns % rows * dy
    x_ = ox * sx - px + offset % columns * dx
    if y < 0 or y >= height or x_ < 0 or x_ >= width:
        return x.dtype.type(0)
    return x[n, z * channels + offset // (rows * columns), y, x_]


def transposed_weight_element(weight, g, z, c, offset):
    """Of input channel c: (output channel, row, column) counted through."""
    _, _, _, outputs, _, _, rows, columns, _, _, _, _, _, _ = g
    return weight[z * outputs + offset // (rows * columns), c, offset // columns % rows, offset % columns]


def gradient_element(grad, g, z, offset, pixel):
    """The gradient of the output pixel that saw this input pixel through this offset; 0 if there is none."""
    _, height, width, outputs, out_height, out_width, rows, columns, sy, sx, py, px, dy, dx = g
    n, iy, ix = pixel // (height * width), pixel // width % height, pixel % width
    y = iy + py - offset // columns % rows * dy
    x = ix + px - offset % columns * dx
    if y < 0 or x < 0 or y % sy != 0 or x % sx != 0 or y // sy >= out_height or x // sx >= out_width:
        return grad.dtype.type(0)
    return grad[n, z * outputs + offset // (rows * columns), y // sy, x // sx]


def output_element(grad, g, z, o, pixel):
    _, _, _, outputs, out_height, out_width, _, _, _, _, _, _, _, _ = g
    n, y, x = pixel // (out_height * out_width), pixel // out_width % out_height, pixel % out_width
    return grad[n, z * outputs + o, y, x]


def patch_element(x, g, z, pixel, offset):
    return image_element(x, g, z, offset, pixel)


def put(out, extra, g, z, part, i, j, total):
    """For all three: a product of its own for each part and group."""
    out[part, z, i, j] = total


PLANES = Elements(
    geometry, weight_element, image_element, transposed_weight_element, gradient_element, output_element, patch_element
)
conv2d = functools.partial(convolve, PLANES)
conv2d_backward_input = functools.partial(convolve_backward_input, PLANES)
conv2d_backward_weight = functools.partial(convolve_backward_weight, PLANES)
