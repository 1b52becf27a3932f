"""Factorizations: Cholesky, QR, SVD, eigenvalues.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in
`torch/csrc/autograd/FunctionsManual.cpp`.
"""
import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from ..functions import at
from ..native_function import native_function
from . import return_types
from .exact_out import exact_out
from .linalg_common import (
    check_floating,
    check_info,
    check_square_floating,
    describe_indefinite,
    each_matrix,
    lapack,
    wrap_columns,
)
from .linalg_common import svd as lapack_svd
from .tensor_iterator import conj, not_implemented

BOTH = "function, method"


def offdiagonal_difference(values):
    """E[i, j] = values[j] - values[i], with 1 on the diagonal so that it may divide."""
    difference = values.unsqueeze(-2) - values.unsqueeze(-1)
    return difference + at.eye(values.shape[-1], dtype=values.dtype, device=values.device)


# --------------------------------------------------------------------------------------------------- Cholesky

cholesky_ex = native_function(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor "
    "info)",
    module="linalg", name="cholesky_ex", out=True)
linalg_cholesky = native_function("linalg_cholesky(Tensor self, *, bool upper=False) -> "
                                  "Tensor", module="linalg",
                                  name="cholesky", out=True)
cholesky = native_function("cholesky(Tensor self, bool upper=False) -> Tensor", BOTH, out=True)


def cholesky_one(a, upper):
    if not a.size:
        return a.copy(), np.int32(0)
    factor, info = lapack("potrf", a)(a, lower=not upper, clean=True)
    return factor, np.int32(info)


def cholesky_arrays(self, upper, name):
    check_square_floating(self, name)
    factor, info = each_matrix(lambda a: cholesky_one(a, upper), self._array)
    return wrap_columns(factor), wrap(info)


@cholesky_ex.kernel
def cholesky_ex_cpu(self, upper, check_errors):
    factor, info = cholesky_arrays(self, upper, "linalg.cholesky")
    if check_errors:
        check_info(info, "linalg.cholesky_ex", describe_indefinite)
    return return_types.linalg_cholesky_ex(factor, info)


def cholesky_backward(grad, upper, factor):
    """With A = L Lᴴ: L⁻ᴴ Φ(Lᴴ grad) L⁻¹, where Φ keeps the lower triangle, halves its diagonal and makes the
    result Hermitian (I. Murray: Differentiation of the Cholesky decomposition, 2016)."""
    L, g = (factor.mH, grad.mH) if upper else (factor, grad)
    phi = L.mH.matmul(g).tril()
    phi = phi + phi.tril(-1).mH
    half = at.linalg_solve_triangular(L.mH, phi, upper=True)
    result = at.linalg_solve_triangular(L, half, upper=False, left=False)
    return result / 2


@cholesky_ex.backward
class LinalgCholeskyExBackward0:
    output_differentiability = [True, False]

    def self(grad, upper, L):
        return cholesky_backward(grad, upper, L)


@linalg_cholesky.compose
def linalg_cholesky_composite(self, upper):
    factor, info = cholesky_ex.call(self, upper, False)
    check_info(info, "linalg.cholesky", describe_indefinite)
    return factor


@cholesky.kernel
def cholesky_cpu(self, upper):
    factor, info = cholesky_arrays(self, upper, "cholesky")
    check_info(info, "cholesky", describe_indefinite)
    return factor


@cholesky.backward
class CholeskyBackward0:
    def self(grad, upper, result):
        return cholesky_backward(grad, upper, result)


# --------------------------------------------------------------------------------------------------------- QR

linalg_qr = native_function("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor "
                            "R)", module="linalg",
                            name="qr", out=True)
qr = native_function("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", BOTH, out=True)


@linalg_qr.kernel
def qr_cpu(A, mode):
    check_floating(A, "linalg.qr", low_precision=True)
    if dtype_of(A).itemsize == 2:
        raise not_implemented("geqrf_cpu")(dtype_of(A))
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
                           f"'r', or "
                           "'complete'")
    if mode == "r":
        return return_types.linalg_qr(
            wrap(np.empty(0, A._array.dtype)), wrap_columns(np.linalg.qr(A._array, "r"))
        )
    Q, R = np.linalg.qr(A._array, mode)
    return return_types.linalg_qr(wrap_columns(Q), wrap_columns(R))


def hermitian_from_upper(x):
    """The Hermitian matrix whose upper triangle is x's; its diagonal is real."""
    upper = x.triu()
    doubled = upper + upper.mH
    return doubled - at.diag_embed(doubled.diagonal(0, -2, -1) / 2)


def qr_backward(gQ, gR, Q, R):
    """For A with at least as many rows as columns: [gQ + Q H] R⁻ᴴ, H Hermitian with the upper triangle of
    gR Rᴴ - Qᴴ gQ (S. Walter, L. Lehmann: Algorithmic differentiation of linear algebra functions, 2010)."""
    inner = None
    if gR is not None:
        inner = gR.matmul(R.mH)
    if gQ is not None:
        inner = -Q.mH.matmul(gQ) if inner is None else inner - Q.mH.matmul(gQ)
    middle = Q.matmul(hermitian_from_upper(inner))
    middle = middle if gQ is None else middle + gQ
    return at.linalg_solve_triangular(R.mH, middle, upper=False, left=False)


@linalg_qr.backward
class LinalgQrBackward0:
    def A(grads, A, Q, R, mode):
        """A wide matrix is [A₁ A₂] = Q [R₁ R₂] with A₁ square and R₂ = Qᴴ A₂: first A₂'s share, then A₁'s."""
        gQ, gR = grads
        m, n = R.shape[-2], R.shape[-1]
        if mode == "r":
            raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when "
                               "mode='r'. Please use "
                               "linalg.qr(A, mode='reduced') if you are going to require gradients.")
        if mode == "complete" and m > n:
            raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > "
                               "ncols.")
        if m >= n:
            return qr_backward(gQ, gR, Q, R)
        if gR is None:
            left = qr_backward(gQ, None, Q, R[..., :m])
            return at.cat([left, at.zeros_like(A[..., m:])], -1)
        right = Q.matmul(gR[..., m:])
        through_q = A[..., m:].matmul(gR[..., m:].mH)
        left = qr_backward(through_q if gQ is None else gQ + through_q, gR[..., :m], Q, R[..., :m])
        return at.cat([left, right], -1)


@qr.compose
def qr_composite(self, some):
    return return_types.qr(*linalg_qr.call(self, "reduced" if some else "complete"))


# -------------------------------------------------------------------------------------------------------- SVD

svd_full = native_function(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor "
    "U, Tensor S, Tensor Vh)")
linalg_svd = native_function(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    module="linalg", name="svd", out=True)
svdvals = native_function("linalg_svdvals(Tensor A, *, str? driver=None) -> "
                          "Tensor", module="linalg", name="svdvals",
                          out=True)
svd = native_function("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor "
                      "V)", BOTH,
                      out=True)


@svd_full.kernel
def svd_cpu(A, full_matrices, compute_uv, driver):
    check_floating(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs "
                           "with cuSOLVER "
                           "backend.")
    x = A._array
    if not compute_uv:
        nothing = wrap(np.empty(0, x.dtype))
        return return_types.linalg_svd(nothing, wrap(lapack_svd(x, compute_uv=False)), nothing)
    U, S, Vh = lapack_svd(x, full_matrices)
    return return_types.linalg_svd(wrap_columns(U), wrap(S), wrap_columns(Vh))


def skew(x):
    return x - x.mH


def check_gauge(diagonal, name, vectors):
    """A loss must not depend on the phase of a complex vector, which is arbitrary: raises RuntimeError if it
    does."""
    turning = np.abs(diagonal._array.imag)
    if turning.size and turning.max() > 1e-2 + 1e-2 * np.abs(diagonal._array.real).max():
        raise RuntimeError(f"{name}: The {vectors} in the complex case are specified up to multiplication by "
                           f"e^{{i phi}}. The "
                           "specified loss function depends on this quantity, so it is ill-defined.")


def svd_backward(gU, gS, gVh, U, S, Vh):
    """In the basis of the singular vectors: gS on the diagonal, beside it what turns the vectors within their
    span;
    outside the span what moves them out of it (J. Townsend: Differentiating the SVD, 2016)."""
    if gU is None and gVh is None:
        return U.matmul(gS.unsqueeze(-1) * Vh) if gS is not None else None
    m, k, n = U.shape[-2], S.shape[-1], Vh.shape[-1]
    UhgU = skew(U.mH.matmul(gU)) if gU is not None else None
    VhgV = skew(Vh.matmul(gVh.mH)) if gVh is not None else None
    if U.is_complex():
        turns = [t.diagonal(0, -2, -1) for t in (UhgU, VhgV) if t is not None]
        check_gauge(sum(turns[1:], turns[0]), "svd_backward", "singular vectors")
    E = offdiagonal_difference(S * S)
    inner = 0
    if UhgU is not None:
        inner = (UhgU / E) * S.unsqueeze(-2)
    if VhgV is not None:
        inner = inner + S.unsqueeze(-1) * (VhgV / E)
    inner = inner - at.diag_embed(inner.diagonal(0, -2, -1))
    if gS is not None:
        inner = inner + at.diag_embed(gS)
    if U.is_complex() and UhgU is not None:
        inner = inner + at.diag_embed(UhgU.diagonal(0, -2, -1) / (2 * S))
    result = U.matmul(inner).matmul(Vh)
    if gU is not None and m > k:
        result = result + ((gU - U.matmul(U.mH.matmul(gU))) / S.unsqueeze(-2)).matmul(Vh)
    if gVh is not None and n > k:
        result = result + U.matmul((gVh - gVh.matmul(Vh.mH).matmul(Vh)) / S.unsqueeze(-1))
    return result


@svd_full.backward
class LinalgSvdBackward0:
    def A(grads, full_matrices, U, S, Vh):
        """Vectors beyond the first min(m, n) have no gradient."""
        gU, gS, gVh = grads
        if full_matrices:
            k = S.shape[-1]
            U, Vh = U[..., :k], Vh[..., :k, :]
            gU = None if gU is None else gU[..., :k]
            gVh = None if gVh is None else gVh[..., :k, :]
        return svd_backward(gU, gS, gVh, U, S, Vh)


@linalg_svd.compose
def linalg_svd_composite(A, full_matrices, driver):
    return return_types.linalg_svd(*svd_full.call(A, full_matrices, True, driver))


@svdvals.compose
def svdvals_composite(A, driver):
    """The singular values alone; the vectors are computed only if backward will want them."""
    check_floating(A, "linalg.svd")
    return svd_full.call(A, False, A.requires_grad, driver)[1]


@svd.compose
def svd_composite(self, some, compute_uv):
    check_floating(self, "linalg.svd")
    if not compute_uv:
        m, n = self.shape[-2:]
        batch = self.shape[:-2]
        empty = [at.zeros((*batch, size, size), dtype=self.dtype, device=self.device) for size in (m, n)]
        return return_types.svd(empty[0], svdvals_composite(self, None), empty[1])
    U, S, Vh = svd_full.call(self, not some, True, None)
    return return_types.svd(U, S, Vh.mH)


# ------------------------------------------------------------------------------------------------ eigenvalues

eigh_full = native_function(
    "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)")
eigh = native_function("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
                       module="linalg", name="eigh", out=True)
eigvalsh = native_function("linalg_eigvalsh(Tensor self, str UPLO='L') -> "
                           "Tensor", module="linalg", name="eigvalsh",
                           out=True)
eig = native_function("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", module="linalg",
                      name="eig", out=True)
eigvals = native_function("linalg_eigvals(Tensor self) -> Tensor", module="linalg", name="eigvals", out=True)


@eigh_full.kernel
def eigh_cpu(A, UPLO, compute_v):
    check_square_floating(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if not compute_v:
        return return_types.linalg_eigh(
            wrap(np.linalg.eigvalsh(A._array, UPLO.upper())), wrap(np.empty(0, A._array.dtype))
        )
    values, vectors = np.linalg.eigh(A._array, UPLO.upper())
    return return_types.linalg_eigh(wrap(values), wrap_columns(vectors))


@eigh_full.backward
class LinalgEighBackward0:
    def A(grads, eigenvalues, eigenvectors):
        """V (diag(gL) + skew(Vᴴ gV) / 2E) Vᴴ, E the differences of the eigenvalues: Hermitian, as A is."""
        gL, gV = grads
        V = eigenvectors
        if gV is None:
            return (V * gL.unsqueeze(-2)).matmul(V.mH) if gL is not None else None
        turn = V.mH.matmul(gV)
        if V.is_complex():
            check_gauge(turn.diagonal(0, -2, -1), "linalg_eigh_backward", "eigenvectors")
        inner = skew(turn) / 2 / offdiagonal_difference(eigenvalues)
        inner = inner - at.diag_embed(inner.diagonal(0, -2, -1))
        if gL is not None:
            inner = inner + at.diag_embed(gL)
        return V.matmul(inner.matmul(V.mH))


@eigh.compose
def eigh_composite(self, UPLO):
    return return_types.linalg_eigh(*eigh_full.call(self, UPLO, True))


@eigvalsh.compose
def eigvalsh_composite(self, UPLO):
    return eigh_full.call(self, UPLO, self.requires_grad)[0]


@eig.kernel
def eig_cpu(self):
    """Always complex, as a real matrix may have complex eigenvalues."""
    check_square_floating(self, "linalg.eig")
    x = self._array.astype(dtype_of(self).to_complex().numpy)
    values, vectors = np.linalg.eig(self._array)
    return return_types.linalg_eig(wrap(values.astype(x.dtype)), wrap_columns(vectors.astype(x.dtype)))


@eig.backward
class LinalgEigBackward0:
    def self(grads, self_scalar_type, eigenvalues, eigenvectors):
        """As for eigh, but V⁻ᴴ in the place of V; and vectors of length 1 cannot grow: their gradient's part
        along
        themselves is taken away."""
        gL, gV = grads
        V = eigenvectors
        if gV is None:
            inner = None if gL is None else gL.unsqueeze(-1) * V.mH
        else:
            turn = V.mH.matmul(gV)
            along = at.real(turn.diagonal(0, -2, -1))
            inner = turn - V.mH.matmul(V * along.unsqueeze(-2))
            inner = inner / offdiagonal_difference(conj(eigenvalues))
            inner = inner - at.diag_embed(inner.diagonal(0, -2, -1))
            inner = (inner if gL is None else inner + at.diag_embed(gL)).matmul(V.mH)
        if inner is None:
            return None
        result = at.linalg_solve(V.mH, inner)
        return result if self_scalar_type.is_complex else at.real(result)


@eigvals.compose
def eigvals_composite(self):
    return eig.call(self)[0]


exact_out(cholesky_ex)
exact_out(linalg_cholesky)
exact_out(cholesky, row_major=True)
exact_out(linalg_qr)
exact_out(qr)
exact_out(linalg_svd)
exact_out(svdvals)
exact_out(svd)
exact_out(eigh)
exact_out(eigvalsh)
exact_out(eig, row_major=True)
exact_out(eigvals)
