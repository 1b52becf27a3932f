"""Padding by what stands at the edges, and the windows of an image as columns.

    pad(mirrored, x, before, out)               reflection_pad; `nearest`: replication_pad
    pad_backward(mirrored, grad, before, out)   each element gets what its copies get; `out` begins as zeros
    im2col(x, window, out)                      one column for each place of the window
    col2im(columns, window, out)                each pixel is the sum of its copies

Images are (planes, depth, height, width); before: how much padding stands before each dimension.

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of the result; where padding goes
back, one for each element of the gradient, which is added atomically.

In PyTorch: `aten/src/ATen/native/cuda/{ReflectionPad,ReplicationPadding,Im2Col,Col2Im}.cu`,
`aten/src/ATen/native/cuda/im2col.cuh`.
"""
import functools

from numba import cuda

from ....c10.cuda.launch import blocks_of, launch
from .loops import THREADS, place
from .rows import contiguous


def pad(source, x, before, out):
    run(pad_kernel(source), out, contiguous(x), before, out)


def pad_backward(source, grad, before, out):
    run(unpad_kernel(source), grad, contiguous(grad), before, out)


def im2col(x, window, out):
    """x (N, C, H, W), out (N, C · taps, places). window: sizes of the window, places down and across, dilation,
    padding, stride; each twice."""
    run(im2col_kernel, out, contiguous(x), window, out)


def col2im(columns, window, out):
    run(col2im_kernel, out, contiguous(columns), window, out)


def run(kernel, elements, *arguments):
    if elements.size:
        launch(kernel, blocks_of(elements.size, THREADS), THREADS, *arguments)


# --------------------------------------------------------------- of which element is a place outside a copy


def mirrored(i, n):
    """… 2 1 | 0 1 2 3 | 2 1 …"""
    i = -i if i < 0 else i
    return i if i < n else 2 * (n - 1) - i


def nearest(i, n):
    """… 0 0 | 0 1 2 3 | 3 3 …"""
    return min(max(i, 0), n - 1)


# ---------------------------------------------------------------------------------------------------- kernels


@functools.cache
def pad_kernel(source):
    def pad(x, before, out):
        front, top, left = before
        _, depth, height, width = x.shape
        for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            p, i, j, k = place(e, out.shape)
            out[p, i, j, k] = x[p, source(i - front, depth), source(j - top, height), source(k - left, width)]
    return pad


@functools.cache
def unpad_kernel(source):
    def unpad(grad, before, out):
        front, top, left = before
        _, depth, height, width = out.shape
        for e in range(cuda.grid(1), grad.size, cuda.gridsize(1)):
            p, i, j, k = place(e, grad.shape)
            to = (p, source(i - front, depth), source(j - top, height), source(k - left, width))
            cuda.atomic.add(out, to, grad[p, i, j, k])
    return unpad


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
