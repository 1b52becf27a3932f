"""What a tensor of a compressed sparse layout is made of.

In PyTorch: `aten/src/ATen/SparseCsrTensorImpl.h`, `aten/src/ATen/SparseCsrTensorUtils.h`.

Note [ Compressed indices ]
Elements that are sorted by rows need no row each: it is enough to know where each row begins. A matrix of four rows in
the layout CSR, "compressed sparse row":

    crow_indices  [0, 1, 1, 3, 3]   row i has the elements crow_indices[i] up to crow_indices[i + 1]
    col_indices   [1, 0, 2]         one column an element
    values        [5., 7., 8.]      m[0, 1] = 5, m[2, 0] = 7, m[2, 2] = 8, all else is 0

CSC is sorted by columns, with `ccol_indices` and `row_indices`. In BSR and BSC the elements are blocks of equal size, which
the indices count. Indices and values may have batch dimensions in front, each matrix of the batch with as many elements;
values may have dense dimensions behind.
"""

from types import SimpleNamespace

import numpy as np

from readtorch.c10 import layout as layouts
from readtorch.c10.dispatch_key import SPARSE, SPARSE_CSR_CPU, SPARSE_CSR_CPU_TENSOR
from readtorch.c10.exception import warn_once
from readtorch.c10.tensor_impl import wrap

ROWS = (layouts.sparse_csr, layouts.sparse_bsr)  # whose rows are compressed
BLOCKS = (layouts.sparse_bsr, layouts.sparse_bsc)
COMPRESSED = (layouts.sparse_csr, layouts.sparse_csc, layouts.sparse_bsr, layouts.sparse_bsc)
FLIPPED = dict(
    zip(COMPRESSED, (COMPRESSED[1], COMPRESSED[0], COMPRESSED[3], COMPRESSED[2]))
)  # the layout of the transpose


def names_of(layout):
    """The names of a layout's indices: of the compressed, of the plain ones."""
    return ("crow_indices", "col_indices") if layout in ROWS else ("ccol_indices", "row_indices")


BETA = (
    "Sparse {} tensor support is in beta state. If you miss a functionality in the sparse tensor support, please submit a feature "
    "request to https://github.com/pytorch/pytorch/issues."
)


class SparseCsrArray:
    """Stands in `_array` of a tensor of a compressed layout, as SparseArray does in that of a sparse one."""

    __slots__ = ("layout", "shape", "compressed", "plain", "values")
    __array_ufunc__ = None  # NumPy's functions refuse it

    def __init__(self, layout, shape, compressed, plain, values):
        self.layout, self.shape = layout, tuple(shape)
        self.compressed = compressed  # of shape (*batch, rows or columns + 1)
        self.plain = plain  # (*batch, nnz)
        self.values = values  # (*batch, nnz, *block, *dense dimensions)

    dtype = property(lambda self: self.values.dtype)
    itemsize = property(lambda self: self.values.itemsize)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=object)))
    nbytes = property(lambda self: self.size * self.itemsize)
    strides = property(lambda self: (0,) * len(self.shape))
    flags = SimpleNamespace(c_contiguous=False, f_contiguous=False)

    nnz = property(lambda self: self.plain.shape[-1])
    batch_dim = property(lambda self: self.compressed.ndim - 1)
    dense_dim = property(lambda self: self.ndim - self.batch_dim - 2)
    is_by_rows = property(lambda self: self.layout in ROWS)

    @property
    def blocksize(self):
        return self.values.shape[self.batch_dim + 1 :][:2] if self.layout in BLOCKS else (1, 1)

    def with_values(self, values):
        """Other values at the same indices."""
        return SparseCsrArray(self.layout, self.shape, self.compressed, self.plain, values)

    def transposed(self):
        """Rows are columns: the same indices in the other layout. The elements of a block change places, too."""
        shape, batch = list(self.shape), self.batch_dim
        shape[batch : batch + 2] = shape[batch + 1], shape[batch]
        values = self.values.swapaxes(batch + 1, batch + 2) if self.layout in BLOCKS else self.values
        return SparseCsrArray(FLIPPED[self.layout], shape, self.compressed, self.plain, values)

    def blocks(self):
        """Each element, or block, by itself: its coordinates, (batch, row, column), and its values, (block rows, block columns,
        *dense dimensions)."""
        compressed = self.compressed.reshape(-1, self.compressed.shape[-1])
        count, places = len(compressed), np.arange(compressed.shape[-1] - 1)
        major = np.repeat(np.tile(places, count), np.diff(compressed).ravel())
        minor = self.plain.ravel()
        batch = np.repeat(np.arange(count), self.nnz)
        rows, columns = (major, minor) if self.is_by_rows else (minor, major)
        dense = self.shape[self.batch_dim + 2 :]
        return (batch, rows, columns), self.values.reshape(-1, *self.blocksize, *dense)

    def __getattr__(self, name):
        raise AttributeError(f"a sparse compressed tensor has no strided elements, so no '{name}' of them")


def from_blocks(coordinates, values, layout, shape, index_dtype=np.int64):
    """The array of a layout with these blocks; each place once, in any order. RuntimeError unless each matrix of a batch has as many."""
    batch, rows, columns = coordinates
    block, batch_shape = values.shape[1:3], shape[: len(shape) - (values.ndim - 1)]
    by_rows = layout in ROWS
    major, minor = (rows, columns) if by_rows else (columns, rows)
    length = shape[len(batch_shape) + (not by_rows)] // block[not by_rows]
    order = np.lexsort((minor, major, batch))
    counts = np.zeros((int(np.prod(batch_shape)), length + 1), index_dtype)
    np.add.at(counts, (batch, major + 1), 1)
    compressed = counts.cumsum(1, dtype=index_dtype)
    if (compressed[:, -1] != compressed[:1, -1]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = int(compressed[0, -1]) if len(compressed) else 0
    plain = minor[order].astype(index_dtype).reshape(*batch_shape, nnz)
    kept = block if layout in BLOCKS else ()
    values = values[order].reshape(*batch_shape, nnz, *kept, *values.shape[3:])
    return SparseCsrArray(layout, shape, compressed.reshape(*batch_shape, -1), plain, values)


def wrap_sparse_csr(array):
    """A new tensor that owns `array`: no history, version 0."""
    warn_once(BETA.format(array.layout.name[-3:].upper()), UserWarning, stacklevel=4)
    t = wrap(array)
    t._keys = SPARSE_CSR_CPU_TENSOR
    return t


def is_sparse_compressed(t):
    return bool(t._keys & SPARSE_CSR_CPU)


def is_strided(t):
    return not t._keys & SPARSE


def layout_of(t):
    return layouts.strided if is_strided(t) else t._array.layout


def in_words(t):
    """The layout as errors name it."""
    return layout_of(t).in_words()
