"""The mt19937 engine: 624 words of state, a recurrence that renews them all at once, and a scrambling of each
word as it is handed out. Every random number that the CPU generator gives is made from these words.

The state is one `uint32` array of 625: the words, then the position of the next one (see Note [Engine
state]). In PyTorch: `aten/src/ATen/core/MT19937RNGEngine.h`. numba compiles these functions when they are
first called.
"""

import numpy as np
from numba import njit

from .codecache import cached

MERSENNE_STATE_N = 624
MERSENNE_STATE_M = 397
MATRIX_A = np.uint32(0x9908B0DF)
UPPER_MASK = np.uint32(0x80000000)
LOWER_MASK = np.uint32(0x7FFFFFFF)

# Note [Engine state]
# Word 624 of the state is the position of the next word to hand out. 624 means that the block is used up, and
# 625 that it was never begun: the seed has just been laid down. Both make the next draw renew the block
# first; they differ only in the bytes that `get_state` writes. A kernel moves the position in place, so it
# needs no other word than the array.
POSITION = MERSENNE_STATE_N
SEEDED = MERSENNE_STATE_N + 1


@njit(inline="always")
def mix(first, second, distant):
    """One step of the recurrence. `0 - (second & 1)` is all ones if `second` is odd: no branch needed."""
    joined = (first & UPPER_MASK) | (second & LOWER_MASK)
    odd = np.uint32(0) - (second & np.uint32(1))
    return distant ^ (joined >> np.uint32(1)) ^ (odd & MATRIX_A)


@cached
def next_block(state):
    """Renew all words. At first the word `M` places ahead is still an old one, further on a new one."""
    last = MERSENNE_STATE_N - 1
    ahead = MERSENNE_STATE_M
    behind = MERSENNE_STATE_M - MERSENNE_STATE_N
    for i in range(-behind):
        state[i] = mix(state[i], state[i + 1], state[i + ahead])
    for i in range(-behind, last):
        state[i] = mix(state[i], state[i + 1], state[i + behind])
    state[last] = mix(state[last], state[0], state[last + behind])
    state[POSITION] = 0


@njit(inline="always")
def temper(word):
    """Scramble one word on its way out."""
    word ^= word >> np.uint32(11)
    word ^= (word << np.uint32(7)) & np.uint32(0x9D2C5680)
    word ^= (word << np.uint32(15)) & np.uint32(0xEFC60000)
    return word ^ (word >> np.uint32(18))


@cached
def random(state):
    """The next 32 bits."""
    if state[POSITION] >= MERSENNE_STATE_N:
        next_block(state)
    position = state[POSITION]
    state[POSITION] = position + 1
    return temper(state[position])


@cached
def random64(state):
    """The next 64 bits: two words, the first one above."""
    high = np.uint64(random(state))
    return (high << np.uint64(32)) | np.uint64(random(state))


@cached
def random_words(state, out):
    """Fill `out` (uint32) with the next words, as many at a time as the block still holds."""
    done = 0
    while done < out.size:
        if state[POSITION] >= MERSENNE_STATE_N:
            next_block(state)
        position = np.int64(state[POSITION])
        count = min(MERSENNE_STATE_N - position, out.size - done)
        for i in range(count):
            out[done + i] = temper(state[position + i])
        state[POSITION] = position + count
        done += count
