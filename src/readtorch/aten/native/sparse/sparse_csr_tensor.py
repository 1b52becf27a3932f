"""Tensors of the compressed sparse layouts, CSR, CSC, BSR and BSC: checked, made, asked, copied, turned over.

In PyTorch: `aten/src/ATen/native/sparse/SparseCsrTensor.cpp`.
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native.copy import _to_copy, cast, clone, copy_
from readtorch.aten.native.fill import fill_scalar_, zero_
from readtorch.aten.native.tensor_factories import empty_like, ones_like, zeros_like
from readtorch.aten.native.tensor_shape.slice import select
from readtorch.aten.native.tensor_shape.view import detach, t, transpose
from readtorch.aten.native_function import native_function
from readtorch.aten.sparse_csr_tensor_impl import (
    BLOCKS,
    COMPRESSED,
    ROWS,
    SparseCsrArray,
    in_words,
    is_strided,
    names_of,
    wrap_sparse_csr,
)
from readtorch.aten.sparse_tensor_impl import SparseArray, wrap_sparse
from readtorch.c10 import scalar_type
from readtorch.c10.cow import mutable_array
from readtorch.c10.dispatch_key import CPU, SPARSE_CPU, SPARSE_CSR_CPU
from readtorch.c10.memory_format import preserve_format
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import alias, dtype_of, host_array, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .sparse_tensor import METHOD, _nnz, dense_dim, expects, indices, is_coalesced, sparse_dim, values

# ------------------------------------------------------------------------------------------- what fits together

_ARGUMENTS = "Tensor compressed_indices, Tensor plain_indices, Tensor values"
_BY_ROWS, _BY_COLUMNS = (
    f"Tensor {names}, Tensor values"
    for names in ("crow_indices, Tensor col_indices", "ccol_indices, Tensor row_indices")
)
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory"

_validate_compressed_sparse_indices = native_function(
    "_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor plain_idx, int cdim, int dim, int nnz) -> ()"
)
_validate_sparse_compressed_tensor_args = native_function(
    f"_validate_sparse_compressed_tensor_args({_ARGUMENTS}, int[] size, Layout layout, bool? check_pinning=None) -> ()"
)


def check(good, message):
    if not good:
        raise RuntimeError(message)


def check_compressed(layout, name):
    words = "none" if layout is None else layout.in_words()
    check(layout in COMPRESSED, f"{name} expected sparse compressed tensor layout but got {words}")


@_validate_compressed_sparse_indices.kernel
def validate_compressed_sparse_indices(is_crow, compressed_idx, plain_idx, cdim, dim, nnz):
    """Raises RuntimeError unless the compressed indices ascend from 0 to nnz, and the plain ones lie within `dim`, in each row ascending."""
    name, plain = ("crow_indices", "col_indices") if is_crow else ("ccol_indices", "row_indices")
    count, plain_count = ("nrows", "ncols") if is_crow else ("ncols", "nrows")
    compressed = host_array(compressed_idx).reshape(-1, cdim + 1)
    places = host_array(plain_idx).reshape(len(compressed), nnz)
    check((compressed[:, 0] == 0).all(), f"`{name}[..., 0] == 0` is not satisfied.")
    check((compressed[:, -1] == nnz).all(), f"`{name}[..., -1] == nnz` is not satisfied.")
    steps = np.diff(compressed)
    within = ((steps >= 0) & (steps <= dim)).all()
    check(within, f"`0 <= {name}[..., 1:] - {name}[..., :-1] <= {plain_count}` is not satisfied.")
    check(((places >= 0) & (places < dim)).all(), f"`0 <= {plain} < {plain_count}` is not satisfied.")
    ascending = np.diff(places, axis=1) > 0
    for row, begins in zip(ascending, compressed):
        row[begins[(begins > 0) & (begins < nnz)] - 1] = True  # from one row to the next
    check(
        ascending.all(),
        f"`{plain}[..., {name}[..., i - 1]:{name}[..., i]] for all i = 1, ..., {count} are sorted and distinct along the last dimension "
        "values` is not satisfied.",
    )


@_validate_sparse_compressed_tensor_args.kernel
def validate_sparse_compressed_tensor_args(compressed_indices, plain_indices, values, size, layout, check_pinning):
    """Raises RuntimeError unless these make a tensor of that size and layout."""
    check_compressed(layout, "validate_sparse_compressed_tensor_args")
    name, plain_name = names_of(layout)
    for part, what in ((plain_indices, plain_name), (compressed_indices, name), (values, "values")):
        check(is_strided(part), f"expected {what} to be a strided tensor but got {in_words(part)} tensor")
    batch, dense = check_dims(compressed_indices, plain_indices, values, layout)
    check(
        len(size) == batch + 2 + dense,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
        f"(={batch} + 2 + {dense}) but got {len(size)}",
    )
    lengths = check_shapes(compressed_indices.shape, plain_indices.shape, values.shape, tuple(size), layout)
    check_index_dtypes(compressed_indices, plain_indices, layout)
    _validate_compressed_sparse_indices.call(
        layout in ROWS, compressed_indices, plain_indices, *lengths, values.shape[batch]
    )


def check_dims(compressed_indices, plain_indices, values, layout):
    """How many dimensions are of the batch, and how many dense."""
    name, plain_name = names_of(layout)
    batch, block = compressed_indices.dim() - 1, 2 if layout in BLOCKS else 0
    dense = values.dim() - batch - block - 1
    check(batch >= 0, f"{name} must have dimensionality >= 1 but got {compressed_indices.dim()}")
    check(
        compressed_indices.dim() == plain_indices.dim(),
        f"{name} and {plain_name} dimensionalities must be equal but got {compressed_indices.dim()} and "
        f"{plain_indices.dim()}, respectively",
    )
    check(
        dense >= 0,
        f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {block}) but got {values.dim()}",
    )
    return batch, dense


def block_of(values_shape, batch, layout):
    return [max(1, n) for n in values_shape[batch + 1 : batch + 3]] if layout in BLOCKS else [1, 1]


def check_shapes(compressed, plain, values, size, layout):
    """How many rows and columns of blocks there are, those that are compressed first."""
    name, plain_name = names_of(layout)
    batch = len(compressed) - 1
    block = block_of(values, batch, layout)
    parts = [list(shape[:batch]) for shape in (compressed, plain, values, size)]
    check(
        all(part == parts[3] for part in parts),
        f"all batch dimensions of {name} (={parts[0]}), {plain_name} (={parts[1]}), and values (={parts[2]}) must be equal to "
        f"tensor batch dimensions (={parts[3]})",
    )
    for i in range(2 if layout in BLOCKS else 0):
        check(
            size[batch + i] % block[i] == 0,
            f"tensor shape[{batch + i}] (={size[batch + i]}) must be divisible with blocksize[{i}] (={block[i]}) as defined by values "
            "shape",
        )
    rows_and_columns = [size[batch + i] // block[i] for i in (0, 1)]
    lengths = rows_and_columns if layout in ROWS else rows_and_columns[::-1]
    what = "row" if layout in ROWS else "column"
    check(
        compressed[-1] == lengths[0] + 1,
        f"{name}.shape[-1] must be equal to the number of {what}s + 1 (={lengths[0] + 1}), but got {compressed[-1]}",
    )
    check(
        plain[-1] == values[batch],
        f"{plain_name}.shape[-1] must be equal to nnz (={values[batch]}) as defined by values.shape[{batch}], but got {plain[-1]}",
    )
    return lengths


def check_index_dtypes(compressed_indices, plain_indices, layout):
    name, plain_name = names_of(layout)
    kinds = [SCALAR_TYPE_NAMES[dtype_of(part)] for part in (compressed_indices, plain_indices)]
    check(
        kinds[0] == kinds[1],
        f"{name} and {plain_name} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, respectively",
    )
    check(
        dtype_of(compressed_indices) in (scalar_type.int32, scalar_type.int64),
        f"{name} and {plain_name} dtype must be Int or Long, but got {kinds[0]}",
    )


def size_of(compressed_indices, plain_indices, values, layout):
    """The smallest size that holds all indices."""
    batch, dense = check_dims(compressed_indices, plain_indices, values, layout)
    if dtype_of(plain_indices).is_floating_point or dtype_of(plain_indices).is_complex:
        kind = SCALAR_TYPE_NAMES[dtype_of(plain_indices)]
        raise NotImplementedError(f"\"estimate_sparse_compressed_tensor_size\" not implemented for '{kind}'")
    block, plain = block_of(values.shape, batch, layout), host_array(plain_indices)
    lengths = [max(compressed_indices.shape[-1] - 1, 0), int(plain.max()) + 1 if plain.size else 0]
    rows, columns = lengths if layout in ROWS else lengths[::-1]
    tail = values.shape[values.dim() - dense :]
    return (*compressed_indices.shape[:-1], rows * block[0], columns * block[1], *tail)


# ------------------------------------------------------------------------------------------------- new tensors

_sparse_compressed_tensor_unsafe = native_function(
    f"_sparse_compressed_tensor_unsafe({_ARGUMENTS}, SymInt[] size, *, {_OPTIONS}=None) -> Tensor", ""
)


@_sparse_compressed_tensor_unsafe.kernel
def sparse_compressed_tensor_unsafe(compressed_indices, plain_indices, values, size, dtype, layout, device, pin_memory):
    """The tensor with unchecked indices; it shares the memory of the three."""
    check_compressed(layout, "sparse_compressed_tensor_unsafe")
    parts = [mutable_array(part) for part in (compressed_indices, plain_indices, values)]
    return wrap_sparse_csr(SparseCsrArray(layout, tuple(size), *parts))


_sparse_compressed_tensor_unsafe.backward(NOT_IMPLEMENTED)


def declare(layout, arguments):
    """`_validate_sparse_csr_tensor_args` and its relatives: the same for one layout."""
    check_args = native_function(
        f"_validate_{layout.name}_tensor_args({arguments}, int[] size, bool? check_pinning=None) -> ()"
    )

    @check_args.compose
    def validate(compressed, plain, values, size, check_pinning):
        _validate_sparse_compressed_tensor_args.call(compressed, plain, values, size, layout, check_pinning)


for _layout in COMPRESSED:
    declare(_layout, _BY_ROWS if _layout in ROWS else _BY_COLUMNS)


def empty_array(like, numpy_dtype):
    """The array of a tensor of `like`'s size and layout without elements."""
    compressed, batch = np.zeros_like(like.compressed), like.batch_dim
    plain = np.empty((*like.plain.shape[:-1], 0), like.plain.dtype)
    shape = (*like.values.shape[:batch], 0, *like.values.shape[batch + 1 :])
    return SparseCsrArray(like.layout, like.shape, compressed, plain, np.empty(shape, numpy_dtype))


def zeros_like_compressed(self, dtype, layout, device, pin_memory, memory_format):
    return wrap_sparse_csr(empty_array(self._array, (dtype or dtype_of(self)).numpy))


def empty_like_compressed(self, dtype, layout, device, pin_memory, memory_format):
    """Other values at the same indices."""
    array = copied(self._array, (dtype or dtype_of(self)).numpy)
    return wrap_sparse_csr(array)


def ones_like_compressed(self, dtype, layout, device, pin_memory, memory_format):
    return fill_compressed_(empty_like_compressed(self, dtype, layout, device, pin_memory, memory_format), 1)


zeros_like.kernel(zeros_like_compressed, SPARSE_CSR_CPU)
ones_like.kernel(ones_like_compressed, SPARSE_CSR_CPU)
empty_like.kernel(empty_like_compressed, SPARSE_CSR_CPU)

# -------------------------------------------------------------------------------------------------- questions

sparse_dim.kernel(lambda self: 2, SPARSE_CSR_CPU)
dense_dim.kernel(lambda self: self._array.dense_dim, SPARSE_CSR_CPU)
_nnz.kernel(lambda self: self._array.nnz, SPARSE_CSR_CPU)
values.kernel(lambda self: wrap(self._array.values), SPARSE_CSR_CPU)
for _operator in (is_coalesced, indices):
    expects(_operator, "sparse coordinate", SPARSE_CSR_CPU)


def declare_indices(name, part, layouts, what):
    """`crow_indices` and its relatives: one of the two lists of indices, for the two layouts that have it."""
    operator = native_function(f"{name}(Tensor(a) self) -> Tensor(a)", METHOD)
    for key in (CPU, SPARSE_CPU):
        expects(operator, what, key)

    def kernel(self):
        array = self._array
        check(array.layout in layouts, f"{name} expected {what} tensor layout but got {in_words(self)}")
        return wrap(getattr(array, part))

    operator.kernel(kernel, SPARSE_CSR_CPU)


_COLUMNS = [layout for layout in COMPRESSED if layout not in ROWS]
declare_indices("crow_indices", "compressed", ROWS, "sparse row compressed")
declare_indices("col_indices", "plain", ROWS, "sparse row compressed")
declare_indices("ccol_indices", "compressed", _COLUMNS, "sparse column compressed")
declare_indices("row_indices", "plain", _COLUMNS, "sparse column compressed")

# ----------------------------------------------------------------------------------------- copies and aliases


def copied(array, numpy_dtype):
    parts = array.compressed.copy(), array.plain.copy(), cast(array.values, numpy_dtype)
    return SparseCsrArray(array.layout, array.shape, *parts)


def clone_compressed(self, memory_format):
    if memory_format is not None and memory_format is not preserve_format:
        name = memory_format.name.removesuffix("_format").title().replace("_", "")
        raise RuntimeError(f"unsupported memory format option {name}")
    return wrap_sparse_csr(copied(self._array, self._array.dtype))


def to_copy_compressed(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    return wrap_sparse_csr(copied(self._array, self._array.dtype if dtype is None else dtype.numpy))


def copy_compressed_(self, src, non_blocking):
    """The values of `src` at its indices; as many as there were."""
    check(
        in_words(self) == in_words(src),
        "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
        f"{in_words(self)} and src layout is {in_words(src)}",
    )
    own, other = self._array, src._array
    check(
        own.nnz == other.nnz,
        "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported.",
    )
    check(
        own.shape == other.shape and own.values.shape == other.values.shape,
        "torch.copy_: expected shapes of self and src to match along dimension "
        f"0 but {list(own.shape)} and {list(other.shape)}",
    )
    own.compressed[...], own.plain[...] = other.compressed, other.plain
    own.values[...] = cast(other.values, own.dtype)
    return self


def zero_compressed_(self):
    """No elements are left."""
    self._array = empty_array(self._array, self._array.dtype)
    return self


def fill_compressed_(self, value):
    fill_scalar_.call(wrap(self._array.values), value)
    return self


clone.kernel(clone_compressed, SPARSE_CSR_CPU)
detach.kernel(lambda self: alias(self, self._array.with_values(self._array.values)), SPARSE_CSR_CPU)
_to_copy.kernel(to_copy_compressed, SPARSE_CSR_CPU)
copy_.kernel(copy_compressed_, SPARSE_CSR_CPU)
zero_.kernel(zero_compressed_, SPARSE_CSR_CPU)
fill_scalar_.kernel(fill_compressed_, SPARSE_CSR_CPU)

# ------------------------------------------------------------------------------------------- turned over, a part


def transpose_compressed(self, dim0, dim1):
    """Rows for columns, which is the other layout; or batch dimensions."""
    array = self._array
    dim0, dim1 = wrap_dim(dim0, array.ndim), wrap_dim(dim1, array.ndim)
    if dim0 == dim1:
        return clone.call(self, None)
    check(not array.dense_dim, "transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    kinds = ["Batch" if dim < array.batch_dim else "Sparse" for dim in (dim0, dim1)]
    check(
        kinds[0] == kinds[1],
        f"transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got {dim0}({kinds[0]}) and "
        f"{dim1}({kinds[1]})",
    )
    if kinds[0] == "Sparse":
        return wrap_sparse_csr(array.transposed())
    parts = [part.swapaxes(dim0, dim1).copy() for part in (array.compressed, array.plain, array.values)]
    shape = list(array.shape)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    return wrap_sparse_csr(SparseCsrArray(array.layout, shape, *parts))


def t_compressed(self):
    check(self._array.ndim == 2, f"t() expects a tensor with <= 2 dimensions, but self is {self._array.ndim}D")
    return transpose_compressed(self, 0, 1)


def select_compressed(self, dim, index):
    """One matrix of a batch; of a matrix one row or column, in the layout of coordinates."""
    array = self._array
    dim = wrap_dim(dim, array.ndim)
    size = array.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(array.shape)} at dimension {dim}"
        )
    index %= size
    shape = (*array.shape[:dim], *array.shape[dim + 1 :])
    batch = array.batch_dim
    if dim < batch:
        parts = [np.take(part, index, dim) for part in (array.compressed, array.plain, array.values)]
        return wrap_sparse_csr(SparseCsrArray(array.layout, shape, *parts))
    if dim >= batch + 2:
        values = np.take(array.values, index, dim + (1 if array.layout in BLOCKS else -1))
        return wrap_sparse_csr(SparseCsrArray(array.layout, shape, array.compressed, array.plain, values))
    check(not batch, "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors.")
    check(array.layout not in BLOCKS, "select(): no view exists for the given input, consider using torch.select_copy.")
    (_, *places), _ = array.blocks()
    there = places[dim] == index
    return wrap_sparse(SparseArray(places[1 - dim][there][None].astype(np.int64), array.values[there], shape, True))


transpose.kernel(transpose_compressed, SPARSE_CSR_CPU)
t.kernel(t_compressed, SPARSE_CSR_CPU)
select.kernel(select_compressed, SPARSE_CSR_CPU)
