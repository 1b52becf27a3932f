"""Kernels for the viewer's tests: a matrix is transposed by 32 × 8 threads, well and badly."""

import numpy as np
from numba import cuda

TILE, DOWN = 32, 8


def aligned(array):
    """A copy that begins at a multiple of 256, as memory of a device does."""
    room = np.empty(array.nbytes + 256, np.uint8)
    start = -room.ctypes.data % 256
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def naive(x, out):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for i in range(ty, TILE, DOWN):
        out[tx, i] = x[i, tx]


def tiled(pitch):
    def transpose(x, out):
        tile = cuda.shared.array((TILE, pitch), np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(ty, TILE, DOWN):
            tile[i, tx] = x[i, tx]
        cuda.syncthreads()
        for i in range(ty, TILE, DOWN):
            out[i, tx] = tile[tx, i]

    return transpose


def no_barrier(x, out):
    tile = cuda.shared.array((TILE, TILE + 1), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for i in range(ty, TILE, DOWN):
        tile[i, tx] = x[i, tx]
    for i in range(ty, TILE, DOWN):
        out[i, tx] = tile[tx, i]


def copy(x, out):
    i = cuda.grid(1)
    out[i] = x[i]


def half_the_lanes(x, out):
    """Lanes take different ways, meet at a barrier of the warp, and count with an atomic operation."""
    t = cuda.threadIdx.x
    if t % 2 == 0:
        out[t] = x[t]
    cuda.syncwarp()
    cuda.atomic.add(out, 1, x[t])


def blocks_write_one(x):
    x[0] = cuda.blockIdx.x


def runs():
    x, out = (aligned(np.arange(TILE * TILE, dtype=np.float32).reshape(TILE, TILE) * k) for k in (1, 0))
    rest = 1, (TILE, DOWN), x, out
    return {
        "naive": (naive, *rest),
        "pitch 32": (tiled(32), *rest),
        "pitch 33": (tiled(33), *rest),
        "no barrier": (no_barrier, *rest),
        "past the end": (copy, 2, 64, x.reshape(-1)[:100], out.reshape(-1)),
    }
