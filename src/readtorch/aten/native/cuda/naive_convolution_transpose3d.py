"""conv3d and its gradients: how the operands of conv_shared.py's three products are read off volumes.

    numbers: channels of a group; depth, height, width; outputs of a group; the same three of the output; of the
    window; then strides, paddings and dilations

In PyTorch: `aten/src/ATen/native/cuda/NaiveConvolutionTranspose3d.cu`, of the direct form
`aten/src/ATen/native/cuda/NaiveDilatedConvolution.cu`; `aten/src/ATen/native/cudnn/ConvShared.cpp`.
"""

import functools

from .conv_shared import Elements, convolve, convolve_backward_input, convolve_backward_weight


def numbers_of(x, weight, out, stride, padding, dilation, groups):
    return (
        x.shape[1] // groups,
        *x.shape[2:],
        weight.shape[0] // groups,
        *out.shape[2:],
        *weight.shape[2:],
        *stride,
        *padding,
        *dilation,
    )


def spot(i, height, width):
    """(plane, row, column) of the i-th place, of as many volumes as there are."""
    return i // (height * width), i // width % height, i % width


def weight_element(weight, g, z, o, offset):
    """Of output channel o, the offset-th weight: (channel, plane, row, column) counted through."""
    outputs, planes, rows, columns = g[4], g[8], g[9], g[10]
    plane, row, column = spot(offset, rows, columns)
    return weight[z * outputs + o, plane // planes, plane % planes, row, column]


def volume_element(x, g, z, offset, voxel):
    """What a offset of the window sees at an output place; 0 in the padding."""
    channels, depth, height, width = g[0], g[1], g[2], g[3]
    planes, rows, columns = g[8], g[9], g[10]
    layer, oy, ox = spot(voxel, g[6], g[7])
    plane, row, column = spot(offset, rows, columns)
    i = layer % g[5] * g[11] - g[14] + plane % planes * g[17]
    y, x_ = oy * g[12] - g[15] + row * g[18], ox * g[13] - g[16] + column * g[19]
    if i < 0 or i >= depth or y < 0 or y >= height or x_ < 0 or x_ >= width:
        return x.dtype.type(0)
    return x[layer // g[5], z * channels + plane // planes, i, y, x_]


def transposed_weight_element(weight, g, z, c, offset):
    """Of input channel c: (output channel, plane, row, column) counted through."""
    outputs, planes = g[4], g[8]
    plane, row, column = spot(offset, g[9], g[10])
    return weight[z * outputs + plane // planes, c, plane % planes, row, column]


def gradient_element(grad, g, z, offset, voxel):
    """The gradient of the output place that saw this input place through this offset; 0 if there is none."""
    outputs, planes = g[4], g[8]
    layer, iy, ix = spot(voxel, g[2], g[3])
    plane, row, column = spot(offset, g[9], g[10])
    i = layer % g[1] + g[14] - plane % planes * g[17]
    y, x = iy + g[15] - row * g[18], ix + g[16] - column * g[19]
    if i < 0 or y < 0 or x < 0 or i % g[11] != 0 or y % g[12] != 0 or x % g[13] != 0:
        return grad.dtype.type(0)
    if i // g[11] >= g[5] or y // g[12] >= g[6] or x // g[13] >= g[7]:
        return grad.dtype.type(0)
    return grad[layer // g[1], z * outputs + plane // planes, i // g[11], y // g[12], x // g[13]]


def output_element(grad, g, z, o, voxel):
    layer, y, x = spot(voxel, g[6], g[7])
    return grad[layer // g[5], z * g[4] + o, layer % g[5], y, x]


def patch_element(x, g, z, voxel, offset):
    return volume_element(x, g, z, offset, voxel)


VOLUMES = Elements(
    numbers_of,
    weight_element,
    volume_element,
    transposed_weight_element,
    gradient_element,
    output_element,
    patch_element,
)
conv3d = functools.partial(convolve, VOLUMES)
conv3d_backward_input = functools.partial(convolve_backward_input, VOLUMES)
conv3d_backward_weight = functools.partial(convolve_backward_weight, VOLUMES)
