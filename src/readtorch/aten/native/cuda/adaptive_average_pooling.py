"""Adaptive average pooling of images by kernels of its own; of volumes by products with matrices of weights
(up_sample.py).

In PyTorch: `aten/src/ATen/native/cuda/AdaptiveAveragePooling.cu`,
`aten/src/ATen/native/cuda/AdaptiveAveragePooling3d.cu`.
"""

import numpy as np
from numba import cuda

from readtorch.aten.native.pooling.adaptive import check_dimensions
from readtorch.aten.native.pooling.adaptive import check_not_empty as check_pooled
from readtorch.aten.native.upsample import Band, band_of
from readtorch.aten.tensor_utils import check_adaptive

from .kernel_utils import begin_of, end_of, position, run
from .pool import empty_like_format, planes
from .reduce_ops import converted
from .register_dispatch_key import cuda_kernel, operator_named, owned
from .rows import contiguous
from .softmax import wide
from .up_sample import times_bands


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


@cuda_kernel(operator_named("_adaptive_avg_pool2d"))
def adaptive_avg_pool2d_cuda(self, output_size):
    result = empty_like_format(self, (*self._array.shape[:-2], *output_size))
    adaptive_avg_pool2d(planes(self), planes(result))
    return result


@cuda_kernel(operator_named("_adaptive_avg_pool2d_backward"))
def adaptive_avg_pool2d_backward_cuda(grad_output, self):
    check_adaptive("adaptive_avg_pool2d_backward_cuda", grad_output, self, 2, "grad_output")
    result = empty_like_format(self, self._array.shape)
    adaptive_avg_pool2d_backward(planes(grad_output), planes(result))
    return result


def shares(size, places):
    """The matrix (places, size) of adaptive windows: each takes the mean of what it sees."""
    o = np.arange(places)
    begin, end = o * size // places, -(-(o + 1) * size // places)
    seen = (begin[:, None] <= np.arange(size)) & (np.arange(size) < end[:, None])
    return seen / (end - begin)[:, None], seen


def adaptive_bands(sizes, output_size, transposed, dtype):
    for size, places in zip(sizes, output_size):
        matrix, seen = shares(size, places)
        matrix, seen = (matrix.T, seen.T) if transposed else (matrix, seen)
        yield Band(*band_of(matrix.astype(dtype), seen))


def as_batch(t, rank):
    return t if t._array.ndim == rank else t.unsqueeze(0)


@cuda_kernel(operator_named("_adaptive_avg_pool3d"))
def adaptive_avg_pool3d_cuda(self, output_size):
    """A mean over a box is one over each of its edges in turn."""
    shape = self._array.shape
    check_dimensions("adaptive_avg_pool3d", shape, 3)
    check_pooled("adaptive_avg_pool3d", shape, len(shape) - 3)
    x = wide(self)
    found = adaptive_bands(shape[-3:], output_size, False, x._array.dtype)
    result = times_bands(as_batch(x, 5), list(found))
    return converted(owned(result.view((*shape[:-3], *output_size))), self._array.dtype)


@cuda_kernel(operator_named("_adaptive_avg_pool3d_backward"))
def adaptive_avg_pool3d_backward_cuda(grad_output, self):
    check_adaptive("adaptive_avg_pool3d_backward_cuda", grad_output, self, 3, "gradOutput_")
    shape, g = self._array.shape, wide(grad_output)
    found = adaptive_bands(shape[-3:], grad_output._array.shape[-3:], True, g._array.dtype)
    result = times_bands(as_batch(g, 5), list(found))
    return converted(owned(result.view(shape)), self._array.dtype)
