"""gather and scatter, also with a reduction: elements named by an index along one dimension.

    gather(x, dim, index, out)      scatter(out, dim, index, source)    scatter_add(out, dim, index, source)
    combine(how, out, dim, index, source)      scatter with a product, a minimum or a maximum

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of `index`. An index
out of bounds stops the kernel: Note [ When a kernel finds an error ]. Sums are added atomically: where an index
occurs twice, the order, and so the last digit, is not fixed.

Note [ Compare and swap ]
The chip adds atomically, but has no atomic multiplication. What it has is `cas(array, index, expected, new)`: write
`new` if `expected` is there, and return what was there. With it any function can be made atomic: read the old value,
compute the new one, and swap; if another thread was faster, begin again with what it wrote. The instruction compares
bits, so floating-point numbers are taken as integers of their width.

In PyTorch: `aten/src/ATen/native/cuda/ScatterGatherKernel.cu`, `aten/src/ATen/cuda/Atomic.cuh` (`gpuAtomicMul`).
"""

import functools

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_advanced_indexing.index import writing_forms
from readtorch.aten.native.tensor_advanced_indexing.scatter_gather import neutral
from readtorch.c10.cuda.cuda_device_assertion import cuda_kernel_assert
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.scalar_type import int64
from readtorch.c10.wrap_dim import wrap_dim

from .block_reduce import greater, smaller, times
from .copy import copy_elements
from .fill_kernel import filled
from .loops import broadcast
from .offset_calculator import laid_out, offset, without
from .reduce_ops import LONG, converted, wide_enough
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
from .rows import contiguous

THREADS = 256


def gather(x, dim, index, out):
    """out[…, i, …] = x[…, index[…, i, …], …]. index (int64) and out have one shape; x is at least as large
    elsewhere.
    """
    along(gather_kernel, x, dim, index, out)


def scatter(out, dim, index, source):
    """out[…, index[…, i, …], …] = source[…, i, …]; of several for one place any may win."""
    along(scatter_kernel, out, dim, index, source)


def scatter_add(out, dim, index, source):
    along(scatter_add_kernel, out, dim, index, source)


def index_select(x, dim, index, out):
    """index: one dimension."""
    dim %= x.ndim
    shape = [1] * dim + [index.size] + [1] * (x.ndim - dim - 1)
    gather(x, dim, broadcast(index.reshape(shape), out.shape), out)


def along(kernel, x, dim, index, other):
    if index.size == 0:
        return
    if x.ndim == 0:
        x, index, other = (broadcast(a, (1,)) for a in (x, index, other))
    dim %= x.ndim
    flat_x, steps_x = laid_out(x)
    flat_index, steps_index = laid_out(index)
    flat_other, steps_other = laid_out(other)
    launch(
        kernel,
        blocks_of(index.size, THREADS),
        THREADS,
        flat_x,
        without(steps_x, dim),
        steps_x[dim],
        x.shape[dim],
        flat_index,
        steps_index,
        flat_other,
        steps_other,
        index.shape,
        index.size,
    )


def gather_kernel(x, steps_x, step, size, index, steps_index, out, steps_out, shape, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = in_bounds(index[offset(i, shape, steps_index)], size)
        out[offset(i, shape, steps_out)] = x[offset(i, shape, steps_x) + k * step]


def scatter_kernel(out, steps_out, step, size, index, steps_index, source, steps_source, shape, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = in_bounds(index[offset(i, shape, steps_index)], size)
        out[offset(i, shape, steps_out) + k * step] = source[offset(i, shape, steps_source)]


def scatter_add_kernel(out, steps_out, step, size, index, steps_index, source, steps_source, shape, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = in_bounds(index[offset(i, shape, steps_index)], size)
        cuda.atomic.add(out, offset(i, shape, steps_out) + k * step, source[offset(i, shape, steps_source)])


def in_bounds(index, size):
    cuda_kernel_assert(0 <= index < size, "index out of bounds")
    return index


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
            k = in_bounds(index[offset(i, shape, steps_index)], size)
            place, value = offset(i, shape, steps_bits) + k * step, source[offset(i, shape, steps_source)]
            found, done = cuda.atomic.cas(bits, place, 0, 0), False
            while not done:
                expected = found
                found = cuda.atomic.cas(bits, place, expected, to_bits(function(from_bits(expected), value)))
                done = found == expected

    return combine


@cuda_impl(operator_named("gather"))
def gather_cuda(self, dim, index, sparse_grad, out):
    gather(self._array, wrap_dim(dim, self._array.ndim), index._array, out._array)


def writes(name, write):
    """An operator that changes elements of a copy, and its in-place form: `write(self, *arguments)`."""
    operator = operator_named(name)
    into_copy, in_place = writing_forms(operator, write, copy_elements)
    cuda_impl(operator)(into_copy)
    cuda_kernel(operator.inplace)(in_place)


def window(array, shape):
    """The part of `array` as large as an index."""
    if not shape or array.ndim != len(shape):  # NumPy would read the element of an array without dimensions
        return array
    return array[tuple(slice(n) for n in shape)]


def by_index(run):
    """What writes or adds `src` where an index says."""

    def write(self, dim, index, src):
        dim = wrap_dim(dim, self._array.ndim)
        run(self._array, dim, index._array, window(source_of(self, index, src), index._array.shape))

    return write


def source_of(self, index, src):
    """The array of what is scattered: a tensor, or a number for each index."""
    if hasattr(src, "_array"):
        return src._array
    return broadcast(filled(empty((), self._array.dtype), src)._array, index._array.shape)


writes("scatter.src", by_index(scatter))
writes("scatter.value", by_index(scatter))
writes("scatter_add", by_index(scatter_add))


def reduce_into(self, dim, index, src, reduce, include_self=True):
    """`self`, each place combined with what `src` sends there."""
    dim = wrap_dim(dim, self._array.ndim)
    shape, own = index._array.shape, self._array.dtype
    if not index._array.size:
        return
    work = converted(self, wide_enough(own))
    number = work._array.dtype
    source = window(contiguous(source_of(self, index, src)), shape)
    if source.dtype != number:
        source = converted_array(source, number)
    if not include_self:
        start = filled(empty((), number), neutral(reduce, number))
        copy_elements(at.where(arrivals(work, dim, index) > 0, start, work), work)
    if reduce in ("sum", "mean"):
        scatter_add(work._array, dim, index._array, source)
    else:
        combine(reduce, work._array, dim, index._array, source)
    if reduce == "mean":
        work = divided_by_counts(work, dim, index, include_self)
    if work is not self:
        copy_elements(work, self)


def converted_array(array, numpy_dtype):
    from .copy import copy

    result = empty(array.shape, numpy_dtype)
    copy(array, result._array)
    return result._array


def arrivals(work, dim, index):
    """How many elements are sent to each place."""
    zeros = filled(empty(work._array.shape, LONG), 0)
    return at.scatter_add(zeros, dim, index, at.ones_like(index, dtype=int64))


def divided_by_counts(work, dim, index, include_self):
    counts = (arrivals(work, dim, index) + int(include_self)).clamp(min=1)
    if work._array.dtype.kind in "iu":
        return at.div(work, counts, rounding_mode="floor").to(work.dtype)
    return work / counts.to(work.dtype)


def add_or_multiply(self, dim, index, src, reduce):
    reduce_into(self, dim, index, src, "sum" if reduce == "add" else "prod")


writes("scatter.reduce", add_or_multiply)
writes("scatter.value_reduce", add_or_multiply)
writes("scatter_reduce.two", reduce_into)
