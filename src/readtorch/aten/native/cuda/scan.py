"""cumsum and cumprod.

Grid: one block for each row; block: 256 threads, which take the row in pieces of 256. Inside a piece each
warp scans by shuffles (after step k a lane holds the sum of the 2ᵏ⁺¹ lanes up to itself), the warps' totals
are scanned by the first warp, and what came before the piece is carried along.

In PyTorch: `aten/src/ATen/native/cuda/ScanUtils.cuh`.
"""
import functools

import numpy as np
from numba import cuda

from ....c10.cuda.launch import launch
from .block_reduce import ALL_LANES, WARP, plus, times, whole_warps
from .rows import as_rows


def cumsum(x, dim, out):
    scan(plus, 0, x, dim, out)


def cumprod(x, dim, out):
    scan(times, 1, x, dim, out)


def scan(combine, identity, x, dim, out):
    """out: contiguous, of the dtype to compute in (32 or 64 bits)."""
    if out.size == 0:
        return
    x, out = as_rows(x, dim), as_rows(out, dim)
    rows = min(x.shape[0] * x.shape[2], 65535)
    launch(scan_kernel(combine, out.dtype.type), rows, whole_warps(x.shape[1]), x, out,
           out.dtype.type(identity))


@functools.cache
def scan_kernel(combine, dtype):
    def scan_warp(value):
        lane, distance = cuda.threadIdx.x % WARP, 1
        while distance < WARP:
            before = cuda.shfl_up_sync(ALL_LANES, value, distance)
            value = combine(before, value) if lane >= distance else value
            distance *= 2
        return value

    def scan(x, out, identity):
        shared = cuda.shared.array(32, dtype)
        t, inner = cuda.threadIdx.x, x.shape[2]
        lane, warp, warps = t % WARP, t // WARP, cuda.blockDim.x // WARP
        for r in range(cuda.blockIdx.x, x.shape[0] * inner, cuda.gridDim.x):
            i, j, carry = r // inner, r % inner, identity
            for begin in range(0, x.shape[1], cuda.blockDim.x):
                k = begin + t
                value = scan_warp(dtype(x[i, k, j]) if k < x.shape[1] else identity)
                if lane == WARP - 1:
                    shared[warp] = value
                cuda.syncthreads()
                if warp == 0:
                    shared[lane] = scan_warp(shared[lane] if lane < warps else identity)
                cuda.syncthreads()
                before = combine(carry, shared[warp - 1]) if warp > 0 else carry
                if k < x.shape[1]:
                    out[i, k, j] = combine(before, value)
                carry = combine(carry, shared[warps - 1])
                cuda.syncthreads()
    return scan
