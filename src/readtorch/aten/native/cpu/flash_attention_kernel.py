"""Attention of float32 and its gradients, head by head and block by block of queries.

The weights of a block of queries, a matrix (rows, keys), are all that is kept: they fit into the cache. In
causal attention a block sees only the keys up to its last query. Each head is matrix products by BLAS and a
loop over the weights between.

Note [ Rows in whole vectors ]
The loops over a row run to a multiple of 32 and choose what counts (`j < visible`): the few numbers left over
behind the last whole vector would cost as much as all others. What lies there is never read as a number.

In PyTorch: `aten/src/ATen/native/cpu/FlashAttentionKernel.cpp`.
"""

import threading

import numpy as np
from numba import types

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.blas import gemm
from readtorch.aten.cpu.compile import fast_kernel, scalar

# The operands of one call stand in a line or two; one a line, they would be pages.
# fmt: off

ZERO, ONE, MINUS_INFINITY = np.float32(0), np.float32(1), np.float32(-np.inf)


@scalar
def whole(n):
    return (n + 31) // 32 * 32


@scalar
def queries_at_once(length, is_causal):
    """The size of a block: large, so that products are; small, so that a causal one hides few weights."""
    return min(length, 32 if is_causal and length <= 256 else 128)


def any_strides(signature):
    """Decorator: makes of a loop a function that returns the kernel, compiled when it is first asked for.

    It is compiled once, for the types of `signature`. Each array type there stands for arrays of all strides;
    left to itself, numba would compile anew for each mixture of contiguous arrays and others.
    """
    def decorate(function):
        compiled, lock, done = fast_kernel(function), threading.Lock(), []

        def kernel():
            if not done:
                with lock:  # several threads may ask first
                    if not done:
                        compiled.compile(signature)
                        compiled.disable_compile()
                        done.append(True)
            return compiled
        return kernel
    return decorate


READ = types.Array(types.float32, 4, "A", readonly=True)
WRITTEN, ROWS = types.float32[:, :, :, :], types.float32[:, :, :]
FLAG, NUMBER, INDEX = types.boolean, types.float32, types.int64


@scalar
def add(row, mask):
    for j in range(mask.size):
        row[j] += mask[j]


@scalar
def exponentials(row, visible, end):
    """Make scores the softmax of the visible ones, 0 behind; returns the logarithm of their sum."""
    top = MINUS_INFINITY
    for j in range(end):
        top = vec.greater(top, row[j] if j < visible else MINUS_INFINITY)
    top = ZERO if top == MINUS_INFINITY else top  # a row that may look nowhere: all weights 0, not nan
    total = ZERO
    for j in range(end):
        y = vec.exp(row[j] - top)
        y = y if j < visible else ZERO
        row[j] = y
        total += y
    total = ONE if total == ZERO else total
    share = ONE / total
    for j in range(end):
        row[j] *= share
    return top + vec.log(total)


@any_strides((READ, READ, READ, READ, FLAG, FLAG, NUMBER, WRITTEN, ROWS, INDEX, INDEX))
def attend(q, k, v, mask, masked, is_causal, factor, out, logsumexp, begin, end):
    """The heads begin … end of all. q, out: (B, H, L, D); k, v: (B, H or a divisor of it, S, D)."""
    heads, length, width = q.shape[1], q.shape[2], q.shape[3]
    keys, group = k.shape[2], heads // k.shape[1]
    block = queries_at_once(length, is_causal)
    scores = np.empty((block, whole(keys)), np.float32)
    for head in range(begin, end):
        b, h = head // heads, head % heads
        kv = h // group
        for i in range(0, length, block):
            rows = min(block, length - i)
            seen = min(i + rows, keys) if is_causal else keys
            gemm(False, True, rows, seen, width, factor, q[b, h, i], q.strides[2] // 4, k[b, kv, 0],
                 k.strides[2] // 4, 0, scores, scores.shape[1])
            for r in range(rows):
                row = scores[r]
                if masked:
                    add(row, mask[b, h, i + r, :seen])
                visible = min(i + r + 1, seen) if is_causal else seen
                logsumexp[b, h, i + r] = exponentials(row, visible, whole(seen))
            gemm(False, False, rows, width, seen, 1, scores, scores.shape[1], v[b, kv, 0], v.strides[2] // 4,
                 0, out[b, h, i], out.strides[2] // 4)


@scalar
def slopes(row, grad_row, logsumexp, delta, visible, end):
    """From scores and the gradients of the weights: the weights again, and the gradients of the scores."""
    for j in range(end):
        y = vec.exp(row[j] - logsumexp)
        y = y if j < visible else ZERO
        row[j] = y
        grad_row[j] = y * (grad_row[j] - delta) if j < visible else ZERO


@scalar
def dot(x, y):
    total = ZERO
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@any_strides((READ, READ, READ, READ, READ, ROWS, READ, FLAG, FLAG, NUMBER, WRITTEN, WRITTEN, WRITTEN, INDEX,
              INDEX))
def attend_backward(grad, q, k, v, out, logsumexp, mask, masked, is_causal, factor, grad_q, grad_k, grad_v,
                    begin, end):
    """The heads begin … end of k and v. Blocks of queries come last first: the last one sees all keys that
    any sees.
    """
    length, width, keys, kv_heads = q.shape[2], q.shape[3], k.shape[2], k.shape[1]
    group = q.shape[1] // kv_heads
    block = queries_at_once(length, is_causal)
    scores = np.empty((block, whole(keys)), np.float32)
    grad_scores = np.empty_like(scores)
    ld = scores.shape[1]
    for head in range(begin, end):
        b, kv = head // kv_heads, head % kv_heads
        so_far = 0
        for h in range(kv * group, (kv + 1) * group):
            for i in range((length - 1) // block * block, -1, -block):
                rows = min(block, length - i)
                seen = min(i + rows, keys) if is_causal else keys
                gemm(False, True, rows, seen, width, factor, q[b, h, i], q.strides[2] // 4, k[b, kv, 0],
                     k.strides[2] // 4, 0, scores, ld)
                gemm(False, True, rows, seen, width, 1, grad[b, h, i], grad.strides[2] // 4, v[b, kv, 0],
                     v.strides[2] // 4, 0, grad_scores, ld)
                for r in range(rows):
                    if masked:
                        add(scores[r], mask[b, h, i + r, :seen])
                    delta = dot(grad[b, h, i + r], out[b, h, i + r])
                    visible = min(i + r + 1, seen) if is_causal else seen
                    slopes(scores[r], grad_scores[r], logsumexp[b, h, i + r], delta, visible, whole(seen))
                gemm(False, False, rows, width, seen, factor, grad_scores, ld, k[b, kv, 0], k.strides[2] // 4,
                     0, grad_q[b, h, i], grad_q.strides[2] // 4)
                gemm(True, False, seen, width, rows, factor, grad_scores, ld, q[b, h, i], q.strides[2] // 4,
                     so_far, grad_k[b, kv, 0], grad_k.strides[2] // 4)
                gemm(True, False, seen, width, rows, 1, scores, ld, grad[b, h, i], grad.strides[2] // 4,
                     so_far, grad_v[b, kv, 0], grad_v.strides[2] // 4)
                so_far = 1
