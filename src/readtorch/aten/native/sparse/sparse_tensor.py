"""Sparse tensors made, asked, coalesced and copied.

In PyTorch: `aten/src/ATen/native/sparse/SparseTensor.cpp`. Explained in the chapter "torch.optim".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.copy import _to_copy, cast, clone, copy_
from readtorch.aten.native.tensor_factories import empty_like, zeros_like
from readtorch.aten.native.tensor_shape.view import detach
from readtorch.aten.native_function import native_function
from readtorch.aten.sparse_csr_tensor_impl import in_words, layout_of
from readtorch.aten.sparse_tensor_impl import SparseArray, flatten, is_sparse, wrap_sparse
from readtorch.c10.cow import mutable_array
from readtorch.c10.dispatch_key import CPU, SPARSE_CPU
from readtorch.c10.memory_format import preserve_format
from readtorch.c10.tensor_impl import alias, dtype_of, host_array, legacy_type_name, wrap

METHOD = "method"

# ------------------------------------------------------------------------------------------------ new tensors

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

_validate_sparse_coo_tensor_args = native_function(
    "_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, int[] size, bool? is_coalesced=None, "
    "bool? check_pinning=None) -> ()",
    "function",
)
_sparse_coo_tensor_unsafe = native_function(
    f"_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, {_OPTIONS}, "
    "bool? is_coalesced=None) -> Tensor",
    "",
)
_sparse_coo_tensor_with_dims_and_tensors = native_function(
    "_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, "
    f"Tensor values, *, {_OPTIONS}, bool? is_coalesced=None) -> Tensor",
    "",
)


def expand_values_if_needed(values):
    """One value without dimensions is a list of one."""
    return values.expand((1,)) if values.dim() == 0 else values


def check_indices_and_values(indices, values):
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if is_sparse(indices):
        raise RuntimeError("expected indices to be a dense tensor, but got indices of layout Sparse")
    if is_sparse(values):
        raise RuntimeError("expected values to be a dense tensor, but got values of layout Sparse")


def check_dims(indices, values, size):
    """How `size` is divided among sparse and dense dimensions must fit the tensors."""
    sparse_dim, nnz = indices.shape
    dense_dim = values.dim() - 1
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: "
            f"len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if values.shape[0] != nnz:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{nnz}, nnz from values: {values.shape[0]}"
        )
    expected = [nnz, *size[sparse_dim:]]
    if list(values.shape) != expected:
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(values.shape)}")


@_validate_sparse_coo_tensor_args.kernel
def validate_sparse_coo_tensor_args(indices, values, size, is_coalesced, check_pinning):
    """Raises RuntimeError unless these make a sparse tensor of that size."""
    check_indices_and_values(indices, values)
    check_dims(indices, expand_values_if_needed(values), size)
    columns = host_array(indices)
    if columns.size:
        check_not_negative(columns)
        for dim, (highest, length) in enumerate(zip(columns.max(1), size)):
            if highest >= length:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {length} but found index {highest}"
                )
    flat = flatten(columns, size)
    if is_coalesced and (flat[1:] <= flat[:-1]).any():
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


_validate_sparse_coo_tensor_args.kernel(validate_sparse_coo_tensor_args, SPARSE_CPU)


def check_not_negative(columns):
    for dim, lowest in enumerate(columns.min(1)):
        if lowest < 0:
            raise RuntimeError(f"found negative index {lowest} for dim {dim}")


def size_from(indices, values):
    """The smallest size that holds all indices."""
    check_indices_and_values(indices, values)
    columns = host_array(indices)
    if columns.size:
        check_not_negative(columns)
    lengths = columns.max(1) + 1 if columns.size else [0] * columns.shape[0]
    return (*map(int, lengths), *expand_values_if_needed(values).shape[1:])


@_sparse_coo_tensor_unsafe.compose
def sparse_coo_tensor_unsafe(indices, values, size, dtype, layout, device, pin_memory, is_coalesced):
    """The tensor with unchecked indices: for callers who know that they lie within `size`."""
    values = expand_values_if_needed(values)
    return _sparse_coo_tensor_with_dims_and_tensors.call(
        indices.shape[0], values.dim() - 1, size, indices, values, dtype, layout, device, pin_memory, is_coalesced
    )


@_sparse_coo_tensor_with_dims_and_tensors.kernel
def new_with_dims_and_tensor_sparse(
    sparse_dim, dense_dim, size, indices, values, dtype, layout, device, pin_memory, is_coalesced
):
    """The new tensor shares the memory of `indices` and `values`."""
    check_dims(indices, values, size)
    return wrap_sparse(SparseArray(mutable_array(indices), mutable_array(values), tuple(size), bool(is_coalesced)))


@_sparse_coo_tensor_with_dims_and_tensors.backward
class SparseCooTensorWithDimsAndTensorsBackward0:
    def values(grad, result):
        return grad.sparse_mask(result)._values()


def empty_sparse(size, numpy_dtype, dense_dim=0):
    """A sparse tensor without elements: all zeros."""
    sparse_dim = len(size) - dense_dim
    values = np.empty((0, *size[sparse_dim:]), numpy_dtype)
    return wrap_sparse(SparseArray(np.empty((sparse_dim, 0), np.int64), values, tuple(size), True))


def like_sparse(self, dtype, layout, device, pin_memory, memory_format):
    if memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    return empty_sparse(self.shape, (dtype or dtype_of(self)).numpy, self._array.dense_dim)


zeros_like.kernel(like_sparse, SPARSE_CPU)
empty_like.kernel(like_sparse, SPARSE_CPU)

# -------------------------------------------------------------------------------------------------- questions

sparse_dim = native_function("sparse_dim(Tensor self) -> int", METHOD)
dense_dim = native_function("dense_dim(Tensor self) -> int", METHOD)
_dimI = native_function("_dimI(Tensor self) -> int", METHOD)
_dimV = native_function("_dimV(Tensor self) -> int", METHOD)
_nnz = native_function("_nnz(Tensor self) -> int", METHOD)
is_coalesced = native_function("is_coalesced(Tensor self) -> bool", METHOD)
_indices = native_function("_indices(Tensor(a) self) -> Tensor(a)", METHOD)
_values = native_function("_values(Tensor(a) self) -> Tensor(a)", METHOD)
indices = native_function("indices(Tensor(a) self) -> Tensor(a)", METHOD)
values = native_function("values(Tensor(a) self) -> Tensor(a)", METHOD)
_coalesced_ = native_function("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", METHOD)

sparse_dim.kernel(lambda self: 0)  # of a dense tensor all dimensions are dense
dense_dim.kernel(lambda self: self._array.ndim)
for _operator in (sparse_dim, _dimI):
    _operator.kernel(lambda self: self._array.sparse_dim, SPARSE_CPU)
for _operator in (dense_dim, _dimV):
    _operator.kernel(lambda self: self._array.dense_dim, SPARSE_CPU)

_nnz.kernel(lambda self: self._array.nnz, SPARSE_CPU)
is_coalesced.kernel(lambda self: self._array.is_coalesced, SPARSE_CPU)

# With an underscore: as they are, and of no interest to autograd (in PyTorch: "Sparse: autograd and API").
_indices.kernel(lambda self: wrap(self._array.indices), SPARSE_CPU)
_values.kernel(lambda self: wrap(self._array.values), SPARSE_CPU)


def expects(operator, what="sparse coordinate", key=CPU):
    """For a tensor of another layout, an operator of some layouts says what it had expected."""

    def refuse(self):
        raise RuntimeError(f"{operator.schema.name} expected {what} tensor layout but got {in_words(self)}")

    operator.kernel(refuse, key)


expects(is_coalesced)
expects(indices)
expects(values, "sparse")


def check_coalesced(self, what):
    if not self._array.is_coalesced:
        raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")


def indices_sparse(self):
    check_coalesced(self, "indices")
    return wrap(self._array.indices)


def values_sparse(self):
    check_coalesced(self, "values")
    return wrap(self._array.values)


indices.kernel(indices_sparse, SPARSE_CPU)
values.kernel(values_sparse, SPARSE_CPU)


@values.backward
class ValuesBackward0:
    def self(grad, self):
        if is_sparse(self):
            return _sparse_coo_tensor_unsafe.call(self.indices(), grad, self.shape, None, None, None, None, True)
        parts = [wrap(part) for part in (self._array.compressed, self._array.plain)]
        return at._sparse_compressed_tensor_unsafe(*parts, grad, self.shape, layout=layout_of(self))


def coalesced_(self, coalesced):
    """Set whether the indices are unique and sorted; this is not checked."""
    self._array.is_coalesced = coalesced
    return self


_coalesced_.kernel(coalesced_, SPARSE_CPU)

# --------------------------------------------------------------------------------------------------- coalesce

coalesce = native_function("coalesce(Tensor(a) self) -> Tensor(a)", METHOD)
_coalesce = native_function("_coalesce(Tensor self) -> Tensor", "function")


@coalesce.compose
def coalesce_composite(self):
    """`self` itself if it is coalesced already."""
    if not is_sparse(self):
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {in_words(self)}")
    return self if self._array.is_coalesced else _coalesce.call(self)


def coalesced_array(array):
    """Each index once, in ascending order; the values of what was one index several times are added up."""
    if array.is_coalesced:
        return array
    if not array.nnz:
        return SparseArray(array.indices, array.values, array.shape, True)
    flat = array.flat_indices()
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    first = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]]))  # where a new index begins
    sums = np.add.reduceat(array.values[order], first, axis=0, dtype=array.dtype)
    return SparseArray(np.ascontiguousarray(array.indices[:, order[first]]), sums, array.shape, True)


def coalesce_sparse_cpu(self):
    return wrap_sparse(coalesced_array(self._array))


_coalesce.kernel(coalesce_sparse_cpu, SPARSE_CPU)


@_coalesce.backward
class CoalesceBackward0:
    def self(grad):
        return grad


# ----------------------------------------------------------------------------------------- copies and aliases


def copied(array, numpy_dtype):
    indices, values = array.indices.copy(), cast(array.values, numpy_dtype)
    return SparseArray(indices, values, array.shape, array.is_coalesced)


def clone_sparse(self, memory_format):
    if memory_format is not None and memory_format is not preserve_format:
        raise RuntimeError(
            f"unsupported memory format option {memory_format.name.removesuffix('_format').title().replace('_', '')}"
        )
    return wrap_sparse(copied(self._array, self._array.dtype))


def detach_sparse(self):
    """The same indices and values; later changes of either tensor's element list do not affect the other."""
    return alias(self, self._array.with_values(self._array.values))


def to_copy_sparse(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    return wrap_sparse(copied(self._array, self._array.dtype if dtype is None else dtype.numpy))


def copy_sparse_(self, src, non_blocking):
    """`self` becomes what `src` is, but for its dtype."""
    if not (is_sparse(self) and is_sparse(src)):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{type_of(self)} and src type = {type_of(src)}"
        )
    replace(self, copied(src._array, self._array.dtype))
    return self


def type_of(t):
    name = legacy_type_name(t)
    if not is_sparse(t):
        return name
    return name.replace(".", ".sparse.") if "." in name else f"Sparse{name}"


def replace(self, array):
    """An in-place write: the tensor has other indices and values from now on."""
    self._array = array


clone.kernel(clone_sparse, SPARSE_CPU)
detach.kernel(detach_sparse, SPARSE_CPU)
_to_copy.kernel(to_copy_sparse, SPARSE_CPU)
copy_.kernel(copy_sparse_, SPARSE_CPU)
