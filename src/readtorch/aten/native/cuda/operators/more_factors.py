"""What follows from the factors of linear_algebra.py: LU unpacked, Cholesky's and triangular equations,
reflections, pseudo-inverse and rank, least squares, the exponential of a matrix; and cross products.

In PyTorch: `aten/src/ATen/native/cuda/linalg/BatchLinearAlgebra.cpp`,
`aten/src/ATen/native/{BatchLinearAlgebra,LinearAlgebra}.cpp`, `aten/src/ATen/native/cuda/CrossKernel.cu`.
"""

import math

import numpy as np

from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ... import return_types
from ...linear_algebra_utils import check_floating, check_square
from ...batch_linear_algebra.cholesky import check_systems
from ...batch_linear_algebra.qr import check_householder_product, check_lapack_type, check_matrices, check_ormqr
from ...linear_algebra.matmul import check_dot
from ...linear_algebra.norm import check_norm_type
from ...tensor_iterator import result_type
from .. import factors
from .factories import filled
from .linear_algebra import (
    INT,
    columns_of,
    eigh_cuda,
    lu_of,
    qr_of,
    rows_of,
    stack,
    svd_cuda,
    units,
    zeros,
)
from .pointwise import operator_named
from .products import dot_cuda
from .reductions import LONG, vector_norm_cuda
from .registration import broadcast_shape, cuda_kernel, empty, owned

# --------------------------------------------------------------------------------------------------------- LU


def permutations_of(pivots, m, dtype):
    """The matrices P for which A = P L U: the row exchanges, undone on unit matrices."""
    P = units((*pivots._array.shape[:-1], m, m), dtype)
    factors.exchange(rows_of(pivots.contiguous()), stack(P), backwards=True)
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
        raise RuntimeError("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
                           f"{list(LU_data._array.shape)} instead")
    if unpack_pivots and LU_pivots._array.dtype != INT:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
                           "dtype.\n"
                           "Note: this function is intended to be used with the output produced by "
                           "torch.linalg.lu_factor")
    P = L = U = empty((0,), LU_data._array.dtype)
    if unpack_pivots:
        P = permutations_of(LU_pivots, LU_data._array.shape[-2], LU_data._array.dtype).contiguous()
    if unpack_data:
        L, U = (half.contiguous() for half in halves_of(LU_data))
    return return_types.lu_unpack(P, L, U)


# ----------------------------------------------------------------------------------------- triangular factors


def columns_together(b, A):
    """Copies of both, column by column, with the batch dimensions that they have in common."""
    batch = broadcast_shape(b._array.shape[:-2], A._array.shape[:-2])
    return [columns_of(t, (*batch, *t._array.shape[-2:])) for t in (b, A)]


@cuda_kernel(operator_named("triangular_solve"))
def triangular_solve_cuda(self, A, upper, transpose, unitriangular):
    check_systems(self, A, "triangular_solve", "torch.triangular_solve: Expected {} to have at least 2 "
                                               "dimensions, but it has {} dimensions instead")
    x, a = columns_together(self, A)
    seen = stack(a).swapaxes(1, 2) if transpose else stack(a)
    factors.solve_triangular(seen, stack(x), upper != transpose, unitriangular)
    return return_types.triangular_solve(x, a)


@cuda_kernel(operator_named("cholesky_solve"))
def cholesky_solve_cuda(self, input2, upper):
    """X in L Lᵀ X = self, or Uᵀ U X = self."""
    check_systems(self, input2, "cholesky_solve", "{} should have at least 2 dimensions, but has {} "
                                                  "dimensions instead")
    x, a = columns_together(self, input2)
    lower = stack(a).swapaxes(1, 2) if upper else stack(a)
    factors.solve_triangular(lower, stack(x), upper=False)
    factors.solve_triangular(lower.swapaxes(1, 2), stack(x), upper=True)
    return x


@cuda_kernel(operator_named("cholesky_inverse"))
def cholesky_inverse_cuda(self, upper):
    check_square(self, "cholesky_inverse")
    return cholesky_solve_cuda(units(self._array.shape, self._array.dtype), self, upper)


# ------------------------------------------------------------------------------------------------ reflections


@cuda_kernel(operator_named("geqrf"))
def geqrf_cuda(self):
    check_matrices(self, "geqrf", "input")
    check_lapack_type(self, "geqrf_cuda")
    reflected, taus = columns_of(self), empty_taus(self)
    factors.qr(stack(reflected), rows_of(taus))
    return return_types.geqrf(reflected, taus)


def empty_taus(A):
    *batch, m, n = A._array.shape
    return empty((*batch, min(m, n)), A._array.dtype)


def product_of(reflections, taus, columns):
    """So many columns of the product of the reflections."""
    q = units((*reflections._array.shape[:-1], columns), reflections._array.dtype)
    if taus._array.size:
        factors.orthogonal(stack(columns_of(reflections)), rows_of(taus.contiguous()), stack(q))
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


# ------------------------------------------------------------------------ pseudo-inverse, rank, least squares


def on_this_device(number, dtype):
    return filled(empty((), dtype), number) if isinstance(number, (int, float)) else number


def tolerance(A, values, atol, rtol):
    """Singular values up to this count as zero: see `tolerance` in ../../linear_algebra/pinv.py."""
    dtype = values._array.dtype
    eps = float(np.finfo(dtype).eps) * max(A._array.shape[-2:])
    atol, rtol = (None if t is None else on_this_device(t, dtype) for t in (atol, rtol))
    if rtol is None:
        rtol = on_this_device(eps, dtype) if atol is None else at.where(atol > 0, 0.0, eps).to(values.dtype)
    relative = values.amax(-1) * rtol
    return relative if atol is None else at.maximum(relative, atol.to(values.device))


@cuda_kernel(operator_named("linalg_pinv.atol_rtol_tensor"))
def pinv_cuda(self, atol, rtol, hermitian):
    check_floating(self, "linalg.pinv")
    *batch, m, n = self._array.shape
    if not self._array.size:
        return empty((*batch, n, m), self._array.dtype)
    if hermitian:
        values, U = eigh_cuda(self, "L", True)
        Vh = U.mT
    else:
        U, values, Vh = svd_cuda(self, False, True, None)
    limit = tolerance(self, values.abs(), atol, rtol).unsqueeze(-1)
    inverse = at.where(values.abs() > limit, 1 / values, 0.0).to(self.dtype)
    return (Vh.mT * inverse.unsqueeze(-2)) @ U.mT


def rank(A, atol, rtol, hermitian):
    check_floating(A, "linalg.matrix_rank")
    if not A._array.size:
        return zeros(A._array.shape[:-2], LONG)
    values = eigh_cuda(A, "L", False)[0].abs() if hermitian else svd_cuda(A, False, False, None)[1]
    return (values > tolerance(A, values, atol, rtol).unsqueeze(-1)).sum(-1)


cuda_kernel(operator_named("linalg_matrix_rank.atol_rtol_tensor"))(rank)
cuda_kernel(operator_named("linalg_matrix_rank.atol_rtol_float"))(rank)


@cuda_kernel(operator_named("linalg_matrix_rank"))
def rank_by_tolerance(self, tol, hermitian):
    return rank(self, tol, 0.0, hermitian)


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
    r = r[..., :min(m, n), :].triu()
    if m >= n:
        x = at.linalg_solve_triangular(r, q.mT @ right, upper=True)
    else:
        x = q @ at.linalg_solve_triangular(r.mT, right, upper=False)
    residuals = ((right - self @ x) ** 2).sum(-2) if m > n else empty((0,), self._array.dtype)
    nothing = empty((0,), LONG), empty((0,), self._array.dtype)
    return return_types.linalg_lstsq(owned(x.squeeze(-1)) if vector else columns_of(x), residuals, *nothing)


# ----------------------------------------------------------------------------------------------- exponentials

def series(A):
    """The power series of exp up to A¹⁵ with six products: four polynomials in A, A² and A³, which are those
    in A⁴. For a norm up to 1/2, more terms would change nothing."""
    powers = [units(A._array.shape, A._array.dtype), A, A @ A]
    powers.append(powers[2] @ A)
    fourth, result = powers[2] @ powers[2], None
    for first in (12, 8, 4, 0):
        part = sum(power / math.factorial(first + k) for k, power in enumerate(powers))
        result = part if result is None else part + fourth @ result
    return result


@cuda_kernel(operator_named("linalg_matrix_exp"))
def matrix_exp_cuda(self):
    """exp(A) = exp(A / 2ˢ) squared s times. The host waits for the norm. (In PyTorch: polynomials of degree
    1 to 18, each matrix's by its norm.)"""
    check_square(self, "linalg.matrix_exp")
    check_floating(self, "linalg.matrix_exp", low_precision=True)
    if not self._array.size:
        return at.empty_like(self)
    norm = self.abs().sum(-2).max().item()
    if not math.isfinite(norm):
        return at.full_like(self, math.nan)
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if norm else 0
    result = series(self / 2.0 ** squarings)
    for _ in range(squarings):
        result = result @ result
    return result.contiguous()


# ------------------------------------------------------------------------------------------ cross products, …


@cuda_kernel(operator_named("linalg_cross"))
def cross_cuda(self, other, dim):
    shapes = self._array.shape, other._array.shape
    if len(shapes[0]) != len(shapes[1]):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, len(shapes[0]))
    if shapes[0][axis] != 3 or shapes[1][axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {shapes[0][axis]} "
                           f"and {shapes[1][axis]}")
    common, shape = result_type(self, other), broadcast_shape(*shapes)
    x, y = (t.to(common).expand(shape) for t in (self, other))
    return x.roll(-1, axis) * y.roll(-2, axis) - x.roll(-2, axis) * y.roll(-1, axis)


@cuda_kernel(operator_named("vdot"))
def vdot_cuda(self, other):
    check_dot(self, other, "vdot")
    return dot_cuda(at.conj_physical(self), other)


@cuda_kernel(operator_named("dist"))
def dist_cuda(self, other, p):
    difference = at.sub(self, other)
    check_norm_type(difference)
    return vector_norm_cuda(difference, p, None, False, None)
