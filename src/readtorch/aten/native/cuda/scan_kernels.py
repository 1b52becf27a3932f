"""cumsum, cumprod and logcumsumexp; cummax and cummin, which also tell where the extreme was met.

Grid: one block for each row; block: up to 256 threads, which take the row in pieces. A thread has four neighbours of a piece
(of the extremes, one) and scans them alone; then each warp scans its lanes' totals by shuffles (after step k a lane holds
the sum of the 2ᵏ⁺¹ lanes up to itself), the warps' totals are scanned by the first warp, and what came before the piece is
carried along.

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
from .memory_access import load, load4, store, store4
from .offset_calculator import laid_out
from .persistent_softmax import rows_in_fours
from .reduce_ops import converted, wide_enough
from .reduce_ops import store as store_in
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
    outer, n, inner = x.shape
    close = inner == 1 and n % 4 == 0 and all(a.strides[1] == a.itemsize for a in (x, out))
    kernel = scan_kernel(combine, out.dtype.type, close and all(rows_in_fours(a[:, :, 0]) for a in (x, out)))
    (source, source_steps), (target, target_steps) = laid_out(x), laid_out(out)
    arguments = source, target, x.shape, source_steps, target_steps, out.dtype.type(identity)
    launch(kernel, (inner, min(outer, 65535)), whole_warps(-(-n // 4)), *arguments)


@functools.cache
def scan_kernel(combine, dtype, fours):
    load_four, store_four = (fours_of, set_fours) if fours else (ones_of, set_ones)

    def scan_warp(value):
        lane, distance = cuda.threadIdx.x % WARP, 1
        while distance < WARP:
            before = cuda.shfl_up_sync(ALL_LANES, value, distance)
            value = combine(before, value) if lane >= distance else value
            distance *= 2
        return value

    def before_thread(total, carry, shared, identity):
        """(what comes before this thread's elements, what comes before the next piece), given the thread's total."""
        lane, warp, warps = cuda.threadIdx.x % WARP, cuda.threadIdx.x // WARP, cuda.blockDim.x // WARP
        total = scan_warp(total)
        if lane == WARP - 1:
            shared[warp] = total
        before = cuda.shfl_up_sync(ALL_LANES, total, 1)
        cuda.syncthreads()
        if warp == 0:
            shared[lane] = scan_warp(shared[lane] if lane < warps else identity)
        cuda.syncthreads()
        of_warps = combine(carry, shared[warp - 1]) if warp > 0 else carry
        carry = combine(carry, shared[warps - 1])
        cuda.syncthreads()
        return combine(of_warps, before) if lane > 0 else of_warps, carry

    def scan(x, out, shape, steps, out_steps, identity):
        shared, j, n = cuda.shared.array(32, dtype), cuda.blockIdx.x, shape[1]
        for i in range(cuda.blockIdx.y, shape[0], cuda.gridDim.y):
            source, target = i * steps[0] + j * steps[2], i * out_steps[0] + j * out_steps[2]
            carry, piece = identity, 0
            while piece < n:
                k = piece + 4 * cuda.threadIdx.x
                a, b, c, d = load_four(x, source, k, n, steps[1], identity)
                b = combine(a, b)
                c = combine(b, c)
                d = combine(c, d)
                before, carry = before_thread(d, carry, shared, identity)
                a, b, c, d = combine(before, a), combine(before, b), combine(before, c), combine(before, d)
                store_four(out, target, k, n, out_steps[1], a, b, c, d)
                piece += 4 * cuda.blockDim.x

    return scan


def fours_of(x, begin, k, n, step, identity):
    """Elements k … k + 3 of a row, and the identity beyond its end."""
    return load4(x, begin + k) if k < n else (identity, identity, identity, identity)


def ones_of(x, begin, k, n, step, identity):
    a = b = c = d = identity
    if k < n:
        a = type(identity)(load(x, begin + k * step))
    if k + 1 < n:
        b = type(identity)(load(x, begin + (k + 1) * step))
    if k + 2 < n:
        c = type(identity)(load(x, begin + (k + 2) * step))
    if k + 3 < n:
        d = type(identity)(load(x, begin + (k + 3) * step))
    return a, b, c, d


def set_fours(out, begin, k, n, step, a, b, c, d):
    if k < n:
        store4(out, begin + k, a, b, c, d)


def set_ones(out, begin, k, n, step, a, b, c, d):
    if k < n:
        store(out, begin + k * step, a)
    if k + 1 < n:
        store(out, begin + (k + 1) * step, b)
    if k + 2 < n:
        store(out, begin + (k + 2) * step, c)
    if k + 3 < n:
        store(out, begin + (k + 3) * step, d)


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
    store_in(lambda array: run(self._array, wrap_dim(dim, self._array.ndim), array), out)


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
        store_in(lambda array: running_extreme(wins, x, dim, array, indices._array), values)


running_extreme_operator("cummax", at_least)
running_extreme_operator("cummin", at_most)
