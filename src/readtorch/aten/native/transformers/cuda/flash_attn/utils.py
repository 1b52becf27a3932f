"""What the kernels of attention are made of: tiles of 16-bit numbers in shared memory, and products of them by tensor cores.

Note [ A warp's product stays with it ]
A warp has 16 rows. Of `mma`'s result (Note [ Who holds what ] in mma.py) lane 4 g + t holds of rows g and g + 8, of each
eight columns, numbers 2 t and 2 t + 1: `sums[4 j + i]` is column 8 j + 2 t + i % 2 of row g + i // 2 · 8. As the left operand
of the next product the same lane must hold, of the same rows, words t and t + 4 of each sixteen columns, a word being two
numbers: it has them already. So the scores become the weights' operand by rounding two neighbours to a word; nothing passes
through shared memory, and word m is made of sums 2 m and 2 m + 1.

A tile is rows of `width` numbers, and rows are padded by four words: eight that follow each other begin in different banks.

In PyTorch: `utils.h` and `kernel_traits.h` of the library FlashAttention, which PyTorch takes in whole and calls from
`aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp`.
"""

import functools
import math
import typing

import ml_dtypes
import numpy as np
from numba import cuda

from readtorch.aten.native.cuda.mma import ldmatrix, ldmatrix_transposed, load_words, mma_bf16, mma_f16, store_words
from readtorch.c10.cuda.compile import Intrinsic

i32, u32, f32 = np.int32, np.uint32, np.float32
ALL_LANES = 0xFFFFFFFF
WARPS, ROWS = 4, 16  # of a block; of a warp
THREADS, BLOCK_ROWS = 32 * WARPS, ROWS * WARPS


# -------------------------------------------------------------------------------------------- numbers and words


def simulated_exp2(x):
    return np.exp2(np.float32(x))


def packed(low, high, dtype):
    low, high = (int(np.float32(x).astype(dtype).view(np.uint16)) for x in (low, high))
    return np.uint32(low | high << 16)


def make_instruction(text, result, *operands):
    """An instruction of PTX without side effects as a device function."""
    from llvmlite import ir
    from numba import types
    from numba.cuda.extending import intrinsic

    letters = {"float32": "f", "uint32": "r"}
    constraints = ",".join([f"={letters[result]}", *(letters[o] for o in operands)])
    signature = getattr(types, result)(*(getattr(types, o) for o in operands))

    def emit(context, builder, signature, arguments):
        kind = context.get_value_type(signature.return_type)
        function = ir.FunctionType(kind, [a.type for a in arguments])
        return builder.call(ir.InlineAsm(function, text, constraints, side_effect=False), arguments)

    one, two = (lambda typing, a: (signature, emit)), (lambda typing, a, b: (signature, emit))
    return intrinsic(one if len(operands) == 1 else two)


def packing(kind, dtype):
    """pack(low, high): two float32 rounded to 16 bits each, in a word."""
    text = f"cvt.rn.{kind}.f32 $0, $2, $1;"
    return Intrinsic(
        lambda low, high: packed(low, high, dtype),
        functools.partial(make_instruction, text, "uint32", "float32", "float32"),
    )


exp2 = Intrinsic(
    simulated_exp2, functools.partial(make_instruction, "ex2.approx.ftz.f32 $0, $1;", "float32", "float32")
)
KINDS = {  # dtype: (mma, pack)
    "bfloat16": (mma_bf16, packing("bf16x2", ml_dtypes.bfloat16)),
    "float16": (mma_f16, packing("f16x2", np.float16)),
}


@functools.cache
def rounding(kind, count):
    """round_pairs(words, numbers): `count` words of two neighbours each."""
    pack = KINDS[kind][1]

    def round_pairs(words, numbers):
        for m in range(count):
            words[m] = pack(numbers[2 * m], numbers[2 * m + 1])

    return round_pairs


def clear(numbers, count):
    for e in range(count):
        numbers[e] = f32(0)


def block_of(rows, heads, each):
    """(first row, batch, head) of a block, of which there is one for each `each` rows of each head."""
    tiles = i32(-(-rows // each))
    z, tile = i32(cuda.blockIdx.x // tiles), i32(cuda.blockIdx.x % tiles)
    return i32(tile * each), i32(z // heads), i32(z % heads)


def thread_of_block():
    """The thread's number, of 128: that it cannot be negative, and what cannot be beyond a tile, the compiler sees by the mask."""
    return i32(cuda.threadIdx.x & (THREADS - 1))


def own_row(row, t):
    """The first of the two rows of which a lane holds sums."""
    return i32(row + t // 32 * ROWS + t % 32 // 4)


def pitch_of(width):
    """Words from row to row of a tile."""
    return width // 2 + 4


# -------------------------------------------------------------------------------------------------------- tiles


class Moves(typing.NamedTuple):
    """How a block's threads bring a tile to shared memory, sixteen bytes at a time; each brings the same chunks of every tile."""

    begin: object  # (steps, batch, head, t): where a thread's first chunk of a head begins
    fetch: object  # (held, x, place, steps, row, count, filled, t): to registers; zeros for rows from `count` on
    stow: object  # (strips, at, held, t): to shared memory


@functools.cache
def tile_moves(rows, width):
    """Of a tile that begins with row `row`. steps: words from batch to batch, from head to head, from row to row; filled: how many
    chunks a row has in memory; zeros behind them."""
    chunks, pitch = width // 8, pitch_of(width)
    lines = math.gcd(chunks, 16)  # chunks of a row that go side by side
    between = THREADS // lines  # rows that all threads bring together
    beside = chunks // lines

    def begin(steps, batch, head, t):
        return batch * steps[0] + head * steps[1] + t // lines * steps[2] + t % lines * 4

    def fetch(held, x, place, steps, row, count, filled, t):
        for j in range(beside):
            left = i32(count - row - t // lines) if t % lines + j * lines < filled else i32(0)
            at = place + row * steps[2] + 4 * j * lines
            for i in range(-(-rows // between)):
                p = 4 * (i * beside + j)
                if i32(i * between) < left:
                    held[p], held[p + 1], held[p + 2], held[p + 3] = load_words(x, at)
                else:
                    held[p], held[p + 1], held[p + 2], held[p + 3] = u32(0), u32(0), u32(0), u32(0)
                at += between * steps[2]

    def stow(strips, at, held, t):
        for j in range(beside):
            for i in range(-(-rows // between)):
                p = 4 * (i * beside + j)
                if t // lines + i * between < rows:
                    place = at + (t // lines + i * between) * pitch + (t % lines + j * lines) * 4
                    store_words(strips, place, held[p], held[p + 1], held[p + 2], held[p + 3])

    return Moves(begin, fetch, stow)


def words_held(rows, width):
    chunks = width // 8
    lines = math.gcd(chunks, 16)
    return 4 * -(-rows * lines // THREADS) * (chunks // lines)


@functools.cache
def leaving(width, kind):
    """leave(strips, sums, at, factors, out, steps, batch, head, row, count, filled, t): 64 rows, of which a lane's sums begin at `at`,
    each times its factor, to memory, by way of shared memory, from where neighbours store neighbours."""
    chunks, pitch, pack = width // 8, pitch_of(width), KINDS[kind][1]

    def leave(strips, sums, at, factors, out, steps, batch, head, row, count, filled, t):
        own, word = i32(t // 32 * ROWS + t % 32 // 4), i32(t % 4)
        for j in range(width // 8):
            for r in range(2):
                n = at + 4 * j + 2 * r
                pair = pack(sums[n] * factors[r], sums[n + 1] * factors[r])
                strips[(own + 8 * r) * pitch + 4 * j + word] = pair
        cuda.syncthreads()
        for p in range(BLOCK_ROWS * chunks // THREADS):
            e = i32(t + p * THREADS)
            here, chunk = i32(row + e // chunks), i32(e % chunks)
            if here < count and chunk < filled:
                a, b, c, d = load_words(strips, e // chunks * pitch + chunk * 4)
                store_words(out, batch * steps[0] + head * steps[1] + here * steps[2] + 4 * chunk, a, b, c, d)

    return leave


# ----------------------------------------------------------------------------------------------------- products


def rows_of(pitch, t):
    """Where a lane looks for the words of its warp's 16 rows."""
    return (t // 32 * ROWS + t % 16) * pitch + t % 32 // 16 * 4


@functools.cache
def left_operand(width):
    """take(left, p, strips, at, t): a warp's 16 rows of a tile as left operands, four words for each 16 columns, from word p on."""
    pitch = pitch_of(width)

    def take(left, p, strips, at, t):
        row = at + rows_of(pitch, t)
        for k in range(p, p + width // 4, 4):
            left[k], left[k + 1], left[k + 2], left[k + 3] = ldmatrix(strips, row + 2 * (k - p))

    return take


@functools.cache
def sixteen_columns(kind):
    """add(sums, r, a, b): what 16 columns of a right operand, b, make of a left one is added to eight sums of a lane."""
    mma = KINDS[kind][0]

    def add(sums, r, a, b):
        c = sums[r], sums[r + 1], sums[r + 2], sums[r + 3]
        sums[r], sums[r + 1], sums[r + 2], sums[r + 3] = mma(a, (b[0], b[1]), c)
        c = sums[r + 4], sums[r + 5], sums[r + 6], sums[r + 7]
        sums[r + 4], sums[r + 5], sums[r + 6], sums[r + 7] = mma(a, (b[2], b[3]), c)

    return add


def columns_of(pitch, lane):
    """Where a lane looks for the words of eight rows of a tile, which are columns of a right operand."""
    return (lane // 16 * 8 + lane % 8) * pitch + lane // 8 % 2 * 4


@functools.cache
def by_rows(kind, rows, width, bands):
    """multiply(sums, left, strips, at, lane): sums += left · tileᵀ. Each row of the tile is a column of the result. The left operand
    is `bands` ones, one behind the other, and so are the sums: what is read of the tile serves all of them."""
    add, pitch = sixteen_columns(kind), pitch_of(width)

    def multiply(sums, left, strips, at, lane):
        place = at + columns_of(pitch, lane)
        for k in range(width // 16):
            for n in range(rows // 16):
                b = ldmatrix(strips, place + 8 * k + 16 * n * pitch)
                for band in range(bands):
                    p = band * width // 4 + 4 * k
                    add(sums, band * rows // 2 + 8 * n, (left[p], left[p + 1], left[p + 2], left[p + 3]), b)

    return multiply


@functools.cache
def tile_by_rows(kind, rows, width):
    """multiply(sums, strips, own, at, t): the same with the warp's rows of another tile on the left, which stay in shared memory."""
    add, pitch = sixteen_columns(kind), pitch_of(width)

    def multiply(sums, strips, own, at, t):
        place, left = at + columns_of(pitch, t % 32), own + rows_of(pitch, t)
        for k in range(width // 16):
            a = ldmatrix(strips, left + 8 * k)
            for n in range(rows // 16):
                add(sums, 8 * n, a, ldmatrix(strips, place + 8 * k + 16 * n * pitch))

    return multiply


@functools.cache
def by_columns(kind, rows, width, bands):
    """multiply(sums, left, strips, at, lane): sums += left · tile. `left` has a column for each row of the tile; `bands` as above."""
    add, pitch = sixteen_columns(kind), pitch_of(width)

    def multiply(sums, left, strips, at, lane):
        place = at + lane % 16 * pitch + lane // 16 * 4
        for k in range(rows // 16):
            for n in range(width // 16):
                b = ldmatrix_transposed(strips, place + 16 * k * pitch + 8 * n)
                for band in range(bands):
                    p = band * rows // 4 + 4 * k
                    add(sums, band * width // 2 + 8 * n, (left[p], left[p + 1], left[p + 2], left[p + 3]), b)

    return multiply


def across_four(combine):
    """reduce(value): every lane gets the combination of the four that hold a row."""

    def reduce(value):
        value = combine(value, cuda.shfl_xor_sync(ALL_LANES, value, 1))
        return combine(value, cuda.shfl_xor_sync(ALL_LANES, value, 2))

    return reduce
