"""Products of matrices on tensor cores: of 16-bit numbers, and of float32 where TF32 is allowed. Sums are float32.

    multiply(a, b, out, extra, alpha, put)        a: (products, M, K), b: (products, K, N), out: (products, M, N)

Note [ Tiles of words ]
A block of eight warps computes a tile of 128 × 128, in steps of 16 words of K (mma.py says what a word is): 32 numbers of
16 bits, or 16 of TF32. The next strips are on their way meanwhile, as in cuda_blas.py. A warp has 64 × 32 of the tile: of
each 8 words of K it takes four fragments of `a` (16 rows each) and two of `b` (16 columns each) from shared memory to
registers, and makes 16 products of 16 × 8.

A strip lies in shared memory as the operand lies in memory, which sixteen bytes at a time are moved through registers:
128 rows of 16 words, or as many rows of K as there are, of 128 numbers. Rows are padded so that eight that follow each
other begin in different banks. `ldmatrix` reads the first form, and, transposing, the second of 16-bit numbers; of TF32
that one is read word by word.

An operand whose rows do not begin at multiples of 16 bytes, or do not end there, is copied first, with zeros behind.

In PyTorch: `at::cuda::blas::gemm` of `aten/src/ATen/cuda/CUDABlas.cpp`, for `at::Half` and `at::BFloat16`.
"""

import functools

import numpy as np
from numba import cuda

from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import address, launch, scratch, strided

from .fill_kernel import fill
from .loops import pointwise
from .mma import (
    as_float,
    as_word,
    ldmatrix,
    ldmatrix_transposed,
    load_words,
    mma_bf16,
    mma_f16,
    mma_tf32,
    store_words,
    to_tf32,
)
from .offset_calculator import laid_out

i32, u32, f32 = np.int32, np.uint32, np.float32
unsigned = np.uint64
THREADS, SIDE = 256, 128
STEP = 16  # words of K
PITCH = STEP + 4  # from row to row of a strip whose rows run along K
STRIP = SIDE * PITCH
ROOM = 4 * STRIP  # two strips of a, two of b
OUT_PITCH = SIDE + 4
KINDS = {"float32": (mma_tf32, 1), "bfloat16": (mma_bf16, 2), "float16": (mma_f16, 2)}  # and numbers in a word


def row_pitch(numbers):
    """Words from row to row of a strip whose rows run along M or N."""
    return SIDE // numbers + (8 if numbers == 1 else 4)


@functools.cache
def words(along_k, numbers):
    """How a thread brings two chunks of four words of a strip: (start, fetch, stow), as an `Operand` of cuda_blas.py.
    numbers: in a word."""
    chunk = 4 * numbers  # numbers in a chunk
    lines = SIDE // chunk  # chunks in a row along M or N
    between = THREADS // lines  # rows of K that all threads bring together
    pitch = PITCH if along_k else row_pitch(numbers)

    def start(steps, z, first, count, t):
        """(where its first chunk begins for k = 0, its k, how far away the second chunk's row is)"""
        step, line = steps
        if along_k:
            i = min(first + t // 4, count - 1)
            return z * step + i * line + t % 4 * 4, i32(t % 4 * chunk), i32(min(64, count - 1 - i))
        i = min(first + t % lines * chunk, count - chunk)
        return z * step + i // numbers + t // lines * line, i32(t // lines), i32(between)

    def fetch(held, x, steps, place, k0, end):
        first, k, apart = place
        for p in range(2):
            at = first + p * apart * steps[1] + (k0 // numbers if along_k else k0 * steps[1])
            if k0 + k + (0 if along_k else p * between) < end:
                held[4 * p], held[4 * p + 1], held[4 * p + 2], held[4 * p + 3] = load_words(x, at)
            else:
                held[4 * p], held[4 * p + 1], held[4 * p + 2], held[4 * p + 3] = u32(0), u32(0), u32(0), u32(0)

    def stow(strips, at, t, held):
        for p in range(2):
            row, word = (t // 4 + 64 * p, t % 4 * 4) if along_k else (t // lines + between * p, t % lines * 4)
            a, b, c, d = held[4 * p], held[4 * p + 1], held[4 * p + 2], held[4 * p + 3]
            if numbers == 1:
                a, b, c, d = to_tf32(a), to_tf32(b), to_tf32(c), to_tf32(d)
            store_words(strips, at + row * pitch + word, a, b, c, d)

    return start, fetch, stow


@functools.cache
def fragment(which, along_k, numbers):
    """fragment(strips, at, i, word, lane): of operand `which` 16 rows (columns) from i on, 8 words of K. Four registers: of a
    they are one operand of `mma`, of b two, of 8 columns each."""
    pitch = row_pitch(numbers)

    def quarter(lane):
        """Which matrix of 8 × 8 the lane names a row of: (in the second half along M or N, along K)."""
        return (lane // 16, lane // 8 % 2) if which else (lane // 8 % 2, lane // 16)

    def rows_along_k(strips, at, i, word, lane):
        below, right = quarter(lane)
        return ldmatrix(strips, at + (i + below * 8 + lane % 8) * PITCH + word + right * 4)

    def rows_of_k(strips, at, i, word, lane):
        below, right = quarter(lane)
        return ldmatrix_transposed(strips, at + (2 * word + right * 8 + lane % 8) * pitch + (i + below * 8) // 2)

    def word_by_word(strips, at, i, word, lane):
        here = unsigned(at + (word + lane % 4) * pitch + i + lane // 4)
        below, right = unsigned(8), unsigned(4 * pitch)
        first, last = strips[here], strips[here + below + right]
        return (
            (first, strips[here + right], strips[here + below], last)
            if which
            else (first, strips[here + below], strips[here + right], last)
        )

    return rows_along_k if along_k else rows_of_k if numbers == 2 else word_by_word


@functools.cache
def arithmetic(kind, a_along_k, b_along_k):
    """multiply(totals, strips, at, word, down, across, lane): what 8 words of K add to a warp's 64 × 32."""
    mma, numbers = KINDS[kind]
    rows, columns = fragment(0, a_along_k, numbers), fragment(1, b_along_k, numbers)
    of_b = 2 * STRIP

    def add(totals, r, a, b):
        c = totals[r], totals[r + 1], totals[r + 2], totals[r + 3]
        totals[r], totals[r + 1], totals[r + 2], totals[r + 3] = mma(a, b, c)

    def multiply(totals, strips, at, word, down, across, lane):
        left, right = (
            columns(strips, of_b + at, across, word, lane),
            columns(strips, of_b + at, across + 16, word, lane),
        )
        for m in range(4):
            a = rows(strips, at, down + 16 * m, word, lane)
            add(totals, 16 * m, a, (left[0], left[1]))
            add(totals, 16 * m + 4, a, (left[2], left[3]))
            add(totals, 16 * m + 8, a, (right[0], right[1]))
            add(totals, 16 * m + 12, a, (right[2], right[3]))

    return multiply


def spread(strips, totals, across, lane):
    """A warp's 64 rows to shared memory, where the strips were: from there neighbors store neighbors."""
    for m in range(4):
        for n in range(4):
            for i in range(4):
                row, column = 16 * m + lane // 4 + i // 2 * 8, across + 8 * n + lane % 4 * 2 + i % 2
                strips[unsigned(row * OUT_PITCH + column)] = as_word(totals[16 * m + 4 * n + i])


@functools.cache
def tensor_core_kernel(kind, a_along_k, b_along_k, put):
    """See Note [ Tiles of words ]."""
    numbers = KINDS[kind][1]
    depth = STEP * numbers
    start_a, fetch_a, stow_a = words(a_along_k, numbers)
    start_b, fetch_b, stow_b = words(b_along_k, numbers)
    multiply = arithmetic(kind, a_along_k, b_along_k)

    def tensor_core_tiles(a, b, extra, out, geometry, sizes):
        strips = cuda.shared.array(ROOM, u32, alignment=16)
        totals, held = cuda.local.array(64, f32), cuda.local.array(8, u32)
        products, rows, columns, end = sizes[0], i32(sizes[1]), i32(sizes[2]), i32(sizes[3])
        t = i32(cuda.threadIdx.x)
        lane, warp = i32(t % 32), i32(t // 32)
        down, across = i32(warp // 4 * 64), i32(warp % 4 * 32)
        top, left = i32(cuda.blockIdx.y * SIDE), i32(cuda.blockIdx.x * SIDE)
        for z in range(cuda.blockIdx.z, products, cuda.gridDim.z):
            for r in range(64):
                totals[r] = f32(0)
            place_a, place_b = start_a(geometry[1], z, top, rows, t), start_b(geometry[2], z, left, columns, t)
            fetch_a(held, a, geometry[1], place_a, 0, end)
            stow_a(strips, 0, t, held)
            fetch_b(held, b, geometry[2], place_b, 0, end)
            stow_b(strips, 2 * STRIP, t, held)
            cuda.syncthreads()
            now = i32(0)
            k0 = i32(0)
            while k0 < end:
                k0 = i32(k0 + depth)
                more, then = k0 < end, i32(STRIP - now)
                if more:
                    fetch_a(held, a, geometry[1], place_a, k0, end)
                multiply(totals, strips, now, 0, down, across, lane)
                if more:
                    stow_a(strips, then, t, held)
                    fetch_b(held, b, geometry[2], place_b, k0, end)
                multiply(totals, strips, now, 8, down, across, lane)
                if more:
                    stow_b(strips, 2 * STRIP + then, t, held)
                now = then
                cuda.syncthreads()
            for q in range(2):
                if warp // 4 == q:
                    spread(strips, totals, across, lane)
                cuda.syncthreads()
                for s in range(64 * SIDE // THREADS):
                    e = i32(t + s * THREADS)
                    row, column = top + 64 * q + e // SIDE, left + e % SIDE
                    if row < rows and column < columns:
                        total = as_float(strips[unsigned(e // SIDE * OUT_PITCH + e % SIDE)])
                        put(out, extra, geometry, z, 0, row, column, total)
                cuda.syncthreads()

    tensor_core_tiles.launch_bounds = (THREADS, 2)
    return tensor_core_tiles


# ------------------------------------------------------------------------------------------------ on the host


def multiply(a, b, out, extra, alpha, put):
    """put: as in cuda_blas.py; its geometry begins with alpha, a float32."""
    kind = a.dtype.name
    columns = strided(b, (b.shape[0], b.shape[2], b.shape[1]), (b.strides[0], b.strides[2], b.strides[1]))
    (row_a, steps_a, a_along_k), (row_b, steps_b, b_along_k) = (in_words(x) for x in (a, columns))
    sizes = (*out.shape, a.shape[2])
    grid = (-(-out.shape[2] // SIDE), -(-out.shape[1] // SIDE), min(out.shape[0], 65535))
    kernel = tensor_core_kernel(kind, a_along_k, b_along_k, put)
    launch(kernel, grid, THREADS, row_a, row_b, extra, out, (f32(alpha), steps_a, steps_b), sizes)


def in_words(x):
    """(the memory of a stack of rows as one row of words, words from matrix to matrix and from row to row, do rows run along
    K?). A copy where the memory cannot be read sixteen bytes at a time."""
    along_k = x.strides[2] == x.itemsize
    fast, slow = (2, 1) if along_k else (1, 2)
    whole = x.strides[fast] == x.itemsize and x.shape[fast] * x.itemsize % 16 == 0
    if not whole or any(s % 16 for s in (x.strides[0], x.strides[slow], address(x))):
        x, along_k, slow = padded(x), True, 1
    return laid_out(x)[0].view(u32), (x.strides[0] // 4, x.strides[slow] // 4), along_k


def padded(x):
    """A copy whose rows run along K, with zeros up to a multiple of 16 bytes."""
    unit = 16 // x.itemsize
    fresh = scratch(x, (*x.shape[:2], -(-x.shape[2] // unit) * unit), x.dtype)
    if fresh.shape != x.shape:
        fill(fresh, x.dtype.type(0))
    pointwise(copy, [x], strided(fresh, x.shape, fresh.strides))
    return fresh
