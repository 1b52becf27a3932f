"""Elements combined where an index says: products, maxima and minima (sums: indexing.py).

    combine(how, out, dim, index, source)       out[…, index[…, i, …], …] = how(that, source[…, i, …])

Note [ Compare and swap ]
The chip adds atomically, but has no instruction that multiplies so. What it has is `cas(array, place, expected,
new)`: write `new` if `expected` is there, and tell what was there. With it any function can be made atomic: look
what is there, compute the new value, and swap; if another thread was faster, begin again with what it wrote.
The instruction compares bits, so floating-point numbers are seen as integers of their width.

Grid: blocks of 256 threads with a grid-stride loop, one thread for each element of `index`.

In PyTorch: `aten/src/ATen/native/cuda/ScatterGatherKernel.cu`, `aten/src/ATen/cuda/Atomic.cuh` (`gpuAtomicMul`).
"""
import functools

import numpy as np
from numba import cuda

from .block_reduce import greater, smaller, times
from .indexing import along, from_the_front
from .offsets import offset

HOW = {"prod": times, "amax": greater, "amin": smaller}
BITS = {"float32": np.int32, "float64": np.int64}


def combine(how, out, dim, index, source):
    """how: a key of HOW. out, source: of 32 or 64 bits."""
    name = out.dtype.name
    bits = out.view(BITS[name]) if name in BITS else out
    along(combine_kernel(HOW[how], name), bits, dim, index, source)


def float_to_bits(x):
    return cuda.libdevice.float_as_int(x)


def bits_to_float(bits):
    return cuda.libdevice.int_as_float(bits)


def double_to_bits(x):
    return cuda.libdevice.double_as_longlong(x)


def bits_to_double(bits):
    return cuda.libdevice.longlong_as_double(bits)


def itself(x):
    return x


CONVERSIONS = {"float32": (float_to_bits, bits_to_float), "float64": (double_to_bits, bits_to_double)}


@functools.cache
def combine_kernel(function, name):
    """See Note [ Compare and swap ]."""
    to_bits, from_bits = CONVERSIONS.get(name, (itself, itself))

    def combine(bits, steps_bits, step, size, index, steps_index, source, steps_source, shape, count):
        for i in range(cuda.grid(1), count, cuda.gridsize(1)):
            k = from_the_front(index[offset(i, shape, steps_index)], size)
            place, value = offset(i, shape, steps_bits) + k * step, source[offset(i, shape, steps_source)]
            found, done = cuda.atomic.cas(bits, place, 0, 0), False
            while not done:
                expected = found
                found = cuda.atomic.cas(bits, place, expected, to_bits(function(from_bits(expected), value)))
                done = found == expected
    return combine
