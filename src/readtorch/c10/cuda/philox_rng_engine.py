"""Philox 4x32-10: random numbers as a function of where they are used.

Note [ Counting instead of remembering ]
mt19937 has a state that every number changes, so numbers must be drawn one after the other. Philox has none: it
scrambles a counter of 128 bits with a key of 64, in ten rounds of multiplications, into four numbers of 32 bits. Give
each thread a counter of its own and all of them can draw at once, in any order, and get the same numbers again. CUDA's
generators use the seed as the key; the counter is (how often this thread has drawn, from the generator's offset on; the
thread's index).

Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (2011). In PyTorch:
`aten/src/ATen/core/PhiloxRNGEngine.h` and, on devices, cuRAND. Explained in the chapter "CUDA kernels with numba".
"""

import numpy as np

MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def philox4x32(counter, key):
    """Four uint64 arrays that hold numbers of 32 bits. counter: four of them, that broadcast; key: two ints."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        a, b = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = b >> HALF ^ c1 ^ np.uint64(k0), b & LOW, a >> HALF ^ c3 ^ np.uint64(k1), a & LOW
        k0, k1 = k0 + KEY_STEPS[0] & 0xFFFFFFFF, k1 + KEY_STEPS[1] & 0xFFFFFFFF
    return c0, c1, c2, c3


def draws(seed, offset, threads, calls):
    """What `threads` threads draw in `calls` calls of curand4: a uint64 array [calls, 4, threads] of 32-bit numbers.

    offset: numbers that each thread has drawn before, a multiple of 4.
    """
    position = np.arange(calls, dtype=np.uint64)[:, None] + np.uint64(offset // 4)
    thread = np.arange(threads, dtype=np.uint64)[None, :]
    counter = position & LOW, position >> HALF, thread & LOW, thread >> HALF
    parts = philox4x32(np.broadcast_arrays(*counter), (seed & 0xFFFFFFFF, seed >> 32))
    return np.stack(parts, axis=1)
