"""Resizing images of bytes with whole numbers only, as Pillow does it.

In PyTorch: `separable_upsample_generic_Nd_kernel_impl` for uint8 in `aten/src/ATen/native/cpu/UpSampleKernel.cpp`,
and its vectorized twin in `UpSampleKernelAVXAntialias.h`.
"""
import numpy as np

from .upsample_bands import band


def resize_bytes(x, method, output_size, align_corners, scales):
    """The last dimension first; after each dimension the result is bytes again."""
    for axis in reversed(range(2, x.ndim)):
        size, scale = output_size[axis - 2], scales[axis - 2]
        if size != x.shape[axis]:
            x = times_whole_band(band(method, x.shape[axis], size, align_corners, scale, np.float64), x, axis)
    return x


def times_whole_band(band, x, axis):
    start, count, weights = band
    weights, precision = as_whole_numbers(weights)
    lines = x.swapaxes(0, axis).astype(np.int32)
    total = np.full((len(start), *lines.shape[1:]), 1 << precision >> 1, np.int32)
    for k in range(weights.shape[1]):
        rows = np.flatnonzero(count > k)
        weight = weights[rows, k].reshape(-1, *[1] * (x.ndim - 1))
        total[rows] += weight * lines[start[rows] + k]
    return (total >> precision).clip(0, 255).astype(np.uint8).swapaxes(0, axis)


def as_whole_numbers(weights):
    """The weights times 2^precision, rounded: the largest power for which they fit into 16 bits."""
    greatest = weights.max()
    precision = next(p for p in range(23) if p == 22 or int(0.5 + greatest * 2 ** (p + 1)) >= 1 << 15)
    scaled = weights * 2.0 ** precision
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int32), precision
