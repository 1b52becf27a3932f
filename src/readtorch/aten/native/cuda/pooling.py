"""Max and average pooling over two dimensions, with fixed and with adaptive windows, forward and backward.

Grid: blocks of 256 threads with a grid-stride loop. Forward a thread makes one result. Backward it gathers
for one element of the input what the windows that saw it send back: no two threads write one place, and no
atomics are needed.

In PyTorch: `aten/src/ATen/native/cuda/{DilatedMaxPool2d,AveragePool2d,AdaptiveAveragePooling,
AdaptiveMaxPooling2d}.cu`.
"""

from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from .rows import contiguous

THREADS = 256


def max_pool2d(x, window, stride, padding, dilation, out, indices):
    """x (N, C, H, W). indices (int64): where in its image, counted through, each maximum lies."""
    run(max_kernel, out, contiguous(x), (*window, *stride, *padding, *dilation), out, indices)


def max_pool2d_backward(grad, indices, window, stride, padding, dilation, grad_input):
    numbers = (*window, *stride, *padding, *dilation)
    run(max_backward_kernel, grad_input, contiguous(grad), contiguous(indices), numbers, grad_input)


def avg_pool2d(x, window, stride, padding, count_include_pad, divisor, out):
    """divisor: what to divide by, or 0 for the number of elements in the window."""
    run(average_kernel, out, contiguous(x), (*window, *stride, *padding, int(count_include_pad), divisor),
        out)


def avg_pool2d_backward(grad, window, stride, padding, count_include_pad, divisor, grad_input):
    numbers = (*window, *stride, *padding, int(count_include_pad), divisor)
    run(average_backward_kernel, grad_input, contiguous(grad), numbers, grad_input)


def adaptive_avg_pool2d(x, out):
    """Windows chosen so that there are as many as out has places; they may overlap."""
    run(adaptive_kernel, out, contiguous(x), out)


def adaptive_avg_pool2d_backward(grad, grad_input):
    run(adaptive_backward_kernel, grad_input, contiguous(grad), grad_input)


def adaptive_max_pool2d(x, out, indices):
    """The greatest element of each of these windows, and where in its image it lies."""
    run(adaptive_max_kernel, out, contiguous(x), out, indices)


def adaptive_max_pool2d_backward(grad, indices, grad_input):
    run(adaptive_max_backward_kernel, grad_input, contiguous(grad), contiguous(indices), grad_input)


def run(kernel, result, *arguments):
    if result.size:
        launch(kernel, blocks_of(result.size, THREADS), THREADS, *arguments)


# ------------------------------------------------------------------------------------------- device functions


def position(e, shape):
    """(image, channel, y, x) of the e-th element."""
    _, channels, height, width = shape
    return e // (channels * height * width), e // (height * width) % channels, e // width % height, e % width


def first_window(place, size, stride, reach):
    """The first window that sees a place (padding added); a window reaches `reach` elements from its
    beginning on.
    """
    return 0 if place < reach else (place - reach) // stride + 1


# ---------------------------------------------------------------------------------------------------- kernels


def max_kernel(x, numbers, out, indices):
    wh, ww, sy, sx, py, px, dy, dx = numbers
    height, width = x.shape[2], x.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oy, ox = position(e, out.shape)
        top, left = oy * sy - py, ox * sx - px
        while top < 0:
            top += dy
        while left < 0:
            left += dx
        greatest, index = x[n, c, top, left], top * width + left
        for iy in range(top, min(oy * sy - py + (wh - 1) * dy + 1, height), dy):
            for ix in range(left, min(ox * sx - px + (ww - 1) * dx + 1, width), dx):
                v = x[n, c, iy, ix]
                if v > greatest or v != v:
                    greatest, index = v, iy * width + ix
        out[n, c, oy, ox], indices[n, c, oy, ox] = greatest, index


def max_backward_kernel(grad, indices, numbers, out):
    wh, ww, sy, sx, py, px, dy, dx = numbers
    height, width = out.shape[2], out.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iy, ix = position(e, out.shape)
        total = grad.dtype.type(0)
        for oy in range(first_window(iy + py, wh, sy, (wh - 1) * dy + 1),
                        min((iy + py) // sy + 1, grad.shape[2])):
            for ox in range(first_window(ix + px, ww, sx, (ww - 1) * dx + 1),
                            min((ix + px) // sx + 1, grad.shape[3])):
                if indices[n, c, oy, ox] == iy * width + ix:
                    total += grad[n, c, oy, ox]
        out[n, c, iy, ix] = total


def extent(o, window, stride, padding, size):
    """(begin, end, length with padding) of a window, cut off at the image's edges."""
    begin = o * stride - padding
    end = min(begin + window, size + padding)
    return max(begin, 0), min(end, size), end - begin


def divided_by(rows, columns, padded, include_padding, divisor):
    return divisor if divisor != 0 else padded if include_padding else rows * columns


def average_kernel(x, numbers, out):
    wh, ww, sy, sx, py, px, include_padding, divisor = numbers
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


def average_backward_kernel(grad, numbers, out):
    wh, ww, sy, sx, py, px, include_padding, divisor = numbers
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


def begin_of(o, places, size):
    return o * size // places


def end_of(o, places, size):
    return ((o + 1) * size + places - 1) // places


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


def adaptive_max_kernel(x, out, indices):
    height, width = x.shape[2], x.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oy, ox = position(e, out.shape)
        top, left = begin_of(oy, out.shape[2], height), begin_of(ox, out.shape[3], width)
        greatest, index = x[n, c, top, left], top * width + left
        for iy in range(top, end_of(oy, out.shape[2], height)):
            for ix in range(left, end_of(ox, out.shape[3], width)):
                v = x[n, c, iy, ix]
                if v > greatest or v != v:
                    greatest, index = v, iy * width + ix
        out[n, c, oy, ox], indices[n, c, oy, ox] = greatest, index


def adaptive_max_backward_kernel(grad, indices, out):
    down, across = grad.shape[2], grad.shape[3]
    height, width = out.shape[2], out.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iy, ix = position(e, out.shape)
        total = grad.dtype.type(0)
        for oy in range(iy * down // height, ((iy + 1) * down + height - 1) // height):
            for ox in range(ix * across // width, ((ix + 1) * across + width - 1) // width):
                if indices[n, c, oy, ox] == iy * width + ix:
                    total += grad[n, c, oy, ox]
        out[n, c, iy, ix] = total
