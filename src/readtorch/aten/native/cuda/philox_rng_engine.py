"""Philox 4×32-10: random numbers as a function of a key and a counter, with no state that threads would
share.

Note [ Who draws which number ]
The key is the seed. The counter has 128 bits: the lower 64 count the draws of
one thread, the upper 64 are the thread's number in the grid. One evaluation, ten rounds of multiplying and
mixing, gives four numbers of 32 bits. A generator keeps how many numbers every thread has used so far (a
multiple of 4): a kernel begins there, and the generator moves on by what a thread of it may use at most. As
the thread's number is part of the counter, results depend on the grid: for large tensors on how many blocks
the chip holds.

J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).

In PyTorch: `aten/src/ATen/core/PhiloxRNGEngine.h`.
"""

import numpy as np

u32, u64 = np.uint32, np.uint64
MULTIPLIER_A, MULTIPLIER_B = u64(0xD2511F53), u64(0xCD9E8D57)
BUMP_A, BUMP_B = u64(0x9E3779B9), u64(0xBB67AE85)
LOW, HALF_WIDTH = u64(0xFFFFFFFF), u64(32)


def low(x):
    """The lower 32 bits."""
    return u32(x & LOW)


def high(x):
    return u32((x >> HALF_WIDTH) & LOW)


def one_round(a, b, c, d, key_a, key_b):
    first, second = MULTIPLIER_A * u64(a), MULTIPLIER_B * u64(c)
    return u32(high(second) ^ b ^ key_a), low(second), u32(high(first) ^ d ^ key_b), low(first)


def philox(seed, thread, draw):
    """Four uint32: the draw-th of this thread. All arguments are uint64."""
    a, b, c, d = low(draw), high(draw), low(thread), high(thread)
    key_a, key_b = low(seed), high(seed)
    for _ in range(10):
        a, b, c, d = one_round(a, b, c, d, key_a, key_b)
        key_a, key_b = low(u64(key_a) + BUMP_A), low(u64(key_b) + BUMP_B)
    return a, b, c, d


# ---------------------------------------------------------------------------------- seed and offset as an argument

NOWHERE = np.empty(0, np.uint64)


def philox_args(state):
    """A launch's argument for what a generator's `philox_state` gave: (whether a graph is captured, seed, offset, two words on the
    device, which a captured kernel reads). In PyTorch: `PhiloxCudaState`."""
    first, offset = state
    captured = isinstance(first, np.ndarray)
    return captured, u64(0 if captured else first), u64(offset), first if captured else NOWHERE


def unpack(state):
    """(seed, offset) of such an argument. Runs in kernels. In PyTorch: `at::cuda::philox::unpack`."""
    captured, seed, offset, extragraph = state
    return (extragraph[0], extragraph[1] + offset) if captured else (seed, offset)
