"""Singular value decomposition.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_floating, columns, may_require_gradient
from readtorch.aten.native.linear_algebra_utils import svd as lapack_svd
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import META
from readtorch.c10.tensor_impl import dtype_of, host_array


def offdiagonal_difference(values):
    """E[i, j] = values[j] - values[i], with 1 on the diagonal so that it may divide."""
    difference = values.unsqueeze(-2) - values.unsqueeze(-1)
    return difference + at.eye(values.shape[-1], dtype=values.dtype, device=values.device)


# -------------------------------------------------------------------------------------------------------- SVD

svd_full = native_function(
    "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor "
    "U, Tensor S, Tensor Vh)"
)
linalg_svd = native_function(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
    module="linalg",
    name="svd",
    out=exact_out(),
)
svdvals = native_function(
    "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", module="linalg", name="svdvals", out=exact_out()
)
svd = native_function(
    "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)", BOTH, out=exact_out()
)


@svd_full.meta
def svd_meta(A, full_matrices, compute_uv, driver):
    check_floating(A, "linalg.svd")
    *batch, m, n = A._array.shape
    k = min(m, n)
    values = TensorMeta((*batch, k), dtype_of(A).to_real())
    if not compute_uv:
        nothing = TensorMeta((0,), dtype_of(A))
        return nothing, values, nothing
    rows, across = (m, n) if full_matrices else (k, k)
    return columns(A, (*batch, m, rows)), values, columns(A, (*batch, across, n))


@svd_full.impl()
def svd_cpu(A, full_matrices, compute_uv, driver, U, S, Vh):
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    if compute_uv:
        U._array[...], S._array[...], Vh._array[...] = lapack_svd(A._array, full_matrices)
    else:
        S._array[...] = lapack_svd(A._array, compute_uv=False)


def skew(x):
    return x - x.mH


def check_gauge(diagonal, name, vectors):
    """A loss must not depend on the phase of a complex vector, which is arbitrary: raises RuntimeError if it does."""
    if diagonal._keys & META:
        return
    numbers = host_array(diagonal)
    turning = np.abs(numbers.imag)
    if turning.size and turning.max() > 1e-2 + 1e-2 * np.abs(numbers.real).max():
        raise RuntimeError(
            f"{name}: The {vectors} in the complex case are specified up to multiplication by e^{{i "
            "phi}. The specified loss function depends on this quantity, so it is ill-defined."
        )


def svd_backward(gU, gS, gVh, U, S, Vh):
    """In the basis of the singular vectors: gS on the diagonal, beside it the rotation of the vectors within their
    span, outside the span their motion out of it (J. Townsend: Differentiating the SVD, 2016)."""
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


def svd_jvp(A_t, full_matrices, U, S, Vh):
    """The changes of U, S and Vh. Vectors beyond the first min(m, n) get zeros."""
    m, n, k = A_t.shape[-2], A_t.shape[-1], S.shape[-1]
    dU, dS, dVh = thin_svd_jvp(A_t, U[..., :k], S, Vh[..., :k, :])
    if full_matrices and m > k:
        dU = at.cat([dU, at.zeros_like(U[..., k:])], -1)
    if full_matrices and n > k:
        dVh = at.cat([dVh, at.zeros_like(Vh[..., k:, :])], -2)
    return dU, dS, dVh


def thin_svd_jvp(A_t, U, S, Vh):
    """Uᴴ dA V = Uᴴ dU S + dS + S dVh V, where the first and the last are skew times S: their parts follow from the sum and its
    adjoint. What is left of dA, outside U's columns and Vh's rows, turns these."""
    along_U, along_V = U.mH.matmul(A_t), A_t.matmul(Vh.mH)
    inner = along_U.matmul(Vh.mH)
    diagonal = inner.diagonal(0, -2, -1)
    dS = at.real(diagonal) if inner.dtype.is_complex else diagonal
    E = offdiagonal_difference(S * S)
    offdiagonal = inner - at.diag_embed(dS.to(inner.dtype))
    right, left = offdiagonal * S.unsqueeze(-2), S.unsqueeze(-1) * offdiagonal
    turn_U, turn_V = (right + right.mH) / E, (left + left.mH) / E
    if inner.dtype.is_complex:  # the phases, of which dA tells only the difference: half for each
        phase = at.diag_embed(offdiagonal.diagonal(0, -2, -1) / (2 * S))
        turn_U, turn_V = turn_U + phase, turn_V - phase
    dU, dVh = U.matmul(turn_U), turn_V.mH.matmul(Vh)
    if U.shape[-2] > U.shape[-1]:
        dU = dU + (along_V - U.matmul(inner)) / S.unsqueeze(-2)
    if Vh.shape[-1] > Vh.shape[-2]:
        dVh = dVh + (along_U - inner.matmul(Vh)) / S.unsqueeze(-1)
    return dU, dS, dVh


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

    def U__S__Vh(A_t, full_matrices, U, S, Vh):
        return svd_jvp(A_t, full_matrices, U, S, Vh)


@linalg_svd.compose
def linalg_svd_composite(A, full_matrices, driver):
    return return_types.linalg_svd(*svd_full.call(A, full_matrices, True, driver))


@svdvals.compose
def svdvals_composite(A, driver):
    """The singular values alone; the vectors are computed only if backward will want them."""
    check_floating(A, "linalg.svd")
    return svd_full.call(A, False, may_require_gradient(A), driver)[1]


@svd.compose
def svd_composite(self, some, compute_uv):
    check_floating(self, "linalg.svd")
    if not compute_uv:
        m, n = self.shape[-2:]
        batch = self.shape[:-2]
        empty = [at.zeros((*batch, size, size), dtype=self.dtype, device=self.device) for size in (m, n)]
        return return_types.svd(empty[0], svdvals_composite(self, None), empty[1].mH)
    U, S, Vh = svd_full.call(self, not some, True, None)
    return return_types.svd(U, S, Vh.mH)
