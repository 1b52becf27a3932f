"""Arithmetic on tensors of the compressed sparse layouts: functions of each value, products, sums.

In PyTorch: `aten/src/ATen/native/sparse/SparseCsrTensorMath.cpp`; the products and CSR + CSR are MKL's there.
"""

import numpy as np

from readtorch.aten.dispatcher import registry
from readtorch.aten.native import activation, tensor_compare, unary_ops  # noqa: F401  (they declare the operators)
from readtorch.aten.native.binary_ops.arithmetic import add, check_alpha, maybe_multiply, mul, mul_scalar
from readtorch.aten.native.linear_algebra.addmm import addmm, addmv
from readtorch.aten.native.linear_algebra.matmul import mm, mv
from readtorch.aten.native.reduce_ops.sum import sum_all, sum_dim
from readtorch.aten.native.tensor_iterator import cast, result_type
from readtorch.aten.native.unary_ops.complex import _conj_physical
from readtorch.aten.native_function import native_function
from readtorch.aten.python_arg_parser import number_as_tensor
from readtorch.aten.register_dispatch_key import check_result_type
from readtorch.aten.sparse_csr_tensor_impl import (
    BLOCKS,
    ROWS,
    SparseCsrArray,
    from_blocks,
    in_words,
    is_sparse_compressed,
    is_strided,
    layout_of,
    wrap_sparse_csr,
)
from readtorch.c10 import layout as layouts
from readtorch.c10.dispatch_key import SPARSE_CSR_CPU
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .sparse_blas import _sparse_addmm, sparse_sparse_matmul
from .sparse_csr_tensor import check
from .sparse_tensor_math import mul_sparse, scaled
from .tensor_conversions import to_coo, to_dense_array

# --------------------------------------------------------------------------------------- functions of each value

UNARY = (
    "abs angle asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg rad2deg relu "
    "round sgn sign signbit sin sinh sqrt tan tanh trunc"
).split()


def on_values(operator):
    def kernel(self, *arguments):
        return wrap_sparse_csr(self._array.with_values(operator.call(wrap(self._array.values), *arguments)._array))

    return kernel


def on_values_(operator):
    def kernel(self, *arguments):
        operator.call(wrap(self._array.values), *arguments)
        return self

    return kernel


for _name in UNARY:
    _operator = registry[f"aten::{_name}"]
    _operator.kernel(on_values(_operator), SPARSE_CSR_CPU)
    if _operator.inplace is not None:
        _operator.inplace.kernel(on_values_(_operator.inplace), SPARSE_CSR_CPU)
_conj_physical.kernel(lambda self: wrap_sparse_csr(self._array.with_values(self._array.values.conj())), SPARSE_CSR_CPU)

# ------------------------------------------------------------------------------------------------- self * other


def mul_compressed(self, other):
    """A number changes the values; another tensor takes elements away, in the layout CSR alone."""
    for factor, number in ((self, other), (other, self)):
        if is_strided(number) and not number._array.ndim:
            return wrap_sparse_csr(factor._array.with_values(mul.call(wrap(factor._array.values), number)._array))
    if is_sparse_compressed(self) and self._array.layout in BLOCKS:
        refuse_blocks(self, "empty_sparse_compressed")
    check(
        all(is_csr(t) or not is_sparse_compressed(t) for t in (self, other)),
        "Expected result Tensor to be of format CSR",
    )
    if is_strided(self):
        self = self.sparse_mask(other)
    if is_strided(other):
        other = other.sparse_mask(self)
    product = mul_sparse(*[to_coo(t) if is_sparse_compressed(t) else t for t in (self, other)])
    return product.to_sparse_csr()


def mul_compressed_(self, other):
    if is_strided(other) and not other._array.ndim:
        mul.inplace.call(wrap(self._array.values), other)
        return self
    check(is_csr(self), "Expected result Tensor to be of format CSR")
    product = mul_compressed(self, other)
    check_result_type(product, self)
    self._array = product._array.with_values(cast(product._array.values, self._array.dtype))
    return self


def is_csr(t):
    return is_sparse_compressed(t) and t._array.layout is layouts.sparse_csr


def refuse_blocks(t, name):
    raise RuntimeError(f"{name} expected sparse compressed (non-block) tensor layout but got {in_words(t)}")


mul.kernel(mul_compressed, SPARSE_CSR_CPU)
mul.inplace.kernel(mul_compressed_, SPARSE_CSR_CPU)
mul_scalar.kernel(lambda self, other: mul_compressed(self, number_as_tensor(other)), SPARSE_CSR_CPU)

# ------------------------------------------------------------------------------------------------- self + other


def add_compressed(self, other, alpha):
    """Of one layout: the sum has the elements of both. With a dense tensor, which is of the same size, dense."""
    common = result_type(self, other)
    check_alpha(common, alpha)
    if is_strided(self) or is_strided(other):
        return wrap(add_dense(self, other, alpha, common.numpy))
    check(
        is_sparse_compressed(self) and is_sparse_compressed(other),
        "at::sparse_csr::is_sparse_compressed(other) INTERNAL ASSERT FAILED",
    )
    check(
        self.shape == other.shape,
        "torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape "
        f"{list(self.shape)} and tensor `other` with shape {list(other.shape)}",
    )
    if self is not other:
        check_csr(self, other)
    if not (common.is_floating_point or common.is_complex):
        raise NotImplementedError(f"\"add_out_sparse_csr_impl_mkl\" not implemented for '{SCALAR_TYPE_NAMES[common]}'")
    right = other._array.with_values(scaled(cast(other._array.values, common.numpy), alpha))
    return wrap_sparse_csr(sum_of_compressed(self._array.with_values(cast(self._array.values, common.numpy)), right))


def check_csr(*tensors):
    for t in tensors:
        words = in_words(t)
        check(t._array.layout in ROWS, f"crow_indices expected sparse row compressed tensor layout but got {words}")
        check(t._array.layout is layouts.sparse_csr, f"add: two tensors of the layout {words} cannot be added up")


def add_compressed_(self, other, alpha):
    result = add_compressed(self, other, alpha)
    check_result_type(self, other)
    if is_strided(self):
        self._array[...] = cast(result._array, self._array.dtype)
    else:
        self._array = result._array.with_values(cast(result._array.values, self._array.dtype))
    return self


def add_dense(self, other, alpha, numpy_dtype):
    dense, sparse = (self, other) if is_strided(self) else (other, self)
    check(
        sparse._array.layout not in BLOCKS,
        "src.layout() == kSparseCsr || src.layout() == kSparseCsc INTERNAL ASSERT FAILED",
    )
    check(
        dense.shape == sparse.shape,
        f"add: expected 'self' and 'other' to have same size, but self has size {list(dense.shape)} while other has size "
        f"{list(sparse.shape)} (FYI: op2-sparse addition does not currently support broadcasting)",
    )
    left, right = (
        cast(part, numpy_dtype)
        for part in (
            (dense._array, to_dense_array(sparse._array))
            if dense is self
            else (to_dense_array(sparse._array), dense._array)
        )
    )
    return left + scaled(right, alpha)


def sum_of_compressed(left, right):
    """Each place that one of them has, once."""
    (first, values), (second, more) = left.blocks(), right.blocks()
    places = np.concatenate([first, second], axis=1)
    kept, where = np.unique(places, axis=1, return_inverse=True)
    sums = np.zeros((kept.shape[1], *values.shape[1:]), values.dtype)
    np.add.at(sums, where.ravel(), np.concatenate([values, more]))
    return from_blocks(kept, sums, left.layout, left.shape, left.plain.dtype)


add.kernel(add_compressed, SPARSE_CSR_CPU)
add.inplace.kernel(add_compressed_, SPARSE_CSR_CPU)

# ---------------------------------------------------------------------------------------------------- products

SPARSE_FIRST = (layouts.sparse_csr, layouts.sparse_csc, layouts.sparse_bsr)  # that multiply a dense matrix
SPARSE_SECOND = (layouts.sparse_csr, layouts.sparse_csc, layouts.sparse_bsc)  # that a dense matrix is multiplied with
ELEMENTS = (layouts.sparse_csr, layouts.sparse_csc)


def product(array, dense):
    """The dense array `array @ dense`: each block is multiplied with the rows that its columns meet."""
    (_, rows, columns), values = array.blocks()
    height, width = array.blocksize
    met = dense.reshape(-1, width, dense.shape[1])[columns]
    result = np.zeros((array.shape[0] // height, height, dense.shape[1]), dense.dtype)
    np.add.at(result, rows, values @ met)
    return result.reshape(array.shape[0], dense.shape[1])


def dense_or_sparse_product(mat1, mat2, result_layout):
    """mat1 @ mat2, of which one is compressed at least: an array of that layout."""
    if any(not is_strided(t) and not t._array.nnz for t in (mat1, mat2)):
        zeros = wrap(np.zeros((mat1.shape[0], mat2.shape[1]), mat2._array.dtype))
        return zeros.to_sparse(layout=result_layout)._array
    first, second = (None if is_strided(t) else layout_of(t) for t in (mat1, mat2))
    if result_layout is layouts.strided and second is None and first in SPARSE_FIRST:
        check_dtypes(mat1, mat2)
        return product(mat1._array, mat2._array)
    if result_layout is layouts.strided and first is None and second in SPARSE_SECOND:
        check_dtypes(mat1, mat2)
        return product(mat2._array.transposed(), mat1._array.T).T
    if first in ELEMENTS and second in ELEMENTS and result_layout in (*ELEMENTS, layouts.strided):
        check_dtypes(mat1, mat2)
        whole = sparse_sparse_matmul(to_coo(mat1), to_coo(mat2))
        return (
            whole.to_dense()._array
            if result_layout is layouts.strided
            else whole.to_sparse(layout=result_layout)._array
        )
    raise RuntimeError(
        f"addmm: computation on CPU is not implemented for {result_layout.in_words()} + {in_words(mat1)} @ {in_words(mat2)}"
    )


def check_matrices(mat1, mat2):
    for t, name in ((mat1, "mat1"), (mat2, "mat2")):
        check(t.dim() == 2, f"{name} must be a matrix, got {t.dim()}-D tensor")
    check(
        mat1.shape[1] == mat2.shape[0],
        f"mat1 and mat2 shapes cannot be multiplied ({mat1.shape[0]}x{mat1.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})",
    )


def check_dtypes(mat1, mat2):
    dtypes = dtype_of(mat1), dtype_of(mat2)
    check(dtypes[0] is dtypes[1], f"expected scalar type {type_name(mat1)} but found {type_name(mat2)}")
    if not (dtypes[0].is_floating_point or dtypes[0].is_complex):
        raise NotImplementedError(
            f"\"addmm_out_sparse_csr_impl_mkl\" not implemented for '{SCALAR_TYPE_NAMES[dtypes[0]]}'"
        )


def mm_compressed(self, mat2):
    """Dense, unless both are sparse: then CSR."""
    check_matrices(self, mat2)
    both = self.layout in ELEMENTS and mat2.layout in ELEMENTS
    if self.layout in BLOCKS and not is_strided(mat2):
        refuse_blocks(self, "zeros_sparse_compressed")
    layout = layouts.sparse_csr if both else layouts.strided if is_strided(self) or is_strided(mat2) else self.layout
    return wrapped(dense_or_sparse_product(self, mat2, layout))


def wrapped(array):
    return wrap_sparse_csr(array) if isinstance(array, SparseCsrArray) else wrap(array)


def addmm_compressed(self, mat1, mat2, beta, alpha):
    """beta · self + alpha · mat1 @ mat2, in the layout of `self`."""
    if not is_strided(self) and self.layout in BLOCKS:
        refuse_blocks(self, "empty_sparse_compressed")
    check_matrices(mat1, mat2)
    result = maybe_multiply(wrapped(dense_or_sparse_product(mat1, mat2, self.layout)), alpha)
    start = self.expand(result.shape) if is_strided(self) else self
    return maybe_multiply(start, beta) + result if beta != 0 else result


def mv_compressed(self, vec):
    check(self.dim() == 2 and vec.dim() == 1, f"vector + matrix @ vector expected, got 1, {self.dim()}, {vec.dim()}")
    check(
        self.shape[1] == vec.shape[0],
        f"size mismatch, got input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.shape[0]})",
    )
    check(
        self.layout is not layouts.sparse_bsc,
        f"torch.addmv: operation not supported for mat with {in_words(self)} layout",
    )
    return mm_compressed(self, vec.unsqueeze(1)).squeeze(1)


def addmv_compressed(self, mat, vec, beta, alpha):
    result = maybe_multiply(mv_compressed(mat, vec), alpha)
    return maybe_multiply(self.expand(result.shape), beta) + result if beta != 0 else result


mm.kernel(mm_compressed, SPARSE_CSR_CPU)
mv.kernel(mv_compressed, SPARSE_CSR_CPU)
addmm.kernel(addmm_compressed, SPARSE_CSR_CPU)
addmv.kernel(addmv_compressed, SPARSE_CSR_CPU)
_sparse_addmm.kernel(addmm_compressed, SPARSE_CSR_CPU)

sparse_sampled_addmm = native_function(
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    module="sparse",
)


def sampled_addmm_csr(self, mat1, mat2, beta, alpha):
    """beta · self + alpha · mat1 @ mat2 at the places of `self` alone; the other elements of the product are not computed."""
    check(is_csr(self), f"sampled_addmm: Expected result to have sparse csr layout, but got {in_words(self)}")
    check(is_strided(mat1) and is_strided(mat2), "sampled_addmm: Expected mat1 and mat2 to have strided layout")
    check(
        mat1.shape[-1] == mat2.shape[-2],
        f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({mat1.shape[-2]}x{mat1.shape[-1]} and "
        f"{mat2.shape[-2]}x{mat2.shape[-1]})",
    )
    for place, (own, wanted) in enumerate(((self.shape[-2], mat1.shape[-2]), (self.shape[-1], mat2.shape[-1]))):
        check(own == wanted, f"sampled_addmm: self.shape[{place - 2}] must match mat{place + 1}.shape[{place - 2}]")
    array = self._array
    (batch, rows, columns), _ = array.blocks()
    left, right = (mat._array.reshape(-1, *mat.shape[-2:]) for mat in (mat1, mat2))
    sampled = (left[batch, rows] * right[batch, :, columns]).sum(-1).reshape(array.values.shape)
    return wrap_sparse_csr(array.with_values(scaled(array.values, beta) + scaled(sampled, alpha)))


sparse_sampled_addmm.kernel(sampled_addmm_csr, SPARSE_CSR_CPU)


@sparse_sampled_addmm.backward
class SparseSampledAddmmBackward0:
    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def mat1(grad, self, mat2, alpha):
        return maybe_multiply(grad.sparse_mask(self.detach()).mm(mat2.mH), alpha.conjugate())

    def mat2(grad, self, mat1, alpha):
        return maybe_multiply(mat1.mH.mm(grad.sparse_mask(self.detach())), alpha.conjugate())


# -------------------------------------------------------------------------------------------------------- sums


def sum_dim_csr(self, dim, keepdim, dtype):
    """Sums along rows or columns, in the layout CSR; a row without elements has no sum."""
    array = self._array
    check(
        array.layout is layouts.sparse_csr,
        f"Currently the only compressed sparse format supported for sum.dim_IntList is CSR, but got layout {in_words(self)}",
    )
    check(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported")
    check(not array.batch_dim, "reduction operations on batched CSR tensors is unsupported")
    dims = {wrap_dim(d, 2) for d in dim} if dim else {0, 1}
    places, values = array.blocks()
    places = [np.zeros_like(place) if d - 1 in dims else place for d, place in enumerate(places)]
    kept, where = np.unique(places, axis=1, return_inverse=True)
    values = sum_all_as(values, dtype)
    sums = np.zeros((kept.shape[1], *values.shape[1:]), values.dtype)
    np.add.at(sums, where.ravel(), values)
    shape = [1 if d in dims else n for d, n in enumerate(array.shape)]
    return wrap_sparse_csr(from_blocks(kept, sums, array.layout, shape, array.plain.dtype))


def sum_all_as(values, dtype):
    """In the dtype that sums have."""
    wanted = sum_all.call(wrap(values[:0]), dtype)._array.dtype
    return cast(values, wanted)


sum_all.kernel(lambda self, dtype: sum_all.call(wrap(self._array.values), dtype), SPARSE_CSR_CPU)
sum_dim.kernel(sum_dim_csr, SPARSE_CSR_CPU)
