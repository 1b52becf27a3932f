"""Convolution of any dtype and dimension: one matrix product for each element of the kernel.

Element (a, b) of a 3x3 kernel multiplies the image shifted by (a, b). So a convolution is nine matrix products
[out channels, in channels] @ [in channels, pixels], each of a shifted window of the padded input, added up. The
gradients are the same products with the roles exchanged.

In PyTorch: `slow_conv2d` and its relatives, which `aten/src/ATen/native/Convolution.cpp` calls, copy all windows out
(im2col) and multiply once: `aten/src/ATen/native/ConvolutionMM2d.cpp`, `aten/src/ATen/native/ConvolutionMM3d.cpp`,
`aten/src/ATen/native/NaiveConvolutionTranspose2d.cpp`, `aten/src/ATen/native/NaiveDilatedConvolution.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import math

import numpy as np


def forward(x, w, bias, geometry, result):
    """result = the convolution of x (N, C, …) with w (out, C / groups, …), plus bias."""
    groups, shape = geometry.groups, result.shape
    padded = _padded(x, geometry.padding)
    w = w.reshape(groups, -1, *w.shape[1:])
    sums = result.reshape(shape[0], groups, shape[1] // groups, math.prod(shape[2:]))
    sums[...] = 0
    for tap, window in _offsets(w.shape[3:], shape[2:], geometry):
        sums += w[(..., *tap)] @ _columns(padded[window], groups)
    if bias is not None:
        sums += bias.reshape(groups, -1, 1)


def grad_input(grad, w, geometry, result):
    """result = the gradient of an input: each element of the kernel sends its share back to the pixels that it multiplied.

    The shares are rounded and added in the dtype of `result`.
    """
    groups, shape = geometry.groups, result.shape
    padded_shape = [n + 2 * p for n, p in zip(shape[2:], geometry.padding)]
    w = w.reshape(groups, -1, *w.shape[1:])
    columns = _columns(grad, groups)
    sums = np.zeros((*shape[:2], *padded_shape), result.dtype)
    for tap, window in _offsets(w.shape[3:], grad.shape[2:], geometry):
        part = w[(..., *tap)].swapaxes(1, 2) @ columns
        sums[window] += part.reshape(*shape[:2], *grad.shape[2:]).astype(result.dtype, copy=False)
    inner = [slice(p, p + n) for n, p in zip(shape[2:], geometry.padding)]
    result[...] = sums[(..., *inner)]


def grad_weight(grad, x, geometry, result):
    """result = the gradient of a weight: each element of the kernel correlates the gradient with the pixels that it
    multiplied."""
    groups, shape = geometry.groups, result.shape
    padded = _padded(x, geometry.padding)
    result = result.reshape(groups, shape[0] // groups, *shape[1:])
    rows = _all_columns(grad, groups)
    for tap, window in _offsets(shape[2:], grad.shape[2:], geometry):
        result[(..., *tap)] = rows @ _all_columns(padded[window], groups).swapaxes(1, 2)


def grad_bias(grad):
    """The gradient of the bias: the sum over images and pixels."""
    return grad.sum((0, *range(2, grad.ndim)))


def _offsets(kernel, out, geometry):
    """Each index into the kernel, and the slices of the padded input that this element multiplies."""
    for tap in np.ndindex(*kernel):
        places = zip(tap, out, geometry.stride, geometry.dilation)
        yield tap, (..., *[slice(t * d, t * d + (n - 1) * s + 1, s) for t, n, s, d in places])


def _padded(x, padding):
    return np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]]) if any(padding) else x


def _columns(x, groups):
    """(N, C, …) as (N, groups, C / groups, pixels)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)


def _all_columns(x, groups):
    """(N, C, …) as (groups, C / groups, pixels of all images)."""
    return x.swapaxes(0, 1).reshape(groups, x.shape[1] // groups, -1)
