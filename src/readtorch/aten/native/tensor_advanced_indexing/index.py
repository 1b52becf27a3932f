"""Indexing by tensors: index, index_put, index_reduce and the index_… family along one dimension.

In PyTorch: `aten/src/ATen/native/TensorAdvancedIndexing.cpp` and `aten/src/ATen/native/IndexingUtils.h`.
Explained in the chapter "Tensor and Storage".
"""

import warnings

import numpy as np

from readtorch.aten.dispatcher import registry
from readtorch.aten.empty_tensor import empty_cpu, empty_meta
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.memory_overlap import check_no_overlap, warn_of_overlap
from readtorch.aten.native.copy import allocate, cast, copy_in_format
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.functions_manual import scaled_by
from readtorch.aten.native.tensor_iterator import WIDENED, not_implemented
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.operator_entry import highest_backend
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import META, SIMULATED_CUDA
from readtorch.c10.layout import strided
from readtorch.c10.memory_format import fastest_first, strides_in_format, strides_in_order
from readtorch.c10.overflows import number_as
from readtorch.c10.scalar_type import uint8
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of, seen_by_python, type_name, wrap
from readtorch.c10.wrap_dim import wrap_dim

LONG, INT, BYTE, BOOL = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.bool_)


def writes_elements(operator, apart=None, on_expanded=None):
    """Decorator: `write(self, …)` changes elements of `self`, and may rely on what the operator's shape rule refuses. From
    it follow the operator, which writes to a copy, and its in-place form.

    apart: a function of the other arguments, which of them may not share memory with `self`; all by default.
    on_expanded: an example that the warning gives if `self` shows an element several times, which else is refused.
    """
    name = operator.schema.name

    def check_write(self, arguments):
        check_no_overlap(self) if on_expanded is None else warn_of_overlap(self, f"{name}_", on_expanded)
        for other in arguments if apart is None else apart(*arguments):
            check_apart(self, other)

    def declare(write):
        write_checks[operator] = check_write
        into_copy, in_place = writing_forms(operator, write, lambda self, out: np.copyto(out._array, self._array))
        operator.impl()(into_copy)
        operator.inplace.kernel(in_place)
        return write

    return declare


write_checks = {}
"""Operator -> what its in-place form checks before it writes."""


def writing_forms(operator, write, copy):
    """What fills the output of `operator`, and the kernel of its in-place form; copy: the backend's `copy(self, out)`."""
    describe, check_write = operator.shape_rule, write_checks[operator]

    def into_copy(self, *arguments_and_out):
        *arguments, out = arguments_and_out
        copy(self, out)
        write(out, *arguments)

    def in_place(self, *arguments):
        describe(self, *arguments)
        check_write(self, arguments)
        write(self, *arguments)
        return self

    return into_copy, in_place


def row_major(t):
    """An output of the shape and dtype of `t`, however it lies."""
    return TensorMeta(t._array.shape, dtype_of(t))


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


def array_indices(self, indices, brought=lambda t: t):
    """What each dimension is indexed by: an array, or a slice where it is taken whole. Masks become positions.

    brought: brings an index to the device of `self`. Raises IndexError for what does not fit.
    """
    result = []
    for place, t in enumerate(indices):
        if t is None:
            result.append(slice(None))
        elif t._array.dtype in (LONG, INT):
            result.append(brought(t)._array)
        elif t._array.dtype in (BOOL, BYTE):
            check_mask(self, t, len(result))
            result.extend(positions(brought(t)))
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(result) > self._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._array.ndim} (got {len(result)})")
    return tuple(result)


def check_mask(self, mask, dim):
    """Raises IndexError unless the mask has the sizes of the dimensions of `self` from `dim` on."""
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


def positions(mask):
    """The positions where `mask` is true, an array for each of its dimensions."""
    nonzero = registry["aten::nonzero"].kernels[highest_backend(mask._keys & ~SIMULATED_CUDA)]
    return nonzero(mask)._array.T


class AdvancedIndex:
    """Which dimensions of an array are indexed, and where what the (broadcast) indices pick stands in the result.

    In PyTorch: `AdvancedIndex` in `aten/src/ATen/native/TensorAdvancedIndexing.h`.
    """

    def __init__(self, array, places):
        self.array = array
        self.dims = [d for d, p in enumerate(places) if not isinstance(p, slice)]
        self.indices = [places[d] for d in self.dims]
        self.picked = picked_shape(self.indices)
        self.rest = [d for d in range(array.ndim) if d not in self.dims]
        adjacent = self.dims and self.dims[-1] - self.dims[0] == len(self.dims) - 1
        self.first = self.dims[0] if adjacent else 0
        self.shape = self.around(self.picked, [array.shape[d] for d in self.rest])

    def around(self, picked, rest):
        """Numbers of the dimensions that were picked, among those of the dimensions that were taken whole."""
        return (*rest[: self.first], *picked, *rest[self.first :])

    def strides(self):
        """The strides of the result: dimensions that were taken whole keep their order in memory."""
        if self.array.flags.c_contiguous:
            return None
        of_source = self.around([0] * len(self.picked), [self.array.strides[d] for d in self.rest])
        of_indices = self.around(contiguous_strides(self.picked), [0] * len(self.rest))
        return strides_in_order(self.shape, fastest_first(self.shape, of_source, of_indices))

    def check_values(self, values):
        """Raises RuntimeError unless `values` can be written to what is indexed."""
        shape = values._array.shape
        lead = len(self.shape) - len(shape)
        if lead < 0 or any([n not in (1, m) for n, m in zip(shape, self.shape[lead:])]):
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing result of shape "
                f"{list(self.shape)}"
            )


def picked_shape(indices):
    try:
        return broadcast_shape(*[a.shape for a in indices])
    except RuntimeError:
        shapes = ", ".join(str(list(a.shape)) for a in indices)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


def out_of_bounds(array, places):
    """The IndexError for the first index that is out of bounds; the dimensions that are indexed are counted."""
    indexed = [(p, size) for p, size in zip(places, array.shape) if isinstance(p, np.ndarray)]
    if any([size == 0 and p.size for p, size in indexed]):
        return IndexError("index is out of bounds for dimension with size 0")
    for dim, (p, size) in enumerate(indexed):
        outside = p[(p < -size) | (p >= size)]
        if len(outside):
            return IndexError(f"index {outside[0]} is out of bounds for dimension {dim} with size {size}")


@index.meta
def index_meta(self, indices):
    """`self[indices]`: the index tensors, broadcast, stand for the dimensions where they are; always a copy."""
    found = AdvancedIndex(self._array, array_indices(self, indices))
    return TensorMeta(found.shape, dtype_of(self), found.strides())


def index_of_meta(self, indices):
    """With indices that have no elements; a tensor on the CPU gives one on the CPU, where anything may stand."""
    output = index_meta(self, indices)
    return empty_meta(output) if self._keys & META else empty_cpu(output)


index.kernel(index_of_meta, META)


@index.kernel
def index_cpu(self, indices):
    array, places = self._array, array_indices(self, indices)
    try:
        picked = array[places]
    except IndexError:
        AdvancedIndex(array, places)  # raises for shapes that differ
        raise out_of_bounds(array, places) from None
    if array.flags.c_contiguous:
        return wrap(picked.copy())
    result = allocate(picked.shape, AdvancedIndex(array, places).strides(), array.dtype)
    result[...] = picked
    return wrap(result)


def index_backward(grad, sizes, indices):
    """Add each element of `grad` to the element that it was read from."""
    zeros = at.new_zeros(grad, sizes, dtype=dtype_of(grad), layout=strided, device=grad.device)
    if seen_by_python(grad):
        return at.index_put(zeros, indices, grad, True)
    return _index_put_impl_.call(zeros, indices, grad, True, True)


@index.backward
class IndexBackward0:
    def self(grad, self_sym_sizes, indices):
        return index_backward(grad, self_sym_sizes, indices)

    result = "auto_linear"


@index_put.meta
def index_put_meta(self, indices, values, accumulate):
    """In PyTorch, too, it is the kernels that look at the indices: those of a mask depend on its elements."""
    return TensorMeta(self._array.shape, dtype_of(self), strides_in_format(self._array))


def check_same_types(self, values):
    if values._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {type_name(self)} for the "
            f"destination and {type_name(values)} for the source."
        )


def put_elements(self, indices, values, accumulate):
    """`self[indices] = values`, or `+=`, where an element that is named several times receives every value."""
    array, places = self._array, array_indices(self, indices)
    if values._array.dtype != array.dtype:
        AdvancedIndex(array, places).check_values(values)  # a size that does not fit is named first
        check_same_types(self, values)
    try:
        if accumulate:
            add_at(array, places, values._array)
        else:
            array[places] = values._array
    except (IndexError, ValueError):
        AdvancedIndex(array, places).check_values(values)
        raise out_of_bounds(array, places) from None
    return self


@index_put.kernel
def index_put_cpu(self, indices, values, accumulate):
    return put_elements(wrap(copy_in_format(self._array, None)), indices, values, accumulate)


@index_put.inplace.kernel
def index_put_cpu_(self, indices, values, accumulate):
    warn_of_overlap(self, "index_put_", "tensor[indices] = tensor")
    for other in (values, *indices):
        check_apart(self, other)
    return index_put_impl_cpu_(self, indices, values, accumulate, False)


def add_at(array, places, values):
    """`array[places] += values`, adding several values to one element one after the other."""
    if array.dtype == bool:
        np.logical_or.at(array, places, values)
    else:
        np.add.at(array, places, values)


index_put.inplace.meta(lambda *arguments: None)  # nothing is looked at


@index_put.backward
class IndexPutBackward0:
    def self(grad, indices, values, accumulate):
        return grad if accumulate else at.index_put(grad, indices, at.zeros_like(values), False)

    def values(grad, indices):
        return at.index(grad, indices)

    def result(self_t, indices, values_t, accumulate):
        return at.index_put(self_t, indices, values_t, accumulate)


# What index_put_ is made of in PyTorch, and the form in which the gradient of `index` calls it.
_index_put_impl_ = native_function(
    "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, "
    "bool unsafe=False) -> Tensor(a!)"
)


@_index_put_impl_.kernel
def index_put_impl_cpu_(self, indices, values, accumulate, unsafe):
    mask = None if accumulate or values._array.size != 1 else the_mask(self, indices)
    if mask is not None:
        return at.masked_fill_(self, mask, values.item())
    return put_elements(self, indices, values, accumulate)


def the_mask(self, indices):
    """The only index, if that is a mask, with a dimension for each that comes after it; else None. In PyTorch: `canDispatchToMaskedFill`."""
    masks = [t for t in indices if t is not None]
    if len(masks) != 1 or masks[0]._array.dtype != BOOL:
        return None
    before = len(indices) - 1 - [t is None for t in reversed(indices)].index(False)
    check_mask(self, masks[0], before)
    after = self._array.ndim - before - masks[0]._array.ndim
    return masks[0].reshape(masks[0]._array.shape + (1,) * after)


_index_put_impl_.meta(lambda *arguments: None)


@_index_put_impl_.backward
class IndexPutImplBackward0(IndexPutBackward0):
    self = IndexPutBackward0.self
    values = IndexPutBackward0.values

    def result(self_t, indices, values_t, accumulate, unsafe):
        return _index_put_impl_.call(self_t, indices, values_t, accumulate, unsafe)


# ---------------------------------------------------------------------------------------------- one dimension

index_select = native_function(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    BOTH,
    out=exact_out(lambda *_: "index_select(): self and result must have the same scalar type"),
    direct=True,
)
index_add = native_function(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
    direct=True,
)
index_copy = native_function(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
    direct=True,
)
index_fill_tensor = native_function(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", BOTH, inplace=True
)
index_fill = native_function(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", BOTH, inplace=True
)


@index_select.meta
def index_select_meta(self, dim, index):
    shape, places = list(self._array.shape), index._array
    dim = wrap_dim(dim, len(shape))
    if places.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if places.dtype not in (LONG, INT):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not shape and places.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {places.size} value(s)")
    if shape:
        shape[dim] = places.size
    return TensorMeta(tuple(shape), dtype_of(self))


@index_select.kernel
def index_select_cpu(self, dim, index):
    array, places = self._array, index._array
    if not array.ndim or places.ndim != 1 or places.dtype not in (LONG, INT):
        index_select_meta(self, dim, index)
        array, places = at_least_1d(array), places.reshape(-1)
    dim = wrap_dim(dim, array.ndim)
    check_places(places, array.shape[dim], "index out of range in self")
    taken = np.take(array, places, dim)
    return wrap(taken if self._array.ndim else taken.reshape(()))


@index_select.backward
class IndexSelectBackward0:
    def self(grad, self_sym_sizes, dim, index):
        return at.index_add(at.new_zeros(grad, self_sym_sizes), dim, index, grad)

    result = "auto_linear"


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


def at_least_1d(array):
    return array if array.ndim else array.reshape(1)


def slices_along(t, dim):
    """The tensor's array with `dim` and the first dimension exchanged; one with no dimension counts as having one."""
    return at_least_1d(t._array).swapaxes(dim, 0)


def check_places(places, size, message):
    if places.size and not (0 <= places.min() and places.max() < size):
        raise IndexError(message)


@index_add.meta
def index_add_meta(self, dim, index, source, alpha):
    check_same_slices(self, source, check_index_vector(self, dim, index, source, "index_add_"), index)
    return row_major(self)


@writes_elements(index_add)
def index_add_cpu(self, dim, index, source, alpha):
    """`self[…, index[i], …] += alpha * source[…, i, …]`, i counting along `dim`."""
    dim = wrap_dim(dim, self._array.ndim)
    places = index._array.reshape(-1)
    target, values = slices_along(self, dim), slices_along(source, min(dim, max(source._array.ndim - 1, 0)))
    check_places(places, target.shape[0], "index out of range in self")
    if alpha == 1 and is_scatter_add(self, dim, index) and target.dtype in WIDENED:
        wide = cast(target, WIDENED[target.dtype])
        add_at(wide, places, values)
        target[...] = wide
    else:  # in PyTorch: with alpha, whole vectors of a long row are not rounded between product and sum
        add_at(target, places, values if alpha == 1 else values * np.asarray(alpha).astype(values.dtype))


def is_scatter_add(self, dim, index):
    """Whether PyTorch's CPU leaves index_add to scatter_add. Note [ Which sums are rounded at each step ]"""
    return self._array.ndim > 1 and dim in (0, self._array.ndim - 1) and index._array.dtype == LONG


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

    def result(self_t, dim, index, source_t, alpha):
        return at.index_add(self_t, dim, index, scaled_by(source_t, alpha))


@index_copy.meta
def index_copy_meta(self, dim, index, source):
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
    return row_major(self)


@writes_elements(index_copy)
def index_copy_cpu(self, dim, index, source):
    """`self[…, index[i], …] = source[…, i, …]`."""
    dim, places = wrap_dim(dim, self._array.ndim), index._array.reshape(-1)
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

    def result(self_t, dim, index, source_t):
        return at.index_copy(self_t, dim, index, source_t)


@index_fill.meta
def index_fill_meta(self, dim, index, value):
    wrap_dim(dim, self._array.ndim)
    if isinstance(value, complex) and self._array.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if index._array.dtype not in (LONG, INT):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise IndexError("Index has to be a vector/scalar")
    return TensorMeta(self._array.shape, dtype_of(self), strides_in_format(self._array))


@index_fill_tensor.meta
def index_fill_tensor_meta(self, dim, index, value):
    if value._array.ndim:
        raise RuntimeError(
            f"Only supports 0-dimension value tensor, but got tensor with {value._array.ndim} dimension(s)."
        )
    return index_fill_meta(self, dim, index, None)


def fill_slices(self, dim, index, value):
    places, target = index._array.reshape(-1), slices_along(self, dim)
    size = target.shape[0]
    outside = places[(places < -size) | (places >= size)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of bounds for dimension {dim} with size {size}")
    target[places] = value


def only_index(dim, index, value):
    return [index]


@writes_elements(index_fill, apart=only_index, on_expanded="tensor[mask] = scalar")
def index_fill_cpu(self, dim, index, value):
    fill_slices(self, dim, index, number_as(value, dtype_of(self)))


@writes_elements(index_fill_tensor, apart=only_index, on_expanded="tensor[mask] = scalar")
def index_fill_tensor_cpu(self, dim, index, value):
    fill_slices(self, dim, index, cast(value._array, self._array.dtype))


@index_fill.backward
class IndexFillBackward0:
    def self(grad, dim, index):
        return grad.index_fill(dim, index, 0)

    def result(self_t, dim, index):
        return self_t.index_fill(dim, index, 0)


@index_fill_tensor.backward
class IndexFillBackward1:
    def self(grad, dim, index):
        return grad.index_fill(dim, index, 0)

    def value(grad, dim, index):
        return grad.index_select(dim, at._unique2(index)[0]).sum()

    def result(self_t, dim, index, value_t):
        return self_t.index_fill(dim, index, value_t)


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
    out=exact_out(),
)


@index_reduce.meta
def index_reduce_meta(self, dim, index, source, reduce, include_self):
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = check_index_vector(self, dim, index, source, "index_reduce_")
    own, other = self._array.shape, source._array.shape
    count = other[dim] if other else 1
    if (*own[:dim], *own[dim + 1 :]) != (*other[:dim], *other[dim + 1 :]) or len(own) != len(other):
        raise shape_mismatch(own, other)
    if count != index._array.size:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index._array.size}) should be equal to "
            f"source.size(dim): ({count}), for dim: {dim}"
        )
    return row_major(self)


@writes_elements(index_reduce)
def index_reduce_cpu(self, dim, index, source, reduce, include_self):
    """`self[…, index[i], …] = reduce(self[…, index[i], …], source[…, i, …])`, i counting along `dim`."""
    if self._array.dtype.kind in "cb":
        raise not_implemented("index_func_")(dtype_of(self))
    places = index._array.reshape(-1)
    target = slices_along(self, dim)
    check_places(places, target.shape[0], "index out of range in self")
    values = slices_along(source, dim)
    if not include_self:
        target[places] = NEUTRAL[reduce](target.dtype)
    REDUCTIONS[reduce].at(target, places, values)
    if reduce == "mean":
        # in PyTorch: counted by index_add, in the dtype of `self`
        exact = is_scatter_add(self, wrap_dim(dim, self._array.ndim), index)
        counts = np.full(len(target), int(include_self), LONG if exact else target.dtype)
        np.add.at(counts, places, np.ones_like(places, counts.dtype))
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

    def result(self_t, mask, indices):
        return masked_index.call(self_t, mask, indices, 0)


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

    def result(self_t, mask, indices, values_t):
        return masked_index_put.call(self_t, mask, indices, values_t)
