"""avg_pool2d, forward and backward: a thread adds up the window of one result, or the shares of one element of the
input.

In PyTorch: `aten/src/ATen/native/cuda/AveragePool2d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.windows import sliding

from .kernel_utils import first_window, position, run
from .pool import check_floating, in_wide, numbers_of, planes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


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


@cuda_impl(operator_named("avg_pool2d"))
def avg_pool2d_cuda(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out):
    check_floating("avg_pool2d_out_cuda_frame", self)
    slide = sliding("avg_pool2d", 2, kernel_size, stride, padding)
    how = (*numbers_of(slide), count_include_pad, divisor_override or 0)
    with in_wide(out) as means:
        avg_pool2d(planes(wide(self)), *how, planes(means))


@cuda_impl(operator_named("avg_pool2d_backward"))
def avg_pool2d_backward_cuda(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_input
):
    slide = sliding("avg_pool2d", 2, kernel_size, stride, padding)
    how = (*numbers_of(slide), count_include_pad, divisor_override or 0)
    with in_wide(grad_input) as sums:
        avg_pool2d_backward(planes(wide(grad_output)), *how, planes(sums))
