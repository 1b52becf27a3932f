"""Copies between layouts and dtypes, and cat.

A copy is a pointwise operation (loops.py) unless it transposes: then neighbours in one array are far apart in
the other. `transpose` goes through shared memory. Grid: (columns / 32, rows / 32, matrices); block: 32 × 8
threads, each of which moves 4 elements of a tile of 32 × 32. The tile has rows of 33: its columns then lie in
different banks.

In PyTorch: `aten/src/ATen/native/cuda/Copy.cu`, `Shape.cu` (`cat`).
"""
import functools

from numba import cuda

from ....c10.cuda.launch import launch, strided
from . import functions
from .loops import pointwise

TILE, PITCH, DOWN = 32, 33, 8


def copy(x, out):
    """out = x, converted to out's dtype; x broadcast."""
    if transposes(x, out):
        transpose(x.swapaxes(-1, -2), out)
    else:
        pointwise(functions.copy, [x], out)


def transposes(x, out):
    """Is the last dimension the close one in `out` and the one before it in `x`?"""
    if x.ndim not in (2, 3) or x.shape != out.shape or min(x.shape[-2:]) < TILE:
        return False
    return x.strides[-2] == x.itemsize and out.strides[-1] == out.itemsize


def transpose(x, out):
    """out[…, j, i] = x[…, i, j], of matrices or a stack of them."""
    if out.size == 0:
        return
    x, out = (a if a.ndim == 3 else strided(a, (1, *a.shape), (0, *a.strides)) for a in (x, out))
    grid = (-(-x.shape[2] // TILE), -(-x.shape[1] // TILE), min(x.shape[0], 65535))
    launch(transpose_kernel(x.dtype.type), grid, (TILE, DOWN), x, out)


@functools.cache
def transpose_kernel(dtype):
    def transpose(x, out):
        tile = cuda.shared.array((TILE, PITCH), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        left, top = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
        for z in range(cuda.blockIdx.z, x.shape[0], cuda.gridDim.z):
            for i in range(ty, TILE, DOWN):
                if top + i < x.shape[1] and left + tx < x.shape[2]:
                    tile[i, tx] = x[z, top + i, left + tx]
            cuda.syncthreads()
            for i in range(ty, TILE, DOWN):
                if left + i < x.shape[2] and top + tx < x.shape[1]:
                    out[z, left + i, top + tx] = tile[tx, i]
            cuda.syncthreads()
    return transpose


def cat(arrays, dim, out):
    """One after another along a dimension: each is copied to its part of `out`."""
    begin = 0
    for x in arrays:
        end = begin + x.shape[dim]
        pointwise(functions.copy, [x], out[(slice(None),) * (dim % out.ndim) + (slice(begin, end),)])
        begin = end
