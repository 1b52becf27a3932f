"""Elements taken, put and filled by where they lie: take, put, masked_scatter, index_fill, index_reduce,
nonzero_static; and what is close to them: renorm, histc.

Indices stay unchecked, as everywhere on a device: to look at them, the host would have to wait.

In PyTorch: `aten/src/ATen/native/cuda/{IndexKernel,Indexing,Nonzero,SummaryOps,RenormKernel}.cu`.
"""

from .....c10.overflows import number_as
from .....c10.scalar_type import op_math_type
from .....c10.tensor_impl import dtype_of, type_name
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ...tensor_advanced_indexing.index import check_index_reduce
from ...tensor_advanced_indexing.index import BOOL, INT
from ...normalization import check_renorm, other_dims
from ...histogram import histogram_range
from ...tensor_iterator import not_implemented, refuse_overlap
from .. import indexing as kernels
from .. import scan
from ..compaction import places_of
from ..loops import broadcast
from .choosing import operand, spread
from .combining import reduce_into
from .copies import clone_cuda, copy_elements
from .factories import filled
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import broadcast_shape, cuda_kernel, empty, owned


def writes(name, change):
    """An operator that changes elements of a copy, and its in-place form: `change(self, *arguments)`."""
    operator = operator_named(name)

    def kernel(self, *arguments):
        result = clone_cuda(self, None)
        change(result, *arguments)
        return result

    def kernel_(self, *arguments):
        refuse_overlap(self)
        change(self, *arguments)
        self._counter[0] += 1
        return self

    cuda_kernel(operator)(kernel)
    cuda_kernel(operator.inplace)(kernel_)


# ---------------------------------------------------------------------------------------------- take and put


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
        kernels.index(self.reshape(-1)._array, [index.reshape(-1)._array], result._array.reshape(-1))
    return result


def put(self, index, source, accumulate):
    check_places(index, "put_")
    if source._array.dtype != self._array.dtype:
        raise RuntimeError("put_(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{type_name(self)} and source.dtype = {type_name(source)}")
    if source._array.size != index._array.size:
        raise RuntimeError("put_(): Expected source and index to have the same number of elements, but got "
                           f"source.numel() = {source._array.size}, index.numel() = {index._array.size}")
    if index._array.size and not self._array.size:
        raise IndexError("put_(): tried to put elements into an empty tensor")
    flat = self.reshape(-1)  # a view of `self`, or of a copy
    if index._array.size:
        kernels.index_put(flat._array, [index.reshape(-1)._array], source.reshape(-1)._array, accumulate)
    if not self._array.flags.c_contiguous:
        copy_elements(flat.view(self._array.shape), self)


writes("put", put)


# ------------------------------------------------------------------------------------------------------ masks


def check_masked_scatter(self, mask, source):
    if self._array.dtype != source._array.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got "
                           f"{type_name(self)} and {type_name(source)}")
    if mask._array.dtype != BOOL:
        raise RuntimeError("masked_scatter_ only supports boolean masks, but got mask with dtype "
                           f"{type_name(mask)}")


def scattered(self, mask, source):
    """Where the mask is true: the element of `source` whose number is how many were true before."""
    check_masked_scatter(self, mask, source)
    if not (self._array.size and source._array.size):
        return clone_cuda(self, None)
    counts = empty((self._array.size,), LONG)
    scan.cumsum(mask.reshape(-1)._array, 0, counts._array)
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


@cuda_kernel(operator_named("nonzero_static"))
def nonzero_static_cuda(self, size, fill_value):
    """The first `size` rows of nonzero. The host need not wait, for it knows how many rows there are."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    shape = self._array.shape
    result = filled(empty((size, len(shape)), LONG), fill_value)
    if self._array.size:
        counts = empty((self._array.size,), LONG)
        scan.cumsum(at.ne(self, 0).reshape(-1)._array, 0, counts._array)
        places_of(counts._array, shape, result._array)
    return result


# ---------------------------------------------------------------------------------------- along one dimension


def fill_slices(self, dim, index, value):
    """value: an array without dimensions."""
    dim = wrap_dim(dim, self._array.ndim)
    if index._array.dtype not in (LONG, INT):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise IndexError("Index has to be a vector/scalar")
    shape = list(self._array.shape)
    if shape:
        shape[dim] = index._array.size
    kernels.scatter(self._array, dim, spread(index, dim, tuple(shape)), broadcast(value, tuple(shape)))


def fill_with_number(self, dim, index, value):
    if isinstance(value, complex) and self._array.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    number = number_as(value, dtype_of(self))[()]
    fill_slices(self, dim, index, filled(empty((), self._array.dtype), number)._array)


def fill_with_tensor(self, dim, index, value):
    if value._array.ndim:
        raise RuntimeError("Only supports 0-dimension value tensor, but got tensor with "
                           f"{value._array.ndim} dimension(s).")
    fill_slices(self, dim, index, operand(value, self._array.dtype))


writes("index_fill.int_Scalar", fill_with_number)
writes("index_fill.int_Tensor", fill_with_tensor)


def index_reduce(self, dim, index, source, reduce, include_self):
    """scatter_reduce with one index for each slice of the source."""
    dim = check_index_reduce(self, dim, index, source, reduce)
    own, other = (t if t._array.ndim else t.unsqueeze(0) for t in (self, source))
    sizes = [1] * own._array.ndim
    sizes[dim] = -1
    places = converted(index, LONG).reshape(sizes).expand(other._array.shape)
    reduce_into(own, dim, places, other, reduce, include_self)


writes("index_reduce", index_reduce)


@cuda_kernel(operator_named("renorm"))
def renorm_cuda(self, p, dim, maxnorm):
    """Each slice along `dim` whose norm is greater than maxnorm is scaled down to it."""
    check_renorm(self, p, maxnorm)
    norm = at.linalg_vector_norm(self, p, other_dims(self, dim), True).to(op_math_type(dtype_of(self)))
    factor = at.where(norm > maxnorm, maxnorm / (norm + 1e-7), at.ones_like(norm))
    return (self * factor.to(self.dtype)).to(self.dtype)


# --------------------------------------------------------------------------------------------------- counting


@cuda_kernel(operator_named("histc"))
def histc_cuda(self, bins, min, max):
    """Elements outside of the range are counted as 0, in some bin. The host waits for the range if none is
    given."""
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise not_implemented("histc_cuda")(dtype)
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    low, high = float(min), float(max)
    if low == high and self._array.size:
        low, high = self.min().item(), self.max().item()
    low, high = histogram_range(self._array[:0], low, high)
    x = self.reshape(-1).to(op_math_type(dtype))
    inside = at.logical_and(x >= low, x <= high)
    places = ((x - low) * (bins / (high - low))).masked_fill(at.logical_not(inside), 0)
    places = places.long().clamp(max=bins - 1)
    result = filled(empty((bins,), self._array.dtype), 0)
    return owned(result.scatter_add_(0, places, inside.to(self.dtype)))
