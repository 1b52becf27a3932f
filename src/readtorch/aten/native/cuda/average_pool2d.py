"""avg_pool2d, forward and backward: a thread adds up the window of one result, or the shares of one element of the
input.

In PyTorch: `aten/src/ATen/native/cuda/AveragePool2d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.average import window_of_2d
from readtorch.aten.tensor_utils import check_pooled

from .kernel_utils import first_window, position, run
from .pool import empty_like_format, numbers_of, planes
from .register_dispatch_key import cuda_kernel, operator_named
from .rows import contiguous


def avg_pool2d(x, window, stride, padding, count_include_pad, divisor, out):
    """divisor: what to divide by, or 0 for the number of elements in the window."""
    run(average_kernel, out, contiguous(x), (*window, *stride, *padding, int(count_include_pad), divisor), out)


def avg_pool2d_backward(grad, window, stride, padding, count_include_pad, divisor, grad_input):
    scalars = (*window, *stride, *padding, int(count_include_pad), divisor)
    run(average_backward_kernel, grad_input, contiguous(grad), scalars, grad_input)


def extent(o, window, stride, padding, size):
    """(begin, end, length with padding) of a window, cut off at the image's edges."""
    begin = o * stride - padding
    end = min(begin + window, size + padding)
    return max(begin, 0), min(end, size), end - begin


def divided_by(rows, columns, padded, include_padding, divisor):
    return divisor if divisor != 0 else padded if include_padding else rows * columns


def average_kernel(x, scalars, out):
    wh, ww, sy, sx, py, px, include_padding, divisor = scalars
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oy, ox = position(e, out.shape)
        top, bottom, rows = extent(oy, wh, sy, py, x.shape[2])
        left, right, columns = extent(ox, ww, sx, px, x.shape[3])
        total = x.dtype.type(0)
        for iy in range(top, bottom):
            for ix in range(left, right):
                total += x[n, c, iy, ix]
        count = divided_by(bottom - top, right - left, rows * columns, include_padding, divisor)
        out[n, c, oy, ox] = total / x.dtype.type(count)


def average_backward_kernel(grad, scalars, out):
    wh, ww, sy, sx, py, px, include_padding, divisor = scalars
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iy, ix = position(e, out.shape)
        total = grad.dtype.type(0)
        for oy in range(first_window(iy + py, wh, sy, wh), min((iy + py) // sy + 1, grad.shape[2])):
            top, bottom, rows = extent(oy, wh, sy, py, out.shape[2])
            for ox in range(first_window(ix + px, ww, sx, ww), min((ix + px) // sx + 1, grad.shape[3])):
                left, right, columns = extent(ox, ww, sx, px, out.shape[3])
                count = divided_by(bottom - top, right - left, rows * columns, include_padding, divisor)
                total += grad[n, c, oy, ox] / grad.dtype.type(count)
        out[n, c, iy, ix] = total


@cuda_kernel(operator_named("avg_pool2d"))
def avg_pool2d_cuda(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    slide, outputs = window_of_2d(self._array, kernel_size, stride, padding, ceil_mode, divisor_override)
    result = empty_like_format(self, (*self._array.shape[:-2], *outputs))
    avg_pool2d(planes(self), *numbers_of(slide), count_include_pad, divisor_override or 0, planes(result))
    return result


@cuda_kernel(operator_named("avg_pool2d_backward"))
def avg_pool2d_backward_cuda(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    slide, outputs = window_of_2d(self._array, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled((*self._array.shape[:-2], *outputs), 2, grad_output)
    result = empty_like_format(self, self._array.shape)
    avg_pool2d_backward(
        planes(grad_output), *numbers_of(slide), count_include_pad, divisor_override or 0, planes(result)
    )
    return result
