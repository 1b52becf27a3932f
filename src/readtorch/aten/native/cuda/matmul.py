"""Matrix products: out = finish(alpha · a b + bias), for stacks of matrices with any strides.

    matmul(a, b, out, bias=None, alpha=1, finish=identity)     a: (…, M, K), b: (…, K, N), out: (…, M, N)

See Note [ A tile in registers ] in tiles.py for grid and block. A transposed operand is only one with other
strides: which way the threads walk over a strip is chosen so that neighbours read neighbours.

In PyTorch: `aten/src/ATen/cuda/CUDABlas.cpp`, which calls cuBLAS.
"""
import functools
import math

import numpy as np

from ....c10.cuda.launch import strided
from .loops import broadcast
from .rows import contiguous
from .tiles import nothing, run_tiles


def matmul(a, b, out, bias=None, alpha=1, finish=None, quarters=None):
    """bias: broadcast to out (a row for Linear, or a whole matrix). finish: relu, gelu or None. quarters: see
    tiles.py.
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
    run_tiles((a_at, b_at, put(bias is not None)), along, sizes, (a, b, extra, result), (number(alpha),), number,
              quarters=quarters, finish=finish or nothing, blocks=blocks)


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
