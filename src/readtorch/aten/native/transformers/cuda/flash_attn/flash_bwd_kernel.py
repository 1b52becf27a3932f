"""The backward kernels of attention, which compute the weights again from the scores and the saved logsumexp.

Note [ One side stays ]
With W the weights, g the gradient of the result and Δ = Σ g · result in each row (flash_attention.py has the derivation):

    S = W · (g vᵀ - Δ)        ∂q = scale · S k        ∂k = scale · Sᵀ q        ∂v = Wᵀ g

∂q is a sum over the keys, ∂k and ∂v are sums over the queries. So there are two kernels of one form: a block keeps 64 rows of
two matrices in shared memory, and goes along the other two.

    keeps q, g; goes along k, v:      scores = q kᵀ     g vᵀ          ∂q += S k
    keeps k, v; goes along q, g:      scoresᵀ = k qᵀ    (g vᵀ)ᵀ       ∂k += Sᵀ q      ∂v += Wᵀ g

Each number of a result is one block's, which adds in one order: no atomics, the same bits in every run. The price is that
scores are computed twice, seven products instead of five.

In PyTorch: `flash_bwd_kernel.h` of the library FlashAttention, called from
`aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp`; there blocks keep keys and values, and add to ∂q in memory.
"""

import functools
import math

from numba import cuda

from readtorch.aten.native.cuda.memory_access import load

from .utils import (
    BLOCK_ROWS,
    THREADS,
    block_of,
    by_columns,
    clear,
    exp2,
    f32,
    i32,
    leaving,
    own_row,
    pitch_of,
    rounding,
    thread_of_block,
    tile_by_rows,
    tile_moves,
    u32,
    words_held,
)

LOG2_E = f32(math.log2(math.e))


def query_first(mine, other):
    return mine, other


def key_first(mine, other):
    return other, mine


@functools.cache
def reach(of_keys, causal, others):
    """between(row, ahead, along): the first of the other rows that meet a block's own ones, and where they end."""

    def all_of_them(row, ahead, along):
        return i32(0), i32(along)

    def keys_that_queries_see(row, ahead, keys):
        return i32(0), i32(min(keys, row + BLOCK_ROWS + ahead))

    def queries_that_see_keys(row, ahead, queries):
        return i32(max(row - ahead, 0) // others * others), i32(queries)

    return all_of_them if not causal else queries_that_see_keys if of_keys else keys_that_queries_see


@functools.cache
def weighing(of_keys, causal, others):
    """weigh(scores, logsumexp, at, own, first, sizes, factor): scores become weights. at: where the head begins in logsumexp; own,
    first: the row and the column of the lane's first number."""
    order = key_first if of_keys else query_first

    def weigh(scores, logsumexp, at, own, first, sizes, factor):
        _, _, queries, keys, _ = sizes
        ahead = i32(keys - queries)
        for e in range(others // 2):
            query, key = order(i32(own + e // 2 % 2 * 8), i32(first + e // 4 * 8 + e % 2))
            seen = query < queries and key < keys and not (causal and key > i32(query + ahead))
            exponent = scores[e] * factor - load(logsumexp, at + min(query, i32(queries - 1))) * LOG2_E
            scores[e] = exp2(exponent if seen else f32(-math.inf))

    return weigh


@functools.cache
def slopes(of_keys, others):
    """derive(slopes, weights, delta, at, own, first, queries): g vᵀ becomes S, zero where a weight is, whatever was not to be seen.
    The rest is as above."""
    order = key_first if of_keys else query_first

    def derive(slopes, weights, delta, at, own, first, queries):
        for e in range(others // 2):
            query, _ = order(i32(own + e // 2 % 2 * 8), i32(first + e // 4 * 8 + e % 2))
            difference = slopes[e] - load(delta, at + min(query, i32(queries - 1)))
            slopes[e] = weights[e] * difference if weights[e] != f32(0) else f32(0)

    return derive


@functools.cache
def backward_kernel(kind, width, causal, of_keys):
    """of_keys: the block's own rows are keys and values, else queries and gradients. See Note [ One side stays ]."""
    others = 16 if width > 64 else 32  # rows at a time of the other two
    of_tile, of_words, of_sums = others // 2, others // 4, width // 2
    room, beside = BLOCK_ROWS * pitch_of(width), others * pitch_of(width)
    whole, on_the_way, on_its_way = 2 * room + 2 * beside, words_held(BLOCK_ROWS, width), words_held(others, width)
    begin_own, fetch_own, stow_own = tile_moves(BLOCK_ROWS, width)
    begin, fetch, stow = tile_moves(others, width)
    leave, between = leaving(width, kind), reach(of_keys, causal, others)
    weigh, derive = weighing(of_keys, causal, others), slopes(of_keys, others)
    times, add = tile_by_rows(kind, others, width), by_columns(kind, others, width, 1)
    round_pairs = rounding(kind, of_words)

    def gradients(own_a, own_b, a, b, logsumexp, delta, out_a, out_b, steps, sizes, scale, factor):
        strips = cuda.shared.array(whole, u32, alignment=16)
        fresh, held = cuda.local.array(on_the_way, u32), cuda.local.array(on_its_way, u32)
        words, scores = cuda.local.array(of_words, u32), cuda.local.array(of_tile, f32)
        derived, sums = cuda.local.array(of_tile, f32), cuda.local.array(of_sums, f32)
        second = cuda.local.array(of_sums, f32)
        t, (heads, group, queries, keys, filled) = thread_of_block(), sizes
        rows, along, own_heads = (keys, queries, i32(heads // group)) if of_keys else (queries, keys, heads)
        row, batch, head = block_of(rows, own_heads, BLOCK_ROWS)
        fetch_own(fresh, own_a, begin_own(steps[0], batch, head, t), steps[0], row, rows, filled, t)
        stow_own(strips, 0, fresh, t)
        fetch_own(fresh, own_b, begin_own(steps[1], batch, head, t), steps[1], row, rows, filled, t)
        stow_own(strips, room, fresh, t)
        clear(sums, of_sums)
        clear(second, of_sums)
        for member in range(group if of_keys else i32(1)):
            other = i32(head * group + member if of_keys else head // group)
            at = (batch * heads + (other if of_keys else head)) * queries
            at_a, at_b = begin(steps[2], batch, other, t), begin(steps[3], batch, other, t)
            first, end = between(row, keys - queries, along)
            while first < end:
                fetch(held, a, at_a, steps[2], first, along, filled, t)
                stow(strips, 2 * room, held, t)
                fetch(held, b, at_b, steps[3], first, along, filled, t)
                stow(strips, 2 * room + beside, held, t)
                cuda.syncthreads()
                clear(scores, of_tile)
                times(scores, strips, 0, 2 * room, t)
                weigh(scores, logsumexp, at, own_row(row, t), i32(first + t % 4 * 2), sizes, factor)
                if of_keys:
                    round_pairs(words, scores)
                    add(second, words, strips, 2 * room + beside, t % 32)
                clear(derived, of_tile)
                times(derived, strips, room, 2 * room + beside, t)
                derive(derived, scores, delta, at, own_row(row, t), i32(first + t % 4 * 2), queries)
                round_pairs(words, derived)
                add(sums, words, strips, 2 * room, t % 32)
                cuda.syncthreads()
                first = i32(first + others)
        leave(strips, sums, 0, (scale, scale), out_a, steps[4], batch, head, row, rows, filled, t)
        if of_keys:
            cuda.syncthreads()
            leave(strips, second, 0, (f32(1), f32(1)), out_b, steps[5], batch, head, row, rows, filled, t)

    gradients.launch_bounds = (THREADS, 1)
    return gradients
