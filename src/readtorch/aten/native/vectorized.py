"""When a pointwise operator or a reduction leaves NumPy for a compiled loop, and how the loop is shared among threads.

NumPy makes one pass over memory for each step of a formula, and some of its steps take one number at a time. A compiled
loop (`cpu/loops.py`, `cpu/sum_kernel.py`) makes one pass in vector instructions. It serves contiguous
float32, and from a size on: the compiler takes a third of a second to load, and small tensors never need it.
Functions of one element serve 16-bit floats, too; everything else converts these to float32 and back (vec_convert.py).

In PyTorch: `vectorized_loop` in `aten/src/ATen/native/cpu/Loops.h`, `aten/src/ATen/native/cpu/SumKernel.cpp`.
"""

import functools
import math

import numpy as np

from readtorch.aten import parallel

from .vec_convert import F4, FROM_SIZE, GRAIN, KINDS, bits


@functools.cache
def compiled(function, arrays, numbers, dtype=F4):
    """The compiled loop of a function of elements; what compiles is imported when first needed."""
    from .cpu.loops import loop_over

    return loop_over(function, arrays, numbers, KINDS.get(dtype), KINDS.get(dtype))


@functools.cache
def reductions():
    from .cpu import sum_kernel

    return sum_kernel


def are_flat(x, *others):
    """Whether the loops serve these operands: many float32 in a row, of one shape."""
    if x.size < FROM_SIZE or x.dtype is not F4 or not x.flags.c_contiguous:
        return False
    for y in others:
        if y.dtype is not F4 or y.shape != x.shape or not y.flags.c_contiguous:
            return False
    return True


def are_flat_halves(x, *others):
    """The same for operands of one type that is bfloat16 or float16; `loop` computes in float32."""
    if x.size < FROM_SIZE or x.dtype not in KINDS or not x.flags.c_contiguous:
        return False
    return all([y.dtype == x.dtype and y.shape == x.shape and y.flags.c_contiguous for y in others])


def loop(function, *operands, numbers=()):
    """A new array: `function` of aten/native/math.py on the elements of flat operands, the numbers as float32."""
    out = np.empty_like(operands[0])
    run, arrays = compiled(function, len(operands), len(numbers), out.dtype), [*operands, out]
    if numbers:
        numbers = [np.float32(n) for n in numbers]
    if out.ndim != 1:
        arrays = [x.reshape(-1) for x in arrays]
    *flat, result = map(bits, arrays)
    if out.size < 2 * GRAIN:
        run(*flat, *numbers, result)
        return out
    parallel.parallel_for(0, out.size, GRAIN, lambda b, e: run(*[x[b:e] for x in flat], *numbers, result[b:e]))
    return out


def or_loop(function, array_function):
    """`array_function` on one array, or the loop of `function` where that serves."""

    def either(x):
        return loop(function, x) if are_flat(x) else array_function(x)

    return either


def as_blocks(x, axes):
    """`x` as (outer, n, inner) with `axes` in the middle, or None where no loop serves. axes: ascending, or None for
    all."""
    if x.size < FROM_SIZE or x.dtype is not F4 or not x.flags.c_contiguous:
        return None
    if axes is None:
        return x.reshape(1, x.size, 1)
    if not axes or axes[-1] - axes[0] != len(axes) - 1:
        return None
    outer, inner = math.prod(x.shape[: axes[0]]), math.prod(x.shape[axes[-1] + 1 :])
    return x.reshape(outer, -1, inner)


def reduce_blocks(name, blocks):
    """(outer, n, inner) to (outer, inner) by the loops `name` (inner 1) or `name`_columns."""
    outer, n, inner = blocks.shape
    if inner == 1:
        if outer == 1:
            return reduce_one(name, blocks.reshape(-1)).reshape(1, 1)
        out = np.empty((outer, 1), F4)
        run, rows, result = getattr(reductions(), f"{name}_rows"), blocks[:, :, 0], out[:, 0]
        parallel.parallel_for(0, outer, max(1, GRAIN // n), lambda b, e: run(rows[b:e], result[b:e]))
        return out
    out = np.empty((outer, inner), F4)
    run = getattr(reductions(), f"{name}_columns")
    parallel.parallel_for(0, outer, max(1, GRAIN // (n * inner)), lambda b, e: run(blocks[b:e], out[b:e]))
    return out


def reduce_one(name, flat):
    """One number out of all, a partial result for each piece."""
    run = getattr(reductions(), f"{name}_of")
    if flat.size < 2 * GRAIN:
        return np.array(run(flat), F4)
    pieces = -(-flat.size // GRAIN)
    parts = np.empty(pieces, np.float64)
    run = getattr(reductions(), f"{name}_pieces")
    parallel.parallel_for(0, pieces, 1, lambda b, e: run(flat[b * GRAIN : e * GRAIN], GRAIN, parts[b:e]))
    return parts.sum().astype(F4)
