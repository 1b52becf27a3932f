"""The forward kernel of attention: softmax(scale · q kᵀ) v, of which no score is ever written to memory.

Note [ How the tiles move ]
A block of four warps has 64 queries, or twice as many where they have at most 64 numbers; it takes them to registers once. Of
each 64, a band, 16 are a warp's. Then it goes along the keys and values, 64 at a time. Shared memory has room for one tile of keys
and one of values, and while one of them is used, the other one is on its way through registers:

    values of this tile  memory → registers     |  scores = queries · keysᵀ
                         registers → shared     |
    keys of the next one memory → registers     |  weights = exp(scores - largest), sums; what was summed before shrinks
    - all are done with the keys, and see the values -
                         registers → shared     |  result += weights · values
    - all are done with the values, and see the next keys -

Keys and values pass from memory to a multiprocessor once for each block. What a warp reads of them from shared memory serves
both of its bands: with two it asks half as often for as many products. (With more than 64 numbers there are no registers for that.)
Scores and weights stay in the registers in which `mma` leaves them: Note [ A warp's product stays with it ] in utils.py.
Behind the last tile of keys another one is on its way, of zeros, which nobody reads.

Note [ The sum so far shrinks ]
It is Note [ Softmax in one pass ] of softmax.py for 64 scores at a time: of each row the greatest score so far and the sum of
exponentials of the differences are kept. When the greatest one grows, the sum and the result so far are multiplied by
exp(old - new). Exponents are to the base 2, which the chip has an instruction for: `factor` is scale · log₂ e, `steep` its size. The sign
of the scale goes to the queries. Sums stay with each lane until the end, where the four lanes of a row join theirs.

Keys which a query does not see, behind the last one or, for a causal mask, behind the query's own place (counted from the end),
get scores of -inf. Tiles that have such keys come last, and have a loop of their own: the other one looks for none. A row that
sees no key gives zeros, and a logsumexp of +inf.

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
    thread_of_block,
    tile_moves,
    u32,
    words_held,
)

KEYS = 64  # of a tile
SCORES, WEIGHTS = KEYS // 2, KEYS // 4  # of a lane and band: numbers, and words of two
SIGNS = u32(0x80008000)  # of the two numbers in a word


def plus(a, b):
    return a + b


def greater(a, b):
    return max(a, b)


greatest_of_row, sum_of_row = across_four(greater), across_four(plus)


def bands_of(width):
    """How many times sixteen queries a warp has: as many as registers allow. See Note [ How the tiles move ]."""
    return 2 if width <= 64 else 1


@functools.cache
def softmax_step(width):
    """rescale(scores, sums, largest, totals, factor): scores become weights. See Note [ The sum so far shrinks ]."""
    rows, of_result = 2 * bands_of(width), width // 2

    def rescale(scores, sums, largest, totals, factor):
        for r in range(rows):
            now, at = largest[r], r // 2 * SCORES + r % 2 * 2
            for e in range(at, at + SCORES, 4):
                now = greater(now, greater(scores[e], scores[e + 1]))
            now = greatest_of_row(now)
            base = now * factor if now > -math.inf else f32(0)
            shrink = exp2(largest[r] * factor - base)
            largest[r] = now
            totals[r] *= shrink
            first = r // 2 * of_result + r % 2 * 2
            for e in range(first, first + of_result, 4):
                sums[e] *= shrink
                sums[e + 1] *= shrink
            for p in range(at, at + SCORES, 4):
                for e in range(p, p + 2):
                    scores[e] = exp2(scores[e] * factor - base)
                    totals[r] += scores[e]

    return rescale


@functools.cache
def hiding(width, causal):
    """hide(scores, first, row, keys, ahead): -inf for keys from `keys` on and, in a causal mask, for those more than `ahead` places
    after their query. first, row: what the lane's first score stands for."""
    rows = 2 * bands_of(width)

    def hide(scores, first, row, keys, ahead):
        for r in range(rows):
            at, seen = r // 2 * SCORES + r % 2 * 2, i32(keys - first)
            if causal:
                seen = min(seen, i32(row + r // 2 * BLOCK_ROWS + r % 2 * 8 + ahead + 1 - first))
            for j in range(KEYS // 8):
                for e in range(2):
                    if 8 * j + e >= seen:
                        scores[at + 4 * j + e] = f32(-math.inf)

    return hide


def see_all(scores, first, row, keys, ahead):
    """In place of `hide`, where nothing is hidden."""


def with_sign(words, count, scale):
    """Numbers change their sign if the scale is negative."""
    for r in range(count):
        words[r] ^= SIGNS if scale < 0 else u32(0)


def finish(largest, totals, logsumexp, at, own, queries, lane, scale):
    """The logsumexp of the lane's rows; totals become what the rows are multiplied by."""
    for r in range(len(totals)):
        total, row = sum_of_row(totals[r]), own + r // 2 * BLOCK_ROWS + r % 2 * 8
        if lane % 4 == 0 and row < queries:
            seen = largest[r] * abs(scale) + math.log(total) if total != f32(0) else f32(math.inf)
            logsumexp[at + row] = seen
        totals[r] = f32(1) / total if total != f32(0) else f32(0)


@functools.cache
def one_tile(kind, width, hide):
    """go_on(k, v, …): what one tile of keys and values adds. See Note [ How the tiles move ]."""
    bands, room, on_the_way = bands_of(width), KEYS * pitch_of(width), words_held(KEYS, width)
    of_scores, of_weights = bands * SCORES, bands * WEIGHTS
    _, fetch, stow = tile_moves(KEYS, width)
    times_keys, times_values = by_rows(kind, KEYS, width, bands), by_columns(kind, KEYS, width, bands)
    rescale, round_pairs = softmax_step(width), rounding(kind, of_weights)

    def go_on(k, v, at_k, at_v, steps, strips, query, sums, largest, totals, first, end, row, ahead, filled, t, steep):
        held, lane = cuda.local.array(on_the_way, u32), i32(t % 32)
        weights, scores = cuda.local.array(of_weights, u32), cuda.local.array(of_scores, f32)
        fetch(held, v, at_v, steps[2], first, end, filled, t)
        clear(scores, of_scores)
        times_keys(scores, query, strips, 0, lane)
        stow(strips, room, held, t)
        fetch(held, k, at_k, steps[1], i32(first + KEYS), end, filled, t)
        hide(scores, i32(first + lane % 4 * 2), own_row(row, t), end, ahead)
        rescale(scores, sums, largest, totals, steep)
        round_pairs(weights, scores)
        cuda.syncthreads()
        stow(strips, 0, held, t)
        times_values(sums, weights, strips, room, lane)
        cuda.syncthreads()

    return go_on


@functools.cache
def forward_kernel(kind, width, causal):
    """For queries of up to `width` numbers."""
    bands, room, of_query, of_result = bands_of(width), KEYS * pitch_of(width), width // 4, width // 2
    both, on_the_way, of_queries, of_results = 2 * room, words_held(KEYS, width), bands * of_query, bands * of_result
    begin, fetch, stow = tile_moves(KEYS, width)
    take_queries, leave, rows = left_operand(width), leaving(width, kind), 2 * bands
    seen_by_all, seen_by_some = one_tile(kind, width, see_all), one_tile(kind, width, hiding(width, causal))

    def attend(q, k, v, out, logsumexp, steps, sizes, scale, factor):
        strips = cuda.shared.array(both, u32, alignment=16)
        query, held = cuda.local.array(of_queries, u32), cuda.local.array(on_the_way, u32)
        sums = cuda.local.array(of_results, f32)
        largest, totals = cuda.local.array(rows, f32), cuda.local.array(rows, f32)
        heads, group, queries, keys, filled = sizes
        t, ahead, steep = thread_of_block(), i32(keys - queries), abs(factor)
        row, batch, head = block_of(queries, heads, bands * BLOCK_ROWS)
        at_q, at_k = begin(steps[0], batch, head, t), begin(steps[1], batch, head // group, t)
        at_v = begin(steps[2], batch, head // group, t)
        end = i32(min(keys, row + bands * BLOCK_ROWS + ahead)) if causal else keys
        whole = i32(min(end, row + ahead + 1)) if causal else keys
        for band in range(bands):
            fetch(held, q, at_q, steps[0], i32(row + band * BLOCK_ROWS), queries, filled, t)
            stow(strips, 0, held, t)
            cuda.syncthreads()
            take_queries(query, band * of_query, strips, 0, t)
            cuda.syncthreads()
        with_sign(query, of_queries, scale)
        clear(sums, of_results)
        clear(totals, rows)
        for r in range(rows):
            largest[r] = f32(-math.inf)
        fetch(held, k, at_k, steps[1], i32(0), end, filled, t)
        stow(strips, 0, held, t)
        cuda.syncthreads()
        first = i32(0)
        while first + KEYS <= whole:
            seen_by_all(
                k, v, at_k, at_v, steps, strips, query, sums, largest, totals, first, end, row, ahead, filled, t, steep
            )
            first = i32(first + KEYS)
        while first < end:
            seen_by_some(
                k, v, at_k, at_v, steps, strips, query, sums, largest, totals, first, end, row, ahead, filled, t, steep
            )
            first = i32(first + KEYS)
        at = (batch * heads + head) * queries
        finish(largest, totals, logsumexp, at, own_row(row, t), queries, i32(t % 32), scale)
        for band in range(bands):
            here, factors = row + band * BLOCK_ROWS, (totals[2 * band], totals[2 * band + 1])
            leave(strips, sums, band * of_result, factors, out, steps[3], batch, head, here, queries, filled, t)
            cuda.syncthreads()

    attend.launch_bounds = (THREADS, 2)
    return attend
