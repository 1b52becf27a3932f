"""randperm: 0, 1, 2 … in the order that sorts random keys.

Keys that are equal would keep their numbers in order. How many bits of a key count is chosen so that this is
rare; where it happens, the thread of the first of some equal keys shuffles what belongs to them (Fisher and
Yates) by numbers of its own. Grid: a thread for each key, in blocks of 512.

In PyTorch: `aten/src/ATen/native/cuda/Randperm.cu`, `aten/src/ATen/native/cuda/Randperm.cuh`. Written from
these; no permutation that PyTorch gave on a GPU was at hand to compare with.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.c10.cuda.launch import launch

from .copy import copy_elements
from .distribution_kernels import drawn
from .distribution_templates import integers
from .philox_rng_engine import philox, philox_args, unpack
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_impl, empty, operator_named
from .sort import sort

THREADS = 512
u64 = np.uint64


def bits_of_keys(n):
    """So many bits of n keys count: with less than a tenth's probability two keys are equal."""
    return min(64, math.ceil(math.log2(n - (6.0 * n * n + 1) / (12 * math.log(0.9)))))


def shuffle_equal(state, keys, order):
    """keys: sorted; order (int64): what belongs to each."""
    if keys.size > 1:
        launch(shuffle_kernel, -(-keys.size // THREADS), THREADS, philox_args(state), keys, order)


def shuffle_kernel(state, keys, order):
    seed, offset = unpack(state)
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


def order_of(n, engine):
    """A permutation of 0 … n - 1, int64."""
    result = empty((n,), LONG)
    if n == 0:
        return result
    bits = bits_of_keys(n)
    kind = np.dtype(np.int32) if bits <= 32 else LONG
    keys, sorted_keys, width = empty((n,), kind), empty((n,), LONG), 8 * kind.itemsize
    drawn(keys, engine, integers, -(1 << width - 1), (1 << width - 1) - 1, at_once=2)
    if bits < width:  # else a sort of signed numbers
        keys = at.bitwise_and(converted(keys, LONG), (1 << bits) - 1)
    sort(converted(keys, LONG)._array, 0, False, sorted_keys._array, result._array)
    shuffle_equal(engine.philox_state(n), sorted_keys._array, result._array)
    return result


@cuda_impl(operator_named("randperm.generator"))
def randperm_cuda(n, generator, dtype, layout, device, pin_memory, out):
    copy_elements(order_of(n, generator), out)
