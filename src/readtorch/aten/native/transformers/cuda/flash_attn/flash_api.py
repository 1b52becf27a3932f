"""Launches the kernels of attention.

    mha_fwd(q, k, v, out, logsumexp, scale, is_causal)
    mha_bwd(grad, q, k, v, logsumexp, delta, grad_q, grad_k, grad_v, scale, is_causal)

Arrays are (batch, heads, length, numbers), of bfloat16 or float16, with up to 128 numbers, a multiple of eight; key and value
may have fewer heads, each for as many of the query's. logsumexp is (batch, heads, length), contiguous float32.

In PyTorch: `aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp`.
"""

import math

import numpy as np

from readtorch.aten.native.cuda.loops import pointwise
from readtorch.aten.native.cuda.offset_calculator import laid_out
from readtorch.aten.native.cuda.rows import flat
from readtorch.aten.native.math import copy
from readtorch.c10.cuda.launch import address, launch, scratch

from .flash_bwd_kernel import backward_kernel
from .flash_fwd_kernel import bands_of, forward_kernel
from .utils import BLOCK_ROWS, THREADS

WIDEST = 128
LOG2_E = math.log2(math.e)
u32, f32, i32 = np.uint32, np.float32, np.int32


def mha_fwd(q, k, v, out, logsumexp, scale, is_causal):
    batch, heads, queries, _ = q.shape
    rows, steps = zip(*map(in_words, (q, k, v, out)))
    kernel = forward_kernel(*kind_of(q), is_causal)
    blocks = -(-queries // (BLOCK_ROWS * bands_of(kind_of(q)[1]))) * heads * batch
    launch(kernel, blocks, THREADS, *rows, flat(logsumexp), steps, sizes_of(q, k), *factors(scale))


def mha_bwd(grad, q, k, v, logsumexp, delta, grad_q, grad_k, grad_v, scale, is_causal):
    """delta: Σ grad · out in each row, as logsumexp is. See Note [ One side stays ] in flash_bwd_kernel.py."""
    numbers = flat(logsumexp), flat(delta)
    for of_keys, own, others, out in (
        (False, (q, grad), (k, v), (grad_q, grad_q)),
        (True, (k, v), (q, grad), (grad_k, grad_v)),
    ):
        rows, steps = zip(*map(in_words, (*own, *others, *out)))
        kernel = backward_kernel(*kind_of(q), is_causal, of_keys)
        batch, heads, length, _ = own[0].shape
        blocks = -(-length // BLOCK_ROWS) * heads * batch
        launch(kernel, blocks, THREADS, *rows[:4], *numbers, *rows[4:], steps, sizes_of(q, k), *factors(scale))


def kind_of(q):
    """(dtype, width) that a kernel is compiled for: 32, 64, 96 or 128 numbers."""
    return q.dtype.name, -(-q.shape[3] // 32) * 32


def sizes_of(q, k):
    """(heads, heads of the query for each of the key, queries, keys, chunks of eight numbers in a row)."""
    _, heads, queries, numbers = q.shape
    return tuple(map(i32, (heads, heads // k.shape[1], queries, k.shape[2], numbers // 8)))


def factors(scale):
    """(the scale, and what it is in exponents to the base 2)."""
    return f32(scale), f32(scale * LOG2_E)


def in_words(x):
    """(the memory as one row of words, words from batch to batch, head to head, row to row): a copy where rows cannot be read
    sixteen bytes at a time."""
    if x.strides[3] != x.itemsize or any(s % 16 for s in (*x.strides[:3], address(x))):
        fresh = scratch(x, x.shape, x.dtype)
        pointwise(copy, [x], fresh)
        x = fresh
    return laid_out(x)[0].view(u32), tuple(s // 4 for s in x.strides[:3])
