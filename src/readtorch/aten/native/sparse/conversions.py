"""Sparse tensors to dense ones and back; and the elements of one tensor at the indices of another (sparse_mask).

In PyTorch: `aten/src/ATen/native/TensorConversions.cpp`, `aten/src/ATen/native/sparse/SparseTensor.cpp`.
Explained in the chapter "torch.optim".
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.sparse_csr_tensor_impl import BLOCKS, COMPRESSED, is_strided, layout_of
from readtorch.aten.sparse_tensor_impl import SparseArray, is_sparse, wrap_sparse
from readtorch.c10 import layout as layouts
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.tensor_impl import wrap

from .sparse_csr_tensor import check
from .sparse_tensor import coalesced_array

METHOD = "method"

to_dense = native_function("to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor", METHOD)
_to_dense = native_function("_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor", METHOD)


@to_dense.compose
def to_dense_composite(self, dtype, masked_grad):
    """A dense tensor with the same elements; `self` if it is dense."""
    if not is_strided(self):
        return _to_dense.call(self, dtype, masked_grad)
    return self if dtype is None else self.to(dtype)


def sparse_to_dense(self, dtype, masked_grad):
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    array = coalesced_array(self._array)
    dense = np.zeros(array.shape, array.dtype)
    dense[tuple(array.indices)] = array.values if array.sparse_dim else array.values.sum(0)
    return wrap(dense)


_to_dense.kernel(sparse_to_dense, SPARSE_CPU)


@_to_dense.backward
class ToDenseBackward0:
    def self(grad, self, masked_grad):
        """Only the elements that are there have a gradient, unless masked_grad is False: then those that are not have one, too."""
        mask = self.detach()
        if is_sparse(mask):
            return grad.to_sparse(mask.sparse_dim()) if masked_grad is False else grad.sparse_mask(mask.coalesce())
        if masked_grad is not False:
            return grad.sparse_mask(mask)
        array = mask._array
        blocksize = array.blocksize if array.layout in BLOCKS else None
        return grad.to_sparse(layout=array.layout, blocksize=blocksize, dense_dim=array.dense_dim)


to_sparse_dim = native_function("to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", METHOD)
to_sparse = native_function(
    "to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor", METHOD
)
_to_sparse_dim = native_function("_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", METHOD)
_to_sparse = native_function(
    "_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor", METHOD
)


@to_sparse_dim.compose
def to_sparse_dim_composite(self, sparse_dim):
    if is_sparse(self):
        if sparse_dim != self._array.sparse_dim:
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument "
                "!=self.sparse_dim() is not supported"
            )
        return self
    check_real_if_recorded(self)
    return _to_sparse_dim.call(self, sparse_dim)


@to_sparse.compose
def to_sparse_composite(self, layout, blocksize, dense_dim):
    """The elements that are not 0, with their indices; `self` if it is sparse."""
    if (layout or layouts.sparse_coo) is layout_of(self):
        check_conversion(self, "to_sparse", layout_of(self), blocksize, dense_dim)
        return self
    check_real_if_recorded(self)
    return _to_sparse.call(self, layout, blocksize, dense_dim)


def check_conversion(self, name, layout, blocksize, dense_dim):
    """Raises RuntimeError for arguments of `to_sparse` and its relatives that do not fit the tensor. name: as the error has it."""
    source, target = layout_of(self), layout.in_words()
    fails = f"{name}: conversion from {source.in_words()} to {target}"
    if source is layouts.sparse_coo and layout is not source:
        check(self._array.sparse_dim == 2, f"{fails} for input tensors with sparse_dim()!=2 is not supported")
    if source in COMPRESSED and source not in BLOCKS and layout in BLOCKS:
        check(not self._array.batch_dim, f"{fails} for batched inputs is not supported")
    if blocksize is None:
        check(layout not in BLOCKS, f"{fails} without blocksize argument given is not supported")
    else:
        check_blocksize(self, name, fails, layout, list(blocksize), dense_dim)
    if dense_dim is not None:
        check(source is layouts.strided, f"{fails} with dense_dim argument given is not supported")
        most = self.dim() - (0 if layout is layouts.sparse_coo else 2)
        check(
            0 <= dense_dim <= most, f"{name}: dense_dim argument must be in [0,{most}] range, but {dense_dim} is given"
        )


def check_blocksize(self, name, fails, layout, blocksize, dense_dim):
    check(len(blocksize) == 2, f"{name}: blocksize needs to be a tuple of size 2, but got {len(blocksize)}")
    check(min(blocksize) > 0, f"{name}: blocksize needs to be positive, but got {blocksize}")
    check(layout in BLOCKS, f"{fails} with blocksize argument given is not supported")
    source = layout_of(self)
    if source in BLOCKS:
        own = list(self._array.blocksize)
        check(blocksize == own, f"{fails} with blocksize changed from {own} to {blocksize} is not supported")
        return
    dense = (dense_dim or 0) if source is layouts.strided else self._array.dense_dim
    rows, columns = self.shape[self.dim() - dense - 2 : self.dim() - dense]
    check(
        rows % blocksize[0] == 0 and columns % blocksize[1] == 0,
        f"{name}: tensor sparse size ({rows},{rows}) must be divisible by given blocksize ({blocksize[0]},{blocksize[1]})",
    )


def check_real_if_recorded(self):
    if self.is_complex() and self.requires_grad and grad_mode_enabled():
        raise RuntimeError("_to_sparse does not support automatic differentiation for outputs with complex dtype.")


@_to_sparse_dim.kernel
def dense_to_sparse_with_sparse_dim(self, sparse_dim):
    dense = self._array
    if not 0 <= sparse_dim <= dense.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{dense.ndim}] range, but {sparse_dim} is given"
        )
    if sparse_dim == 0 and dense.ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    if not dense.ndim:
        kept = dense.reshape(1)[: 1 if dense else 0]
        return wrap_sparse(SparseArray(np.empty((0, kept.size), np.int64), kept.copy(), (), True))
    is_there = dense != 0
    if sparse_dim < dense.ndim:
        is_there = is_there.any(axis=tuple(range(sparse_dim, dense.ndim)))
    places = is_there.nonzero()
    return wrap_sparse(SparseArray(np.array(places, np.int64), dense[places], dense.shape, True))


@_to_sparse_dim.backward
class ToSparseBackward0:
    def self(grad):
        return grad.to_dense()


# ------------------------------------------------------------------------------------------------ sparse_mask

sparse_mask = native_function("sparse_mask(Tensor self, Tensor mask) -> Tensor", METHOD)


def sparse_mask_cpu(self, mask):
    """Those elements of `self` at whose indices `mask` has elements; the others are left out."""
    if self.shape != mask.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self.shape)} but mask has size {list(mask.shape)}"
        )
    array = mask._array
    if is_sparse(self):
        picked = look_up(coalesced_array(self._array), array.flat_indices())
    else:
        picked = (
            self._array[tuple(array.indices)]
            if array.sparse_dim
            else np.broadcast_to(self._array, (array.nnz, *self.shape)).copy()
        )
    return wrap_sparse(SparseArray(array.indices.copy(), picked, array.shape, array.is_coalesced))


def look_up(array, flat):
    """The values of a coalesced array at these indices; 0 where it has none."""
    own = array.flat_indices()
    places = np.searchsorted(own, flat)
    found = places < own.size
    found[found] = own[places[found]] == flat[found]
    picked = np.zeros((flat.size, *array.values.shape[1:]), array.dtype)
    picked[found] = array.values[places[found]]
    return picked


sparse_mask.kernel(sparse_mask_cpu, SPARSE_CPU)


@sparse_mask.backward
class SparseMaskBackward0:
    def self(grad, self_layout, mask):
        """Elements outside of the mask have gradient 0."""
        grad = grad.sparse_mask(mask)
        return grad.to_dense() if self_layout is layouts.strided else grad
