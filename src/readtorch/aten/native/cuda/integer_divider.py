"""Division by a number that many threads divide by: a multiplication and a shift, worked out once by the host.

    q = quotient(n, divider(d))      n // d, for 0 <= n < 2³¹ and 0 < d < 2³¹

With s the number of bits of d - 1, the multiplier is m = 2³² (2ˢ - d) / d + 1, rounded down: then n / d is
(n m / 2³² + n) / 2ˢ, both rounded down. A chip has no instruction that divides integers; of 64 bits it takes a hundred.

In PyTorch: `aten/src/ATen/cuda/detail/IntegerDivider.cuh`, after T. Granlund and P. Montgomery: Division by invariant
integers using multiplication (1994).
"""

import numpy as np

i32, u32, u64 = np.int32, np.uint32, np.uint64


def divider(d):
    """(d, multiplier, shift)"""
    shift = (d - 1).bit_length()
    return d, ((1 << 32) * ((1 << shift) - d)) // d + 1, shift


def quotient(n, by):
    """A device function."""
    high = u64(u64(u32(n)) * u64(u32(by[1])) >> u64(32))
    return i32((high + u64(u32(n))) >> u64(by[2]))
