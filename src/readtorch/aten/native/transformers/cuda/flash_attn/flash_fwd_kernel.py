"""The forward kernel of attention: softmax(scale · q kᵀ) v, of which no score is ever written to memory.

Note [ How the tiles move ]
A block of four warps has 64 queries, which it takes to registers once: 16 are a warp's. Then it goes along the keys and
values, 64 at a time. Shared memory has room for one tile of keys and one of values, and while one of them is used, the other
one is on its way through registers:

    values of this tile  memory → registers     |  scores = queries · keysᵀ
                         registers → shared     |
    keys of the next one memory → registers     |  weights = exp(scores - largest), sums; what was summed before shrinks
    - all are done with the keys, and see the values -
                         registers → shared     |  result += weights · values
    - all are done with the values, and see the next keys -

Keys and values pass from memory to a multiprocessor once for each 64 queries; scores and weights stay in the registers in
which `mma` leaves them: Note [ A warp's product stays with it ] in utils.py.

Note [ The sum so far shrinks ]
It is Note [ Softmax in one pass ] of softmax.py for 64 scores at a time: of each row the greatest score so far and the sum of
exponentials of the differences are kept. When the greatest one grows, the sum and the result so far are multiplied by
exp(old - new). Exponents are to the base 2, which the chip has an instruction for: `factor` is scale · log₂ e, `steep` its size. The sign
of the scale goes to the queries. Sums stay with each lane until the end, where the four lanes of a row join theirs.

Tiles that have a key which some query does not see, behind the last one or, for a causal mask, behind the query's own place
(counted from the end), get scores of -inf there; all other tiles are not looked at. A row that sees no key gives zeros, and
a logsumexp of +inf.

In PyTorch: `flash_fwd_kernel.h` and `softmax.h` of the library FlashAttention, called from
`aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp`.
"""

import functools
import math

from numba import cuda

from .utils import (
    BLOCK_ROWS,
    THREADS,
    across_four,
    block_of,
    by_columns,
    by_rows,
    clear,
    exp2,
    f32,
    i32,
    leaving,
    left_operand,
    own_row,
    pitch_of,
    rounding,
    tile_moves,
    u32,
    words_held,
)

KEYS = 64  # of a tile
SCORES, WEIGHTS = KEYS // 2, KEYS // 4  # of a lane: numbers, and words of two
SIGNS = u32(0x80008000)  # of the two numbers in a word


def plus(a, b):
    return a + b


def greater(a, b):
    return max(a, b)


greatest_of_row, sum_of_row = across_four(greater), across_four(plus)


@functools.cache
def softmax_step(width):
    """rescale(scores, sums, largest, totals, factor): scores become weights. See Note [ The sum so far shrinks ]."""

    def rescale(scores, sums, largest, totals, factor):
        for r in range(2):
            now = largest[r]
            for j in range(KEYS // 8):
                now = greater(now, greater(scores[4 * j + 2 * r], scores[4 * j + 2 * r + 1]))
            now = greatest_of_row(now)
            base = now * factor if now > -math.inf else f32(0)
            shrink = exp2(largest[r] * factor - base)
            largest[r] = now
            totals[r] *= shrink
            for j in range(width // 8):
                sums[4 * j + 2 * r] *= shrink
                sums[4 * j + 2 * r + 1] *= shrink
            for j in range(KEYS // 8):
                for e in range(4 * j + 2 * r, 4 * j + 2 * r + 2):
                    scores[e] = exp2(scores[e] * factor - base)
                    totals[r] += scores[e]

    return rescale


def hide(scores, first, row, keys, ahead, causal):
    """-inf for keys from `keys` on and, in a causal mask, for those more than `ahead` places after their query. first, row: what
    the lane's first score stands for."""
    for e in range(SCORES):
        key = first + e // 4 * 8 + e % 2
        if key >= keys or causal and key > row + e // 2 % 2 * 8 + ahead:
            scores[e] = f32(-math.inf)


def with_sign(words, count, scale):
    """Numbers change their sign if the scale is negative."""
    for r in range(count):
        words[r] ^= SIGNS if scale < 0 else u32(0)


def finish(largest, totals, logsumexp, at, own, queries, lane, scale):
    """The logsumexp of the lane's rows; totals become what the rows are multiplied by."""
    for r in range(2):
        total, row = sum_of_row(totals[r]), own + 8 * r
        if lane % 4 == 0 and row < queries:
            seen = largest[r] * abs(scale) + math.log(total) if total != f32(0) else f32(math.inf)
            logsumexp[at + row] = seen
        totals[r] = f32(1) / total if total != f32(0) else f32(0)


@functools.cache
def forward_kernel(kind, width, causal):
    """For queries of up to `width` numbers."""
    room, of_query, of_result = KEYS * pitch_of(width), width // 4, width // 2
    both, on_the_way = 2 * room, words_held(KEYS, width)
    begin, fetch, stow = tile_moves(KEYS, width)
    take_queries, leave, rescale = left_operand(width), leaving(width, kind), softmax_step(width)
    times_keys, times_values = by_rows(kind, KEYS, width), by_columns(kind, KEYS, width)
    round_pairs = rounding(kind, WEIGHTS)

    def attend(q, k, v, out, logsumexp, steps, sizes, scale, factor):
        strips = cuda.shared.array(both, u32, alignment=16)
        query, held = cuda.local.array(of_query, u32), cuda.local.array(on_the_way, u32)
        weights, scores = cuda.local.array(WEIGHTS, u32), cuda.local.array(SCORES, f32)
        sums, largest, totals = cuda.local.array(of_result, f32), cuda.local.array(2, f32), cuda.local.array(2, f32)
        heads, group, queries, keys, filled = sizes
        t, ahead, steep = i32(cuda.threadIdx.x), i32(keys - queries), abs(factor)
        row, batch, head = block_of(queries, heads)
        lane, own = i32(t % 32), own_row(row, t)
        at_k, at_v = begin(steps[1], batch, head // group, t), begin(steps[2], batch, head // group, t)
        end = i32(min(keys, row + BLOCK_ROWS + ahead)) if causal else keys
        fetch(held, q, begin(steps[0], batch, head, t), steps[0], row, queries, filled, t)
        stow(strips, 0, held, t)
        cuda.syncthreads()
        take_queries(query, strips, 0, t)
        with_sign(query, of_query, scale)
        clear(sums, of_result)
        clear(totals, 2)
        largest[0], largest[1] = f32(-math.inf), f32(-math.inf)
        cuda.syncthreads()
        fetch(held, k, at_k, steps[1], i32(0), keys, filled, t)
        stow(strips, 0, held, t)
        cuda.syncthreads()
        first = i32(0)
        while first < end:
            more = first + KEYS < end
            fetch(held, v, at_v, steps[2], first, keys, filled, t)
            clear(scores, SCORES)
            times_keys(scores, query, strips, 0, lane)
            stow(strips, room, held, t)
            if more:
                fetch(held, k, at_k, steps[1], i32(first + KEYS), keys, filled, t)
            if first + KEYS > keys or causal and first + KEYS > row + ahead + 1:
                hide(scores, first + lane % 4 * 2, own, keys, ahead, causal)
            rescale(scores, sums, largest, totals, steep)
            round_pairs(weights, scores)
            cuda.syncthreads()
            if more:
                stow(strips, 0, held, t)
            times_values(sums, weights, strips, room, lane)
            cuda.syncthreads()
            first = i32(first + KEYS)
        finish(largest, totals, logsumexp, (batch * heads + head) * queries, own, queries, lane, scale)
        leave(strips, sums, (totals[0], totals[1]), out, steps[3], batch, head, row, queries, filled, t)

    attend.launch_bounds = (THREADS, 2)
    return attend
