"""cumsum, cumprod and logcumsumexp; cummax and cummin, which also tell where the extreme was met.

Grid: one block for each row; block: 256 threads, which take the row in pieces of 256. Inside a piece each
warp scans by shuffles (after step k a lane holds the sum of the 2ᵏ⁺¹ lanes up to itself), the warps' totals
are scanned by the first warp, and what came before the piece is carried along.

In PyTorch: `aten/src/ATen/native/cuda/ScanKernels.cpp`, `aten/src/ATen/native/cuda/ScanUtils.cuh`.
"""

import functools
import math

import numpy as np
from numba import cuda

from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.cuda.launch import launch
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .block_reduce import ALL_LANES, WARP, plus, times, whole_warps
from .reduce_ops import converted, store, wide_enough
from .register_dispatch_key import cuda_impl, operator_named
from .rows import as_rows


def cumsum(x, dim, out):
    scan(plus, 0, x, dim, out)


def cumprod(x, dim, out):
    scan(times, 1, x, dim, out)


def logcumsumexp(x, dim, out):
    scan(add_exponents, -math.inf, x, dim, out)


def add_exponents(a, b):
    """log(exp(a) + exp(b)), without an exponential that overflows."""
    largest, least = max(a, b), min(a, b)
    if a != a or b != b:
        return a + b
    if least == largest and abs(least) == math.inf or least == -math.inf:
        return largest
    return largest + math.log1p(math.exp(least - largest))


def running_extreme(wins, x, dim, values, indices):
    """wins: `at_least` or `at_most`. values, indices (int64): contiguous; x and values of 32 or 64 bits."""
    if values.size:
        x, values, indices = (as_rows(a, dim) for a in (x, values, indices))
        rows = min(x.shape[0] * x.shape[2], 65535)
        launch(extreme_kernel(wins, x.dtype.type), rows, whole_warps(x.shape[1]), x, values, indices)


def at_least(a, b):
    """Whether b, which comes later, takes the place of a: an equal one does, and a nan for good."""
    return b >= a or b != b


def at_most(a, b):
    return b <= a or b != b


def scan(combine, identity, x, dim, out):
    """out: contiguous, of the dtype to compute in (32 or 64 bits)."""
    if out.size == 0:
        return
    x, out = as_rows(x, dim), as_rows(out, dim)
    rows = min(x.shape[0] * x.shape[2], 65535)
    launch(scan_kernel(combine, out.dtype.type), rows, whole_warps(x.shape[1]), x, out, out.dtype.type(identity))


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


@functools.cache
def extreme_kernel(wins, dtype):
    """As above, of pairs of a value and its place; a place of -1 says that there is no value."""

    def later(a, i, b, j):
        return (b, j) if i < 0 or (j >= 0 and wins(a, b)) else (a, i)

    def scan_warp(value, place):
        lane, distance = cuda.threadIdx.x % WARP, 1
        while distance < WARP:
            before = cuda.shfl_up_sync(ALL_LANES, value, distance)
            where = cuda.shfl_up_sync(ALL_LANES, place, distance)
            if lane >= distance:
                value, place = later(before, where, value, place)
            distance *= 2
        return value, place

    def extremes(x, values, indices):
        shared, places = cuda.shared.array(32, dtype), cuda.shared.array(32, np.int64)
        t, inner = cuda.threadIdx.x, x.shape[2]
        lane, warp, warps = t % WARP, t // WARP, cuda.blockDim.x // WARP
        for r in range(cuda.blockIdx.x, x.shape[0] * inner, cuda.gridDim.x):
            i, j, carry, met = r // inner, r % inner, dtype(0), np.int64(-1)
            for begin in range(0, x.shape[1], cuda.blockDim.x):
                k = begin + t
                value, place = dtype(0), np.int64(-1)
                if k < x.shape[1]:
                    value, place = x[i, k, j], np.int64(k)
                value, place = scan_warp(value, place)
                if lane == WARP - 1:
                    shared[warp], places[warp] = value, place
                cuda.syncthreads()
                for w in range(warp):
                    carry, met = later(carry, met, shared[w], places[w])
                value, place = later(carry, met, value, place)
                if k < x.shape[1]:
                    values[i, k, j], indices[i, k, j] = value, place
                for w in range(warp, warps):
                    carry, met = later(carry, met, shared[w], places[w])
                cuda.syncthreads()

    return extremes


def cumulative(run, self, dim, out):
    store(lambda array: run(self._array, wrap_dim(dim, self._array.ndim), array), out)


cuda_impl(operator_named("cumsum"))(lambda self, dim, dtype, out: cumulative(cumsum, self, dim, out))
cuda_impl(operator_named("cumprod"))(lambda self, dim, dtype, out: cumulative(cumprod, self, dim, out))


@cuda_impl(operator_named("logcumsumexp"))
def logcumsumexp_cuda(self, dim, out):
    if not dtype_of(self).is_floating_point:
        raise not_implemented("logcumsumexp_cuda")(dtype_of(self))
    cumulative(logcumsumexp, self, dim, out)


def running_extreme_operator(name, wins):
    @cuda_impl(operator_named(name))
    def kernel(self, dim, values, indices):
        x, dim = converted(self, wide_enough(self._array.dtype))._array, wrap_dim(dim, self._array.ndim)
        store(lambda array: running_extreme(wins, x, dim, array, indices._array), values)


running_extreme_operator("cummax", at_least)
running_extreme_operator("cummin", at_most)
