"""What the kernels of pooling have in common: a launch with a thread for each result, positions and windows.

Grid: blocks of 256 threads with a grid-stride loop.

In PyTorch: `aten/src/ATen/native/cuda/KernelUtils.cuh`.
"""

from readtorch.c10.cuda.launch import blocks_of, launch

THREADS = 256


def run(kernel, result, *arguments):
    if result.size:
        launch(kernel, blocks_of(result.size, THREADS), THREADS, *arguments)


def position(e, shape):
    """(image, channel, y, x) of the e-th element."""
    _, channels, height, width = shape
    return e // (channels * height * width), e // (height * width) % channels, e // width % height, e % width


def first_window(place, size, stride, reach):
    """The first window that sees a place (padding added); a window reaches `reach` elements from its
    beginning on.
    """
    return 0 if place < reach else (place - reach) // stride + 1


def begin_of(o, places, size):
    return o * size // places


def end_of(o, places, size):
    return ((o + 1) * size + places - 1) // places


def voxel(e, shape):
    """(volume, channel, z, y, x) of the e-th element."""
    _, channels, depth, height, width = shape
    n, c = e // (width * height * depth * channels), e // (width * height * depth) % channels
    return n, c, e // (width * height) % depth, e // width % height, e % width


def largest(x, n, c, layers, rows, columns):
    """The largest element of a window and its place; a nan wins. layers, rows, columns: (begin, end, step)
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
