"""A function of single elements, applied to whole arrays.

    pointwise(function, [a, b], out, scalars)     out = function(a, b, scalars), the inputs broadcast to `out`

`function` takes one element of each input (one to four) and the tuple `scalars`. Grid: enough blocks of 256
threads to give each thread four elements; a grid-stride loop does the rest. Contiguous float32 arrays move
four elements at a time. Others are brought to four dimensions, and each thread works out where its element
lies.

In PyTorch: `aten/src/ATen/native/cuda/Loops.cuh` (`gpu_kernel`), `CUDALoops.cuh`, `OffsetCalculator.cuh`.
"""

import functools

import numpy as np
from numba import cuda

from readtorch.c10.cuda.launch import blocks_of, launch, strided

from .memory_access import in_fours, load, load4, store, store4
from .offset_calculator import divider, in_32_bits, offset_of, place_of, with_steps

THREADS = 256


def pointwise(function, inputs, out, scalars=(np.float32(0),)):
    """Shapes: inputs broadcast to out's. Any strides and dtypes."""
    if out.size == 0:
        return
    arrays = [*inputs, out]
    flat = all([a.shape == out.shape and a.flags.c_contiguous for a in arrays])
    if flat:
        arrays = [a.reshape(-1) for a in arrays]
    else:
        arrays = collapse([*[broadcast(x, out.shape) for x in inputs], out])
        flat = all([a.ndim == 1 and a.flags.c_contiguous for a in arrays])
    fours = flat and in_fours(*arrays)
    grid = blocks_of(out.size, THREADS * 4 if fours else THREADS)
    if fours or flat:
        launch(kernel(len(inputs), function, fours), grid, THREADS, *arrays, scalars)
        return
    for block in blocks_of_four_dimensions(arrays):
        for part in in_32_bits(block):
            launch_strided(strided_kernel(len(inputs), function), part, scalars)


def launch_strided(kernel, arrays, scalars):
    """For arrays of four dimensions: Note [ Division by multiplication ]."""
    shape, count = arrays[0].shape, arrays[0].size
    rows, steps = zip(*map(with_steps, arrays))
    dividers = tuple(map(divider, shape[1:]))
    launch(kernel, blocks_of(count, THREADS), THREADS, *rows, count, dividers, steps, scalars)


# --------------------------------------------------------------------------------------------------- geometry


def broadcast(array, shape):
    """`array` as if it had this shape: stride 0 where it is repeated."""
    if array.shape == shape and 1 not in shape:
        return array
    lead = len(shape) - array.ndim
    strides = [0] * lead + [s if n != 1 else 0 for n, s in zip(array.shape, array.strides)]
    return strided(array, tuple(shape), tuple(strides))


def collapse(arrays):
    """The same elements with as few dimensions as all the arrays allow, the last array's largest strides
    first.
    """
    shape, dims = arrays[-1].shape, []
    for d in sorted((d for d, n in enumerate(shape) if n != 1), key=lambda d: -arrays[-1].strides[d]):
        steps = [a.strides[d] for a in arrays]
        if dims and dims[-1][1] == [shape[d] * step for step in steps]:
            dims[-1] = (dims[-1][0] * shape[d], steps)
        else:
            dims.append((shape[d], steps))
    dims = dims or [(1, [a.itemsize for a in arrays])]
    return [strided(a, tuple(n for n, _ in dims), tuple(steps[k] for _, steps in dims)) for k, a in enumerate(arrays)]


def blocks_of_four_dimensions(arrays):
    """Arrays of exactly four dimensions; of more, the outer ones are taken apart."""
    shape = arrays[0].shape
    if len(shape) <= 4:
        lead = 4 - len(shape)
        yield [strided(a, (1,) * lead + shape, (0,) * lead + a.strides) for a in arrays]
        return
    for i in range(shape[0]):
        yield from blocks_of_four_dimensions([a[i] for a in arrays])


# ---------------------------------------------------------------------------------------------------- kernels


@functools.cache
def kernel(inputs, function, fours):
    """The loop over flat arrays, for so many inputs."""
    return (FLAT_FOURS if fours else FLAT)[inputs](function)


def flat_1(function):
    def flat(a, out, scalars):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            store(out, i, function(load(a, i), scalars))

    return flat


def flat_2(function):
    def flat(a, b, out, scalars):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            store(out, i, function(load(a, i), load(b, i), scalars))

    return flat


def flat_3(function):
    def flat(a, b, c, out, scalars):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            store(out, i, function(load(a, i), load(b, i), load(c, i), scalars))

    return flat


def fours_1(function):
    def fours(a, out, scalars):
        for q in range(cuda.grid(1), out.size // 4, cuda.gridsize(1)):
            x = load4(a, 4 * q)
            store4(
                out,
                4 * q,
                function(x[0], scalars),
                function(x[1], scalars),
                function(x[2], scalars),
                function(x[3], scalars),
            )
        i = out.size // 4 * 4 + cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], scalars)

    return fours


def fours_2(function):
    def fours(a, b, out, scalars):
        for q in range(cuda.grid(1), out.size // 4, cuda.gridsize(1)):
            x, y = load4(a, 4 * q), load4(b, 4 * q)
            store4(
                out,
                4 * q,
                function(x[0], y[0], scalars),
                function(x[1], y[1], scalars),
                function(x[2], y[2], scalars),
                function(x[3], y[3], scalars),
            )
        i = out.size // 4 * 4 + cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], b[i], scalars)

    return fours


def fours_3(function):
    def fours(a, b, c, out, scalars):
        for q in range(cuda.grid(1), out.size // 4, cuda.gridsize(1)):
            x, y, z = load4(a, 4 * q), load4(b, 4 * q), load4(c, 4 * q)
            store4(
                out,
                4 * q,
                function(x[0], y[0], z[0], scalars),
                function(x[1], y[1], z[1], scalars),
                function(x[2], y[2], z[2], scalars),
                function(x[3], y[3], z[3], scalars),
            )
        i = out.size // 4 * 4 + cuda.grid(1)
        if i < out.size:
            out[i] = function(a[i], b[i], c[i], scalars)

    return fours


FLAT = {1: flat_1, 2: flat_2, 3: flat_3}
FLAT_FOURS = {1: fours_1, 2: fours_2, 3: fours_3}


def place(i, shape):
    """The position of the i-th element in four dimensions."""
    l = i % shape[3]
    i //= shape[3]
    k = i % shape[2]
    i //= shape[2]
    return i // shape[1], i % shape[1], k, l


@functools.cache
def strided_kernel(inputs, function):
    """The loop over arrays of four dimensions and any strides."""
    return STRIDED[inputs](function)


def strided_1(function):
    def strided(a, out, count, dividers, steps, scalars):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            at = place_of(i, dividers)
            x = load(a, offset_of(at, steps[0]))
            store(out, offset_of(at, steps[1]), function(x, scalars))

    return strided


def strided_2(function):
    def strided(a, b, out, count, dividers, steps, scalars):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            at = place_of(i, dividers)
            x, y = load(a, offset_of(at, steps[0])), load(b, offset_of(at, steps[1]))
            store(out, offset_of(at, steps[2]), function(x, y, scalars))

    return strided


def strided_3(function):
    def strided(a, b, c, out, count, dividers, steps, scalars):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            at = place_of(i, dividers)
            x, y, z = (
                load(a, offset_of(at, steps[0])),
                load(b, offset_of(at, steps[1])),
                load(c, offset_of(at, steps[2])),
            )
            store(out, offset_of(at, steps[3]), function(x, y, z, scalars))

    return strided


STRIDED = {1: strided_1, 2: strided_2, 3: strided_3}
