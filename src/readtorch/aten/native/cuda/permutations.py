"""randperm: 0, 1, 2 … in the order that sorts random keys.

Keys that are equal would keep their numbers in order. How many bits of a key count is chosen so that this is
rare; where it happens, the thread of the first of some equal keys shuffles what belongs to them (Fisher and
Yates) by numbers of its own. Grid: a thread for each key, in blocks of 512.

In PyTorch: `aten/src/ATen/native/cuda/{Randperm.cu,Randperm.cuh}`. Written from these; no permutation that
PyTorch gave on a GPU was at hand to compare with.
"""
import math

import numpy as np
from numba import cuda

from ....c10.cuda.launch import launch
from .philox import philox

THREADS = 512
u64 = np.uint64


def bits_of_keys(n):
    """So many bits of n keys count: with less than a tenth's probability two keys are equal."""
    return min(64, math.ceil(math.log2(n - (6.0 * n * n + 1) / (12 * math.log(0.9)))))


def shuffle_equal(state, keys, order):
    """keys: sorted; order (int64): what belongs to each."""
    if keys.size > 1:
        launch(shuffle_kernel, -(-keys.size // THREADS), THREADS, *map(u64, state), keys, order)


def shuffle_kernel(seed, offset, keys, order):
    first = cuda.grid(1)
    if first >= keys.size - 1 or keys[first] != keys[first + 1]:
        return
    if first > 0 and keys[first] == keys[first - 1]:
        return
    end = first + 1
    while end < keys.size and keys[end] == keys[first]:
        end += 1
    drawn = 0
    for i in range(end - first - 1, 0, -1):
        words = philox(seed, u64(first), offset // u64(4) + u64(drawn // 4))
        j = np.int64(words[drawn % 4]) % (i + 1)
        drawn += 1
        order[first + i], order[first + j] = order[first + j], order[first + i]
