"""conv3d and its gradients: how the operands of conv_shared.py's three products are read off volumes.

    numbers: channels of a group; depth, height, width; outputs of a group; sizes of the output; groups; strides, paddings
    and dilations; dividers by the window's columns, plane and all, by the output's and the input's,
    by the strides

In PyTorch: `aten/src/ATen/native/cuda/NaiveConvolutionTranspose3d.cu`, of the direct form
`aten/src/ATen/native/cuda/NaiveDilatedConvolution.cu`; `aten/src/ATen/native/cudnn/ConvShared.cpp`.
"""

import functools
import math

import numpy as np

from .conv_shared import (
    Elements,
    convolve,
    convolve_backward_input,
    convolve_backward_weight,
    quotient,
    strided_element,
)
from .cuda_blas import unsigned
from .offset_calculator import divider

i32 = np.int32


def numbers_of(x, weight, out, stride, padding, dilation, groups):
    window, seen = weight.shape[2:], out.shape[2:]
    sizes = x.shape[1] // groups, *x.shape[2:], weight.shape[0] // groups, *seen, groups
    by = [math.prod(size[d:]) for size in (window, seen, x.shape[2:]) for d in (2, 1, 0)]
    return (*sizes, *stride, *padding, *dilation, *map(divider, [*by, *stride]))


def parts_of(place, by_columns, by_plane, by_all):
    """(channel or volume, plane, row, column) of a place that counts them all through."""
    outer = quotient(place, by_all)
    rest = i32(place - outer * by_all[0])
    plane = quotient(rest, by_plane)
    rest = i32(rest - plane * by_plane[0])
    row = quotient(rest, by_columns)
    return outer, plane, row, i32(rest - row * by_columns[0])


def volume_place(g, z, voxel):
    """Where the window of an output place begins: (its volume's first channel, plane, row, column)."""
    n, layer, oy, ox = parts_of(voxel, g[21], g[22], g[23])
    return (n * g[8] + z) * g[0], i32(layer * g[9] - g[12]), i32(oy * g[10] - g[13]), i32(ox * g[11] - g[14])


def volume_element(x, g, shared, offset):
    """What an offset of the window sees; 0 in the padding."""
    first, i, y, x_ = shared
    c, plane, row, column = parts_of(offset, g[18], g[19], g[20])
    i, y, x_ = i32(i + plane * g[15]), i32(y + row * g[16]), i32(x_ + column * g[17])
    if i < 0 or i >= g[1] or y < 0 or y >= g[2] or x_ < 0 or x_ >= g[3]:
        return x.dtype.type(0)
    return x[unsigned((((first + c) * g[1] + i) * g[2] + y) * g[3] + x_)]


def weight_offset(g, z, offset):
    """Where the weight of an offset (output channel, plane, row, column) lies, for input channel 0; and from channel to
    channel."""
    window = g[20][0]
    o = quotient(offset, g[20])
    return (z * g[4] + o) * g[0] * window + offset - o * window, window


def gradient_place(g, z, voxel):
    """The first output channel of an input place's volume; and where the first offset of the window saw it."""
    n, layer, y, x = parts_of(voxel, g[24], g[25], g[26])
    return (n * g[8] + z) * g[4], i32(layer + g[12]), i32(y + g[13]), i32(x + g[14])


def gradient_element(grad, g, shared, offset):
    """The gradient of the output place that saw this input place through this offset; 0 if there is none."""
    first, i, y, x = shared
    o, plane, row, column = parts_of(offset, g[18], g[19], g[20])
    i, y, x = i32(i - plane * g[15]), i32(y - row * g[16]), i32(x - column * g[17])
    if i < 0 or y < 0 or x < 0:
        return grad.dtype.type(0)
    layer, oy, ox = quotient(i, g[27]), quotient(y, g[28]), quotient(x, g[29])
    if layer * g[9] != i or oy * g[10] != y or ox * g[11] != x or layer >= g[5] or oy >= g[6] or ox >= g[7]:
        return grad.dtype.type(0)
    return grad[unsigned((((first + o) * g[5] + layer) * g[6] + oy) * g[7] + ox)]


def output_place(g, z, voxel):
    """Where an output place lies, in output channel 0; and from channel to channel."""
    voxels = g[23][0]
    n = quotient(voxel, g[23])
    return (n * g[8] + z) * g[4] * voxels + voxel - n * voxels, voxels


VOLUMES = Elements(
    numbers_of,
    image=(volume_place, volume_element),
    transposed_weight=(weight_offset, strided_element),
    gradient=(gradient_place, gradient_element),
    output=(output_place, strided_element),
    patch=(volume_place, volume_element),
)
conv3d = functools.partial(convolve, VOLUMES)
conv3d_backward_input = functools.partial(convolve_backward_input, VOLUMES)
conv3d_backward_weight = functools.partial(convolve_backward_weight, VOLUMES)
