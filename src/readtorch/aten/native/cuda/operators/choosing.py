"""Elements chosen by masks and by integers: where, masked_fill, gather, scatter, index, embedding.

In PyTorch:
`aten/src/ATen/native/cuda/{TensorCompare,Indexing,IndexKernel,ScatterGatherKernel,Embedding,Nonzero}.cu`.
"""

import math

from .....c10.scalar_type import int64, uint8
from .....c10.tensor_impl import dtype_of, type_name
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ...embedding import check_indices
from ...tensor_advanced_indexing.index import BOOL, BYTE, check_index_vector
from ...tensor_advanced_indexing.masked import mask_error
from ...tensor_advanced_indexing.scatter_gather import check_index
from ...tensor_iterator import refuse_overlap, result_type
from .. import embedding as embedding_kernels
from .. import functions as f
from .. import indexing as kernels
from .. import more_functions as g
from .. import scan
from ..compaction import places_of
from ..loops import broadcast, pointwise
from .broadcasting import on_this_device
from .copies import clone_cuda
from .factories import filled
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import broadcast_shape, cuda_kernel, empty, here, is_on_device

# --------------------------------------------------------------------------------------------------------
# masks


def operand(t, numpy_dtype):
    """The array of an operand on the current device, of this dtype; a number is brought there."""
    return converted(t, numpy_dtype)._array if is_on_device(t) else on_this_device(t._array, numpy_dtype)


@cuda_kernel(operator_named("where.self"))
def where_cuda(condition, self, other):
    if condition._array.dtype != bool and dtype_of(condition) is not uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{type_name(condition)}"
        )
    common = result_type(self, other).numpy
    out = empty(broadcast_shape(*[t._array.shape for t in (condition, self, other)]), common)
    mask = operand(condition, condition._array.dtype)
    pointwise(f.where, [mask, operand(self, common), operand(other, common)], out._array)
    return out


def fill_where(self, mask, value, out):
    if mask._array.dtype != bool:
        raise mask_error(mask)
    number = self._array.dtype.type(value)
    pointwise(g.masked_fill, [self._array, operand(mask, BOOL)], out._array, (number,))
    return out


@cuda_kernel(operator_named("masked_fill.Scalar"))
def masked_fill_cuda(self, mask, value):
    shape = broadcast_shape(self._array.shape, mask._array.shape)
    return fill_where(self, mask, value, empty(shape, self._array.dtype))


@cuda_kernel(operator_named("masked_fill.Scalar").inplace)
def masked_fill_cuda_(self, mask, value):
    refuse_overlap(self)
    broadcast_shape(self._array.shape, mask._array.shape)
    fill_where(self, mask, value, self)
    self._counter[0] += 1
    return self


@cuda_kernel(operator_named("masked_fill.Tensor"))
def masked_fill_tensor_cuda(self, mask, value):
    return where_cuda(mask, value.to(self.dtype), self)


@cuda_kernel(operator_named("nonzero"))
def nonzero_cuda(self):
    """The indices of all elements that are not 0, one row each. The host waits: it must know how many there
    are."""
    shape, size = self._array.shape, self._array.size
    counts = empty((size,), LONG)
    if not size:
        return empty((0, len(shape)), LONG)
    scan.cumsum(at.ne(self, 0).reshape(-1)._array, 0, counts._array)
    total = counts[size - 1].item()
    result = empty((total, len(shape)), LONG, (1, total))  # PyTorch's strides
    places_of(counts._array, shape, result._array)
    return result


@cuda_kernel(operator_named("masked_select"))
def masked_select_cuda(self, mask):
    shape = broadcast_shape(self._array.shape, mask._array.shape)
    return index_cuda(self.expand(shape), [mask.expand(shape)])


# ----------------------------------------------------------------------------------------- integers, along
# one dim


@cuda_kernel(operator_named("gather"))
def gather_cuda(self, dim, index, sparse_grad):
    dim = check_index(self, dim, index, "gather")
    out = empty(index._array.shape, self._array.dtype)
    kernels.gather(self._array, dim, index._array, out._array)
    return out


def window(array, shape):
    """The part of `array` as large as an index."""
    if not shape or array.ndim != len(shape):  # NumPy would read the element of an array without dimensions
        return array
    return array[tuple(slice(n) for n in shape)]


def scatters(name, run):
    """An operator that writes or adds `src` where an index says, and its in-place form."""
    operator = operator_named(name)

    def write(self, dim, index, src):
        dim = check_index(self, dim, index, "scatter")
        run(self._array, dim, index._array, window(source_of(self, index, src), index._array.shape))
        return self

    def kernel_(self, dim, index, src):
        write(self, dim, index, src)
        self._counter[0] += 1
        return self

    cuda_kernel(operator)(lambda self, dim, index, src: write(clone_cuda(self, None), dim, index, src))
    cuda_kernel(operator.inplace)(kernel_)


def source_of(self, index, src):
    """The array of what is scattered: a tensor, or a number for each index."""
    if hasattr(src, "_array"):
        return src._array
    return broadcast(filled(empty((), self._array.dtype), src)._array, index._array.shape)


scatters("scatter.src", kernels.scatter)
scatters("scatter.value", kernels.scatter)
scatters("scatter_add", kernels.scatter_add)


def spread(index, dim, shape):
    """A vector of indices as an index of `shape` along `dim`."""
    row = (
        index._array.reshape([1] * dim + [-1] + [1] * (len(shape) - dim - 1))
        if shape
        else index._array.reshape(())
    )
    return broadcast(row, shape)


@cuda_kernel(operator_named("index_select"))
def index_select_cuda(self, dim, index):
    dim = wrap_dim(dim, self._array.ndim)
    shape = list(self._array.shape)
    if shape:
        shape[dim] = index._array.size
    out = empty(shape, self._array.dtype)
    kernels.gather(self._array, dim, spread(index, dim, tuple(shape)), out._array)
    return out


def along_vector(name, run):
    operator = operator_named(name)

    def write(self, dim, index, source, *alpha):
        dim = check_index_vector(self, dim, index, source, name)
        source = source if alpha in ((), (1,)) else source * alpha[0]
        shape = source._array.shape if self._array.ndim else ()
        run(self._array, dim, spread(index, dim, shape), broadcast(source._array, shape))
        return self

    def kernel_(self, dim, index, source, *alpha):
        write(self, dim, index, source, *alpha)
        self._counter[0] += 1
        return self

    cuda_kernel(operator)(
        lambda self, dim, index, source, *alpha: write(clone_cuda(self, None), dim, index, source, *alpha)
    )
    cuda_kernel(operator.inplace)(kernel_)


along_vector("index_add", kernels.scatter_add)
along_vector("index_copy", kernels.scatter)


# ------------------------------------------------------------------------------------ integers, several
# dimensions


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
        self.first = (
            dims[0] if adjacent else 0
        )  # of the result's dimensions, the first that comes from the indices
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
        kernels.index(places.front, places.arrays, places.front_of(result._array))
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
    kernels.index_put(
        places.front, places.arrays, places.front_of(broadcast(values._array, places.shape)), accumulate
    )
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


# ----------------------------------------------------------------------------------------------------
# embedding


@cuda_kernel(operator_named("embedding"))
def embedding_cuda(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(indices, 1, "embedding")
    out = empty((*indices._array.shape, weight._array.shape[1]), weight._array.dtype)
    embedding_kernels.embedding(weight._array, indices._array, out._array)
    return out


@cuda_kernel(operator_named("embedding_dense_backward"))
def embedding_dense_backward_cuda(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    width = grad_output._array.shape[-1]
    if scale_grad_by_freq:
        ones = filled(empty((num_weights,), grad_output._array.dtype), 0)
        row = indices.reshape(-1).to(int64)
        ones.scatter_add_(0, row, at.ones_like(row, dtype=grad_output.dtype))
        grad_output = grad_output / ones[row].reshape((*indices._array.shape, 1))
    result = filled(empty((num_weights, width), grad_output._array.dtype), 0)
    embedding_kernels.embedding_backward(grad_output._array, indices._array, padding_idx, result._array)
    return result
