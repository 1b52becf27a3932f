"""Matrix products: out = finish(alpha · a b + bias), for stacks of matrices with any strides; and the loop that they
share with convolutions.

    matmul(a, b, out, bias=None, alpha=1, finish=None)     a: (…, M, K), b: (…, K, N), out: (…, M, N)

A transposed operand is only one with other strides: which way the threads walk over a strip is chosen so that
neighbors read neighbors.

Note [ A tile in registers ]
A block of 16 × 16 threads computes a square tile of the result, of side 64, or 128 where the result is large. It walks
along K in steps of 16: the strip of `a` and the strip of `b` for this step are brought to shared memory, and every
thread adds to its own 4 × 4 (or 8 × 8) results, which stay in registers. Per step a thread reads 8 (16) numbers from
shared memory and makes 16 (64) multiply-adds: that ratio is what keeps the arithmetic units busy.

The strips lie in shared memory with K as the slow dimension, so that a thread's numbers are neighbours and come four
at a time. An 8 × 8 thread takes rows 4y … 4y+3 and 64+4y … 64+4y+3 (columns likewise): then the 8 lanes that are
served together read different banks. Rows are padded by 4 numbers: of the threads that write a strip whose memory runs
along K two meet in a bank, and without the padding sixteen would.

Where the operands come from is the business of three functions: `a_at(a, geometry, z, i, k)`, `b_at(b, geometry, z, k,
j)`, and `put(out, extra, geometry, z, part, i, j, total)`. So a convolution is a matrix product whose operand is never
laid out in memory ("implicit GEMM").

Grid: (tiles across, tiles down, products × parts). A long K is cut into parts, whose results `put` keeps apart.

In PyTorch: `aten/src/ATen/cuda/CUDABlas.cpp`.
"""

import functools
import math

import numpy as np
from numba import cuda

from readtorch.c10.cuda.launch import launch, strided

from .loops import broadcast
from .memory_access import load4, load_four
from .rows import contiguous

LANES = 16  # threads along each side of a block
THREADS = LANES * LANES
DEPTH = 16  # how much of K in one step
LARGE = 1 << 20  # results from which on tiles of 128 leave no part of the chip without work


def nothing(out, z, i, j):
    """No second step."""


def run_tiles(functions, along, sizes, arrays, geometry, dtype, parts=1, quarters=None, finish=nothing, blocks=1):
    """functions: a_at, b_at, put. finish(out, z, i, j) changes a stored result. along: does the memory of a
    and of b run along K? sizes: products, M, N, K.

    arrays: a, b, extra, out. quarters: the side of a tile in units of 64; None chooses. blocks: how many a
    multiprocessor shall hold at a time, if tiles are small: while one waits for its strips, another computes.
    """
    products, m, n, k = sizes
    quarters = quarters or (2 if products * m * n >= LARGE and dtype is np.float32 else 1)
    side = 64 * quarters
    grid = (-(-n // side), -(-m // side), min(products * parts, 65535))
    kernel = tile_kernel(quarters, *along, *functions, finish, dtype, blocks if quarters == 1 else 1)
    launch(kernel, grid, THREADS, *arrays, geometry, sizes, parts)


def bring_strip(element, along_k, side, dtype):
    """strip[k, i] = element(operand, geometry, z, i, k); zeros where the operand ends. Neighboring threads take
    neighbors in memory."""
    pitch = side + 4
    share = side * DEPTH // THREADS  # elements of a strip that each thread brings

    def bring(strip, operand, geometry, z, first, k0, count, end, t):
        for s in range(share):
            e = t + THREADS * s
            k, i = (e % DEPTH, e // DEPTH) if along_k else (e // side, e % side)
            inside = first + i < count and k0 + k < end
            strip[k * pitch + i] = element(operand, geometry, z, first + i, k0 + k) if inside else dtype(0)

    return bring


def own_line(quarters, pitch, dtype):
    """The thread's elements of one line of a strip: its four of each 64."""
    four = load4 if dtype is np.float32 else load_four

    def own_numbers(numbers, strip, k, lane):
        for q in range(quarters):
            a, b, c, d = four(strip, k * pitch + 64 * q + 4 * lane)
            numbers[4 * q], numbers[4 * q + 1], numbers[4 * q + 2], numbers[4 * q + 3] = a, b, c, d

    return own_numbers


@functools.cache
def tile_kernel(quarters, a_along_k, b_along_k, a_at, b_at, put, finish, dtype, blocks):
    """See Note [ A tile in registers ]."""
    side, own = 64 * quarters, 4 * quarters  # of the tile, of a thread's part of it
    pitch = side + 4
    room, results = DEPTH * pitch, own * own  # sizes of arrays are constants
    finishes = finish is not nothing

    bring_a = bring_strip(a_at, a_along_k, side, dtype)
    bring_b = bring_strip(lambda b, geometry, z, j, k: b_at(b, geometry, z, k, j), b_along_k, side, dtype)
    own_numbers = own_line(quarters, pitch, dtype)

    def finish_own(out, z, top, left, rows, columns):
        """Apart from the loop that stores: that one must stay small, or else `totals` is kept in memory."""
        for r in range(results):
            row, column = top + r // own // 4 * 64 + r // own % 4, left + r % own // 4 * 64 + r % 4
            if row < rows and column < columns:
                finish(out, z, row, column)

    def tiles(a, b, extra, out, geometry, sizes, parts):
        strip_a = cuda.shared.array(room, dtype, alignment=16)
        strip_b = cuda.shared.array(room, dtype, alignment=16)
        totals = cuda.local.array(results, dtype)
        down = cuda.local.array(own, dtype)
        across = cuda.local.array(own, dtype)
        products, rows, columns, depth = sizes
        t = cuda.threadIdx.x
        x, y = t % LANES, t // LANES
        top, left = cuda.blockIdx.y * side, cuda.blockIdx.x * side
        length = (depth + parts - 1) // parts
        for piece in range(cuda.blockIdx.z, products * parts, cuda.gridDim.z):
            z, part = piece // parts, piece % parts
            for r in range(results):
                totals[r] = dtype(0)
            end = min((part + 1) * length, depth)
            for k0 in range(part * length, end, DEPTH):
                bring_a(strip_a, a, geometry, z, top, k0, rows, end, t)
                bring_b(strip_b, b, geometry, z, left, k0, columns, end, t)
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
                    if row < rows and column < columns:
                        put(out, extra, geometry, z, part, row, column, totals[i * own + j])
            if finishes:
                finish_own(out, z, top + 4 * y, left + 4 * x, rows, columns)

    tiles.launch_bounds = (THREADS, blocks) if blocks > 1 else None
    return tiles


def matmul(a, b, out, bias=None, alpha=1, finish=None, quarters=None):
    """bias: broadcast to out (a row for Linear, or a whole matrix). finish: relu, gelu or None. quarters: see
    this file's docstring.
    """
    if out.size == 0:
        return
    stack = out.shape[:-2]
    a, b, result = (as_stack(x, stack) for x in (a, b, out))
    extra = result if bias is None else as_stack(broadcast(bias, out.shape), stack)
    along = a.strides[2] <= a.strides[1], b.strides[1] < b.strides[2]
    sizes = (result.shape[0], result.shape[1], result.shape[2], a.shape[2])
    number = out.dtype.type
    blocks = 2 if number is np.float32 and finish is None else 1  # more would not have registers enough
    run_tiles(
        (a_at, b_at, put(bias is not None)),
        along,
        sizes,
        (a, b, extra, result),
        (number(alpha),),
        number,
        quarters=quarters,
        finish=finish or nothing,
        blocks=blocks,
    )


def as_stack(x, stack):
    """x as (matrices, rows, columns); a copy where its strides do not allow it."""
    x = broadcast(x, (*stack, *x.shape[-2:]))
    if len(stack) == 1:
        return x
    if any(x.strides[d] != x.strides[d + 1] * x.shape[d + 1] for d in range(len(stack) - 1)):
        x = contiguous(x)
    step = x.strides[len(stack) - 1] if stack else 0
    return strided(x, (math.prod(stack), *x.shape[-2:]), (step, *x.strides[-2:]))


def a_at(a, numbers, z, i, k):
    return a[z, i, k]


def b_at(b, numbers, z, k, j):
    return b[z, k, j]


def relu(out, z, i, j):
    v = out[z, i, j]
    if v < type(v)(0):
        out[z, i, j] = 0


def gelu(out, z, i, j):
    v = out[z, i, j]
    out[z, i, j] = type(v)(0.5) * v * (type(v)(1) + math.erf(v * type(v)(SQRT_HALF)))


SQRT_HALF = math.sqrt(0.5)


@functools.cache
def put(has_bias):
    """numbers: alpha."""

    def store(out, bias, numbers, z, part, i, j, total):
        v = numbers[0] * total
        out[z, i, j] = v + bias[z, i, j] if has_bias else v

    return store
