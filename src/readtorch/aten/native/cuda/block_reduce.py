"""One value out of those of all threads: of a warp by shuffles, of a block by shuffles and one step through
shared memory.

Each function makes a device function for a `combine(a, b)`, which must be associative and commutative up to
rounding.

In PyTorch: `aten/src/ATen/native/cuda/block_reduce.cuh` (`WarpReduce`, `BlockReduce`).
"""

import functools

from numba import cuda

ALL_LANES = 0xFFFFFFFF
WARP = 32


@functools.cache
def warp_reduce(combine):
    """reduce(value): every lane gets the combination of the 32 values. All lanes must call it."""

    def reduce(value):
        distance = WARP // 2
        while distance > 0:
            value = combine(value, cuda.shfl_xor_sync(ALL_LANES, value, distance))
            distance //= 2
        return value

    return reduce


@functools.cache
def block_reduce(combine):
    """reduce(value, shared, identity): every thread of a block in one dimension, of whole warps, gets the
    result.

    `shared` has 32 elements; it may be used again at once.
    """
    across_warp = warp_reduce(combine)

    def reduce(value, shared, identity):
        lane, warp = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP
        value = across_warp(value)
        if lane == 0:
            shared[warp] = value
        cuda.syncthreads()
        value = across_warp(shared[lane] if lane < cuda.blockDim.x // WARP else identity)
        cuda.syncthreads()
        return value

    return reduce


def plus(a, b):
    return a + b


def times(a, b):
    return a * b


def greater(a, b):
    """The greater one; a nan wins."""
    return a if a > b or a != a else b


def smaller(a, b):
    return a if a < b or a != a else b


def either(a, b):
    return a or b


def both(a, b):
    return a and b


block_sum, block_max = block_reduce(plus), block_reduce(greater)
warp_sum, warp_max = warp_reduce(plus), warp_reduce(greater)


def whole_warps(threads, most=256):
    """A block of whole warps for so many threads' work."""
    return max(WARP, min(most, -(-threads // WARP) * WARP))
