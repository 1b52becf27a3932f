"""Arrays of any number of dimensions inside a kernel: a flat array, and the sizes and strides as tuples.

Note [ Division by multiplication ]
The place of element i in four dimensions takes three divisions, for which a GPU has no instruction: of 64 bits each is a
function of about a hundred, of 32 bits about twenty instructions. But the sizes are known before the launch. For a divisor d
let s be the bits of d - 1 and m = ⌊2³² (2ˢ - d) / d⌋ + 1; then ⌊i / d⌋ = (⌊i m / 2³²⌋ + i) >> s: a multiplication, an addition
and a shift. Below 2³¹ the addition stays within 32 bits. A `divider` is the tuple (d, m, s). That s is below 32 the compiler
must be told, by `& 31`; else it shifts in 64 bits.
So places are of 31 bits, and larger arrays are taken apart (`in_32_bits`).

In PyTorch: `aten/src/ATen/cuda/detail/OffsetCalculator.cuh`, `aten/src/ATen/cuda/detail/IntegerDivider.cuh`,
`aten/src/ATen/native/CanUse32BitIndexMath.cpp`.
"""

import functools

import numpy as np

from readtorch.c10.cuda.launch import strided

u32, u64, i32 = np.uint32, np.uint64, np.int32
LARGEST = (1 << 31) - 1


@functools.cache
def divider(d):
    """What a kernel divides by d with, 1 ≤ d < 2³¹: Note [ Division by multiplication ]."""
    shift = (d - 1).bit_length()
    return u32(d), u32((1 << 32) * ((1 << shift) - d) // d + 1), u32(shift)


def divided(i, by):
    """i // d, of 32 bits. Runs in kernels."""
    i = u32(i)
    high = u32((u64(i) * u64(by[1])) >> u64(32))
    return u32(u32(high + i) >> (by[2] & u32(31)))


def place_of(i, dividers):
    """The position of the i-th element in four dimensions, whose last three sizes are given. Runs in kernels."""
    a = divided(i, dividers[2])
    b = divided(a, dividers[1])
    c = divided(b, dividers[0])
    return i32(c), remainder(b, c, dividers[0]), remainder(a, b, dividers[1]), remainder(i, a, dividers[2])


def remainder(i, quotient, by):
    return i32(u32(i) - quotient * by[0])


def offset_of(place, steps):
    """Where that position lies: steps = (where the first one lies, four strides). Runs in kernels."""
    return i32(steps[0] + place[0] * steps[1] + place[1] * steps[2] + place[2] * steps[3] + place[3] * steps[4])


def with_steps(x):
    """(all memory of an array of four dimensions as one row, `steps` for `offset_of`); strides may be negative."""
    if min(x.strides) >= 0:
        row, steps = laid_out(x)
        return row, (i32(0), *map(i32, steps))
    lowest = x[tuple(slice(None, None, -1 if step < 0 else 1) for step in x.strides)]
    row, _ = laid_out(lowest)
    steps = [step // x.itemsize for step in x.strides]
    first = -sum(step * (n - 1) for n, step in zip(x.shape, steps) if step < 0)
    return row, tuple(map(i32, (first, *steps)))


def in_32_bits(arrays):
    """The arrays (of one shape), or halves of them, and so on, that places of 32 bits are enough for."""
    shape = arrays[0].shape
    if all(reach_of(a) <= LARGEST for a in arrays):
        yield arrays
        return
    longest = max(range(len(shape)), key=lambda d: max(shape[d], *((shape[d] - 1) * abs(a.strides[d]) for a in arrays)))
    for half in (slice(shape[longest] // 2), slice(shape[longest] // 2, None)):
        yield from in_32_bits([a[(slice(None),) * longest + (half,)] for a in arrays])


def reach_of(x):
    """How many elements lie between an array's first one in memory and its last; at least as many as it has."""
    return max(x.size, 1 + sum((n - 1) * abs(step) for n, step in zip(x.shape, x.strides)) // x.itemsize)


def laid_out(x):
    """(all of its memory as one row, its strides in elements); strides are not negative, as a tensor's never
    are.
    """
    itemsize = x.itemsize
    steps = tuple([s // itemsize for s in x.strides])
    reach = 1 + sum([(n - 1) * s for n, s in zip(x.shape, steps)]) if x.size else 0
    return strided(x, (reach,), (x.itemsize,)), steps


def offset(i, shape, steps):
    """Where the i-th element lies, counted in the order of the dimensions. Runs in kernels."""
    place = 0
    for d in range(len(shape) - 1, -1, -1):
        place += i % shape[d] * steps[d]
        i //= shape[d]
    return place


def without(steps, dim):
    """The strides with one of them 0: for who goes along this dimension by other means."""
    return tuple(0 if d == dim else s for d, s in enumerate(steps))
