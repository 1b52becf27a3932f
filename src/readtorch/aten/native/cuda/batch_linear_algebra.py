"""Factors of matrices and what follows from them: equations, inverses, determinants, eigenvalues, singular values.

All work on copies that lie column by column, as LAPACK's results do.

In PyTorch: `aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp`.
"""

import math

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.batch_linear_algebra.cholesky import check_systems
from readtorch.aten.native.batch_linear_algebra.lu import check_lu_solve
from readtorch.aten.native.batch_linear_algebra.qr import (
    check_householder_product,
    check_lapack_type,
    check_matrices,
    check_ormqr,
)
from readtorch.aten.native.batch_linear_algebra.solve import check_singular, check_solve
from readtorch.aten.native.batch_linear_algebra.triangular import check_triangular
from readtorch.aten.native.linear_algebra_utils import (
    check_floating,
    check_info,
    check_square,
    check_square_floating,
    describe_indefinite,
    describe_singular,
)
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.tensor_impl import dtype_of

from .batch_linear_algebra_lib import cholesky, eigh, exchange, lu, orthogonal, qr, solve_triangular, svd
from .copy import copy as copy_kernel
from .fill_kernel import filled
from .reduce_ops import LONG
from .register_dispatch_key import cuda_kernel, empty, operator_named, owned
from .tensor_factories import eye

INT = np.dtype(np.int32)


def columns_of(t, shape=None):
    """A copy of matrices, broadcast to `shape`, that lies column by column. NotImplementedError for complex ones,
    for which there are no kernels."""
    if t._array.dtype.kind == "c":
        raise not_implemented("linear algebra on CUDA")(dtype_of(t))
    shape = shape or t._array.shape
    result = empty_columns(shape, t._array.dtype)
    copy_kernel(np.broadcast_to(t._array, shape), result._array)
    return result


def empty_columns(shape, dtype):
    *batch, rows, columns = shape
    strides = [1, max(rows, 1)]
    for n in reversed(batch):
        strides.insert(0, 0)
    step = max(rows, 1) * max(columns, 1)
    for d in reversed(range(len(batch))):
        strides[d] = step
        step *= max(batch[d], 1)
    return empty(shape, dtype, strides)


def units(shape, dtype):
    """Unit matrices, or as many of their columns."""
    result = empty_columns(shape, dtype)
    one = empty(shape[-2:], dtype)
    eye(one._array)
    copy_kernel(np.broadcast_to(one._array, shape), result._array)
    return result


def stack(t):
    """(matrices, rows, columns) of a tensor that lies column by column."""
    rows, columns = t._array.shape[-2:]
    count = math.prod(t._array.shape[:-2])
    return t._array.swapaxes(-1, -2).reshape(count, columns, rows).swapaxes(1, 2)


def rows_of(t):
    return t._array.reshape(math.prod(t._array.shape[:-1]), t._array.shape[-1])


def zeros(shape, dtype):
    return filled(empty(shape, dtype), 0)


def cholesky_of(A, upper, name):
    """The factor, and info."""
    check_square_floating(A, name)
    factor, info = columns_of(A.mT if upper else A), zeros(A._array.shape[:-2], INT)
    cholesky(stack(factor), info._array.reshape(-1))
    lower = factor.tril()
    return columns_of(lower.mT if upper else lower), info


@cuda_kernel(operator_named("linalg_cholesky_ex"))
def cholesky_ex_cuda(self, upper, check_errors):
    factor, info = cholesky_of(self, upper, "linalg.cholesky")
    if check_errors:
        check_info(info, "linalg.cholesky_ex", describe_indefinite)
    return return_types.linalg_cholesky_ex(factor, info)


@cuda_kernel(operator_named("cholesky"))
def cholesky_cuda(self, upper):
    factor, info = cholesky_of(self, upper, "cholesky")
    check_info(info, "cholesky", describe_indefinite)
    return factor


def lu_of(A):
    """(L and U in one matrix, pivots, info)"""
    *batch, rows, columns = A._array.shape
    packed, pivots = columns_of(A), empty((*batch, min(rows, columns)), INT)
    info = zeros(batch, INT)
    lu(stack(packed), rows_of(pivots), info._array.reshape(-1))
    return packed, pivots, info


def solved(LU, pivots, B, adjoint=False):
    """X with A X = B, or Aᵀ X = B, from A's factors; a matrix and a right hand side may be broadcast."""
    batch = broadcast_shape(LU._array.shape[:-2], B._array.shape[:-2])
    x = columns_of(B, (*batch, *B._array.shape[-2:]))
    packed = columns_of(LU, (*batch, *LU._array.shape[-2:]))
    exchanges = pivots.expand((*batch, pivots._array.shape[-1])).contiguous()
    a, b = stack(packed), stack(x)
    if adjoint:
        a = a.swapaxes(1, 2)
        solve_triangular(a, b, upper=False)
        solve_triangular(a, b, upper=True, unit=True)
        exchange(rows_of(exchanges), b, backwards=True)
    else:
        exchange(rows_of(exchanges), b)
        solve_triangular(a, b, upper=False, unit=True)
        solve_triangular(a, b, upper=True)
    return x


@cuda_kernel(operator_named("linalg_lu_factor_ex"))
def lu_factor_ex_cuda(A, pivot, check_errors):
    """Always with exchanged rows. (In PyTorch: also without.)"""
    check_floating(A, "torch.lu_factor")
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: readtorch has no CUDA kernel that leaves the rows in order")
    packed, pivots, info = lu_of(A)
    if check_errors:
        check_info(info, "torch.linalg.lu_factor_ex", describe_singular)
    return return_types.linalg_lu_factor_ex(packed, pivots, info)


@cuda_kernel(operator_named("linalg_lu_solve"))
def lu_solve_cuda(LU, pivots, B, left, adjoint):
    """X A = B is solved as Aᵀ Xᵀ = Bᵀ."""
    check_lu_solve(LU, pivots, B, left)
    if left:
        return solved(LU, pivots, B, adjoint)
    return owned(solved(LU, pivots, B.mT, not adjoint).mT)


@cuda_kernel(operator_named("_linalg_solve_ex"))
def solve_cuda(A, B, left, check_errors):
    vector = check_solve(A, B, left)
    b = B.unsqueeze(-1) if vector else B
    packed, pivots, info = lu_of(A if left else A.mT)
    if check_errors:
        check_singular(info)
    x = solved(packed, pivots, b if left else b.mT)
    x = x if left else x.mT
    if vector:
        rows = x.squeeze(-1)
        x = columns_of(rows) if rows._array.ndim > 1 else rows
    return owned(x), packed, pivots, info


@cuda_kernel(operator_named("linalg_inv_ex"))
def inv_ex_cuda(A, check_errors):
    check_square_floating(A, "linalg.inv")
    packed, pivots, info = lu_of(A)
    if check_errors:
        check_info(info, "linalg.inv_ex", describe_singular)
    inverse = solved(packed, pivots, units(A._array.shape, A._array.dtype))
    return return_types.linalg_inv_ex(inverse, info)


@cuda_kernel(operator_named("linalg_solve_triangular"))
def solve_triangular_cuda(self, B, upper, left, unitriangular):
    check_triangular(self, B, left)
    a, b, upper = (self, B, upper) if left else (self.mT, B.mT, not upper)
    batch = broadcast_shape(a._array.shape[:-2], b._array.shape[:-2])
    x = columns_of(b, (*batch, *b._array.shape[-2:]))
    solve_triangular(stack(columns_of(a, (*batch, *a._array.shape[-2:]))), stack(x), upper, unitriangular)
    return x if left else columns_of(x.mT)


def sign_of_exchanges(pivots, dtype):
    moved = at.ne(pivots, at.arange(1, pivots._array.shape[-1] + 1, device=pivots.device))
    return (1 - 2 * (moved.sum(-1) % 2)).to(dtype)


@cuda_kernel(operator_named("_linalg_det"))
def det_cuda(A):
    """The product of U's diagonal, and a sign for the rows that were exchanged."""
    check_square_floating(A, "linalg.det")
    packed, pivots, _ = lu_of(A)
    return packed.diagonal(0, -2, -1).prod(-1) * sign_of_exchanges(pivots, A.dtype), packed, pivots


@cuda_kernel(operator_named("_linalg_slogdet"))
def slogdet_cuda(A):
    check_square_floating(A, "linalg.slogdet")
    packed, pivots, _ = lu_of(A)
    diagonal = packed.diagonal(0, -2, -1)
    sign = diagonal.sign().prod(-1) * sign_of_exchanges(pivots, A.dtype)
    return sign, diagonal.abs().log().sum(-1), packed, pivots


def qr_of(A, columns):
    """R below whose diagonal the reflections are, and so many columns of Q."""
    *batch, m, n = A._array.shape
    reflected, taus = columns_of(A), empty((*batch, min(m, n)), A._array.dtype)
    q = units((*batch, m, columns), A._array.dtype)
    qr(stack(reflected), rows_of(taus))
    orthogonal(stack(reflected), rows_of(taus), stack(q))
    return q, reflected


@cuda_kernel(operator_named("linalg_qr"))
def qr_cuda(A, mode):
    check_floating(A, "linalg.qr", low_precision=True)
    if A._array.itemsize == 2:
        raise not_implemented("geqrf_cuda")(dtype_of(A))
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    *_, m, n = A._array.shape
    k = m if mode == "complete" else min(m, n)
    q, reflected = qr_of(A, 0 if mode == "r" else k)
    r = columns_of(reflected[..., :k, :].triu())
    return return_types.linalg_qr(empty((0,), A._array.dtype) if mode == "r" else q, r)


def in_order(values, vectors, descending):
    """The values sorted, and the columns that belong to them."""
    values, order = at.sort(values, -1, descending)
    shape = vectors._array.shape
    return values, at.gather(vectors, -1, order.unsqueeze(-2).expand(shape))


@cuda_kernel(operator_named("_linalg_eigh"))
def eigh_cuda(A, UPLO, compute_v):
    check_square_floating(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    half = A.triu() if UPLO.upper() == "U" else A.tril()
    *batch, n, _ = A._array.shape
    a = columns_of(half + half.mT - at.diag_embed(half.diagonal(0, -2, -1)))
    v = units((*batch, n + 1, n), A._array.dtype)  # its last row is a place for angles
    eigh(stack(a), stack(v))
    values, vectors = in_order(a.diagonal(0, -2, -1).contiguous(), v[..., :n, :].contiguous(), False)
    return return_types.linalg_eigh(values, columns_of(vectors) if compute_v else empty((0,), A._array.dtype))


def thin_svd(A):
    """(U S, S, V) of matrices with at least as many rows as columns."""
    *batch, _, n = A._array.shape
    a, v = columns_of(A), units((*batch, n, n), A._array.dtype)
    svd(stack(a), stack(v))
    s, u = in_order(at.linalg_vector_norm(a, 2, (-2,)), a.contiguous(), True)
    _, v = in_order(at.linalg_vector_norm(a, 2, (-2,)), v.contiguous(), True)
    return u, s, v


@cuda_kernel(operator_named("_linalg_svd"))
def svd_cuda(A, full_matrices, compute_uv, driver):
    """Where a singular value is 0, and for the columns beyond them, U is completed by the reflections of a QR. (In
    PyTorch: `driver` chooses among cuSOLVER's routines.)"""
    check_floating(A, "linalg.svd")
    *_, m, n = A._array.shape
    u, s, v = thin_svd(A if m >= n else A.mT)
    if not compute_uv:
        return return_types.linalg_svd(empty((0,), A._array.dtype), s, empty((0,), A._array.dtype))
    q, r = qr_of(u, max(m, n) if full_matrices else min(m, n))
    signs = at.where(r.diagonal(0, -2, -1) < 0, -1.0, 1.0).to(A.dtype)
    q[..., : min(m, n)].mul_(signs.unsqueeze(-2))
    u, v = (q, v) if m >= n else (v, q)
    return return_types.linalg_svd(columns_of(u), s, columns_of(v.mT))


def permutations_of(pivots, m, dtype):
    """The matrices P for which A = P L U: the row exchanges, undone on unit matrices."""
    P = units((*pivots._array.shape[:-1], m, m), dtype)
    exchange(rows_of(pivots.contiguous()), stack(P), backwards=True)
    return P


def halves_of(packed):
    *_, m, n = packed._array.shape
    k = min(m, n)
    lower = packed[..., :k].tril(-1)
    lower.diagonal(0, -2, -1).fill_(1)
    return lower, packed[..., :k, :].triu()


@cuda_kernel(operator_named("linalg_lu"))
def lu_cuda(A, pivot):
    check_floating(A, "linalg.lu")
    if not pivot:
        raise NotImplementedError("linalg.lu: readtorch has no CUDA kernel that leaves the rows in order")
    packed, pivots, _ = lu_of(A)
    P = permutations_of(pivots, A._array.shape[-2], A._array.dtype)
    return return_types.linalg_lu(P.contiguous(), *[half.contiguous() for half in halves_of(packed)])


@cuda_kernel(operator_named("lu_unpack"))
def lu_unpack_cuda(LU_data, LU_pivots, unpack_data, unpack_pivots):
    """The pivots stay unchecked: to look at them, the host would have to wait."""
    if LU_data._array.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(LU_data._array.shape)} instead"
        )
    if unpack_pivots and LU_pivots._array.dtype != INT:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
            "dtype.\n"
            "Note: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    P = L = U = empty((0,), LU_data._array.dtype)
    if unpack_pivots:
        P = permutations_of(LU_pivots, LU_data._array.shape[-2], LU_data._array.dtype).contiguous()
    if unpack_data:
        L, U = (half.contiguous() for half in halves_of(LU_data))
    return return_types.lu_unpack(P, L, U)


def columns_together(b, A):
    """Copies of both, column by column, with the batch dimensions that they have in common."""
    batch = broadcast_shape(b._array.shape[:-2], A._array.shape[:-2])
    return [columns_of(t, (*batch, *t._array.shape[-2:])) for t in (b, A)]


@cuda_kernel(operator_named("triangular_solve"))
def triangular_solve_cuda(self, A, upper, transpose, unitriangular):
    check_systems(
        self,
        A,
        "triangular_solve",
        "torch.triangular_solve: Expected {} to have at least 2 dimensions, but it has {} dimensions instead",
    )
    x, a = columns_together(self, A)
    seen = stack(a).swapaxes(1, 2) if transpose else stack(a)
    solve_triangular(seen, stack(x), upper != transpose, unitriangular)
    return return_types.triangular_solve(x, a)


@cuda_kernel(operator_named("cholesky_solve"))
def cholesky_solve_cuda(self, input2, upper):
    """X in L Lᵀ X = self, or Uᵀ U X = self."""
    check_systems(self, input2, "cholesky_solve", "{} should have at least 2 dimensions, but has {} dimensions instead")
    x, a = columns_together(self, input2)
    lower = stack(a).swapaxes(1, 2) if upper else stack(a)
    solve_triangular(lower, stack(x), upper=False)
    solve_triangular(lower.swapaxes(1, 2), stack(x), upper=True)
    return x


@cuda_kernel(operator_named("cholesky_inverse"))
def cholesky_inverse_cuda(self, upper):
    check_square(self, "cholesky_inverse")
    return cholesky_solve_cuda(units(self._array.shape, self._array.dtype), self, upper)


@cuda_kernel(operator_named("geqrf"))
def geqrf_cuda(self):
    check_matrices(self, "geqrf", "input")
    check_lapack_type(self, "geqrf_cuda")
    reflected, taus = columns_of(self), empty_taus(self)
    qr(stack(reflected), rows_of(taus))
    return return_types.geqrf(reflected, taus)


def empty_taus(A):
    *batch, m, n = A._array.shape
    return empty((*batch, min(m, n)), A._array.dtype)


def product_of(reflections, taus, columns):
    """So many columns of the product of the reflections."""
    q = units((*reflections._array.shape[:-1], columns), reflections._array.dtype)
    if taus._array.size:
        orthogonal(stack(columns_of(reflections)), rows_of(taus.contiguous()), stack(q))
    return q


@cuda_kernel(operator_named("linalg_householder_product"))
def householder_product_cuda(input, tau):
    check_householder_product(input, tau)
    return product_of(input, tau, input._array.shape[-1])


@cuda_kernel(operator_named("ormqr"))
def ormqr_cuda(self, input2, input3, left, transpose):
    """With the product of all reflections as a matrix. (In PyTorch: they are applied one after the other.)"""
    check_ormqr(self, input2, input3, left)
    q = product_of(self, input2, self._array.shape[-2])
    q = q.mT if transpose else q
    return columns_of(q @ input3 if left else input3 @ q)


@cuda_kernel(operator_named("linalg_lstsq"))
def lstsq_cuda(self, b, rcond, driver):
    """For matrices of full rank, by their QR: A = Q R, or Aᵀ = Q R of a wide one."""
    check_floating(self, "torch.linalg.lstsq", "input")
    if driver not in (None, "gels"):
        raise RuntimeError("torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA")
    *batch, m, n = self._array.shape
    y = b._array
    vector = y.ndim == 1 or (y.ndim == len(batch) + 1 and y.shape == (*batch, m))
    right = b.unsqueeze(-1) if vector else b
    q, r = qr_of(self if m >= n else self.mT, min(m, n))
    r = r[..., : min(m, n), :].triu()
    if m >= n:
        x = at.linalg_solve_triangular(r, q.mT @ right, upper=True)
    else:
        x = q @ at.linalg_solve_triangular(r.mT, right, upper=False)
    residuals = ((right - self @ x) ** 2).sum(-2) if m > n else empty((0,), self._array.dtype)
    nothing = empty((0,), LONG), empty((0,), self._array.dtype)
    return return_types.linalg_lstsq(owned(x.squeeze(-1)) if vector else columns_of(x), residuals, *nothing)
