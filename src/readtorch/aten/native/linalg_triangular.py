"""LU factors, triangular equations, pseudo-inverse, rank, least squares.

In PyTorch: `aten/src/ATen/native/{BatchLinearAlgebra,LinearAlgebra}.cpp`.
"""
import numpy as np

from ...c10.scalar_type import FLOAT
from ...c10.tensor_impl import dtype_of, host_array, wrap
from ..functions import at
from ..native_function import native_function
from . import return_types
from .copy import constant_beside
from .exact_out import exact_out, type_name
from .linalg_common import (check_floating, check_square, check_square_floating, each_matrix, infinite, lapack,
                            lu_factor_arrays, lu_solve_arrays, wrap_columns)
from .linalg_common import svd as lapack_svd
from .tensor_iterator import broadcast_shape, not_implemented

BOTH = "function, method"

# --------------------------------------------------------------------------------------- triangular equations

solve_triangular = native_function(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) "
    "-> Tensor",
    module="linalg", name="solve_triangular", out=True)


def solve_triangular_one(a, b, upper, unitriangular):
    if not b.size:
        return b.copy()
    return lapack("trtrs", a)(a, b, lower=not upper, unitdiag=unitriangular)[0]


def check_triangular(A, B, left):
    check_square(A, "linalg.solve_triangular")
    check_equation(A, B, left, "linalg.solve_triangular")
    if dtype_of(A).category < FLOAT or dtype_of(A).itemsize == 2:
        raise not_implemented("triangular_solve_cpu")(dtype_of(A))


def check_equation(A, B, left, name):
    """Raises RuntimeError unless AX = B, or XA = B, can be written down. In PyTorch: `linearSolveCheckInputs`."""
    if B._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    if A._array.shape[-1] != B._array.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation {equation} "
                           f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})")


@solve_triangular.kernel
def solve_triangular_cpu(self, B, upper, left, unitriangular):
    """X in A X = B; X A = B is solved as Aᵀ Xᵀ = Bᵀ. Batches broadcast."""
    check_triangular(self, B, left)
    a, b = self._array, B._array
    if not left:
        a, b, upper = a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper
    batch = broadcast_shape(b.shape[:-2], a.shape[:-2])
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    x, = each_matrix(lambda a, b: (solve_triangular_one(a, b, upper, unitriangular),), a, b)
    return wrap_columns(x) if left else wrap_columns(x.swapaxes(-1, -2))


@solve_triangular.backward
class LinalgSolveTriangularBackward0:
    def self__B(grad, self, result, upper, left, unitriangular, grad_input_mask):
        to_b = solve_triangular.call(self.mH, grad, not upper, left, unitriangular)
        to_a = None
        if grad_input_mask[0]:
            to_a = -(to_b.matmul(result.mH) if left else result.mH.matmul(to_b))
            edge = int(unitriangular)
            to_a = to_a.triu(edge) if upper else to_a.tril(-edge)
        return to_a, to_b


# --------------------------------------------------------------------------------------------------------- LU

lu_factor_ex = native_function(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
    "pivots, Tensor info)",
    module="linalg", name="lu_factor_ex", out=True)
lu_factor = native_function("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor "
                            "pivots)", module="linalg",
                            name="lu_factor", out=True)
linalg_lu = native_function("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor "
                     "U)", module="linalg", name="lu",
                     out=True)
linalg_lu_solve = native_function(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
    "Tensor", module="linalg",
    name="lu_solve", out=True)


def check_pivot(pivot, name):
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")


@lu_factor_ex.kernel
def lu_factor_ex_cpu(A, pivot, check_errors):
    check_floating(A, "torch.lu_factor")
    check_pivot(pivot, "linalg.lu_factor")
    packed, pivots, info = lu_factor_arrays(A._array)
    if check_errors:
        check_zero_pivot(info)
    return return_types.linalg_lu_factor_ex(wrap_columns(packed), wrap(pivots), wrap(np.asarray(info)))


def check_zero_pivot(info):
    from .linalg_common import first_failure
    failure = first_failure(np.asarray(info))
    if failure is not None:
        prefix, i = failure
        raise RuntimeError(f"torch.linalg.lu_factor: {prefix}U[{i},{i}] is zero and using it on lu_solve "
                           f"would result in a division "
                           "by zero. If you still want to perform the factorization, consider calling "
                           "linalg.lu(A, pivot) or "
                           "linalg.lu_factor_ex(A, pivot)")


@lu_factor.compose
def lu_factor_composite(A, pivot):
    packed, pivots, info = lu_factor_ex.call(A, pivot, False)
    check_zero_pivot(host_array(info))
    return return_types.linalg_lu_factor(packed, pivots)


def permutation_arrays(pivots, m):
    """The permutation matrices P for which A = P L U, from the row exchanges that LAPACK reports."""
    result = np.empty(pivots.shape[:-1] + (m, m))
    for index in np.ndindex(pivots.shape[:-1]):
        rows = np.arange(m)
        for i, p in enumerate(pivots[index] - 1):
            rows[[i, p]] = rows[[p, i]]
        result[index] = np.eye(m)[:, rows]
    return result


@linalg_lu.kernel
def lu_cpu(A, pivot):
    check_floating(A, "linalg.lu")
    check_pivot(pivot, "linalg.lu")
    packed, pivots, _ = lu_factor_arrays(A._array)
    m, n = packed.shape[-2:]
    k = min(m, n)
    lower = np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=packed.dtype)
    upper = np.triu(packed[..., :k, :])
    P = permutation_arrays(pivots, m).astype(packed.dtype)
    return return_types.linalg_lu(
        wrap(P), wrap(np.ascontiguousarray(lower)), wrap(np.ascontiguousarray(upper))
    )


def lu_backward_square(gL, gU, L, U):
    """L⁻ᴴ [tril(Lᴴ gL, -1) + triu(gU Uᴴ)] U⁻ᴴ for square factors."""
    inner = 0
    if gL is not None:
        inner = L.mH.matmul(gL).tril(-1)
    if gU is not None:
        inner = gU.matmul(U.mH).triu() + inner
    half = solve_triangular.call(L.mH, inner, True, True, True)
    return solve_triangular.call(U.mH, half, False, False, False)


def lu_backward(gL, gU, L, U):
    """A tall or wide matrix has a square block with square factors, and a rest which is linear in one of
    them."""
    m, k, n = L.shape[-2], L.shape[-1], U.shape[-1]
    if m > k:  # L₂ = A₂ U⁻¹
        if gL is None:
            return at.cat([lu_backward_square(None, gU, L[..., :k, :], U), at.zeros_like(L[..., k:, :])], -2)
        below = solve_triangular.call(U.mH, gL[..., k:, :], False, False, False)
        from_u = -L[..., k:, :].mH.matmul(below).triu()
        top = lu_backward_square(
            gL[..., :k, :],
            from_u.matmul(at.eye(k, dtype=U.dtype, device=U.device)) if gU is None else gU + from_u,
            L[..., :k, :],
            U,
        )
        return at.cat([top, below], -2)
    if n > k:  # U₂ = L⁻¹ A₂
        if gU is None:
            return at.cat([lu_backward_square(gL, None, L, U[..., :k]), at.zeros_like(U[..., k:])], -1)
        beside = solve_triangular.call(L.mH, gU[..., k:], True, True, True)
        from_l = -beside.matmul(U[..., k:].mH).tril(-1)
        left = lu_backward_square(from_l if gL is None else gL + from_l, gU[..., :k], L, U[..., :k])
        return at.cat([left, beside], -1)
    return lu_backward_square(gL, gU, L, U)


@linalg_lu.backward
class LinalgLuBackward0:
    output_differentiability = [False, True, True]

    def A(grads, P, L, U):
        return P.matmul(lu_backward(grads[0], grads[1], L, U))


@lu_factor_ex.backward
class LinalgLuFactorExBackward0:
    output_differentiability = [True, False, False]

    def A(grad, LU, pivots):
        m, n = LU.shape[-2:]
        k = min(m, n)
        L = LU[..., :k].tril(-1) + at.eye(m, k, dtype=LU.dtype, device=LU.device)
        U = LU[..., :k, :].triu()
        P = constant_beside(LU, permutation_arrays(host_array(pivots), m).astype(LU._array.dtype))
        return P.matmul(lu_backward(grad[..., :k].tril(-1), grad[..., :k, :].triu(), L, U))


def check_lu_solve(LU, pivots, B, left):
    """Raises RuntimeError for what is no matrix with pivots of its size, or does not fit B."""
    if dtype_of(LU) is not dtype_of(B):
        raise RuntimeError(f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {type_name(LU)} "
                           f"and B of type {type_name(B)} instead")
    if pivots._array.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve")
    check_equation(LU, B, left, "linalg.lu_solve")
    if LU._array.shape[-1] != (pivots._array.shape or (0,))[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if LU._array.shape[:-2] != pivots._array.shape[:-1]:
        raise RuntimeError(f"linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots._array.shape)} instead")
    check_floating(LU, "torch.linalg.lu_solve", low_precision=True)


def check_rows(pivots, rows):
    """Raises RuntimeError for a pivot that names no row: LAPACK would exchange what lies outside."""
    if pivots.size and pivots.min() < 1:
        raise RuntimeError("Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of "
                           "lu_factor?")
    if pivots.size and pivots.max() > rows:
        raise RuntimeError("Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the "
                           "result of lu_factor?")


@linalg_lu_solve.kernel
def lu_solve_cpu(LU, pivots, B, left, adjoint):
    """XA = B is solved as Aᴴ Xᴴ = Bᴴ."""
    check_lu_solve(LU, pivots, B, left)
    broadcast_shape(B._array.shape[:-2], LU._array.shape[:-2])
    if dtype_of(LU).itemsize == 2:
        raise not_implemented("linalg.lu_solve_cpu")(dtype_of(LU))
    if B._array.size:
        check_rows(pivots._array, LU._array.shape[-1])
    if left:
        return wrap_columns(lu_solve_arrays(LU._array, pivots._array, B._array, adjoint))
    b = B._array.conj().swapaxes(-1, -2)
    x = lu_solve_arrays(LU._array, pivots._array, b, not adjoint).conj().swapaxes(-1, -2)
    return wrap(np.ascontiguousarray(x))


@linalg_lu_solve.backward
class LinalgLuSolveBackward0:
    def LU__B(grad, LU, pivots, result, left, adjoint, grad_input_mask):
        """B's gradient solves the adjoint equation; A's is minus a product, and is handed on to A's
        factors."""
        to_b = linalg_lu_solve.call(LU, pivots, grad, left, not adjoint)
        if not grad_input_mask[0]:
            return None, to_b
        a, b = (to_b, result.mH) if left else (result.mH, to_b)
        to_a = -(b.mH.matmul(a.mH) if adjoint else a.matmul(b))
        n = LU.shape[-1]
        P = constant_beside(LU, permutation_arrays(host_array(pivots), n).astype(LU._array.dtype))
        L, U = LU.tril(-1) + at.eye(n, dtype=LU.dtype, device=LU.device), LU.triu()
        moved = P.mT.matmul(to_a)
        return moved.matmul(U.mH).tril(-1) + L.mH.matmul(moved).triu(), to_b


# ------------------------------------------------------------------------------------ pseudo-inverse and rank

pinv_tensor = native_function(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False) -> Tensor",
    module="linalg", name="pinv", out=True)
pinv_float = native_function(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
    "-> Tensor",
    module="linalg", name="pinv", out=True)
pinv_rcond = native_function("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> "
                             "Tensor", module="linalg",
                             name="pinv", out=True)
pinverse = native_function("pinverse(Tensor self, float rcond=1e-15) -> Tensor", BOTH)


def tolerance(x, values, atol, rtol):
    """Singular values up to this count as zero: max(atol, rtol · the greatest), by default eps · max(m, n) ·
    it."""
    greatest = values.max(-1, initial=0)
    atol = 0 if atol is None else atol
    if rtol is None:
        eps = np.finfo(x.dtype).eps * max(x.shape[-2:])
        rtol = np.where(np.asarray(atol) > 0, 0, eps)
    return np.maximum(np.asarray(atol), np.asarray(rtol) * greatest)


def as_array(t):
    return None if t is None else t._array


@pinv_tensor.kernel
def pinv_cpu(self, atol, rtol, hermitian):
    check_floating(self, "linalg.pinv")
    x = self._array
    if not x.size:
        return wrap(np.empty(x.shape[:-2] + (x.shape[-1], x.shape[-2]), x.dtype))
    if hermitian:
        values, vectors = np.linalg.eigh(x)
        U, S, Vh = vectors, values, vectors.conj().swapaxes(-1, -2)
    else:
        U, S, Vh = lapack_svd(x, full_matrices=False)
    limit = tolerance(x, np.abs(S), as_array(atol), as_array(rtol))
    inverse = np.where(np.abs(S) > limit[..., None], 1 / S, 0).astype(S.dtype)
    result = (Vh.conj().swapaxes(-1, -2) * inverse[..., None, :]) @ U.conj().swapaxes(-1, -2)
    return wrap(np.ascontiguousarray(result.astype(x.dtype, copy=False)))


@pinv_tensor.backward
class LinalgPinvBackward0:
    def self(grad, result, self):
        """With P = A⁺: -Pᴴ G Pᴴ, and two terms for the spaces that A and P leave out."""
        P, G = result, grad
        A = self
        through = -P.mH.matmul(G).matmul(P.mH)
        left = G.mH.matmul(P).matmul(P.mH)
        right = P.mH.matmul(P).matmul(G.mH)
        return through + left - A.matmul(P.matmul(left)) + right - right.matmul(P).matmul(A)


def number(value, like):
    return None if value is None else wrap(np.asarray(value, dtype_of(like).to_real().numpy))


@pinv_float.compose
def pinv_float_composite(self, atol, rtol, hermitian):
    return pinv_tensor.call(self, number(atol, self), number(rtol, self), hermitian)


@pinv_rcond.compose
def pinv_rcond_composite(self, rcond, hermitian):
    return pinv_tensor.call(self, number(0.0, self), number(rcond, self), hermitian)


@pinverse.compose
def pinverse_composite(self, rcond):
    return pinv_rcond_composite(self, rcond, False)


rank_tensor = native_function(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False) -> Tensor",
    module="linalg", name="matrix_rank", out=True)
rank_float = native_function(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
    "hermitian=False) -> Tensor",
    module="linalg", name="matrix_rank", out=True)
rank_tol = native_function("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> "
                           "Tensor", module="linalg",
                           name="matrix_rank", out=True)


@rank_float.kernel
def matrix_rank_cpu(self, atol, rtol, hermitian):
    check_floating(self, "linalg.matrix_rank")
    x = self._array
    if not x.size:
        return wrap(np.zeros(x.shape[:-2], np.int64))
    values = np.abs(np.linalg.eigvalsh(x)) if hermitian else lapack_svd(x, compute_uv=False)
    limit = tolerance(x, values, atol, rtol)
    return wrap(np.asarray((values > limit[..., None]).sum(-1), np.int64))


@rank_tensor.kernel
def matrix_rank_tensor_cpu(input, atol, rtol, hermitian):
    return matrix_rank_cpu(input, as_array(atol), as_array(rtol), hermitian)


@rank_tol.kernel
def matrix_rank_tol_cpu(self, tol, hermitian):
    return matrix_rank_cpu(self, tol, 0.0, hermitian)


# ---------------------------------------------------------------------------------------------- least squares

lstsq = native_function(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
    "residuals, "
    "Tensor rank, Tensor singular_values)", module="linalg", name="lstsq", out=True)


def lstsq_one(a, b, rcond):
    """(solution, squared residuals of a full-rank tall system, rank, singular values)."""
    a_endless, b_endless = infinite(a), infinite(b)  # see Note [ Infinite numbers in LAPACK ]
    solution, _, rank, values = np.linalg.lstsq(np.where(a_endless, 0, a), np.where(b_endless, 0, b), rcond)
    if a_endless:
        values[:] = np.nan
    if a_endless or b_endless:
        solution[:] = np.nan
    return solution, np.int64(rank), values


@lstsq.kernel
def lstsq_cpu(self, b, rcond, driver):
    """PyTorch's drivers differ in what else they report: `gelsy` (default) no singular values, `gels` no rank
    either."""
    check_floating(self, "torch.linalg.lstsq", "input")
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, "
                           "gelss)")
    a, y = self._array, b._array
    vector = y.ndim == 1 or (a.ndim - 1 == y.ndim and y.shape == a.shape[:-1])
    y = y[..., None] if vector else y
    batch = broadcast_shape(a.shape[:-2], y.shape[:-2])
    a, y = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(y, batch + y.shape[-2:])
    eps = np.finfo(a.dtype).eps * max(a.shape[-2:]) if rcond is None else rcond
    solution, rank, values = each_matrix(lambda a, y: lstsq_one(a, y, eps), a, y)
    m, n = a.shape[-2:]
    full = m > n and driver != "gelsy" and bool((rank == n).all())
    residuals = (np.abs(y - a @ solution) ** 2).sum(-2) if full else np.empty(0, values.dtype)
    solution = wrap(solution[..., 0]) if vector else wrap_columns(solution)
    return return_types.linalg_lstsq(
        solution,
        wrap(residuals),
        wrap(np.empty(0, np.int64)) if driver == "gels" else wrap(np.asarray(rank)),
        wrap(values if driver in ("gelsd", "gelss") else np.empty(0, values.dtype)),
    )


@lstsq.backward
class LinalgLstsqBackward0:
    output_differentiability = [True, True, False, False]

    def self__b(grads, self, b, solution):
        """Through solution = A⁺ b, and residuals = |A solution - b|²."""
        to_x, to_r = grads
        vector = b.dim() == 1 or (self.dim() - 1 == b.dim() and b.shape == self.shape[:-1])
        y, x = (b.unsqueeze(-1), solution.unsqueeze(-1)) if vector else (b, solution)
        to_a = to_b = 0
        if to_x is not None:
            g = to_x.unsqueeze(-1) if vector else to_x
            P = pinv_float_composite(self, None, None, False)
            to_b = P.mH.matmul(g)
            to_a = LinalgPinvBackward0.self(g.matmul(y.mH), P, self)
        if to_r is not None and to_r.numel():
            error = (self.matmul(x) - y) * (2 * to_r.unsqueeze(-2))
            to_a, to_b = to_a + error.matmul(x.mH), to_b - error
        return to_a, to_b.squeeze(-1) if vector else to_b


exact_out(solve_triangular)
exact_out(lu_factor_ex)
exact_out(lu_factor)
exact_out(linalg_lu)
exact_out(linalg_lu_solve)
exact_out(pinv_tensor)
exact_out(pinv_float)
exact_out(pinv_rcond)
exact_out(rank_tensor)
exact_out(rank_float)
exact_out(rank_tol)
exact_out(lstsq, row_major=True)
