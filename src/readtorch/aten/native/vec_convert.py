"""float32 to 16-bit floats and back: by a compiled loop (`aten/cpu/vec/vec_convert.py`) where there are many, otherwise by NumPy.

What is computed in float32 and rounded once reads and writes 16-bit floats by `cast`.

In PyTorch: `convert` in `aten/src/ATen/cpu/vec/vec_convert.h`.
"""

import functools

import numpy as np

from readtorch.aten import parallel
from readtorch.c10 import scalar_type

F4 = np.dtype(np.float32)
WIDENED = {t.numpy: F4 for t in scalar_type.REDUCED_FLOATING}  # in what small floats are computed
KINDS = {
    t.numpy: t.numpy.name for t in (scalar_type.bfloat16, scalar_type.float16)
}  # what a loop calls those that it converts

FROM_SIZE = 8192  # from here on a compiled loop is worth it
GRAIN = 65536  # elements that are worth handing over to another thread


def bits(x):
    """An array as a loop takes it."""
    return x.view(np.uint16) if x.itemsize == 2 else x


@functools.cache
def converting(source, target):
    """The compiled loop; what compiles is imported when first needed."""
    from .cpu.loops import convert, loop_over

    return loop_over(convert, 1, 0, KINDS.get(source), KINDS.get(target))


def cast(array, numpy_dtype):
    """A copy of `array` with elements of another type, in C's way. Its dimensions lie in memory in the order of the array's."""
    types = array.dtype, numpy_dtype
    if array.size < FROM_SIZE or F4 not in types or KINDS.keys().isdisjoint(types) or 0 in array.strides:
        return array.astype(numpy_dtype)
    if array.flags.c_contiguous:
        return cast_rows(array, numpy_dtype)
    if array.flags.f_contiguous:
        return cast_rows(array.T, numpy_dtype).T
    order = sorted(
        range(array.ndim), key=lambda d: -array.strides[d]
    )  # of memory: many arrays have no gaps then, and are not copied
    rows = np.ascontiguousarray(array.transpose(order))
    return cast_rows(rows, numpy_dtype).transpose([order.index(d) for d in range(array.ndim)])


def cast_rows(array, numpy_dtype):
    """The same for an array that lies row by row."""
    result = np.empty(array.shape, numpy_dtype)
    source, target, run = bits(array.reshape(-1)), bits(result.reshape(-1)), converting(array.dtype, numpy_dtype)
    if source.size < 2 * GRAIN:
        run(source, target)
    else:
        parallel.parallel_for(0, source.size, GRAIN, lambda b, e: run(source[b:e], target[b:e]))
    return result
