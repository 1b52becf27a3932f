"""Rows that stay in registers: what softmax, the norms and sums of rows have in common.

Note [ A row in registers ]
What is bound by memory should read a number once. A row is therefore shared out: each thread that works on it loads its part
into an array of its own whose size is a constant. All loops over it are unrolled, and it becomes registers. Then the threads
agree on a maximum or a sum, and go on with the numbers that they have.

Rows of up to 1024 elements are each a warp's: the 32 lanes agree by shuffles, and nobody waits for another warp; a block
of eight warps has eight rows at a time. Rows of up to 16384 are each a block's. Where every row begins at a multiple of 16
bytes and the numbers are float32, a thread takes four neighbours at a time: sixteen bytes.

    share = share_of(rows, n, x, out)         how rows are shared out, or None
    load_share(x, begin, n, values, fill)     in a kernel: this thread's numbers, `fill` beyond the row's end

Note [ A row in slices ]
A longer row is a block's, too, which walks along it a slice at a time, as if each slice were a row: what begins at `k` has
n - k elements. A thread asks for the eight numbers of its share before it needs the first of them, so that a slice waits
for memory once. What needs the whole row's sum first walks again; by then much of the row is in the cache.

In PyTorch: `aten/src/ATen/native/cuda/PersistentSoftmax.cuh`.
"""

import functools
import typing

from numba import cuda

from readtorch.c10.cuda.launch import address, launch

from .block_reduce import WARP, block_reduce, warp_reduce, whole_warps
from .memory_access import load, load4, store, store4

OF_WARP, OF_BLOCK, WARPS = (
    32,
    16,
    8,
)  # the most elements of a thread, where a warp or a block has a row; warps of a block


class Share(typing.NamedTuple):
    """How a row is shared out among threads. A kernel is compiled for each."""

    pieces: int  # of a thread, a power of two
    vector: int  # elements of a piece
    by_warp: bool

    @property
    def elements(self):
        return self.pieces * self.vector


def share_of(n, *arrays):
    """The share for rows of n elements, of arrays (rows, n) with their elements side by side. None: too long for registers."""
    vector = vector_of(n, arrays)
    for by_warp, threads, most in ((True, WARP, OF_WARP), (False, 1024, OF_BLOCK)):
        pieces = power_of_two(-(-n // (threads * vector)))
        if pieces * vector <= most:
            least = 1 if by_warp else most // vector // 2  # blocks of 1024 threads only where they must be
            return Share(max(pieces, least), vector, by_warp)
    return None


THREADS_OF_A_SLICE, ELEMENTS_OF_A_SLICE = 512, 8  # the elements are a thread's


def slices_of(n, *arrays):
    """The share of one slice of such a row: Note [ A row in slices ]."""
    vector = vector_of(n, arrays)
    return Share(ELEMENTS_OF_A_SLICE // vector, vector, by_warp=False)


def vector_of(n, arrays):
    """How many neighbours a thread takes at a time."""
    return 4 if n % 4 == 0 and all(map(rows_in_fours, arrays)) else 1


def power_of_two(count):
    """The least one that is not below `count`."""
    return 1 << max(0, count - 1).bit_length()


def rows_in_fours(x):
    """May each row be read four numbers at a time?"""
    return x.dtype == "float32" and address(x) % 16 == 0 and (x.ndim == 1 or len(x) == 1 or x.strides[0] % 16 == 0)


def launch_rows(kernel, share, rows, n, *arguments):
    """For so many rows of n elements."""
    if share.by_warp:
        warps = min(WARPS, rows)
        grid, block = -(-rows // warps), WARP * warps
    else:
        grid, block = rows, whole_warps(-(-n // share.elements), 1024)
    launch(kernel, min(grid, 65535), block, *arguments)


def launch_slices(kernel, rows, *arguments):
    """Likewise for rows that are walked along in slices."""
    launch(kernel, min(rows, 65535), THREADS_OF_A_SLICE, *arguments)


def bounded(kernel, share):
    """The kernel, which must leave registers for the 1024 threads of a block where a block has a row."""
    if not share.by_warp:
        kernel.launch_bounds = (1024, 1)
    return kernel


class RowFunctions(typing.NamedTuple):
    """What a kernel calls whose rows are shared out so."""

    first_row: object  # (): the row that this thread begins with
    rows_apart: object  # (): how far it is to its next one
    place: object  # (piece): where in the row a piece begins
    load: object  # (x, begin, n, values, fill): values = this thread's share of the row that begins there
    store: object  # (out, begin, n, values)
    across: object  # (combine): a function (value, shared, identity) that all threads of a row call
    slice: object  # (): how many elements the threads of a row hold together


@functools.cache
def row_functions(share):
    pieces, vector = share.pieces, share.vector
    first_row, rows_apart, member, members = of_warp() if share.by_warp else of_block()

    def place(piece):
        return (piece * members() + member()) * vector

    def load_fours(x, begin, n, values, fill):
        for p in range(pieces):
            v, k = 4 * p, place(p)
            if k < n:
                values[v], values[v + 1], values[v + 2], values[v + 3] = load4(x, begin + k)
            else:
                values[v] = values[v + 1] = values[v + 2] = values[v + 3] = fill

    def load_ones(x, begin, n, values, fill):
        for p in range(pieces):
            values[p] = load(x, begin + place(p)) if place(p) < n else fill

    def store_fours(out, begin, n, values):
        for p in range(pieces):
            v, k = 4 * p, place(p)
            if k < n:
                store4(out, begin + k, values[v], values[v + 1], values[v + 2], values[v + 3])

    def store_ones(out, begin, n, values):
        for p in range(pieces):
            if place(p) < n:
                store(out, begin + place(p), values[p])

    def slice_():
        return members() * pieces * vector

    moves = (load_fours, store_fours) if vector == 4 else (load_ones, store_ones)
    across = across_warp if share.by_warp else block_reduce
    return RowFunctions(first_row, rows_apart, place, *moves, across, slice_)


def of_warp():
    """A warp has a row."""

    def first_row():
        return cuda.blockIdx.x * (cuda.blockDim.x // WARP) + cuda.threadIdx.x // WARP

    def rows_apart():
        return cuda.gridDim.x * (cuda.blockDim.x // WARP)

    def member():
        return cuda.threadIdx.x % WARP

    def members():
        return WARP

    return first_row, rows_apart, member, members


def of_block():
    """A block has a row."""

    def first_row():
        return cuda.blockIdx.x

    def rows_apart():
        return cuda.gridDim.x

    def member():
        return cuda.threadIdx.x

    def members():
        return cuda.blockDim.x

    return first_row, rows_apart, member, members


@functools.cache
def across_warp(combine):
    """`block_reduce` for a warp alone, which needs no shared memory."""
    within = warp_reduce(combine)

    def reduce(value, shared, identity):
        return within(value)

    return reduce
