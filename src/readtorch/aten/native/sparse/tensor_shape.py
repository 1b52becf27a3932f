"""Parts of sparse tensors, and several put together: the indices are changed, the values picked.

In PyTorch: `select_sparse`, `index_select_sparse_cpu`, `unsqueeze_sparse` and `cat_sparse_cpu` in `aten/src/ATen/native/TensorShape.cpp`.
"""

import numpy as np

from readtorch.aten.native.tensor_advanced_indexing.index import index_select
from readtorch.aten.native.tensor_shape.cat import cat, stack
from readtorch.aten.native.tensor_shape.slice import select
from readtorch.aten.native.tensor_shape.view import unsqueeze
from readtorch.aten.sparse_tensor_impl import SparseArray, is_sparse, wrap_sparse
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.tensor_impl import host_array, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .sparse_tensor import coalesced_array


def select_sparse(self, dim, index):
    """Without the dimension `dim`. If it was the only sparse one, dense."""
    array = self._array
    dim = wrap_dim(dim, array.ndim)
    size, count = array.shape[dim], array.sparse_dim
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {dim}"
        )
    index %= size
    shape = (*array.shape[:dim], *array.shape[dim + 1 :])
    if dim >= count:
        values = array.values.take(index, dim - count + 1)
        return wrap_sparse(SparseArray(array.indices, values, shape, array.is_coalesced))
    there = array.indices[dim] == index
    values = array.values[there]
    if count == 1:
        return wrap(np.asarray(values.any(0) if values.dtype == bool else values.sum(0, dtype=values.dtype)))
    return wrap_sparse(SparseArray(np.delete(array.indices, dim, 0)[:, there], values, shape, array.is_coalesced))


def index_select_sparse(self, dim, index):
    array, wanted = coalesced_array(self._array), host_array(index).reshape(-1)
    dim = wrap_dim(dim, array.ndim)
    size, count = array.shape[dim], array.sparse_dim
    outside = (wanted < -size) | (wanted >= size)
    if outside.any():
        raise IndexError(
            f"index_select(): index contains {wanted[outside][0]} that is out of range for tensor of size "
            f"{list(array.shape)} at dimension {dim}"
        )
    shape = (*array.shape[:dim], wanted.size, *array.shape[dim + 1 :])
    if dim >= count:
        return wrap_sparse(
            SparseArray(array.indices, array.values.take(wanted, dim - count + 1), shape, array.is_coalesced)
        )
    places, elements = np.nonzero((wanted % size)[:, None] == array.indices[dim])
    indices = array.indices[:, elements]
    indices[dim] = places
    result = coalesced_array(SparseArray(indices, array.values[elements], shape))
    return wrap_sparse(result)


def unsqueeze_sparse(self, dim):
    """Sparse dimensions get one more, or dense ones."""
    array = self._array
    dim, count = wrap_dim(dim, array.ndim + 1), array.sparse_dim
    shape = (*array.shape[:dim], 1, *array.shape[dim:])
    if dim > count:
        return wrap_sparse(
            SparseArray(array.indices, np.expand_dims(array.values, dim - count + 1), shape, array.is_coalesced)
        )
    return wrap_sparse(SparseArray(np.insert(array.indices, dim, 0, 0), array.values, shape, array.is_coalesced))


def cat_sparse(tensors, dim):
    """Along a sparse dimension the indices of each tensor begin where the one before it ends. Not coalesced."""
    first = tensors[0]._array
    dim, count = wrap_dim(dim, first.ndim), first.sparse_dim
    for i, t in enumerate(tensors):
        check_like_first(i, t, first, dim)
    arrays = [t._array for t in tensors]
    lengths = [array.shape[dim] for array in arrays]
    shape = (*first.shape[:dim], sum(lengths), *first.shape[dim + 1 :])
    starts = np.cumsum([0, *lengths])
    indices = np.concatenate([array.indices for array in arrays], axis=1)
    if dim < count:
        indices[dim] += np.repeat(starts[:-1], [array.nnz for array in arrays])
        return wrap_sparse(SparseArray(indices, np.concatenate([array.values for array in arrays]), shape))
    values = np.zeros((indices.shape[1], *shape[count:]), np.result_type(*[array.dtype for array in arrays]))
    begin = 0
    for array, start in zip(arrays, starts):
        place = (
            slice(begin, begin + array.nnz),
            *[slice(None)] * (dim - count),
            slice(start, start + array.shape[dim]),
        )
        values[place] = array.values
        begin += array.nnz
    return wrap_sparse(SparseArray(indices, values, shape))


def check_like_first(i, t, first, dim):
    if not is_sparse(t):
        raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")
    array = t._array
    others = [(*shape[:dim], *shape[dim + 1 :]) for shape in (array.shape, first.shape)]
    if array.ndim != first.ndim or others[0] != others[1]:
        raise RuntimeError(
            f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found shape: "
            f"{list(array.shape)} at position {i}."
        )
    if array.sparse_dim != first.sparse_dim:
        raise RuntimeError(
            f"All tensors must have the same sparse_dim and dense_dim: {first.sparse_dim}, {first.dense_dim}, but tensor at position "
            f"{i} has {array.sparse_dim}, {array.dense_dim}."
        )


select.kernel(select_sparse, SPARSE_CPU)
index_select.kernel(index_select_sparse, SPARSE_CPU)
unsqueeze.kernel(unsqueeze_sparse, SPARSE_CPU)
cat.kernel(cat_sparse, SPARSE_CPU)
stack.kernel(lambda tensors, dim: cat_sparse([unsqueeze_sparse(t, dim) for t in tensors], dim), SPARSE_CPU)
