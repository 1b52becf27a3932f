"""Products of a sparse matrix with a dense matrix, a vector or a sparse matrix; and its transpose.

A product with a dense matrix goes through the elements once: row i of the result gains value · (row j of the dense
matrix) for every element at (i, j). Zeros cost nothing.

In PyTorch: `aten/src/ATen/native/sparse/SparseTensorMath.cpp`, `aten/src/ATen/native/sparse/SparseMatMul.cpp`,
`aten/src/ATen/native/sparse/SparseTensor.cpp`; the compressed layouts in `aten/src/ATen/native/sparse/SparseBlas.cpp`.
Explained in the chapter "torch.optim".
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.arithmetic import maybe_multiply
from readtorch.aten.native.copy import cast
from readtorch.aten.native.linear_algebra.addmm import addmm
from readtorch.aten.native.linear_algebra.matmul import bmm, matmul, matmul_composite, mm, mm_mat2_backward, mv
from readtorch.aten.native.tensor_iterator import conj
from readtorch.aten.native.tensor_shape.view import permute, t, transpose
from readtorch.aten.native_function import native_function, python_binding
from readtorch.aten.register_dispatch_key import check_result_type, write_out
from readtorch.aten.sparse_csr_tensor_impl import BLOCKS, in_words, is_strided, layout_of
from readtorch.aten.sparse_tensor_impl import SparseArray, is_sparse, wrap_sparse
from readtorch.c10 import layout as layouts
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.tensor_impl import type_name, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .sparse_tensor import coalesced_array, replace

# ------------------------------------------------------------------------------------------------- turned over


def reordered(self, dims):
    """The sparse tensor whose dimension i is dimension dims[i] of `self`. Dense dimensions stay behind sparse ones."""
    array = self._array
    count = array.sparse_dim
    if any((d < count) != (i < count) for i, d in enumerate(dims)):
        raise RuntimeError("permute(sparse_coo): a sparse and a dense dimension cannot change places")
    values = array.values.transpose(0, *[d - count + 1 for d in dims[count:]])
    shape = tuple([array.shape[d] for d in dims])
    result = SparseArray(array.indices[list(dims[:count])], values, shape)
    # Transposed, a tensor no longer knows that its indices are sorted, even if there is but one.
    result.is_coalesced = not array.nnz or array.is_coalesced and list(dims[:count]) == list(range(count))
    return wrap_sparse(result)


def transpose_sparse(self, dim0, dim1):
    dims = list(range(self._array.ndim))
    dim0, dim1 = wrap_dim(dim0, len(dims)), wrap_dim(dim1, len(dims))
    if dim0 == dim1:
        return self.clone()
    if max(dim0, dim1) >= self._array.sparse_dim:
        raise RuntimeError(
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
            f"{self._array.sparse_dim}, d0: {dim0}, d1: {dim1}"
        )
    dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
    return reordered(self, dims)


def t_sparse(self):
    array = self._array
    if array.sparse_dim > 2 or array.dense_dim:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {array.sparse_dim} "
            f"sparse and {array.dense_dim} dense dimensions"
        )
    return transpose_sparse(self, 0, 1 if array.ndim > 1 else 0)


def permute_sparse(self, dims):
    dims = [wrap_dim(d, self._array.ndim) for d in dims]
    if sorted(dims) != list(range(self._array.ndim)):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
            f"the desired ordering of dimensions i.e. input.dim() = {self._array.ndim} is not equal to "
            f"len(dims) = {len(dims)}"
        )
    return reordered(self, dims)


transpose.kernel(transpose_sparse, SPARSE_CPU)
t.kernel(t_sparse, SPARSE_CPU)
permute.kernel(permute_sparse, SPARSE_CPU)

# ------------------------------------------------------------------------------------------------ sparse · dense


def product(array, dense):
    """The dense array `array @ dense` for a sparse matrix and a dense matrix or vector."""
    rows, columns = array.indices
    result = np.zeros((array.shape[0], *dense.shape[1:]), dense.dtype)
    factors = array.values.reshape(-1, *[1] * (dense.ndim - 1))
    np.add.at(result, rows, factors * dense[columns])
    return result


def check_factors(sparse, dense, name="addmm"):
    """Raises RuntimeError unless the one can be multiplied with the other."""
    if sparse._array.sparse_dim != 2:
        raise RuntimeError(f"{name}: matrices expected, got {sparse._array.sparse_dim}D tensor")
    if sparse._array.dense_dim:
        raise RuntimeError(f"{name}: scalar values expected, got {sparse._array.dense_dim}D values")
    if dense._array.ndim != 2:
        raise RuntimeError(f"{name}: matrices expected, got {dense._array.ndim}D tensor")
    if dense._array.shape[0] != sparse._array.shape[1]:
        raise RuntimeError(
            f"{name}: Argument #3 (dense): Expected dim 0 size {sparse._array.shape[1]}, got {dense._array.shape[0]}"
        )
    if dense._array.dtype != sparse._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(sparse)} but found {type_name(dense)}")


def mm_sparse(self, mat2):
    """Dense, unless both are sparse."""
    if is_sparse(self) and is_sparse(mat2):
        return sparse_sparse_matmul(self, mat2)
    if is_sparse(self):
        check_factors(self, mat2)
        return wrap(product(self._array, mat2._array))
    return wrap(dense_sparse_product(self, mat2))


def dense_sparse_product(self, mat2):
    """(Aᵀ Bᵀ)ᵀ: the sparse matrix comes first again."""
    turned = t_sparse(mat2)
    check_factors(turned, wrap(self._array.T))
    return product(turned._array, self._array.T).T


def mv_sparse(self, vec):
    if not is_sparse(self) or self._array.ndim != 2 or vec._array.ndim != 1:
        raise RuntimeError(
            "mv: two tensor dim should be 2 and 1, but got "
            f"SparseTensor Dim: {self._array.ndim}Tensor Dim: {vec._array.ndim}"
        )
    if vec._array.shape[0] != self._array.shape[1]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    if vec._array.dtype != self._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self)} but found {type_name(vec)}")
    return wrap(product(self._array, vec._array))


def addmm_sparse(self, mat1, mat2, beta, alpha):
    """beta · self + alpha · mat1 @ mat2; `self` is dense unless all are sparse."""
    result = maybe_multiply(mm_sparse(mat1, mat2), alpha)
    shape = result._array.shape
    if is_sparse(self) != is_sparse(result):
        raise RuntimeError("addmm: a dense and a sparse matrix cannot be added up this way")
    scaled = self if is_sparse(self) else self.expand(shape)
    return maybe_multiply(scaled, beta) + result if beta != 0 else result + 0


def addmm_sparse_(self, mat1, mat2, beta, alpha):
    result = addmm_sparse(self, mat1, mat2, beta, alpha)
    check_result_type(result, self)
    if is_sparse(self):
        replace(self, result._array)
        return self
    if result._array.shape != self._array.shape:
        raise RuntimeError(
            f"addmm: Expected self to have shape {list(result._array.shape)}, got {list(self._array.shape)}"
        )
    self._array[...] = cast(result._array, self._array.dtype)
    return self


def matmul_sparse(self, other):
    return matmul_composite(self, other)


def bmm_sparse(self, mat2):
    """A batch of sparse matrices, a batch of dense ones."""
    array, dense = self._array, mat2._array
    if not is_sparse(self) or array.sparse_dim != 3:
        raise RuntimeError("bmm: the first factor must be a batch of sparse matrices, the second dense")
    if dense.ndim != 3 or dense.shape[0] != array.shape[0] or dense.shape[1] != array.shape[2]:
        raise RuntimeError(f"bmm: a batch of shape {list(dense.shape)} does not fit {list(array.shape)}")
    batch, rows, columns = array.indices
    result = np.zeros((array.shape[0], array.shape[1], dense.shape[2]), dense.dtype)
    np.add.at(result, (batch, rows), array.values[:, None] * dense[batch, columns])
    return wrap(result)


def mm_sparse_out(self, mat2, out):
    return write_out(mm_sparse(self, mat2), (out,))


mm.kernel(mm_sparse, SPARSE_CPU)
mm.out.kernel(mm_sparse_out, SPARSE_CPU)
mv.kernel(mv_sparse, SPARSE_CPU)
bmm.kernel(bmm_sparse, SPARSE_CPU)
matmul.kernel(matmul_sparse, SPARSE_CPU)
addmm.kernel(addmm_sparse, SPARSE_CPU)
addmm.inplace.kernel(addmm_sparse_, SPARSE_CPU)

# ----------------------------------------------------------------------------------------------- sparse · sparse


def sparse_sparse_matmul(self, other):
    """Each element at (i, j) of the first is multiplied with those in row j of the second. The result is coalesced."""
    left, right = coalesced_array(self._array), coalesced_array(other._array)
    if left.sparse_dim != 2 or right.sparse_dim != 2 or left.dense_dim or right.dense_dim:
        raise RuntimeError(f"torch.sparse.mm: two matrices expected, got {left.ndim}D and {right.ndim}D tensors")
    if left.shape[1] != right.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left.shape[0]}x{left.shape[1]} and "
            f"{right.shape[0]}x{right.shape[1]})"
        )
    if left.dtype != right.dtype:
        raise RuntimeError(f"mat1 dtype {type_name(self)} does not match mat2 dtype {type_name(other)}")
    first = np.searchsorted(right.indices[0], left.indices[1], "left")
    counts = np.searchsorted(right.indices[0], left.indices[1], "right") - first
    of_left = np.repeat(np.arange(left.nnz), counts)
    of_right = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts) + np.repeat(first, counts)
    indices = np.array([left.indices[0][of_left], right.indices[1][of_right]])
    shape = (left.shape[0], right.shape[1])
    products = SparseArray(indices, left.values[of_left] * right.values[of_right], shape, indices.shape[1] < 1)
    return wrap_sparse(in_order(products))


def in_order(array):
    """Coalesced, and known to be, also if it has one element."""
    result = coalesced_array(SparseArray(array.indices, array.values, array.shape))
    result.is_coalesced = True
    return result


_sparse_sparse_matmul = native_function("_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor", module="sparse")
_sparse_sparse_matmul.kernel(sparse_sparse_matmul, SPARSE_CPU)


@_sparse_sparse_matmul.backward
class SparseSparseMatmulBackward0:
    def self(grad, self, other):
        return zero_where_none(_sparse_sparse_matmul.call(grad, conj(other).t()), self)

    def other(grad, self, other):
        return zero_where_none(_sparse_sparse_matmul.call(conj(self).t(), grad), other)


def zero_where_none(grad, owner):
    """An index that `owner` lacks has no gradient: it stays in the list, with the value 0."""
    is_there = np.isin(grad._array.flat_indices(), owner._array.flat_indices())
    return wrap_sparse(grad._array.with_values(grad._array.values * is_there))


# ------------------------------------------------------------------------- torch.sparse.mm, torch.sparse.addmm

_sparse_addmm = native_function(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", module="sparse"
)
_sparse_mm = native_function("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", module="sparse")


def sparse_addmm_cpu(self, mat1, mat2, beta, alpha):
    return addmm_sparse(self, mat1, mat2, beta, alpha)


_sparse_addmm.kernel(sparse_addmm_cpu, SPARSE_CPU)


@_sparse_addmm.kernel
def dense_addmm(self, mat1, mat2, beta, alpha):
    return addmm.call(self, mat1, mat2, beta, alpha)


def mask_of(sparse):
    mask = sparse.detach()
    return mask.coalesce() if is_sparse(mask) else mask


@_sparse_addmm.backward
class SparseAddmmBackward0:
    """Unlike that of `mm`, the gradient of the sparse matrix is sparse: only the elements that are there have one."""

    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def mat1(grad, mat1, mat2, alpha):
        if layout_of(mat1) not in (layouts.strided, layouts.sparse_coo, layouts.sparse_csr):
            raise RuntimeError(
                f"sparse_addmm_sparse_backward: unsupported combination of layouts, grad: {in_words(grad)}, mat1: {in_words(mat1)}, "
                f"mat2: {in_words(mat2)}"
            )
        whole = grad.mm(conj(mat2).t())
        return maybe_multiply(whole if is_strided(mat1) else whole.sparse_mask(mask_of(mat1)), alpha.conjugate())

    def mat2(grad, mat1, mat2_sym_sizes, mat2_byte_strides, alpha):
        return mm_mat2_backward(grad, mat1, mat2_sym_sizes, mat2_byte_strides, alpha)


def zeros_of(like, rows, columns):
    """Zeros of another size in the layout of `like`, which is dense or compressed."""
    if is_strided(like):
        return at.zeros((rows, columns), dtype=like.dtype, device=like.device)
    if like.layout in BLOCKS:
        raise RuntimeError(
            f"zeros_sparse_compressed expected sparse compressed (non-block) tensor layout but got {in_words(like)}"
        )
    return at.zeros((rows, columns), dtype=like.dtype).to_sparse(layout=like.layout)


@_sparse_mm.compose
def sparse_mm(sparse, dense):
    if is_sparse(sparse) and is_sparse(dense):
        return _sparse_sparse_matmul.call(sparse, dense)
    if not is_strided(sparse):
        return _sparse_addmm.call(zeros_of(dense, sparse.shape[0], dense.shape[-1]), sparse, dense, 0, 1)
    turned = zeros_of(sparse, sparse.shape[-2], dense.shape[-1]).transpose(-2, -1)
    return _sparse_addmm.call(turned, dense.transpose(-2, -1), sparse.transpose(-2, -1), 0, 1).transpose(-2, -1)


# ----------------------------------------------------------------------------------- products that stay sparse

smm = native_function("smm(Tensor self, Tensor mat2) -> Tensor", "function, method")
hspmm = native_function("hspmm(Tensor mat1, Tensor mat2) -> Tensor")
sspaddmm = native_function(
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", "function, method"
)


@smm.compose
def smm_composite(self, mat2):
    return sspaddmm.call(zeros_sparse(self, mat2), self, mat2, 0, 1)


def zeros_sparse(mat1, mat2):
    indices = np.empty((2, 0), np.int64)
    return wrap_sparse(SparseArray(indices, np.empty(0, mat2._array.dtype), (mat1.shape[0], mat2.shape[-1]), True))


def sspaddmm_sparse(self, mat1, mat2, beta, alpha):
    """All elements of the rows that have some, beside those of `self`."""
    check_factors(mat1, mat2, "sspaddmm")
    rows = rows_with_elements(mat1._array)
    result = product(mat1._array, mat2._array)[rows]
    columns = mat2._array.shape[1]
    indices = np.array([np.repeat(rows, columns), np.tile(np.arange(columns), rows.size)])
    added = result.reshape(-1) * np.asarray(alpha).astype(result.dtype)
    own = self._array
    if beta == 0 or not own.nnz:
        return wrap_sparse(SparseArray(indices, added, own.shape))
    values = np.concatenate([own.values * np.asarray(beta).astype(own.dtype), added])
    return wrap_sparse(SparseArray(np.concatenate([own.indices, indices], axis=1), values, own.shape))


def rows_with_elements(array):
    return np.unique(array.indices[0])


def hspmm_sparse(mat1, mat2):
    """A hybrid: whole rows, of which only those are there that have elements in `mat1`."""
    check_factors(mat1, mat2, "hspmm")
    rows = rows_with_elements(mat1._array)
    whole = product(mat1._array, mat2._array)
    return wrap_sparse(SparseArray(rows[None], whole[rows], whole.shape))


sspaddmm.kernel(sspaddmm_sparse, SPARSE_CPU)
sspaddmm.backward(NOT_IMPLEMENTED)
hspmm.kernel(hspmm_sparse, SPARSE_CPU)
hspmm.backward(NOT_IMPLEMENTED)


@python_binding("spmm", "function")
@python_binding("dsmm", "function")
def spmm(input, mat2):
    """Another name of `torch.mm`, from before it took sparse matrices."""
    return at.mm(input, mat2)


# ---------------------------------------------------------------------------------------------------------- sum

_sparse_sum = native_function("_sparse_sum(Tensor self) -> Tensor", module="sparse")
_sparse_sum_dtype = native_function("_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor", module="sparse")
_sparse_sum_dim = native_function("_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor", module="sparse")
_sparse_sum_dim_dtype = native_function(
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor", module="sparse"
)


@_sparse_sum.compose
def sparse_sum(self):
    return self.coalesce().values().sum()


@_sparse_sum_dtype.compose
def sparse_sum_dtype(self, dtype):
    return self.coalesce().values().sum(dtype=dtype)


@_sparse_sum_dim_dtype.compose
def sparse_sum_dim_dtype(self, dim, dtype):
    return _sparse_sum_dim.call(self.to(dtype), dim)


def dims_of(dim, ndim):
    dims = [wrap_dim(d, ndim) for d in dim]
    if len(set(dims)) < len(dims):
        raise RuntimeError(
            f"dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    return dims


def sparse_sum_dim_cpu(self, dim):
    """Sums along dimensions, which go. Dense if no sparse dimension is left."""
    array = coalesced_array(self._array)
    dims, count = dims_of(dim, array.ndim), array.sparse_dim
    values = array.values.sum(tuple([d - count + 1 for d in dims if d >= count]), dtype=array.dtype)
    kept = [d for d in range(count) if d not in dims]
    if not kept:
        return wrap(np.asarray(values.sum(0, dtype=array.dtype)))
    shape = tuple([n for d, n in enumerate(array.shape) if d not in dims])
    summed = SparseArray(array.indices[kept], values, shape, array.is_coalesced and len(kept) == count)
    return wrap_sparse(summed if len(kept) == count else in_order(summed))


_sparse_sum_dim.kernel(sparse_sum_dim_cpu, SPARSE_CPU)


@_sparse_sum_dim.backward
class SparseSumBackward0:
    def self(grad, self, dim):
        """Each element has the gradient of the sum that it went into."""
        array = self._array
        dims = dims_of(dim, array.ndim)
        whole = grad.to_dense() if is_sparse(grad) else grad
        for d in sorted(dims):
            whole = whole.unsqueeze(d)
        return whole.expand(array.shape).contiguous().sparse_mask(self.detach().coalesce())
