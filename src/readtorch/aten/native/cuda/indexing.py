"""gather, scatter, index_select and advanced indexing: elements named by integers.

    gather(x, dim, index, out)      scatter(out, dim, index, source)    scatter_add(out, dim, index, source)
    index(x, indices, out)          index_put(out, indices, source, accumulate)

Grid: blocks of 256 threads, one thread for each element of `index` (or of the result), with a grid-stride
loop. An index below 0 counts from the end; one out of bounds is an error that only the simulator reports.
Sums go by atomic additions: where an index occurs twice, the order, and so the last digit, is not fixed.

In PyTorch: `aten/src/ATen/native/cuda/{ScatterGatherKernel,IndexKernel,Indexing}.cu`.
"""
import numpy as np
from numba import cuda

from ....c10.cuda.launch import blocks_of, launch, scratch
from .functions import add
from .loops import broadcast, pointwise
from .offsets import laid_out, offset, without

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
    launch(kernel, blocks_of(index.size, THREADS), THREADS, flat_x, without(steps_x, dim), steps_x[dim],
           x.shape[dim],
           flat_index, steps_index, flat_other, steps_other, index.shape, index.size)


def index(x, indices, out):
    """out = x[indices[0], indices[1], …]: integer arrays (broadcast together) for the first dimensions of x.
    """
    elements(take_kernel, x, indices, out)


def index_put(out, indices, source, accumulate=False):
    """out[indices] = source, or += source."""
    elements(add_kernel if accumulate else put_kernel, out, indices, source)


def elements(kernel, x, indices, other):
    """The indices become one array of offsets; an element of `other` belongs to an offset and to a place
    behind it.
    """
    if other.size == 0:
        return
    flat_x, steps_x = laid_out(x)
    picked = np.broadcast_shapes(*(i.shape for i in indices))
    rest = x.shape[len(indices):]
    other = broadcast(other, (*picked, *rest))
    flat_other, steps_other = laid_out(other)
    offsets = total_offsets(indices, x.shape, steps_x, picked)
    inside = max(1, int(np.prod(rest)))
    launch(kernel, blocks_of(other.size, THREADS), THREADS, flat_x, offsets.reshape(-1), rest or (1,),
           steps_x[len(indices):] or (0,), inside, flat_other, other.shape or (1,), steps_other or (0,),
           other.size)


def total_offsets(indices, sizes, steps, shape):
    """Σ index · stride, as one int64 array."""
    total = scratch(indices[0], shape, np.int64)
    for d, index in enumerate(indices):
        numbers = (np.int64(sizes[d]), np.int64(steps[d]))
        if d == 0:
            pointwise(stride_of_index, [index], total, numbers)
        else:
            step = scratch(total, shape, np.int64)
            pointwise(stride_of_index, [index], step, numbers)
            pointwise(add, [total, step], total, (np.int64(1),))
    return total


def stride_of_index(index, numbers):
    """numbers: size, stride."""
    return (index + numbers[0] if index < 0 else index) * numbers[1]


# ---------------------------------------------------------------------------------------------------- kernels


def from_the_front(index, size):
    return index + size if index < 0 else index


def gather_kernel(x, steps_x, step, size, index, steps_index, out, steps_out, shape, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = from_the_front(index[offset(i, shape, steps_index)], size)
        out[offset(i, shape, steps_out)] = x[offset(i, shape, steps_x) + k * step]


def scatter_kernel(out, steps_out, step, size, index, steps_index, source, steps_source, shape, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = from_the_front(index[offset(i, shape, steps_index)], size)
        out[offset(i, shape, steps_out) + k * step] = source[offset(i, shape, steps_source)]


def scatter_add_kernel(out, steps_out, step, size, index, steps_index, source, steps_source, shape, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        k = from_the_front(index[offset(i, shape, steps_index)], size)
        cuda.atomic.add(out, offset(i, shape, steps_out) + k * step, source[offset(i, shape, steps_source)])


def take_kernel(x, offsets, rest, steps_rest, inside, out, shape, steps_out, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        out[offset(i, shape, steps_out)] = x[offsets[i // inside] + offset(i % inside, rest, steps_rest)]


def put_kernel(out, offsets, rest, steps_rest, inside, source, shape, steps_source, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        place = offsets[i // inside] + offset(i % inside, rest, steps_rest)
        out[place] = source[offset(i, shape, steps_source)]


def add_kernel(out, offsets, rest, steps_rest, inside, source, shape, steps_source, count):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        place = offsets[i // inside] + offset(i % inside, rest, steps_rest)
        cuda.atomic.add(out, place, source[offset(i, shape, steps_source)])
