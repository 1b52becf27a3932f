"""im2col (`unfold`) and col2im (`fold`): the windows of an image as the columns of a matrix, and back.

    im2col(x, window, out)          one column for each position of the window
    col2im(columns, window, out)    each pixel is the sum of its copies

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of the result.

In PyTorch: `aten/src/ATen/native/cuda/Im2Col.cu`.
"""

from numba import cuda

from readtorch.aten.native import im2col as columns

from .adaptive_average_pooling import as_batch
from .loops import place
from .reflection_pad import run
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous


def im2col(x, window, out):
    """x (N, C, H, W), out (N, C · taps, places). window: sizes of the window, places down and across, dilation,
    padding, stride; each twice."""
    run(im2col_kernel, out, contiguous(x), window, out)


def col2im(columns, window, out):
    run(col2im_kernel, out, contiguous(columns), window, out)


def im2col_kernel(x, window, out):
    rows, columns, _, across, dy, dx, py, px, sy, sx = window
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, line, spot = e // (out.shape[1] * out.shape[2]), e // out.shape[2] % out.shape[1], e % out.shape[2]
        y = spot // across * sy - py + line // columns % rows * dy
        x_ = spot % across * sx - px + line % columns * dx
        inside = 0 <= y and y < x.shape[2] and 0 <= x_ and x_ < x.shape[3]
        out[n, line, spot] = x[n, line // (rows * columns), y, x_] if inside else x.dtype.type(0)


def col2im_kernel(lines, window, out):
    """A thread looks up all copies of its pixel: no two threads write one place."""
    rows, columns, down, across, dy, dx, py, px, sy, sx = window
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, y, x = place(e, out.shape)
        total = lines.dtype.type(0)
        for i in range(rows):
            for j in range(columns):
                top, left = y + py - i * dy, x + px - j * dx
                if top >= 0 and left >= 0 and top % sy == 0 and left % sx == 0:
                    if top // sy < down and left // sx < across:
                        total += lines[n, (c * rows + i) * columns + j, top // sy * across + left // sx]
        out[n, c, y, x] = total


def window_numbers(kernel_size, counts, dilation, padding, stride):
    return (*kernel_size, *counts, *dilation, *padding, *stride)


@cuda_impl(operator_named("im2col"))
def im2col_cuda(self, kernel_size, dilation, padding, stride, out):
    columns.check_dtype(self, "im2col_out_cuda")
    counts = columns.window_counts(self._array.shape[-2:], kernel_size, dilation, padding, stride)
    window = window_numbers(kernel_size, counts, dilation, padding, stride)
    im2col(as_batch(self, 4)._array, window, as_batch(out, 3)._array)


@cuda_impl(operator_named("col2im"))
def col2im_cuda(self, output_size, kernel_size, dilation, padding, stride, out):
    columns.check_dtype(self, "col2im_out_cuda")
    counts = columns.window_counts(output_size, kernel_size, dilation, padding, stride)
    window = window_numbers(kernel_size, counts, dilation, padding, stride)
    col2im(as_batch(self, 3)._array, window, as_batch(out, 4)._array)
