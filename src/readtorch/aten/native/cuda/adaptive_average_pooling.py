"""Adaptive average pooling of images by kernels of its own; of volumes by products with matrices of weights
(up_sample.py).

In PyTorch: `aten/src/ATen/native/cuda/AdaptiveAveragePooling.cu`,
`aten/src/ATen/native/cuda/AdaptiveAveragePooling3d.cu`.
"""

import numpy as np
from numba import cuda

from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.aten.native.upsample import Band, band_of

from .kernel_utils import begin_of, end_of, position, run
from .pool import check_floating, in_wide, planes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide
from .up_sample import fill_times_bands


def adaptive_avg_pool2d(x, out):
    """Windows chosen so that there are as many as out has places; they may overlap."""
    run(adaptive_kernel, out, contiguous(x), out)


def adaptive_avg_pool2d_backward(grad, grad_input):
    run(adaptive_backward_kernel, grad_input, contiguous(grad), grad_input)


def adaptive_kernel(x, out):
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oy, ox = position(e, out.shape)
        top, bottom = begin_of(oy, out.shape[2], x.shape[2]), end_of(oy, out.shape[2], x.shape[2])
        left, right = begin_of(ox, out.shape[3], x.shape[3]), end_of(ox, out.shape[3], x.shape[3])
        total = x.dtype.type(0)
        for iy in range(top, bottom):
            for ix in range(left, right):
                total += x[n, c, iy, ix]
        out[n, c, oy, ox] = total / x.dtype.type((bottom - top) * (right - left))


def adaptive_backward_kernel(grad, out):
    down, across = grad.shape[2], grad.shape[3]
    height, width = out.shape[2], out.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iy, ix = position(e, out.shape)
        total = grad.dtype.type(0)
        for oy in range(iy * down // height, ((iy + 1) * down + height - 1) // height):
            rows = end_of(oy, down, height) - begin_of(oy, down, height)
            for ox in range(ix * across // width, ((ix + 1) * across + width - 1) // width):
                columns = end_of(ox, across, width) - begin_of(ox, across, width)
                total += grad[n, c, oy, ox] / grad.dtype.type(rows * columns)
        out[n, c, iy, ix] = total


@cuda_impl(operator_named("_adaptive_avg_pool2d"))
def adaptive_avg_pool2d_cuda(self, output_size, out):
    check_floating("adaptive_avg_pool2d_cuda", self)
    with in_wide(out) as means:
        adaptive_avg_pool2d(planes(wide(self)), planes(means))


@cuda_impl(operator_named("_adaptive_avg_pool2d_backward"))
def adaptive_avg_pool2d_backward_cuda(grad_output, self, grad_input):
    with in_wide(grad_input) as sums:
        adaptive_avg_pool2d_backward(planes(wide(grad_output)), planes(sums))


def shares(size, places):
    """The matrix (places, size) of adaptive windows: each takes the mean of what it sees."""
    o = np.arange(places)
    begin, end = o * size // places, -(-(o + 1) * size // places)
    seen = (begin[:, None] <= np.arange(size)) & (np.arange(size) < end[:, None])
    return seen / (end - begin)[:, None], seen


def adaptive_bands(t, sizes, output_size, transposed):
    dtype = WIDENED.get(t._array.dtype, t._array.dtype)
    for size, places in zip(sizes, output_size):
        matrix, seen = shares(size, places)
        matrix, seen = (matrix.T, seen.T) if transposed else (matrix, seen)
        yield Band(*band_of(matrix.astype(dtype), seen))


def as_batch(t, rank):
    return t if t._array.ndim == rank else t.unsqueeze(0)


@cuda_impl(operator_named("_adaptive_avg_pool3d"))
def adaptive_avg_pool3d_cuda(self, output_size, out):
    """A mean over a box is one over each of its edges in turn."""
    check_floating("adaptive_avg_pool3d_cuda", self)
    found = adaptive_bands(self, self._array.shape[-3:], output_size, False)
    fill_times_bands(as_batch(self, 5), list(found), as_batch(out, 5))


@cuda_impl(operator_named("_adaptive_avg_pool3d_backward"))
def adaptive_avg_pool3d_backward_cuda(grad_output, self, grad_input):
    sizes = self._array.shape[-3:], grad_output._array.shape[-3:]
    found = adaptive_bands(self, *sizes, True)
    fill_times_bands(as_batch(grad_output, 5), list(found), as_batch(grad_input, 5))
