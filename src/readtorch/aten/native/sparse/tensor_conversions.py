"""Conversions to and from the compressed sparse layouts.

All go by blocks, as `SparseCsrArray.blocks` lists them: a conversion is another order, another size of blocks, or both.

In PyTorch: `aten/src/ATen/native/TensorConversions.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.sparse_csr_tensor_impl import (
    BLOCKS,
    SparseCsrArray,
    from_blocks,
    in_words,
    is_sparse_compressed,
    is_strided,
    layout_of,
    wrap_sparse_csr,
)
from readtorch.aten.sparse_tensor_impl import SparseArray, is_sparse, wrap_sparse
from readtorch.c10 import layout as layouts
from readtorch.c10.dispatch_key import SPARSE_CPU, SPARSE_CSR_CPU
from readtorch.c10.tensor_impl import wrap

from .conversions import _to_dense, _to_sparse, _to_sparse_dim, check_conversion, sparse_mask
from .sparse_csr_tensor import check
from .sparse_tensor import METHOD, coalesced_array

# --------------------------------------------------------------------------------------------------- to others


def seen_as_blocks(dense, array):
    """A dense array of the same size, as (batch, block row, row in it, block column, column in it, *dense dimensions)."""
    height, width = array.blocksize
    rows, columns = array.shape[array.batch_dim : array.batch_dim + 2]
    return dense.reshape(-1, rows // height, height, columns // width, width, *array.shape[array.batch_dim + 2 :])


def to_dense_array(array):
    dense = np.zeros(array.shape, array.dtype)
    (batch, rows, columns), elements = array.blocks()
    seen_as_blocks(dense, array)[batch, rows, :, columns] = elements
    return dense


def compressed_to_dense(self, dtype, masked_grad):
    check(dtype is None, "dtype argument is not supported by sparse_csr_to_dense")
    return wrap(to_dense_array(self._array))


def elements_of(array):
    """Each element by itself, also those of blocks: (batch, rows, columns), values."""
    (batch, rows, columns), blocks = array.blocks()
    height, width = array.blocksize
    within = np.indices((height, width)).reshape(2, -1)
    count = height * width
    rows = (rows[:, None] * height + within[0]).ravel()
    columns = (columns[:, None] * width + within[1]).ravel()
    return (np.repeat(batch, count), rows, columns), blocks.reshape(-1, *blocks.shape[3:])


def to_coo(self):
    """The layout of coordinates, in the order in which the elements lie."""
    array = self._array
    (batch, rows, columns), elements = elements_of(array)
    batches = np.unravel_index(batch, array.shape[: array.batch_dim]) if array.batch_dim else ()
    is_sorted = (
        array.layout is layouts.sparse_csr or array.is_by_rows and array.blocksize[0] == 1 and not array.batch_dim
    )
    return wrap_sparse(
        SparseArray(np.array([*batches, rows, columns], np.int64), elements, array.shape, is_sorted or array.nnz == 1)
    )


def compressed_to_coo(self, sparse_dim):
    check(
        sparse_dim == 2,
        f"sparse_compressed_to_sparse: conversion from {in_words(self)} to Sparse with sparse_dim argument !=2 is not supported",
    )
    return to_coo(self)


def compressed_to_sparse(self, layout, blocksize, dense_dim):
    check_conversion(self, "sparse_compressed_to_sparse", layout or layouts.sparse_coo, blocksize, dense_dim)
    if layout is layouts.strided:
        return wrap(to_dense_array(self._array))
    return to_coo(self) if layout in (None, layouts.sparse_coo) else converted(self, layout, blocksize, dense_dim)


_to_dense.kernel(compressed_to_dense, SPARSE_CSR_CPU)
_to_sparse_dim.kernel(compressed_to_coo, SPARSE_CSR_CPU)
_to_sparse.kernel(compressed_to_sparse, SPARSE_CSR_CPU)

# -------------------------------------------------------------------------------------------- to the compressed


def from_dense(self, layout, blocksize, dense_dim):
    dense, block = self._array, tuple(blocksize or (1, 1))
    ndim = dense.ndim - (dense_dim or 0)
    if ndim < 2:
        raise IndexError(f"to_sparse: a tensor of {dense.ndim} dimensions has no rows and columns")
    rows, columns = dense.shape[ndim - 2 : ndim]
    seen = dense.reshape(-1, rows // block[0], block[0], columns // block[1], block[1], *dense.shape[ndim:])
    there = (seen != 0).any(axis=(2, 4, *range(5, seen.ndim)))
    batch, block_rows, block_columns = there.nonzero()
    return from_blocks(
        (batch, block_rows, block_columns), seen[batch, block_rows, :, block_columns], layout, dense.shape
    )


def from_elements(coordinates, elements, layout, shape, blocksize, index_dtype):
    """Elements put into blocks; each place is there once."""
    batch, rows, columns = coordinates
    height, width = blocksize or (1, 1)
    blocks, where = np.unique(np.array([batch, rows // height, columns // width]), axis=1, return_inverse=True)
    values = np.zeros((blocks.shape[1], height, width, *elements.shape[1:]), elements.dtype)
    values[where.ravel(), rows % height, columns % width] = elements
    return from_blocks(blocks, values, layout, shape, index_dtype)


def converted(self, layout, blocksize, dense_dim):
    if is_strided(self):
        return wrap_sparse_csr(from_dense(self, layout, blocksize, dense_dim))
    if is_sparse(self):
        array = coalesced_array(self._array)
        places = (np.zeros(array.nnz, np.int64), *array.indices)
        return wrap_sparse_csr(from_elements(places, array.values, layout, array.shape, blocksize, np.int64))
    array = self._array
    if (array.layout in BLOCKS) == (layout in BLOCKS):
        return wrap_sparse_csr(from_blocks(*array.blocks(), layout, array.shape, array.plain.dtype))
    check(
        layout in BLOCKS,
        f"sparse_compressed_to_{layout.name}: expected SparseCsr or SparseCsc layout but got {in_words(self)}",
    )
    return wrap_sparse_csr(from_elements(*elements_of(array), layout, array.shape, blocksize, array.plain.dtype))


def declare(layout, node):
    """`to_sparse_csr`, which returns a tensor of that layout as it is, and `_to_sparse_csr`, which has a derivative."""
    name = f"to_{layout.name}"
    arguments = "Tensor self, int[2] blocksize" if layout in BLOCKS else "Tensor self"
    outer = native_function(f"{name}({arguments}, int? dense_dim=None) -> Tensor", METHOD)
    inner = native_function(f"_{name}({arguments}, int? dense_dim=None) -> Tensor", METHOD)

    @outer.compose
    def composite(self, *arguments):
        if layout_of(self) is not layout:
            return inner.call(self, *arguments)
        check_conversion(self, name, layout, *both(arguments))
        return self

    def kernel_from(source):
        def kernel(self, *arguments):
            check_conversion(self, f"{source}_{name}", layout, *both(arguments))
            return converted(self, layout, *both(arguments))

        return kernel

    inner.kernel(kernel_from("dense"))
    inner.kernel(kernel_from("coo"), SPARSE_CPU)
    inner.kernel(kernel_from("sparse_compressed"), SPARSE_CSR_CPU)
    inner.backward(node)


def both(arguments):
    """(blocksize, dense_dim), also of those that have no blocks."""
    return arguments if len(arguments) == 2 else (None, *arguments)


def to_sparse_backward(grad, layout):
    if layout is layouts.strided:
        return grad.to_dense()
    return grad.to_sparse(layout=layout, blocksize=grad._array.blocksize if layout in BLOCKS else None)


class ToSparseCsrBackward0:
    def self(grad, self_layout):
        return to_sparse_backward(grad, self_layout)


class ToSparseCscBackward0:
    def self(grad, self_layout):
        return to_sparse_backward(grad, self_layout)


class ToSparseBsrBackward0:
    def self(grad, self_layout):
        return to_sparse_backward(grad, self_layout)


class ToSparseBscBackward0:
    def self(grad, self_layout):
        return to_sparse_backward(grad, self_layout)


declare(layouts.sparse_csr, ToSparseCsrBackward0)
declare(layouts.sparse_csc, ToSparseCscBackward0)
declare(layouts.sparse_bsr, ToSparseBsrBackward0)
declare(layouts.sparse_bsc, ToSparseBscBackward0)


@_to_sparse.kernel
def dense_to_sparse(self, layout, blocksize, dense_dim):
    layout = layout or layouts.sparse_coo
    check_conversion(self, "dense_to_sparse", layout, blocksize, dense_dim)
    if layout is layouts.sparse_coo:
        return _to_sparse_dim.call(self, self.dim() - (dense_dim or 0))
    return converted(self, layout, blocksize, dense_dim)


def coo_to_sparse(self, layout, blocksize, dense_dim):
    check_conversion(self, "sparse_coo_to_sparse", layout, blocksize, dense_dim)
    return self.to_dense() if layout is layouts.strided else converted(self, layout, blocksize, dense_dim)


_to_sparse.kernel(coo_to_sparse, SPARSE_CPU)


@_to_sparse.backward
class ToSparseBackward1:
    def self(grad, self_layout):
        return to_sparse_backward(grad, self_layout)


# ------------------------------------------------------------------------------------------------- sparse_mask


def sparse_mask_compressed(self, mask):
    """Those elements of `self` that have a place in `mask`, in its layout."""
    check(
        is_sparse_compressed(mask),
        f"sparse_mask_sparse_compressed expects mask to have sparse compressed layout, got {in_words(mask)}",
    )
    check(
        self.shape == mask.shape,
        f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size {list(mask.shape)}",
    )
    if self is mask:
        return self
    array = mask._array
    dense = self._array if is_strided(self) else self.to_dense()._array
    (batch, rows, columns), elements = array.blocks()
    picked = seen_as_blocks(dense, array)[batch, rows, :, columns]
    parts = array.compressed.copy(), array.plain.copy(), picked.reshape(array.values.shape)
    return wrap_sparse_csr(SparseCsrArray(array.layout, array.shape, *parts))


sparse_mask.kernel(sparse_mask_compressed, SPARSE_CSR_CPU)
