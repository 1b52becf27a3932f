"""conv2d and its two gradients as matrix products whose operands are read straight from the images.

    out[n, o, y, x]         M: output channels   N: pixels of the output   K: (channel, offset)
    grad_input[n, c, …]     M: input channels    N: pixels of the input    K: (output channel, offset)
    grad_weight[o, c, …]    M: output channels   N: (channel, offset)      K: pixels of the output

One product for each group. Grid, block and loop are those of cuda_blas.py (Note [ A tile in registers ]). The
weight's gradient has few results and a long K, which is cut into parts; a second launch adds them up.

Note [ What is worked out once ]
Of a pixel one must know image, row and column, of an offset channel, row and column of the window: that takes divisions.
Eight numbers (or four) that a thread brings in a step have one of the two in common. So an operand is read by two
functions: `fixed` works out what they share, once for all steps if it is the place along M or N, once a step if it is the
place along K; `element` does the rest. What is left of divisions is made by multiplications (Note [ Division by multiplication ]).

`Geometry` goes to the kernel as a tuple of numbers. One dimension is two with height 1;
naive_convolution_transpose3d.py says how three are read.

In PyTorch: `aten/src/ATen/native/cudnn/ConvShared.cpp`.
"""

import functools
import math
import typing

import numpy as np

from readtorch.aten.native.math import add, copy
from readtorch.c10.cuda.launch import address, scratch, strided

from .cuda_blas import DEPTH, THREADS, Operand, matrix, run_tiles, unsigned
from .loops import pointwise
from .offset_calculator import divided, divider
from .reduce import SUM, reduce
from .rows import flat

i32 = np.int32


class Geometry(typing.NamedTuple):
    """Sizes of a group's part, how the window moves, and dividers."""

    channels: int  # of the input, in a group
    height: int
    width: int
    outputs: int  # channels of the output, in a group
    out_height: int
    out_width: int
    groups: int
    stride_y: int
    stride_x: int
    padding_y: int
    padding_x: int
    dilation_y: int
    dilation_x: int
    by_columns: tuple  # of the window
    by_window: tuple
    by_out_width: tuple
    by_out_pixels: tuple
    by_width: tuple
    by_pixels: tuple
    by_stride_y: tuple
    by_stride_x: tuple


class Elements(typing.NamedTuple):
    """How the operands are read off images: pairs of device functions (`fixed`, `element`) for the operands of the three
    products, and the numbers that they need."""

    geometry: typing.Callable
    image: tuple
    transposed_weight: tuple
    gradient: tuple
    output: tuple
    patch: tuple


@functools.cache
def reader(along_k, fixed, element, side, dtype):
    """An operand that is read off images: see Note [ What is worked out once ]. along_k: do the numbers that a thread
    brings in a step share their place along K?

    fixed(geometry, z, place) -> shared        element(x, geometry, shared, other place) -> number
    """
    pitch, share = side + 4, side * DEPTH // THREADS
    across = DEPTH if along_k else side  # neighboring threads run along K, or along M or N
    between = THREADS // across

    def start(g, z, first, count, t):
        i = first + (t // across if along_k else t % across)
        return (
            i,
            i32(count - 1),
            i32(t % across if along_k else t // across),
            fixed(g[0], z, 0 if along_k else min(i, count - 1)),
        )

    def fetch(held, x, g, z, place, k0, end):
        i, last, k, shared = place
        if along_k:
            shared = fixed(g[0], z, min(k0 + k, end - 1))
        for s in range(share):
            if along_k:
                other, inside = min(i + s * between, last), k0 + k < end
            else:
                other = k0 + k + s * between
                inside = other < end
            held[s] = dtype(element(x, g[0], shared, other)) if inside else dtype(0)

    def stow(strip, at, t, held):
        for s in range(share):
            k, i = (t % across, t // across + s * between) if along_k else (t // across + s * between, t % across)
            strip[unsigned(at + k * pitch + i)] = held[s]

    return Operand(start, fetch, stow)


def convolve(e, x, weight, bias, stride, padding, dilation, groups, out):
    """x (N, C, *sizes), weight (O, C / groups, *window), bias (O) or None, out (N, O, *sizes), contiguous."""
    if out.size:
        scalars = e.geometry(x, weight, out, stride, padding, dilation, groups)
        outputs, taps = weight.shape[0] // groups, math.prod(weight.shape[1:])
        sizes = (groups, outputs, out.size // out.shape[1], taps)
        result, by_image = channels_first(out, groups)
        in_fours = taps % 4 == 0 and weight.dtype == np.float32 and address(weight) % 16 == 0
        run_tiles(
            [functools.partial(matrix, 0, True, in_fours), functools.partial(reader, False, *e.image)],
            sizes,
            (flat(weight), flat(x), x, result),
            (scalars, (outputs * taps, taps, 1)),
            x.dtype.type,
            put,
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
        taps = weight.shape[0] // groups * math.prod(weight.shape[2:])
        sizes = (groups, weight.shape[1], grad_input.size // grad_input.shape[1], taps)
        result, by_image = channels_first(grad_input, groups)
        run_tiles(
            [functools.partial(reader, True, *e.transposed_weight), functools.partial(reader, False, *e.gradient)],
            sizes,
            (flat(weight), flat(grad), grad, result),
            (scalars,),
            grad.dtype.type,
            put,
            blocks=blocks_for(grad),
        )
        if grad.shape[0] > 1:
            pointwise(copy, [by_image], as_images(grad_input, groups))


def convolve_backward_weight(e, grad, x, stride, padding, dilation, groups, grad_weight, parts=None):
    if grad_weight.size:
        scalars = e.geometry(x, grad_weight, grad, stride, padding, dilation, groups)
        outputs, taps = grad.shape[1] // groups, math.prod(grad_weight.shape[1:])
        pixels = grad.size // max(1, grad.shape[1])
        parts = parts or max(1, min(pixels // 1024, 64))
        partial = scratch(x, (parts, groups, outputs, taps), x.dtype)
        run_tiles(
            [functools.partial(reader, True, *e.output), functools.partial(reader, True, *e.patch)],
            (groups, outputs, taps, pixels),
            (flat(grad), flat(x), x, partial),
            (scalars,),
            x.dtype.type,
            put,
            parts,
            blocks=blocks_for(x),
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
    window, seen = weight.shape[2:], out.shape[2:]
    sizes = x.shape[1] // groups, *x.shape[2:], weight.shape[0] // groups, *seen, groups
    return tuple(
        Geometry(*sizes, *stride, *padding, *dilation, *map(divider, divisors(window, seen, x.shape[2:], stride)))
    )


def divisors(window, seen, size, stride):
    """Of an offset into the window, of a pixel of the output, of the input; and the strides."""
    return window[1], math.prod(window), seen[1], math.prod(seen), size[1], math.prod(size), *stride


def quotient(place, by):
    return i32(divided(place, by))


def parts_of(place, by_columns, by_window):
    """(channel or image, row, column) of a place that counts them all through."""
    outer = quotient(place, by_window)
    rest = i32(place - outer * by_window[0])
    row = quotient(rest, by_columns)
    return outer, row, i32(rest - row * by_columns[0])


def image_pixel(g, z, pixel):
    """Where the window of an output pixel begins: (its image's first channel, row, column)."""
    n, oy, ox = parts_of(pixel, g[15], g[16])
    return (n * g[6] + z) * g[0], i32(oy * g[7] - g[9]), i32(ox * g[8] - g[10])


def image_element(x, g, shared, offset):
    """What an offset of the window sees; 0 in the padding."""
    plane, y, x_ = shared
    c, row, column = parts_of(offset, g[13], g[14])
    y, x_ = i32(y + row * g[11]), i32(x_ + column * g[12])
    if y < 0 or y >= g[1] or x_ < 0 or x_ >= g[2]:
        return x.dtype.type(0)
    return x[unsigned(((plane + c) * g[1] + y) * g[2] + x_)]


def weight_offset(g, z, offset):
    """Where the weight of an offset (output channel, row, column) lies, for input channel 0; and from channel to channel."""
    window = g[14][0]
    o = quotient(offset, g[14])
    return (z * g[3] + o) * g[0] * window + offset - o * window, window


def strided_element(x, g, shared, i):
    at, step = shared
    return x[unsigned(at + i * step)]


def gradient_pixel(g, z, pixel):
    """The first output channel of an input pixel's image; row and column where the first offset of the window saw it."""
    n, y, x = parts_of(pixel, g[17], g[18])
    return (n * g[6] + z) * g[3], i32(y + g[9]), i32(x + g[10])


def gradient_element(grad, g, shared, offset):
    """The gradient of the output pixel that saw this input pixel through this offset; 0 if there is none."""
    plane, y, x = shared
    o, row, column = parts_of(offset, g[13], g[14])
    y, x = i32(y - row * g[11]), i32(x - column * g[12])
    if y < 0 or x < 0:
        return grad.dtype.type(0)
    oy, ox = quotient(y, g[19]), quotient(x, g[20])
    if oy * g[7] != y or ox * g[8] != x or oy >= g[4] or ox >= g[5]:
        return grad.dtype.type(0)
    return grad[unsigned(((plane + o) * g[4] + oy) * g[5] + ox)]


def output_pixel(g, z, pixel):
    """Where an output pixel lies, in output channel 0; and from channel to channel."""
    pixels = g[16][0]
    n = quotient(pixel, g[16])
    return (n * g[6] + z) * g[3] * pixels + pixel - n * pixels, pixels


def put(out, extra, g, z, part, i, j, total):
    """For all three: a product of its own for each part and group."""
    out[unsigned(part), unsigned(z), unsigned(i), unsigned(j)] = total


PLANES = Elements(
    geometry,
    image=(image_pixel, image_element),
    transposed_weight=(weight_offset, strided_element),
    gradient=(gradient_pixel, gradient_element),
    output=(output_pixel, strided_element),
    patch=(image_pixel, image_element),
)
conv2d = functools.partial(convolve, PLANES)
conv2d_backward_input = functools.partial(convolve_backward_input, PLANES)
conv2d_backward_weight = functools.partial(convolve_backward_weight, PLANES)
