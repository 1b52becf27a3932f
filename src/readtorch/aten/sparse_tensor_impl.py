"""What a sparse tensor is made of: the coordinates of its elements, and their values.

In PyTorch: `aten/src/ATen/SparseTensorImpl.h`. Explained in the chapter "torch.optim".

Note [ Sparse tensors ]
A sparse tensor of shape (4, 3) with two elements:

    indices  [[0, 2],      one row a sparse dimension, one column an element
              [1, 0]]
    values   [5., 7.]      t[0, 1] = 5, t[2, 0] = 7, all else is 0

The last dimensions may be dense: with `indices` [[0, 2]] and `values` of shape (2, 3) the elements are whole rows,
which is what the gradient of an embedding looks like. An index may occur several times; then its values add up. So a
sum of two sparse tensors may simply list both, and who needs each index once, in ascending order, calls `coalesce()`.
"""

from types import SimpleNamespace

import numpy as np

from readtorch.c10.dispatch_key import SPARSE_CPU, SPARSE_CPU_TENSOR
from readtorch.c10.layout import sparse_coo
from readtorch.c10.tensor_impl import wrap


class SparseArray:
    """Stands in `_array` of a sparse tensor and answers what can be asked of every array: shape and dtype.

    It has no elements that NumPy could reach. A kernel for dense tensors that gets here by mistake fails,
    instead of computing with something else.
    """

    __slots__ = ("shape", "indices", "values", "is_coalesced")
    __array_ufunc__ = None  # NumPy's functions refuse it
    layout = sparse_coo

    def __init__(self, indices, values, shape, is_coalesced=False):
        self.indices = indices  # int64 of shape (sparse_dim, nnz)
        self.values = values  # of shape (nnz, *dense dimensions)
        self.shape = shape
        self.is_coalesced = is_coalesced or indices.shape[1] < 2  # indices are known to be unique and sorted

    dtype = property(lambda self: self.values.dtype)
    itemsize = property(lambda self: self.values.itemsize)
    ndim = property(lambda self: len(self.shape))
    nnz = property(lambda self: self.indices.shape[1])  # "number of non-zeros", though values may well be 0
    sparse_dim = property(lambda self: self.indices.shape[0])
    dense_dim = property(lambda self: self.values.ndim - 1)
    strides = property(lambda self: (0,) * len(self.shape))
    flags = SimpleNamespace(c_contiguous=False, f_contiguous=False)

    @property
    def size(self):
        count = 1
        for n in self.shape:
            count *= n
        return count

    def with_values(self, values):
        """Other values at the same indices."""
        return SparseArray(self.indices, values, self.shape, self.is_coalesced)

    def flat_indices(self):
        """Each element's place as one number: the sparse dimensions counted through."""
        return flatten(self.indices, self.shape)

    def __getattr__(self, name):
        raise AttributeError(f"a sparse tensor has no strided elements, so no '{name}' of them")


def flatten(indices, shape):
    """The columns of `indices` as single numbers, which sort as the columns do."""
    flat = np.zeros(indices.shape[1], np.int64)
    for row, size in zip(indices, shape):
        flat = flat * size + row
    return flat


def wrap_sparse(array):
    """A new sparse tensor that owns `array`: no history, version 0."""
    t = wrap(array)
    t._keys = SPARSE_CPU_TENSOR
    return t


def is_sparse(t):
    return bool(t._keys & SPARSE_CPU)


def refuse_sparse(t):
    """For what would bring `t` to a device."""
    if is_sparse(t):
        raise NotImplementedError(
            "readtorch has no sparse tensors on 'cuda': keep it on the CPU, or make it dense with to_dense()"
        )
