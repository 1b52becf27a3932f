"""Matrix products: out = finish(alpha · a b + bias), for stacks of matrices with any strides.

    matmul(a, b, out, bias=None, alpha=1, finish=identity)     a: (…, M, K), b: (…, K, N), out: (…, M, N)

Note [ A tile in registers ] A block of 16 × 16 threads computes a square tile of the result, of side 64, or
128 where the result is large. It walks along K in steps of 16: the strip of `a` and the strip of `b` for this
step are brought to shared memory, and every thread adds to its own 4 × 4 (or 8 × 8) results, which stay in
registers. Per step a thread reads 8 (16) numbers from shared memory and makes 16 (64) multiply-adds: that
ratio is what keeps the arithmetic units busy.

The strips lie in shared memory with K as the slow dimension, so that a thread's numbers are neighbours and
come four at a time. An 8 × 8 thread takes rows 4y … 4y+3 and 64+4y … 64+4y+3 (columns likewise): then the 8
lanes that are served together read different banks. Rows are padded by 4 numbers: of the threads that write a
strip whose memory runs along K two meet in a bank, and without the padding sixteen would.

A transposed operand is only one with other strides. Which way the threads walk over a strip is chosen so that
neighbours read neighbours. Grid: (tiles across, tiles down, matrices).

In PyTorch: `aten/src/ATen/cuda/CUDABlas.cpp`, which calls cuBLAS.
"""
import functools
import math

import numpy as np
from numba import cuda

from ....c10.cuda.launch import launch, scratch, strided
from .loops import broadcast
from .rows import contiguous
from .vectors import load4, load_four

LANES = 16           # threads along each side of a block
THREADS = LANES * LANES
DEPTH = 16           # how much of K in one step
LARGE = 1 << 20      # results from which on tiles of 128 leave no part of the chip without work


def identity(v):
    return v


def relu(v):
    return v if v > type(v)(0) or v != v else type(v)(0)


def gelu(v):
    return type(v)(0.5) * v * (type(v)(1) + math.erf(v * type(v)(math.sqrt(0.5))))


def matmul(a, b, out, bias=None, alpha=1, finish=identity, quarters=None):
    """bias: broadcast to out (a row for Linear, or a whole matrix). float32 or float64.

    quarters: the side of a tile in units of 64, or None to choose.
    """
    if out.size == 0:
        return
    stack = out.shape[:-2]
    a, b, result = (as_stack(x, stack) for x in (a, b, out))
    bias_or_out = as_stack(out if bias is None else broadcast(bias, out.shape), stack)
    quarters = quarters or (2 if out.size >= LARGE and out.dtype == np.float32 else 1)
    along = a.strides[2] <= a.strides[1], b.strides[1] < b.strides[2]
    side = 64 * quarters
    grid = (-(-out.shape[-1] // side), -(-out.shape[-2] // side), min(result.shape[0], 65535))
    launch(kernel(quarters, *along, bias is not None, finish, out.dtype.type), grid, THREADS, a, b,
           bias_or_out, result,
           out.dtype.type(alpha))


def as_stack(x, stack):
    """x as (matrices, rows, columns); a copy where its strides do not allow it."""
    x = broadcast(x, (*stack, *x.shape[-2:]))
    if len(stack) == 1:
        return x
    if len(stack) > 1 and any(x.strides[d] != x.strides[d + 1] * x.shape[d + 1] for d in range(len(stack) - 1)):
        x = contiguous(x)
    step = x.strides[len(stack) - 1] if stack else 0
    return strided(x, (math.prod(stack), *x.shape[-2:]), (step, *x.strides[-2:]))


@functools.cache
def kernel(quarters, a_along_k, b_along_k, has_bias, finish, dtype):
    """See Note [ A tile in registers ]."""
    side, own = 64 * quarters, 4 * quarters   # of the tile, of a thread's part of it
    pitch = side + 4
    share = side * DEPTH // THREADS           # elements of a strip that each thread brings
    room, results = DEPTH * pitch, own * own  # sizes of arrays are constants
    four = load4 if dtype is np.float32 else load_four
    finishes = finish is not identity

    def bring(tile, x, z, first, k0, along_k, t):
        """Copy x[z, first …, k0 …] to tile[k, row]; zeros where it ends. x has K as its last dimension."""
        for s in range(share):
            e = t + THREADS * s
            k, m = (e % DEPTH, e // DEPTH) if along_k else (e // side, e % side)
            inside = first + m < x.shape[1] and k0 + k < x.shape[2]
            tile[k * pitch + m] = x[z, first + m, k0 + k] if inside else dtype(0)

    def bring_transposed(tile, x, z, first, k0, along_k, t):
        """The same of a matrix that has K as its first dimension."""
        for s in range(share):
            e = t + THREADS * s
            k, m = (e % DEPTH, e // DEPTH) if along_k else (e // side, e % side)
            inside = first + m < x.shape[2] and k0 + k < x.shape[1]
            tile[k * pitch + m] = x[z, k0 + k, first + m] if inside else dtype(0)

    def own_numbers(numbers, tile, k, lane):
        """The thread's numbers of one line of a strip: its four of each 64."""
        for q in range(quarters):
            a, b, c, d = four(tile, k * pitch + 64 * q + 4 * lane)
            numbers[4 * q], numbers[4 * q + 1], numbers[4 * q + 2], numbers[4 * q + 3] = a, b, c, d

    def finish_own(out, z, top, left):
        """Apart from the loop above: that one must stay small, so that its indices become names of registers.
        """
        for i in range(own):
            row = top + i // 4 * 64 + i % 4
            for j in range(own):
                column = left + j // 4 * 64 + j % 4
                if row < out.shape[1] and column < out.shape[2]:
                    out[z, row, column] = finish(out[z, row, column])

    def matmul(a, b, bias, out, alpha):
        strip_a = cuda.shared.array(room, dtype, alignment=16)
        strip_b = cuda.shared.array(room, dtype, alignment=16)
        totals = cuda.local.array(results, dtype)
        down = cuda.local.array(own, dtype)
        across = cuda.local.array(own, dtype)
        t = cuda.threadIdx.x
        x, y = t % LANES, t // LANES
        top, left = cuda.blockIdx.y * side, cuda.blockIdx.x * side
        for z in range(cuda.blockIdx.z, out.shape[0], cuda.gridDim.z):
            for r in range(results):
                totals[r] = dtype(0)
            for k0 in range(0, a.shape[2], DEPTH):
                bring(strip_a, a, z, top, k0, a_along_k, t)
                bring_transposed(strip_b, b, z, left, k0, b_along_k, t)
                cuda.syncthreads()
                for k in range(DEPTH):
                    own_numbers(down, strip_a, k, y)
                    own_numbers(across, strip_b, k, x)
                    for i in range(own):
                        for j in range(own):
                            totals[i * own + j] += down[i] * across[j]
                cuda.syncthreads()
            for i in range(own):
                row = top + i // 4 * 64 + 4 * y + i % 4
                for j in range(own):
                    column = left + j // 4 * 64 + 4 * x + j % 4
                    if row < out.shape[1] and column < out.shape[2]:
                        v = alpha * totals[i * own + j]
                        out[z, row, column] = v + bias[z, row, column] if has_bias else v
            if finishes:
                finish_own(out, z, top + 4 * y, left + 4 * x)
    return matmul
