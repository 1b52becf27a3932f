"""Indexing by tensors: index, index_put, index_reduce and the index_… family along one dimension.

In PyTorch: `aten/src/ATen/native/TensorAdvancedIndexing.cpp` and `aten/src/ATen/native/IndexingUtils.h`.
Explained in the chapter "Tensor and Storage".
"""

import warnings

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.memory_overlap import check_no_overlap, warn_of_overlap
from readtorch.aten.native.copy import allocate_in_order, cast, copy_in_format
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.c10.memory_format import fastest_first
from readtorch.c10.overflows import number_as
from readtorch.c10.scalar_type import uint8
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of, type_name, wrap
from readtorch.c10.wrap_dim import wrap_dim

LONG, INT, BYTE, BOOL = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.bool_)


def writes_elements(operator, apart=True, on_expanded=None):
    """Decorator: `write(self, …)` changes elements of `self`; the in-place form of `operator` and the one that works on
    a copy both follow from it.

    apart: no other tensor may share memory with `self`.
    on_expanded: an example that the warning gives if `self` shows an element several times, which else is refused.
    """
    name = operator.schema.name

    def declare(write):
        @operator.inplace.kernel
        def in_place(self, *arguments):
            check_no_overlap(self) if on_expanded is None else warn_of_overlap(self, f"{name}_", on_expanded)
            for other in arguments if apart else ():
                check_apart(self, other)
            write(self, *arguments)
            self._counter[0] += 1
            return self

        @operator.kernel
        def on_copy(self, *arguments):
            result = wrap(copy_in_format(self._array, None))
            write(result, *arguments)
            return result

        return write

    return declare


def check_apart(self, other):
    """Raises RuntimeError if the written and the read memory overlap, as far as that is cheap to find out."""
    array = getattr(other, "_array", None)
    if array is not None and array.flags.c_contiguous and self._array.flags.c_contiguous:
        if np.may_share_memory(array, self._array):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor "
                "refer to a single memory location. Please clone() the tensor before performing the "
                "operation."
            )


# ----------------------------------------------------------------------------------------- several dimensions

index = native_function("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", BOTH, out=True)
index_put = native_function(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", BOTH, inplace=True
)


def array_indices(self, indices):
    """The index tensors as NumPy takes them, masks expanded to positions. Raises IndexError for what does not fit."""
    result = []
    for place, t in enumerate(indices):
        if t is None:
            result.append(slice(None))
        elif t._array.dtype in (LONG, INT):
            result.append(t._array)
        elif t._array.dtype in (BOOL, BYTE):
            result.extend(positions(self, t, place, len(result)))
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(result) > self._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._array.ndim} (got {len(result)})")
    return tuple(result)


def positions(self, mask, place, dim):
    """The positions where `mask` is true, one array a dimension."""
    if dtype_of(mask) is uint8:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", stacklevel=6
        )
    shape, sizes = mask._array.shape, self._array.shape
    for d, n in enumerate(shape):
        if dim + d >= len(sizes) or n != sizes[dim + d]:
            raise IndexError(
                f"The shape of the mask {list(shape)} at index {d} does not match the shape of the "
                f"indexed tensor {list(sizes)} at index {dim + d}"
            )
    return np.nonzero(mask._array)


def explain(error, self, places):
    """PyTorch's words for NumPy's IndexError."""
    arrays = [p for p in places if isinstance(p, np.ndarray)]
    try:
        np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:
        shapes = ", ".join(str(list(a.shape)) for a in arrays)
        return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}")
    for dim, (p, size) in enumerate(zip(places, self._array.shape)):
        outside = p[(p < -size) | (p >= size)] if isinstance(p, np.ndarray) else ()
        if len(outside):
            return IndexError(f"index {outside[0]} is out of bounds for dimension {dim} with size {size}")
    return error


@index.kernel
def index_cpu(self, indices):
    """`self[indices]`: the index tensors, broadcast, stand for the dimensions where they are; always a copy."""
    array, places = self._array, array_indices(self, indices)
    try:
        picked = array[places]
    except IndexError as error:
        raise explain(error, self, places) from None
    return wrap(picked.copy() if array.flags.c_contiguous else in_order_of(array, places, picked))


def in_order_of(array, places, picked):
    """`picked` laid out as its source: dimensions that were taken whole keep their order in memory."""
    whole = [d for d in range(array.ndim) if d >= len(places) or isinstance(places[d], slice)]
    indexed = [d for d in range(array.ndim) if d not in whole]
    adjacent = indexed == list(range(indexed[0], indexed[-1] + 1))
    new_dims = picked.ndim - len(whole)
    first = indexed[0] if adjacent else 0
    strides = [array.strides[d] for d in whole]
    of_source = [*strides[:first], *[0] * new_dims, *strides[first:]]
    of_indices = [0] * picked.ndim
    of_indices[first : first + new_dims] = contiguous_strides(picked.shape[first : first + new_dims])
    result = allocate_in_order(picked.shape, fastest_first(picked.shape, of_source, of_indices), array.dtype)
    result[...] = picked
    return result


def index_backward(grad, sizes, indices):
    """Add each element of `grad` to the element that it was read from."""
    return _index_put_impl_.call(at.new_zeros(grad, sizes), indices, grad, True, True)


@index.backward
class IndexBackward0:
    def self(grad, self_sym_sizes, indices):
        return index_backward(grad, self_sym_sizes, indices)


@writes_elements(index_put, on_expanded="tensor[indices] = tensor")
def index_put_cpu(self, indices, values, accumulate):
    """`self[indices] = values`, or `+=`, where an element that is named several times receives every value."""
    if values._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {type_name(self)} for the "
            f"destination and {type_name(values)} for the source."
        )
    places = array_indices(self, indices)
    try:
        if accumulate:
            add_at(self._array, places, values._array)
        else:
            self._array[places] = values._array
    except (IndexError, ValueError) as error:
        error = explain(error, self, places)
        if isinstance(error, ValueError):
            target = self._array[places].shape
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(values._array.shape)} cannot be broadcast "
                f"to indexing result of shape {list(target)}"
            ) from None
        raise error from None


def add_at(array, places, values):
    """`array[places] += values`, adding several values to one element one after the other."""
    if array.dtype == bool:
        np.logical_or.at(array, places, values)
    else:
        np.add.at(array, places, values)


@index_put.backward
class IndexPutBackward0:
    def self(grad, indices, values, accumulate):
        return grad if accumulate else at.index_put(grad, indices, at.zeros_like(values), False)

    def values(grad, indices):
        return at.index(grad, indices)


# What index_put_ is made of in PyTorch, and the form in which the gradient of `index` calls it.
_index_put_impl_ = native_function(
    "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, "
    "bool unsafe=False) -> Tensor(a!)"
)


@_index_put_impl_.kernel
def index_put_impl_cpu_(self, indices, values, accumulate, unsafe):
    index_put_cpu(self, indices, values, accumulate)
    self._counter[0] += 1
    return self


@_index_put_impl_.backward
class IndexPutImplBackward0(IndexPutBackward0):
    self = IndexPutBackward0.self
    values = IndexPutBackward0.values


# ---------------------------------------------------------------------------------------------- one dimension

index_select = native_function(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor", BOTH, out=True, direct=True
)
index_add = native_function(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
)
index_copy = native_function(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", BOTH, inplace=True, out=True, direct=True
)
index_fill_tensor = native_function(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", BOTH, inplace=True
)
index_fill = native_function(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", BOTH, inplace=True
)


exact_out(index_add)
exact_out(index_copy)
exact_out(index_select, lambda *_: "index_select(): self and result must have the same scalar type")


@index_select.kernel
def index_select_cpu(self, dim, index):
    array, places = self._array, index._array
    dim = wrap_dim(dim, array.ndim)
    if places.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if places.dtype not in (LONG, INT):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if array.ndim == 0:
        if places.size != 1:
            raise RuntimeError(
                "index_select(): Index to scalar can have only 1 value, got {} value(s)".format(places.size)
            )
        check_places(places.reshape(-1), 1, "index out of range in self")
        return wrap(array.copy())
    if places.size and not (0 <= places.min() and places.max() < array.shape[dim]):
        raise IndexError("index out of range in self")
    return wrap(np.take(array, places.reshape(-1), dim))


@index_select.backward
class IndexSelectBackward0:
    def self(grad, self_sym_sizes, dim, index):
        return at.index_add(at.new_zeros(grad, self_sym_sizes), dim, index, grad)


def check_index_vector(self, dim, index, source, name):
    """The dimension, wrapped. Raises for an index or a source that does not fit."""
    dim = wrap_dim(dim, self._array.ndim)
    places = index._array
    if places.dtype not in (LONG, INT):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if places.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {places.ndim} with type: "
            f"{type_name(index)} and size: {list(places.shape)}"
        )
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"{name}(): self ({type_name(self)}) and source ({type_name(source)}) must have the same scalar type"
        )
    return dim


def slices_along(t, dim):
    """The tensor's array with `dim` in front; one with no dimension counts as having one."""
    array = t._array
    return np.moveaxis(array, dim, 0) if array.ndim else array.reshape(1)


def check_places(places, size, message):
    if places.size and not (0 <= places.min() and places.max() < size):
        raise IndexError(message)


@writes_elements(index_add)
def index_add_cpu(self, dim, index, source, alpha):
    """`self[…, index[i], …] += alpha * source[…, i, …]`, i counting along `dim`."""
    dim = check_index_vector(self, dim, index, source, "index_add_")
    check_same_slices(self, source, dim, index)
    places = index._array.reshape(-1)
    target, values = slices_along(self, dim), slices_along(source, min(dim, max(source._array.ndim - 1, 0)))
    check_places(places, target.shape[0], "index out of range in self")
    add_at(target, places, values if alpha == 1 else values * np.asarray(alpha).astype(values.dtype))


def check_same_slices(self, source, dim, index):
    """Raises unless source is `self` with as many slices along `dim` as `index` has entries."""
    own, other, count = self._array.shape, source._array.shape, index._array.size
    if len(other) != len(own) and (len(other) or count != 1):
        raise shape_mismatch(own, other)
    if (other[dim] if other else 1) != count:
        raise RuntimeError(
            f"index_add_(): Number of indices ({count}) should be equal to source.size(dim): "
            f"({other[dim] if other else 1}), for dim: {dim}"
        )
    if other and own and (*own[:dim], *own[dim + 1 :]) != (*other[:dim], *other[dim + 1 :]):
        raise shape_mismatch(own, other)


def shape_mismatch(own, other):
    return RuntimeError(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
        f"self.shape = {list(own)} source.shape = {list(other)}"
    )


def read_along(grad, dim, index, source_dims):
    """The slices of `grad` that came from `source`."""
    if source_dims:
        return grad.index_select(dim, index)
    return grad.index_select(dim, index.reshape((1,))).reshape(())


@index_add.backward
class IndexAddBackward0:
    def self(grad):
        return grad

    def source(grad, dim, index, source_sym_sizes, alpha):
        result = read_along(grad, dim, index, len(source_sym_sizes))
        return result if alpha == 1 else result * alpha


@writes_elements(index_copy)
def index_copy_cpu(self, dim, index, source):
    """`self[…, index[i], …] = source[…, i, …]`."""
    dim = check_index_vector(self, dim, index, source, "index_copy_")
    own, other, places = self._array.shape, source._array.shape, index._array.reshape(-1)
    if other == () and places.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {places.size})")
    if other and own and len(other) != len(own):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
            f"Source dimensionality ({len(other)}), destination dimensionality ({len(own)})"
        )
    if other and own and (*own[:dim], *own[dim + 1 :]) != (*other[:dim], *other[dim + 1 :]):
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
            f"shape: {' '.join(map(str, (*own[:dim], *own[dim + 1 :])))} at dimension {dim} and source "
            f"slice shape: {' '.join(map(str, (*other[:dim], *other[dim + 1 :])))} at dimension 0."
        )
    if other and places.size != other[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({places.size}) should be equal to source.size(dim) ({other[dim]})"
        )
    target = slices_along(self, dim)
    check_places(
        places,
        target.shape[0],
        f"index_copy_(): index {places.max(initial=0)} is out of bounds for "
        f"dimension {dim} with size {target.shape[0]}",
    )
    target[places] = slices_along(source, dim)


@index_copy.backward
class IndexCopyBackward0:
    def self(grad, dim, index):
        return grad.index_fill(dim, index, 0)

    def source(grad, dim, index, source_sym_sizes):
        return read_along(grad, dim, index, len(source_sym_sizes))


def fill_slices(self, dim, index, value):
    dim = wrap_dim(dim, self._array.ndim)
    places = index._array.reshape(-1)
    if places.dtype not in (LONG, INT):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise IndexError("Index has to be a vector/scalar")
    target = slices_along(self, dim)
    size = target.shape[0]
    outside = places[(places < -size) | (places >= size)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of bounds for dimension {dim} with size {size}")
    target[places] = value


@writes_elements(index_fill, apart=False, on_expanded="tensor[mask] = scalar")
def index_fill_cpu(self, dim, index, value):
    if isinstance(value, complex) and self._array.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    fill_slices(self, dim, index, number_as(value, dtype_of(self)))


@writes_elements(index_fill_tensor, apart=False, on_expanded="tensor[mask] = scalar")
def index_fill_tensor_cpu(self, dim, index, value):
    if value._array.ndim:
        raise RuntimeError(
            f"Only supports 0-dimension value tensor, but got tensor with {value._array.ndim} dimension(s)."
        )
    fill_slices(self, dim, index, cast(value._array, self._array.dtype))


@index_fill.backward
class IndexFillBackward0:
    def self(grad, dim, index):
        return grad.index_fill(dim, index, 0)


@index_fill_tensor.backward
class IndexFillBackward1:
    def self(grad, dim, index):
        return grad.index_fill(dim, index, 0)

    def value(grad, dim, index):
        return grad.index_select(dim, at._unique2(index)[0]).sum()


# ----------------------------------------------------------------------------------------------- index_reduce


def lowest(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def highest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


REDUCTIONS = {"prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}
# The initial value of an element that does not count itself.
NEUTRAL = {"prod": lambda dtype: 1, "mean": lambda dtype: 0, "amax": lowest, "amin": highest}

index_reduce = native_function(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    "function, method",
    inplace=True,
    out=True,
)
exact_out(index_reduce)


def check_index_reduce(self, dim, index, source, reduce):
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = check_index_vector(self, dim, index, source, "index_reduce_")
    own, other = self._array.shape, source._array.shape
    count = other[dim] if other else 1
    if (*own[:dim], *own[dim + 1 :]) != (*other[:dim], *other[dim + 1 :]) or len(own) != len(other):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(own)} source.shape = {list(other)}"
        )
    if count != index._array.size:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index._array.size}) should be equal to "
            f"source.size(dim): ({count}), for dim: {dim}"
        )
    dtype = dtype_of(self)
    if dtype.is_complex or self._array.dtype.kind == "b":
        raise not_implemented("index_func_")(dtype)
    return dim


@writes_elements(index_reduce)
def index_reduce_cpu(self, dim, index, source, reduce, include_self):
    """`self[…, index[i], …] = reduce(self[…, index[i], …], source[…, i, …])`, i counting along `dim`."""
    dim = check_index_reduce(self, dim, index, source, reduce)
    places = index._array.reshape(-1)
    target = slices_along(self, dim)
    check_places(places, target.shape[0], "index out of range in self")
    values = slices_along(source, dim)
    if not include_self:
        target[places] = NEUTRAL[reduce](target.dtype)
    REDUCTIONS[reduce].at(target, places, values)
    if reduce == "mean":
        counts = np.full(len(target), int(include_self))
        np.add.at(counts, places, 1)
        counts = np.maximum(counts, 1).reshape(-1, *[1] * (target.ndim - 1)).astype(target.dtype)
        target[...] = target // counts if target.dtype.kind in "iu" else target / counts


@index_reduce.backward
class IndexReduceBackward0:
    def self__source(grad, self, dim, index, source, reduce, include_self, result):
        formula = {"prod": of_product, "mean": of_mean}.get(reduce, of_extreme)
        of_self, of_source = formula(grad, self, dim, index, source, reduce, include_self, result)
        return of_self if include_self else of_self.index_fill(dim, index, 0), of_source


def of_product(grad, self, dim, index, source, reduce, include_self, result):
    """The product of all others: result / own. A zero counts as 1 while its own gradient is worked out, if no
    other one of the source meets it.
    """
    without_zero = self.masked_fill(self == 0, 1)
    product = index_reduce.call(without_zero, dim, index, source, reduce, include_self)
    of_self = grad * product / without_zero
    zero = source == 0
    zeros = at.zeros_like(self).index_add(dim, index, zero.to(self.dtype)).index_select(dim, index)
    single = zero.logical_and(zeros == 1)
    with_ones = index_reduce.call(self, dim, index, source.masked_fill(single, 1), reduce, include_self)
    others = (grad * result).index_select(dim, index) / source.masked_fill(zero, 1)
    return of_self, at.where(single, (grad * with_ones).index_select(dim, index), others)


def of_mean(grad, self, dim, index, source, reduce, include_self, result):
    count = at.ones_like(grad) if include_self else at.zeros_like(grad)
    count = count.index_add(dim, index, at.ones_like(source))
    count = count.masked_fill(count == 0, 1)
    return grad / count, grad.index_select(dim, index) / count.index_select(dim, index)


def of_extreme(grad, self, dim, index, source, reduce, include_self, result):
    """All elements equal to the extreme share the gradient evenly."""
    own = (self == result).to(grad.dtype)
    wins = (source == result.index_select(dim, index)).to(grad.dtype)
    share = grad / own.index_add(dim, index, wins)
    return own * share, wins * share.index_select(dim, index)


# --------------------------------------------------------------------------------------- _unsafe_masked_index
# For compilers, which check the bounds themselves: an index that the mask leaves out may be out of bounds.

masked_index = native_function(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor"
)
masked_index_put = native_function(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor"
)


def inside(self, indices):
    """The indices clamped into the tensor."""
    return [i if i is None else at.clamp(i, -n, n - 1) for i, n in zip(indices, self._array.shape)]


@masked_index.kernel
@any_device
def masked_index_cpu(self, mask, indices, fill):
    with below_autograd():
        if not self._array.size:
            return at.new_full(self, mask._array.shape, fill)
        return self[tuple([slice(None) if i is None else i for i in inside(self, indices)])].masked_fill(
            at.logical_not(mask), fill
        )


@masked_index.backward
class UnsafeMaskedIndexBackward0:
    def self(grad, self_sym_sizes, mask, indices):
        return masked_index_put.call(at.new_zeros(grad, self_sym_sizes), mask, indices, grad)


@masked_index_put.kernel
@any_device
def masked_index_put_cpu(self, mask, indices, values):
    with below_autograd():
        if not self._array.size:
            return self.clone()
        return at.index_put(self, inside(self, indices), values.masked_fill(at.logical_not(mask), 0), True)


@masked_index_put.backward
class UnsafeMaskedIndexPutAccumulateBackward0:
    def self(grad):
        return grad

    def values(grad, mask, indices):
        return masked_index.call(grad, mask, indices, 0)
