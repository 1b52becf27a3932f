"""Factors of matrices and what follows from them: equations, inverses, determinants, eigenvalues, singular values.

All work on copies that lie column by column, as LAPACK's results do.

In PyTorch: `aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.batch_linear_algebra.lstsq import check_lstsq
from readtorch.aten.native.batch_linear_algebra.qr import check_lapack_type, check_matrices
from readtorch.aten.native.batch_linear_algebra.solve import check_singular, is_vector
from readtorch.aten.native.linear_algebra_utils import (
    check_floating,
    check_info,
    columns,
    describe_indefinite,
    describe_singular,
    info_of,
    pivots_of,
)
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.tensor_impl import dtype_of

from .batch_linear_algebra_lib import cholesky, eigh, exchange, lu, orthogonal, qr, solve_triangular, svd
from .copy import copy as copy_kernel
from .fill_kernel import fill
from .reduce_ops import LONG
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, empty_here, operator_named, owned
from .tensor_factories import eye


def copy_to(out, t):
    """`out` = t, broadcast. NotImplementedError for complex matrices, for which there are no kernels."""
    if t._array.dtype.kind == "c":
        raise not_implemented("linear algebra on CUDA")(dtype_of(t))
    copy_kernel(np.broadcast_to(t._array, out._array.shape), out._array)
    return out


def columns_of(t, shape=None):
    """A copy of matrices, broadcast to `shape`, that lies column by column."""
    return copy_to(empty_here(columns(t, shape)), t)


def units(t, shape):
    """Unit matrices of the dtype of `t`, or as many of their columns."""
    return fill_units(empty_here(columns(t, shape)))


def fill_units(out):
    one = empty(out._array.shape[-2:], out._array.dtype)
    eye(one._array)
    return copy_to(out, one)


def stack(t):
    """(matrices, rows, columns) of a tensor that lies column by column."""
    rows, columns = t._array.shape[-2:]
    count = math.prod(t._array.shape[:-2])
    return t._array.swapaxes(-1, -2).reshape(count, columns, rows).swapaxes(1, 2)


def rows_of(t):
    return t._array.reshape(math.prod(t._array.shape[:-1]), t._array.shape[-1])


@cuda_impl(operator_named("linalg_cholesky_ex"))
def cholesky_ex_cuda(self, upper, check_errors, L, info):
    factor = columns_of(self.mT if upper else self)
    fill(info._array, np.int32(0))
    cholesky(stack(factor), info._array.reshape(-1))
    lower = factor.tril()
    copy_to(L, lower.mT if upper else lower)
    if check_errors:
        check_info(info, "linalg.cholesky_ex", describe_indefinite)


@cuda_impl(operator_named("cholesky"))
def cholesky_cuda(self, upper, out):
    info = empty_here(info_of(self))
    cholesky_ex_cuda(self, upper, False, out, info)
    check_info(info, "cholesky", describe_indefinite)


def fill_lu(A, LU, pivots, info=None):
    """L and U in one matrix, and which rows were exchanged."""
    info = empty_here(info_of(A)) if info is None else info
    fill(info._array, np.int32(0))
    lu(stack(copy_to(LU, A)), rows_of(pivots), info._array.reshape(-1))


def solved(LU, pivots, B, shape, adjoint=False):
    """X, of this shape, with A X = B, or Aᵀ X = B, from A's factors; a matrix and a right hand side may be broadcast."""
    x, packed = columns_of(B, shape), columns_of(LU, (*shape[:-2], *LU._array.shape[-2:]))
    exchanges = pivots.expand((*shape[:-2], pivots._array.shape[-1])).contiguous()
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


@cuda_impl(operator_named("linalg_lu_factor_ex"))
def lu_factor_ex_cuda(A, pivot, check_errors, LU, pivots, info):
    """Always with exchanged rows. (In PyTorch: also without.)"""
    if not pivot:
        raise NotImplementedError("linalg.lu_factor: readtorch has no CUDA kernel that leaves the rows in order")
    fill_lu(A, LU, pivots, info)
    if check_errors:
        check_info(info, "torch.linalg.lu_factor_ex", describe_singular)


@cuda_impl(operator_named("linalg_lu_solve"))
def lu_solve_cuda(LU, pivots, B, left, adjoint, out):
    """X A = B is solved as Aᵀ Xᵀ = Bᵀ."""
    check_lapack_type(LU, "linalg.lu_solve_cuda")
    if not left:
        B, out, adjoint = B.mT, out.mT, not adjoint
    copy_to(out, solved(LU, pivots, B, out._array.shape, adjoint))


@cuda_impl(operator_named("_linalg_solve_ex"))
def solve_cuda(A, B, left, check_errors, result, LU, pivots, info):
    if is_vector(A, B):
        B, result = B.unsqueeze(-1), result.unsqueeze(-1)
    if not left:
        A, B, result = A.mT, B.mT, result.mT
    fill_lu(A, LU, pivots, info)
    if check_errors:
        check_singular(info)
    copy_to(result, solved(LU, pivots, B, result._array.shape))


@cuda_impl(operator_named("linalg_inv_ex"))
def inv_ex_cuda(A, check_errors, inverse, info):
    LU, pivots = empty_here(columns(A)), empty_here(pivots_of(A))
    fill_lu(A, LU, pivots, info)
    if check_errors:
        check_info(info, "linalg.inv_ex", describe_singular)
    copy_to(inverse, solved(LU, pivots, units(A, A._array.shape[-2:]), A._array.shape))


@cuda_impl(operator_named("linalg_solve_triangular"))
def solve_triangular_cuda(self, B, upper, left, unitriangular, out):
    check_lapack_type(self, "triangular_solve_cuda")
    a, b, x = (self, B, out) if left else (self.mT, B.mT, out.mT)
    *batch, n, _ = x._array.shape
    solution = columns_of(b, x._array.shape)
    solve_triangular(stack(columns_of(a, (*batch, n, n))), stack(solution), upper == left, unitriangular)
    copy_to(x, solution)


def sign_of_exchanges(pivots, dtype):
    moved = at.ne(pivots, at.arange(1, pivots._array.shape[-1] + 1, device=pivots.device))
    return (1 - 2 * (moved.sum(-1) % 2)).to(dtype)


@cuda_impl(operator_named("_linalg_det"))
def det_cuda(A, result, LU, pivots):
    """The product of U's diagonal, and a sign for the rows that were exchanged."""
    fill_lu(A, LU, pivots)
    copy_to(result, LU.diagonal(0, -2, -1).prod(-1) * sign_of_exchanges(pivots, A.dtype))


@cuda_impl(operator_named("_linalg_slogdet"))
def slogdet_cuda(A, sign, logabsdet, LU, pivots):
    fill_lu(A, LU, pivots)
    diagonal = LU.diagonal(0, -2, -1)
    copy_to(sign, diagonal.sign().prod(-1) * sign_of_exchanges(pivots, A.dtype))
    copy_to(logabsdet, diagonal.abs().log().sum(-1))


def empty_taus(A):
    *batch, m, n = A._array.shape
    return empty((*batch, min(m, n)), A._array.dtype)


def qr_of(A, count):
    """R below whose diagonal the reflections are, and so many columns of Q."""
    reflected, taus = columns_of(A), empty_taus(A)
    q = units(A, (*A._array.shape[:-1], count))
    qr(stack(reflected), rows_of(taus))
    orthogonal(stack(reflected), rows_of(taus), stack(q))
    return q, reflected


@cuda_impl(operator_named("linalg_qr"))
def qr_cuda(A, mode, Q, R):
    check_lapack_type(A, "geqrf_cuda")
    k = R._array.shape[-2]
    q, reflected = qr_of(A, 0 if mode == "r" else k)
    copy_to(R, reflected[..., :k, :].triu())
    if mode != "r":
        copy_to(Q, q)


def in_order(values, vectors, descending):
    """The values sorted, and the columns that belong to them."""
    values, order = at.sort(values, -1, descending)
    shape = vectors._array.shape
    return values, at.gather(vectors, -1, order.unsqueeze(-2).expand(shape))


@cuda_impl(operator_named("_linalg_eigh"))
def eigh_cuda(A, UPLO, compute_v, eigenvalues, eigenvectors):
    half = A.triu() if UPLO.upper() == "U" else A.tril()
    *batch, n, _ = A._array.shape
    a = columns_of(half + half.mT - at.diag_embed(half.diagonal(0, -2, -1)))
    v = units(A, (*batch, n + 1, n))  # its last row is a place for angles
    eigh(stack(a), stack(v))
    values, vectors = in_order(a.diagonal(0, -2, -1).contiguous(), v[..., :n, :].contiguous(), False)
    copy_to(eigenvalues, values)
    if compute_v:
        copy_to(eigenvectors, vectors)


def thin_svd(A):
    """(U S, S, V) of matrices with at least as many rows as columns."""
    *batch, _, n = A._array.shape
    a, v = columns_of(A), units(A, (*batch, n, n))
    svd(stack(a), stack(v))
    s, u = in_order(at.linalg_vector_norm(a, 2, (-2,)), a.contiguous(), True)
    _, v = in_order(at.linalg_vector_norm(a, 2, (-2,)), v.contiguous(), True)
    return u, s, v


@cuda_impl(operator_named("_linalg_svd"))
def svd_cuda(A, full_matrices, compute_uv, driver, U, S, Vh):
    """Where a singular value is 0, and for the columns beyond them, U is completed by the reflections of a QR. (In
    PyTorch: `driver` chooses among cuSOLVER's routines.)"""
    *_, m, n = A._array.shape
    u, s, v = thin_svd(A if m >= n else A.mT)
    copy_to(S, s)
    if not compute_uv:
        return
    q, r = qr_of(u, max(m, n) if full_matrices else min(m, n))
    signs = at.where(r.diagonal(0, -2, -1) < 0, -1.0, 1.0).to(A.dtype)
    q[..., : min(m, n)].mul_(signs.unsqueeze(-2))
    u, v = (q, v) if m >= n else (v, q)
    copy_to(U, u)
    copy_to(Vh, v.mT)


@cuda_impl(operator_named("linalg_lu"))
def lu_cuda(A, pivot, P, L, U):
    if not pivot:
        raise NotImplementedError("linalg.lu: readtorch has no CUDA kernel that leaves the rows in order")
    LU, pivots = empty_here(columns(A)), empty_here(pivots_of(A))
    fill_lu(A, LU, pivots)
    lu_unpack_cuda(LU, pivots, True, True, P, L, U)


@cuda_impl(operator_named("lu_unpack"))
def lu_unpack_cuda(LU_data, LU_pivots, unpack_data, unpack_pivots, P, L, U):
    """P are the row exchanges, undone on unit matrices. The pivots stay unchecked: to look at them, the host would have
    to wait."""
    if unpack_pivots:
        rows = units(P, P._array.shape)
        exchange(rows_of(LU_pivots.contiguous()), stack(rows), backwards=True)
        copy_to(P, rows)
    if unpack_data:
        k = L._array.shape[-1]
        copy_to(L, LU_data[..., :k].tril(-1)).diagonal(0, -2, -1).fill_(1)
        copy_to(U, LU_data[..., :k, :].triu())


@cuda_impl(operator_named("triangular_solve"))
def triangular_solve_cuda(self, A, upper, transpose, unitriangular, solution, cloned_coefficient):
    a, x = stack(copy_to(cloned_coefficient, A)), columns_of(self, solution._array.shape)
    solve_triangular(a.swapaxes(1, 2) if transpose else a, stack(x), upper != transpose, unitriangular)
    copy_to(solution, x)


@cuda_impl(operator_named("cholesky_solve"))
def cholesky_solve_cuda(self, input2, upper, out):
    """X in L Lᵀ X = self, or Uᵀ U X = self."""
    *batch, n, _ = out._array.shape
    x, a = columns_of(self, out._array.shape), stack(columns_of(input2, (*batch, n, n)))
    lower = a.swapaxes(1, 2) if upper else a
    solve_triangular(lower, stack(x), upper=False)
    solve_triangular(lower.swapaxes(1, 2), stack(x), upper=True)
    copy_to(out, x)


@cuda_impl(operator_named("cholesky_inverse"))
def cholesky_inverse_cuda(self, upper, out):
    cholesky_solve_cuda(units(self, self._array.shape[-2:]), self, upper, out)


@cuda_kernel(operator_named("geqrf"))
def geqrf_cuda(self):
    check_matrices(self, "geqrf", "input")
    check_lapack_type(self, "geqrf_cuda")
    reflected, taus = columns_of(self), empty_taus(self)
    qr(stack(reflected), rows_of(taus))
    return return_types.geqrf(reflected, taus)


def product_of(reflections, taus, count):
    """So many columns of the product of the reflections."""
    q = units(reflections, (*reflections._array.shape[:-1], count))
    if taus._array.size:
        orthogonal(stack(columns_of(reflections)), rows_of(taus.contiguous()), stack(q))
    return q


@cuda_impl(operator_named("linalg_householder_product"))
def householder_product_cuda(input, tau, out):
    check_lapack_type(input, "orgqr_cuda")
    copy_to(out, product_of(input, tau, input._array.shape[-1]))


@cuda_impl(operator_named("ormqr"))
def ormqr_cuda(self, input2, input3, left, transpose, out):
    """With the product of all reflections as a matrix. (In PyTorch: they are applied one after the other.)"""
    check_lapack_type(self, "ormqr_cuda")
    q = product_of(self, input2, self._array.shape[-2])
    q = q.mT if transpose else q
    copy_to(out, q @ input3 if left else input3 @ q)


@cuda_kernel(operator_named("linalg_lstsq"))
def lstsq_cuda(self, b, rcond, driver):
    """For matrices of full rank, by their QR: A = Q R, or Aᵀ = Q R of a wide one."""
    check_lstsq(self, b)
    check_floating(self, "torch.linalg.lstsq", "input")
    if driver not in (None, "gels"):
        raise RuntimeError("torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA")
    *_, m, n = self._array.shape
    vector = is_vector(self, b)
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
