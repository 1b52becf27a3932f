"""Elements named by index tensors, read and written: index, index_put, masked_select, take, put, masked_scatter.

    index_elements(x, indices, out)      index_put(out, indices, source, accumulate)

Grid: blocks of 256 threads with a grid-stride loop, a thread for each element of the result or the source. Indices
stay unchecked, as everywhere on a device: to look at them, the host would have to wait.

In PyTorch: `aten/src/ATen/native/cuda/IndexKernel.cu`.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native.math import add
from readtorch.aten.native.tensor_advanced_indexing.index import BOOL, BYTE
from readtorch.aten.native.tensor_iterator import refuse_overlap
from readtorch.c10.cuda.launch import blocks_of, launch, scratch
from readtorch.c10.tensor_impl import type_name

from .copy import clone_cuda, copy_elements
from .indexing import writes
from .loops import broadcast, pointwise
from .nonzero import nonzero_cuda
from .offset_calculator import laid_out, offset
from .reduce_ops import LONG
from .register_dispatch_key import cuda_kernel, empty, here, is_on_device, operator_named
from .scan_kernels import cumsum
from .scatter_gather_kernel import THREADS


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
    shape = broadcast_shape(self._array.shape, mask._array.shape)
    return index_cuda(self.expand(shape), [mask.expand(shape)])


def device_indices(self, indices):
    """(dimension, index array) of each dimension that is indexed; masks become positions. All on the
    device."""
    found, dim = [], 0
    for place, t in enumerate(indices):
        if t is None:
            dim += 1
            continue
        t = t if is_on_device(t) else t.to(here())
        if t._array.dtype in (BOOL, BYTE):
            check_mask(self, t, place, dim)
            places = nonzero_cuda(t)
            found += [(dim + d, places._array[:, d]) for d in range(t._array.ndim)]
            dim += t._array.ndim
        elif t._array.dtype.kind == "i" and t._array.dtype.itemsize >= 4:
            found.append((dim, t._array))
            dim += 1
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if dim > self._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._array.ndim} (got {dim})")
    return found


def check_mask(self, mask, place, dim):
    shape, sizes = mask._array.shape, self._array.shape
    for d, n in enumerate(shape):
        if dim + d >= len(sizes) or n != sizes[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(shape)} at index {d} does not match the shape of "
                f"the indexed tensor {list(sizes)} at index {dim + d}"
            )


class Places:
    """What an indexing means: `self` with the indexed dimensions first, and where in the result they are."""

    def __init__(self, self_, indices):
        array = self_._array
        found = device_indices(self_, indices)
        dims = [d for d, _ in found]
        rest = [d for d in range(array.ndim) if d not in dims]
        self.arrays = [a for _, a in found]
        self.picked = picked_shape(self.arrays)
        self.front = array.transpose(dims + rest)
        adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
        self.first = dims[0] if adjacent else 0  # of the result's dimensions, the first that comes from the indices
        sizes = [array.shape[d] for d in rest]
        self.shape = (*sizes[: self.first], *self.picked, *sizes[self.first :])

    def front_of(self, result):
        """An array of the result's shape with the dimensions from the indices first."""
        count = len(self.picked)
        ours = list(range(self.first, self.first + count))
        return result.transpose(ours + [d for d in range(result.ndim) if d not in ours])


def picked_shape(arrays):
    try:
        return broadcast_shape(*[a.shape for a in arrays])
    except RuntimeError:
        shapes = ", ".join(str(list(a.shape)) for a in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


@cuda_kernel(operator_named("index.Tensor"))
def index_cuda(self, indices):
    places = Places(self, indices)
    result = empty(places.shape, self._array.dtype)
    if result._array.size:
        index_elements(places.front, places.arrays, places.front_of(result._array))
    return result


def put_elements(self, indices, values, accumulate):
    if values._array.dtype != self._array.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{type_name(self)} for the destination and {type_name(values)} for the source."
        )
    places = Places(self, indices)
    if not math.prod(places.shape):
        return self
    values = values if is_on_device(values) else values.to(here())
    index_put(places.front, places.arrays, places.front_of(broadcast(values._array, places.shape)), accumulate)
    return self


@cuda_kernel(operator_named("index_put"))
def index_put_cuda(self, indices, values, accumulate):
    return put_elements(clone_cuda(self, None), indices, values, accumulate)


@cuda_kernel(operator_named("index_put").inplace)
def index_put_cuda_(self, indices, values, accumulate):
    put_elements(self, indices, values, accumulate)
    self._counter[0] += 1
    return self


@cuda_kernel(operator_named("_index_put_impl_"))
def index_put_impl_cuda_(self, indices, values, accumulate, unsafe):
    return index_put_cuda_(self, indices, values, accumulate)


def check_places(index, name):
    if index._array.dtype != LONG:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {type_name(index)}")


@cuda_kernel(operator_named("take"))
def take_cuda(self, index):
    check_places(index, "take")
    if index._array.size and not self._array.size:
        raise IndexError("take(): tried to take from an empty tensor")
    result = empty(index._array.shape, self._array.dtype)
    if result._array.size:
        index_elements(self.reshape(-1)._array, [index.reshape(-1)._array], result._array.reshape(-1))
    return result


def put(self, index, source, accumulate):
    check_places(index, "put_")
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{type_name(self)} and source.dtype = {type_name(source)}"
        )
    if source._array.size != index._array.size:
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source._array.size}, index.numel() = {index._array.size}"
        )
    if index._array.size and not self._array.size:
        raise IndexError("put_(): tried to put elements into an empty tensor")
    flat = self.reshape(-1)  # a view of `self`, or of a copy
    if index._array.size:
        index_put(flat._array, [index.reshape(-1)._array], source.reshape(-1)._array, accumulate)
    if not self._array.flags.c_contiguous:
        copy_elements(flat.view(self._array.shape), self)


writes("put", put)


def check_masked_scatter(self, mask, source):
    if self._array.dtype != source._array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{type_name(self)} and {type_name(source)}"
        )
    if mask._array.dtype != BOOL:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {type_name(mask)}")


def scattered(self, mask, source):
    """Where the mask is true: the element of `source` whose number is how many were true before."""
    check_masked_scatter(self, mask, source)
    if not (self._array.size and source._array.size):
        return clone_cuda(self, None)
    counts = empty((self._array.size,), LONG)
    cumsum(mask.reshape(-1)._array, 0, counts._array)
    number = (counts - 1).clamp(min=0, max=source._array.size - 1).view(self._array.shape)
    return at.where(mask, take_cuda(source, number), self)


@cuda_kernel(operator_named("masked_scatter"))
def masked_scatter_cuda(self, mask, source):
    """Not in place the mask may also be the larger one."""
    shape = broadcast_shape(self._array.shape, mask._array.shape)
    return scattered(self.expand(shape), mask.expand(shape), source)


@cuda_kernel(operator_named("masked_scatter").inplace)
def masked_scatter_cuda_(self, mask, source):
    refuse_overlap(self)
    copy_elements(scattered(self, mask.expand(self._array.shape), source), self)
    self._counter[0] += 1
    return self
