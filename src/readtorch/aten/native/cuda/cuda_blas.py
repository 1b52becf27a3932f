"""Matrix products: out = finish(alpha · a b + bias), for stacks of matrices with any strides; and the loop that they
share with convolutions.

    matmul(a, b, out, bias=None, alpha=1, finish=None)     a: (…, M, K), b: (…, K, N), out: (…, M, N)

16-bit numbers, and float32 where TF32 is allowed, go to the tensor cores (tensor_core_gemm.py); what follows is for all others.

A transposed operand is only one with other strides: which way the threads walk over a strip is chosen so that
neighbors read neighbors.

Note [ A tile in registers ]
A block of 16 × 16 threads computes a square tile of the result, of side 64, or 128 where the result is large. It walks
along K in steps of 16: the strip of `a` and the strip of `b` for this step are brought to shared memory, and every
thread adds to its own 4 × 4 (or 8 × 8) results, which stay in registers. Per step a thread reads 8 (16) numbers from
shared memory and makes 16 (64) multiply-adds for each: that ratio is what keeps the arithmetic units busy.

The strips lie in shared memory with K as the slow dimension, so that a thread's numbers are neighbours and come four
at a time. An 8 × 8 thread takes rows 4y … 4y+3 and 64+4y … 64+4y+3 (columns likewise): then the 8 lanes that are
served together read different banks. Rows are padded by 4 numbers: of the threads that write a strip whose memory runs
along K two meet in a bank, and without the padding sixteen would.

Note [ The next strips are on their way ]
Memory takes hundreds of cycles to answer, as long as the arithmetic of a step. So a thread first asks for its share of
the *next* strips, which goes to registers; then it computes with this step's strips; then it puts the share into the
second pair of strips, where nobody reads yet. One barrier a step is enough, and nobody waits for memory.

Where the operands come from is the business of an `Operand`, and where results go that of `put(out, extra, geometry, z,
part, i, j, total)`. So a convolution is a matrix product whose operand is never laid out in memory ("implicit GEMM").

Grid: (tiles across, tiles down, products × parts). A long K is cut into parts, whose results `put` keeps apart.

In PyTorch: `aten/src/ATen/cuda/CUDABlas.cpp`.
"""

import functools
import math
import typing

import numpy as np
from numba import cuda

from readtorch.aten.float32_precision import float32_precision
from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.launch import address, launch, strided
from readtorch.c10.device import current_device

from . import tensor_core_gemm
from .loops import broadcast
from .memory_access import load4, load_four, store4, store_four
from .offset_calculator import laid_out
from .rows import contiguous

i32 = np.int32
unsigned = np.uint64  # an index that cannot be negative needs no test for it
LANES = 16  # threads along each side of a block
THREADS = LANES * LANES
DEPTH = 16  # how much of K in one step
SHARED = 48 << 10  # bytes of shared memory that a block has without asking for more
LARGE = 1 << 20  # results from which on tiles of 128 leave no part of the chip without work


class Operand(typing.NamedTuple):
    """How a thread brings its share of a strip: `side` rows (or columns) from `first` on, DEPTH numbers of each.

    start(geometry, z, first, count, t) -> place      what stays the same along K, worked out once
    fetch(held, x, geometry, z, place, k0, end)       its share, to registers; zeros where the operand ends
    stow(strip, at, t, held)                          from there to shared memory: strip[at + k · pitch + i]
    """

    start: typing.Callable
    fetch: typing.Callable
    stow: typing.Callable


def run_tiles(operands, sizes, arrays, geometry, dtype, put, parts=1, quarters=None, blocks=1):
    """operands: for each of the two, what makes an Operand for tiles of this side and this dtype. put and finish(out, z,
    i, j), which changes a stored result. sizes: products, M, N, K. dtype: of the sums.

    arrays: a, b, extra, out. quarters: the side of a tile in units of 64; None chooses. blocks: how many a
    multiprocessor shall hold at a time: while one waits for its strips, another computes.
    """
    products, m, n, k = sizes
    quarters = quarters or (2 if products * parts * m * n >= LARGE and dtype is np.float32 else 1)
    side = 64 * quarters
    grid = (-(-n // side), -(-m // side), min(products * parts, 65535))
    kernel = tile_kernel(quarters, *[make(side, dtype) for make in operands], put, dtype, blocks)
    launch(kernel, grid, THREADS, *arrays, geometry, sizes, parts)


def own_line(quarters, pitch, dtype):
    """The thread's elements of one line of a strip: its four of each 64."""
    four = load4 if dtype is np.float32 else load_four

    def own_numbers(numbers, strip, at, lane):
        for q in range(quarters):
            a, b, c, d = four(strip, at + 64 * q + 4 * lane)
            numbers[4 * q], numbers[4 * q + 1], numbers[4 * q + 2], numbers[4 * q + 3] = a, b, c, d

    return own_numbers


def pairs_of_strips(pitch, dtype):
    """Two, or one where two, and the results on their way out, do not fit into the 48 KiB that a block has: complex128."""
    return 2 if 4 * DEPTH * pitch * np.dtype(dtype).itemsize <= SHARED else 1


def arithmetic(quarters, dtype):
    """multiply(totals, strips, at, x, y): what half a step adds to a thread's results."""
    own, pitch = 4 * quarters, 64 * quarters + 4
    own_numbers, of_b = own_line(quarters, pitch, dtype), pairs_of_strips(pitch, dtype) * DEPTH * pitch

    def add_line(totals, strips, at, x, y):
        """What one line of the strips adds to the thread's results."""
        down, across = cuda.local.array(own, dtype), cuda.local.array(own, dtype)
        own_numbers(down, strips, at, y)
        own_numbers(across, strips, of_b + at, x)
        for i in range(own):
            for j in range(own):
                totals[i * own + j] += down[i] * across[j]

    def multiply(totals, strips, at, x, y):
        """Half a step; two lines at a time, so that the numbers of one come while the other is computed."""
        for k in range(0, DEPTH // 2, 2):
            add_line(totals, strips, at + k * pitch, x, y)
            add_line(totals, strips, at + (k + 1) * pitch, x, y)

    return multiply


def way_out(quarters, dtype, put):
    """leave(strips, totals, out, extra, geometry, where, bounds, x, y): store what a thread has of a tile. where: z, part,
    the tile's first row and column; bounds: the result's."""
    side, own = 64 * quarters, 4 * quarters
    store = store4 if dtype is np.float32 else store_four

    def leave_by_rows(strips, totals, out, extra, geometry, where, bounds, x, y):
        """64 rows of the tile to shared memory, where the strips were. From there neighbors store what are neighbors; and
        the loop that stores need not index registers, which have no addresses."""
        z, part, top, left = where
        rows, columns = bounds
        for q in range(quarters):
            for i in range(4):
                for p in range(quarters):
                    r, at = (4 * q + i) * own + 4 * p, (4 * y + i) * side + 64 * p + 4 * x
                    store(strips, at, totals[r], totals[r + 1], totals[r + 2], totals[r + 3])
            cuda.syncthreads()
            for step in range(64 * side // THREADS):
                e = cuda.threadIdx.x + step * THREADS
                row, column = top + 64 * q + e // side, left + e % side
                if row < rows and column < columns:
                    put(out, extra, geometry, z, part, row, column, strips[unsigned(e)])
            cuda.syncthreads()

    def leave_alone(strips, totals, out, extra, geometry, where, bounds, x, y):
        """Each thread stores its own results."""
        z, part, top, left = where
        rows, columns = bounds
        for i in range(own):
            for j in range(own):
                row, column = top + 4 * y + i, left + 4 * x + j
                if row < rows and column < columns:
                    put(out, extra, geometry, z, part, row, column, totals[i * own + j])

    return leave_by_rows if pairs_of_strips(side + 4, dtype) == 2 else leave_alone


@functools.cache
def tile_kernel(quarters, operand_a, operand_b, put, dtype, blocks):
    """See Note [ A tile in registers ] and Note [ The next strips are on their way ]."""
    side, own = 64 * quarters, 4 * quarters  # of the tile, of a thread's part of it
    pitch = side + 4
    strip, results, share = DEPTH * pitch, own * own, side * DEPTH // THREADS  # sizes of arrays are constants
    pairs = pairs_of_strips(pitch, dtype)
    room, of_b, ahead = 2 * pairs * strip, pairs * strip, pairs == 2
    start_a, fetch_a, stow_a = operand_a
    start_b, fetch_b, stow_b = operand_b
    multiply, leave = arithmetic(quarters, dtype), way_out(quarters, dtype, put)

    def tiles(a, b, extra, out, geometry, sizes, parts):
        strips = cuda.shared.array(room, dtype, alignment=16)  # those of a, then those of b
        totals = cuda.local.array(results, dtype)
        held = cuda.local.array(share, dtype)
        products, rows, columns, depth = sizes
        t = cuda.threadIdx.x
        x, y = i32(t % LANES), i32(t // LANES)
        top, left = i32(cuda.blockIdx.y * side), i32(cuda.blockIdx.x * side)
        length = (depth + parts * DEPTH - 1) // (parts * DEPTH) * DEPTH
        for piece in range(cuda.blockIdx.z, products * parts, cuda.gridDim.z):
            z, part = piece // parts, piece % parts
            for r in range(results):
                totals[r] = dtype(0)
            begin, end = i32(part * length), i32(min((part + 1) * length, depth))
            place_a, place_b = start_a(geometry, z, top, rows, t), start_b(geometry, z, left, columns, t)
            fetch_a(held, a, geometry, z, place_a, begin, end)
            stow_a(strips, 0, t, held)
            fetch_b(held, b, geometry, z, place_b, begin, end)
            stow_b(strips, of_b, t, held)
            cuda.syncthreads()
            now, k0 = i32(0), begin
            while k0 < end:
                k0 = i32(k0 + DEPTH)
                more, then = k0 < end, i32(strip - now if ahead else 0)
                if more and ahead:
                    fetch_a(held, a, geometry, z, place_a, k0, end)
                multiply(totals, strips, now, x, y)
                if more and ahead:
                    stow_a(strips, then, t, held)
                    fetch_b(held, b, geometry, z, place_b, k0, end)
                multiply(totals, strips, now + strip // 2, x, y)
                if more and not ahead:  # where these strips are, once all have used them
                    cuda.syncthreads()
                    fetch_a(held, a, geometry, z, place_a, k0, end)
                    stow_a(strips, then, t, held)
                    fetch_b(held, b, geometry, z, place_b, k0, end)
                if more:
                    stow_b(strips, of_b + then, t, held)
                now = then
                cuda.syncthreads()
            leave(strips, totals, out, extra, geometry, (z, part, top, left), (rows, columns), x, y)

    tiles.launch_bounds = (THREADS, blocks) if blocks > 1 else None
    return tiles


# ------------------------------------------------------------------------------------------- matrices as operands


@functools.cache
def matrix(which, along_k, in_fours, side, dtype):
    """Operand `which` of a product of matrices. along_k: does its memory run along K? in_fours: may four numbers that
    follow each other there be read at once? A thread brings such fours: of rows 64 apart, or of lines of K."""
    mine = 1 + which  # where its strides are in `Numbers`
    apart, lines = side // 64, side // 4
    between = THREADS // lines  # lines of K that all threads together bring
    pitch = side + 4
    four = store4 if dtype is np.float32 else store_four

    def start(numbers, z, first, count, t):
        """Where its first four begins for k = 0; its k; how far away the second four's row is, and how many rows follow.
        Rows that the matrix has not are others here: nobody stores what comes of them."""
        step, step_i, step_k = numbers[mine]
        i, k = (first + t // 4, t % 4 * 4) if along_k else (first + t % lines * 4, t // lines)
        greatest = count - (4 if in_fours and not along_k else 1)
        last = max(greatest - i, 0)
        return z * step + min(i, greatest) * step_i + k * step_k, i32(k), i32(min(64, last)), i32(min(4, last))

    def fetch(held, x, numbers, z, place, k0, end):
        first, k, below, last = place
        _, step_i, step_k = numbers[mine]
        step = 1 if in_fours and along_k else step_k
        for p in range(apart):
            at, depth = first + k0 * step, end - k0 - k - (0 if along_k else between * p)
            if p > 0:
                at += below * step_i if along_k else between * step_k
            if not in_fours:
                for e in range(4):
                    inside = depth > (e if along_k else 0)
                    here = unsigned(at + (e * step if along_k else min(e, last) * step_i))
                    held[4 * p + e] = dtype(x[here]) if inside else dtype(0)
            elif depth > 0:
                held[4 * p], held[4 * p + 1], held[4 * p + 2], held[4 * p + 3] = load4(x, at)
            else:
                held[4 * p], held[4 * p + 1], held[4 * p + 2], held[4 * p + 3] = dtype(0), dtype(0), dtype(0), dtype(0)

    def stow(strip, at, t, held):
        for p in range(apart):
            if along_k:
                for e in range(4):
                    strip[unsigned(at + (t % 4 * 4 + e) * pitch + t // 4 + 64 * p)] = held[4 * p + e]
            else:
                i = at + (t // lines + between * p) * pitch + t % lines * 4
                four(strip, i, held[4 * p], held[4 * p + 1], held[4 * p + 2], held[4 * p + 3])

    return Operand(start, fetch, stow)


class Numbers(typing.NamedTuple):
    """What goes to the kernel of a product of matrices: the factor, and strides counted in elements: from matrix to
    matrix, along the result, along K."""

    alpha: typing.Any
    steps_a: tuple
    steps_b: tuple


def matmul(a, b, out, bias=None, alpha=1, finish=None, quarters=None):
    """bias: broadcast to out (a row for Linear, or a whole matrix). finish: relu, gelu or None. quarters: see
    `run_tiles`.
    """
    if out.size == 0:
        return
    stack = out.shape[:-2]
    a, b, result = (as_stack(x, stack) for x in (a, b, out))
    extra = result if bias is None else as_stack(broadcast(bias, out.shape), stack)
    store = put(bias is not None, finish or same)
    if on_tensor_cores(a.dtype):
        tensor_core_gemm.multiply(a, b, result, extra, alpha, store)
        return
    sizes = (result.shape[0], result.shape[1], result.shape[2], a.shape[2])
    number = WIDENED.get(out.dtype, out.dtype).type
    columns = strided(b, (b.shape[0], b.shape[2], b.shape[1]), (b.strides[0], b.strides[2], b.strides[1]))
    (row_a, steps_a), (row_b, steps_b) = laid_out(a), laid_out(columns)
    ways = way_of(a), way_of(columns)
    run_tiles(
        [functools.partial(matrix, which, *way) for which, way in enumerate(ways)],
        sizes,
        (row_a, row_b, extra, result),
        tuple(Numbers(number(alpha), steps_a, steps_b)),
        number,
        store,
        quarters=quarters,
        blocks=2 if all(in_fours for _, in_fours in ways) else 1,  # reading one by one takes more registers
    )


def on_tensor_cores(dtype):
    """16-bit numbers, and float32 if products may be rounded to TF32: where the chip has what mma.py needs (sm_80)."""
    if runtime.is_available() and runtime.driver().get_device_properties(current_device.index).major < 8:
        return False
    return dtype.name in ("float16", "bfloat16") or (
        dtype.name == "float32" and float32_precision.get("cuda", "matmul") == "tf32"
    )


def way_of(x):
    """(does the memory of this stack of rows run along K, may it be read in fours)"""
    along_k = x.strides[2] <= x.strides[1]
    fast, slow = (2, 1) if along_k else (1, 2)
    whole = x.strides[fast] == x.itemsize and x.shape[fast] % 4 == x.strides[slow] % 16 == x.strides[0] % 16 == 0
    return along_k, x.dtype == np.float32 and whole and address(x) % 16 == 0


def as_stack(x, stack):
    """x as (matrices, rows, columns); a copy where its strides do not allow it."""
    x = broadcast(x, (*stack, *x.shape[-2:]))
    if len(stack) == 1:
        return x
    if any(x.strides[d] != x.strides[d + 1] * x.shape[d + 1] for d in range(len(stack) - 1)):
        x = contiguous(x)
    step = x.strides[len(stack) - 1] if stack else 0
    return strided(x, (math.prod(stack), *x.shape[-2:]), (step, *x.strides[-2:]))


def same(v):
    return v


def relu(v):
    return v if v > type(v)(0) else type(v)(0)


def gelu(v):
    return type(v)(0.5) * v * (type(v)(1) + math.erf(v * type(v)(SQRT_HALF)))


SQRT_HALF = math.sqrt(0.5)


@functools.cache
def put(has_bias, finish):
    """numbers: alpha first."""

    def store(out, bias, numbers, z, part, i, j, total):
        z, i, j = unsigned(z), unsigned(i), unsigned(j)
        v = numbers[0] * total
        out[z, i, j] = finish(v + bias[z, i, j] if has_bias else v)

    return store
