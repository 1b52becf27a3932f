"""Elements named by index tensors, read and written: index, index_put, masked_select, take, put, masked_scatter.

    index_elements(x, indices, out)      index_put(out, indices, source, accumulate)

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of the result or the source. The kernels
check the indices: the host would have to wait for them.

In PyTorch: `aten/src/ATen/native/cuda/IndexKernel.cu`.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native.math import add
from readtorch.aten.native.tensor_advanced_indexing.index import AdvancedIndex, array_indices, check_same_types
from readtorch.aten.native.tensor_advanced_indexing.masked import check_mask_type
from readtorch.c10.cuda.cuda_device_assertion import cuda_kernel_assert
from readtorch.c10.cuda.launch import blocks_of, launch, scratch

from .copy import clone_cuda, copy_elements
from .loops import broadcast, pointwise
from .offset_calculator import laid_out, offset
from .reduce_ops import LONG
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, here, is_on_device, operator_named
from .scan_kernels import cumsum
from .scatter_gather_kernel import THREADS, writes


def index_elements(x, indices, out):
    """out = x[indices[0], indices[1], …]: integer arrays (broadcast together) for the first dimensions of x."""
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
    rest = x.shape[len(indices) :]
    other = broadcast(other, (*picked, *rest))
    flat_other, steps_other = laid_out(other)
    offsets = total_offsets(indices, x.shape, steps_x, picked)
    inside = max(1, int(np.prod(rest)))
    launch(
        kernel,
        blocks_of(other.size, THREADS),
        THREADS,
        flat_x,
        offsets.reshape(-1),
        rest or (1,),
        steps_x[len(indices) :] or (0,),
        inside,
        flat_other,
        other.shape or (1,),
        steps_other or (0,),
        other.size,
    )


def total_offsets(indices, sizes, steps, shape):
    """Σ index · stride, as one int64 array."""
    total = scratch(indices[0], shape, np.int64)
    for d, index in enumerate(indices):
        scalars = (np.int64(sizes[d]), np.int64(steps[d]))
        if d == 0:
            pointwise(stride_of_index, [index], total, scalars)
        else:
            step = scratch(total, shape, np.int64)
            pointwise(stride_of_index, [index], step, scalars)
            pointwise(add, [total, step], total, (np.int64(1),))
    return total


def stride_of_index(index, scalars):
    """numbers: size, stride."""
    cuda_kernel_assert(-scalars[0] <= index < scalars[0], "index out of bounds")
    return (index + scalars[0] if index < 0 else index) * scalars[1]


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


@cuda_kernel(operator_named("masked_select"))
def masked_select_cuda(self, mask):
    check_mask_type(mask)
    shape = broadcast_shape(self._array.shape, mask._array.shape) or (1,)
    return index_cuda(self.expand(shape), [mask.expand(shape)])


def advanced_index(self, indices):
    """What an indexing means, its indices on this device."""
    return AdvancedIndex(self._array, array_indices(self, indices, lambda t: t if is_on_device(t) else t.to(here())))


def indexed_first(array, found):
    """`array` with the dimensions that are indexed first."""
    return array.transpose(found.dims + found.rest)


def picked_first(result, found):
    """An array of the result's shape with the dimensions from the indices first."""
    ours = list(range(found.first, found.first + len(found.picked)))
    return result.transpose(ours + [d for d in range(result.ndim) if d not in ours])


@cuda_kernel(operator_named("index.Tensor"))
def index_cuda(self, indices):
    found = advanced_index(self, indices)
    result = empty(found.shape, self._array.dtype, found.strides())
    if result._array.size:
        index_elements(indexed_first(self._array, found), found.indices, picked_first(result._array, found))
    return result


def put_elements(self, indices, values, accumulate):
    found = advanced_index(self, indices)
    found.check_values(values)
    check_same_types(self, values)
    if math.prod(found.shape):
        values = values if is_on_device(values) else values.to(here())
        source = picked_first(broadcast(values._array, found.shape), found)
        index_put(indexed_first(self._array, found), found.indices, source, accumulate)
    return self


@cuda_kernel(operator_named("index_put"))
def index_put_cuda(self, indices, values, accumulate):
    return put_elements(clone_cuda(self, None), indices, values, accumulate)


@cuda_kernel(operator_named("index_put").inplace, operator_named("_index_put_impl_"))
def index_put_cuda_(self, indices, values, accumulate, unsafe=False):
    put_elements(self, indices, values, accumulate)
    return self


@cuda_impl(operator_named("take"))
def take_cuda(self, index, out):
    if out._array.size:
        index_elements(self.reshape(-1)._array, [index.reshape(-1)._array], out._array.reshape(-1))


def put(self, index, source, accumulate):
    flat = self.reshape(-1)  # a view of `self`, or of a copy
    if index._array.size:
        index_put(flat._array, [index.reshape(-1)._array], source.reshape(-1)._array, accumulate)
    if not self._array.flags.c_contiguous:
        copy_elements(flat.view(self._array.shape), self)


writes("put", put)


def masked_scatter(self, mask, source):
    """Where the mask is true: the element of `source` whose number is how many were true before."""
    mask = mask.expand(self._array.shape)
    if not (self._array.size and source._array.size):
        return
    counts = empty((self._array.size,), LONG)
    cumsum(mask.reshape(-1)._array, 0, counts._array)
    number = (counts - 1).clamp(min=0, max=source._array.size - 1).view(self._array.shape)
    copy_elements(at.where(mask, at.take(source, number), self), self)


writes("masked_scatter", masked_scatter)
