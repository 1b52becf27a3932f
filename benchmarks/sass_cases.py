"""Which kernels `benchmarks.sass` looks at: the operations of benchmarks/gpu.py and their backward forms, at the same sizes.

The arrays are never touched: what counts is which kernel a launcher chooses for them, and the grid. So each is one number
that is repeated, by strides of 0, unless the launcher looks at strides: then memory is reserved, and never written.
"""

import typing

import numpy as np

from readtorch.aten.native import math as functions
from readtorch.aten.native.cuda import (
    copy,
    embedding,
    fused_adam_kernel,
    group_norm_kernel,
    layer_norm_kernel,
    loops,
    normalization,
    reduce,
    scan_kernels,
    softmax,
)

COUNT, ROWS, COLUMNS = 1 << 26, 1 << 16, 1 << 10
BLOCK = -1
f32 = np.float32


class Case(typing.NamedTuple):
    """launcher(*arguments) works on elements for each of which memory must move so many bytes. `row`: the elements that a
    block takes together, where it does so in loops within a loop; BLOCK: what it has at all. `stored`: the bytes among them that
    are written, where a loop also reads what stays in the cache (weights of rows)."""

    launcher: object
    arguments: tuple
    bytes: int
    row: int = 0
    stored: int = 0

    def row_of(self, launch):
        return COUNT // launch.blocks if self.row == BLOCK else self.row


def room(*shape, dtype=np.float32):
    """Memory that is reserved, at a multiple of 16 as the chip's is."""
    return np.zeros(shape, dtype)  # large: whole pages of the system


def flat_cases():
    x, y, out = room(COUNT), room(COUNT), room(COUNT)
    yield "add", Case(loops.pointwise, (functions.add, [x, y], out, (f32(1),)), 12)
    yield "mul", Case(loops.pointwise, (functions.mul, [x, y], out), 12)
    yield "exp", Case(loops.pointwise, (functions.exp, [x], out), 8)
    yield "gelu", Case(loops.pointwise, (functions.gelu, [x], out), 8)
    yield "copy", Case(copy.copy, (x, out), 8)
    wide, bias = room(ROWS, COLUMNS), room(COLUMNS)
    yield (
        "add of a row",
        Case(loops.pointwise, (functions.add, [wide, loops.broadcast(bias, wide.shape)], wide, (f32(1),)), 8),
    )
    yield "copy of columns", Case(copy.copy, (room(ROWS, 2 * COLUMNS)[:, ::2], wide), 8)
    square, other = room(8192, 8192), room(8192, 8192)
    yield "transpose", Case(copy.copy, (square.T, other), 8)


def reduce_cases():
    x, rows = room(COUNT), room(ROWS, COLUMNS)
    for name in ("SUM", "AMAX"):
        how = getattr(reduce, name)
        yield f"{name.lower()}", Case(reduce.reduce, (how, x, (0,), room(1).reshape(())), 4, BLOCK)
        yield f"{name.lower()} of rows", Case(reduce.reduce, (how, rows, (1,), room(ROWS)), 4, COLUMNS)
        yield f"{name.lower()} of columns", Case(reduce.reduce, (how, rows, (0,), room(COLUMNS)), 4)
    yield "sum of short rows", Case(reduce.reduce, (reduce.SUM, room(1 << 20, 64), (1,), room(1 << 20)), 4, 64)
    yield "cumsum", Case(scan_kernels.cumsum, (rows, 1, room(ROWS, COLUMNS)), 8, COLUMNS)


def row_cases():
    x, y, out = room(ROWS, COLUMNS), room(ROWS, COLUMNS), room(ROWS, COLUMNS)
    for log in (False, True):
        name = "log_softmax" if log else "softmax"
        yield name, Case(softmax.softmax, (x, 1, out, log), 8, COLUMNS)
        yield f"{name} backward", Case(softmax.softmax_backward, (x, y, 1, out, log), 12, COLUMNS)
    long, longer = room(1 << 9, 1 << 17), room(1 << 9, 1 << 17)
    yield "softmax of long rows", Case(softmax.softmax, (long, 1, longer), 8, 1 << 17)
    short, shorter = room(1 << 20, 64), room(1 << 20, 64)
    yield "softmax of short rows", Case(softmax.softmax, (short, 1, shorter), 8, 64)
    weight, bias, mean, rstd = room(COLUMNS), room(COLUMNS), room(ROWS), room(ROWS)
    for name, launcher, count in (("softmax", softmax.softmax, 2), ("softmax backward", softmax.softmax_backward, 3)):
        long = [room(1 << 12, 1 << 14) for _ in range(count)]
        yield f"{name} by blocks", Case(launcher, (*long[:-1], 1, long[-1]), 4 * count)
    forward = (x, COLUMNS, weight, bias, 1e-5, out, mean, rstd)
    yield "layer_norm", Case(layer_norm_kernel.layer_norm, forward, 8, COLUMNS, 4)
    backward = (x, y, COLUMNS, mean, rstd, weight, out)
    yield "layer_norm backward", Case(layer_norm_kernel.layer_norm_backward, (*backward, None, None), 12, COLUMNS, 4)
    weights = (x, y, COLUMNS, mean, rstd, weight, None, weight, bias)
    yield "layer_norm backward of weights", Case(layer_norm_kernel.layer_norm_backward, weights, 8)


def channel_cases():
    x, out = room(64, 256, 64, 64), room(64, 256, 64, 64)
    c, sums, groups = room(256), room(256), room(64 * 32)
    each = 8 * 64 * 64
    yield "group_norm", Case(group_norm_kernel.group_norm, (x, 32, c, c, 1e-5, out, groups, groups), 8, each)
    yield "batch_norm", Case(normalization.batch_norm, (x, c, c, c, c, False, 0.1, 1e-5, out, sums, sums), 8, 0, 4)
    trained = (x, out, c, True, c, c, out, sums, sums)
    yield "batch_norm backward", Case(normalization.batch_norm_backward, trained, 12)


def other_cases():
    lists, steps = [[room(1 << 22)] * 16 for _ in range(4)], [room(1)] * 16
    yield "adamw", Case(fused_adam_kernel.adam, (*lists, None, steps, 1e-3, 0.9, 0.999, 1e-8, 0.01, True), 28)
    table, places = room(50304, COLUMNS), room(ROWS, dtype=np.int64)
    yield "embedding", Case(embedding.embedding, (table, places, room(ROWS, COLUMNS)), 8)


FAMILIES = [flat_cases, reduce_cases, row_cases, channel_cases, other_cases]


def cases():
    return {name: case for family in FAMILIES for name, case in family()}
