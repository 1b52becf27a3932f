"""Pooling over three dimensions: averages and maxima in fixed, adaptive and fractional windows.

    avg_pool3d(x, window, stride, padding, count_include_pad, divisor, out)      and its backward
    max_pool3d(x, window, stride, padding, dilation, out, indices)
    adaptive_max_pool3d(x, out, indices)
    fractional_max_pool(x, window, samples, columns, out, indices)      images: volumes of depth 1

All arrays are (N, C, D, H, W). An index (int64) says where in its volume, counted through, a maximum lies.
Grid: blocks of 256 threads with a grid-stride loop, a thread for each result. What an average sends back is
gathered by a thread for each element of the input. A maximum sends its gradient to one place: that is
`scatter_add` of indexing.py, along the volume.

In PyTorch:
`aten/src/ATen/native/cuda/{AveragePool3d,DilatedMaxPool3d,AdaptiveMaxPooling3d,FractionalMaxPool2d,
FractionalMaxPool3d}.cu`.
"""
from numba import cuda

from .pooling import begin_of, end_of, extent, first_window, run
from .rows import contiguous


def avg_pool3d(x, window, stride, padding, count_include_pad, divisor, out):
    """divisor: what to divide by, or 0 for the number of elements in the window."""
    numbers = (*window, *stride, *padding, int(count_include_pad), divisor)
    run(average_kernel, out, contiguous(x), numbers, out)


def avg_pool3d_backward(grad, window, stride, padding, count_include_pad, divisor, grad_input):
    numbers = (*window, *stride, *padding, int(count_include_pad), divisor)
    run(average_backward_kernel, grad_input, contiguous(grad), numbers, grad_input)


def max_pool3d(x, window, stride, padding, dilation, out, indices):
    run(max_kernel, out, contiguous(x), (*window, *stride, *padding, *dilation), out, indices)


def adaptive_max_pool3d(x, out, indices):
    run(adaptive_max_kernel, out, contiguous(x), out, indices)


def fractional_max_pool(x, window, samples, columns, out, indices):
    """samples (N, C, dimensions): numbers of [0, 1); columns: which of them belongs to depth, height and
    width."""
    run(fractional_max_kernel, out, contiguous(x), window, contiguous(samples), columns, out, indices)


# ------------------------------------------------------------------------------------------- device functions


def voxel(e, shape):
    """(volume, channel, z, y, x) of the e-th element."""
    _, channels, depth, height, width = shape
    n, c = e // (width * height * depth * channels), e // (width * height * depth) % channels
    return n, c, e // (width * height) % depth, e // width % height, e % width


def greatest(x, n, c, layers, rows, columns):
    """The greatest element of a window and its place; a nan wins. layers, rows, columns: (begin, end, step)
    each."""
    height, width = x.shape[3], x.shape[4]
    place = (layers[0] * height + rows[0]) * width + columns[0]
    best = x[n, c, layers[0], rows[0], columns[0]]
    for z in range(layers[0], layers[1], layers[2]):
        for y in range(rows[0], rows[1], rows[2]):
            for i in range(columns[0], columns[1], columns[2]):
                v = x[n, c, z, y, i]
                if v > best or v != v:
                    best, place = v, (z * height + y) * width + i
    return best, place


def sliding(o, window, stride, padding, dilation, size):
    """(begin, end, step) of the o-th of the windows that slide; what lies in the padding is left out."""
    begin = o * stride - padding
    end = min(begin + (window - 1) * dilation + 1, size)
    while begin < 0:
        begin += dilation
    return begin, end, dilation


def adaptive(o, places, size):
    return begin_of(o, places, size), end_of(o, places, size), 1


def fractional(o, places, window, sample, size):
    """Equal steps of a fractional length after a random shift; the last window ends with the volume."""
    begin = size - window
    if o < places - 1:
        step = type(sample)(size - window) / type(sample)(places - 1)
        begin = int((type(sample)(o) + sample) * step) - int(sample * step)
    return begin, begin + window, 1


def divided_by(seen, covered, include_padding, divisor):
    return divisor if divisor != 0 else covered if include_padding else max(seen, 1)


# ---------------------------------------------------------------------------------------------------- kernels


def average_kernel(x, numbers, out):
    wd, wh, ww, sz, sy, sx, pz, py, px, include_padding, divisor = numbers
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        front, back, layers = extent(oz, wd, sz, pz, x.shape[2])
        top, bottom, rows = extent(oy, wh, sy, py, x.shape[3])
        left, right, columns = extent(ox, ww, sx, px, x.shape[4])
        total = x.dtype.type(0)
        for z in range(front, back):
            for y in range(top, bottom):
                for i in range(left, right):
                    total += x[n, c, z, y, i]
        seen = (back - front) * (bottom - top) * (right - left)
        count = divided_by(seen, layers * rows * columns, include_padding, divisor)
        out[n, c, oz, oy, ox] = total / x.dtype.type(count)


def average_backward_kernel(grad, numbers, out):
    wd, wh, ww, sz, sy, sx, pz, py, px, include_padding, divisor = numbers
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iz, iy, ix = voxel(e, out.shape)
        total = grad.dtype.type(0)
        for oz in range(first_window(iz + pz, wd, sz, wd), min((iz + pz) // sz + 1, grad.shape[2])):
            front, back, layers = extent(oz, wd, sz, pz, out.shape[2])
            for oy in range(first_window(iy + py, wh, sy, wh), min((iy + py) // sy + 1, grad.shape[3])):
                top, bottom, rows = extent(oy, wh, sy, py, out.shape[3])
                for ox in range(first_window(ix + px, ww, sx, ww), min((ix + px) // sx + 1, grad.shape[4])):
                    left, right, columns = extent(ox, ww, sx, px, out.shape[4])
                    seen = (back - front) * (bottom - top) * (right - left)
                    count = divided_by(seen, layers * rows * columns, include_padding, divisor)
                    total += grad[n, c, oz, oy, ox] / grad.dtype.type(count)
        out[n, c, iz, iy, ix] = total


def max_kernel(x, numbers, out, indices):
    wd, wh, ww, sz, sy, sx, pz, py, px, dz, dy, dx = numbers
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        layers = sliding(oz, wd, sz, pz, dz, x.shape[2])
        rows = sliding(oy, wh, sy, py, dy, x.shape[3])
        columns = sliding(ox, ww, sx, px, dx, x.shape[4])
        out[n, c, oz, oy, ox], indices[n, c, oz, oy, ox] = greatest(x, n, c, layers, rows, columns)


def adaptive_max_kernel(x, out, indices):
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        layers = adaptive(oz, out.shape[2], x.shape[2])
        rows = adaptive(oy, out.shape[3], x.shape[3])
        columns = adaptive(ox, out.shape[4], x.shape[4])
        out[n, c, oz, oy, ox], indices[n, c, oz, oy, ox] = greatest(x, n, c, layers, rows, columns)


def fractional_max_kernel(x, window, samples, places, out, indices):
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        layers = fractional(oz, out.shape[2], window[0], samples[n, c, places[0]], x.shape[2])
        rows = fractional(oy, out.shape[3], window[1], samples[n, c, places[1]], x.shape[3])
        columns = fractional(ox, out.shape[4], window[2], samples[n, c, places[2]], x.shape[4])
        out[n, c, oz, oy, ox], indices[n, c, oz, oy, ox] = greatest(x, n, c, layers, rows, columns)
