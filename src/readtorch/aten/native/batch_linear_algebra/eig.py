"""Eigenvalues and eigenvectors of Hermitian and of general matrices.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_square_floating, columns, may_require_gradient
from readtorch.aten.native.tensor_iterator import conj
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of

from .svd import check_gauge, offdiagonal_difference, skew

# ------------------------------------------------------------------------------------------------ eigenvalues

eigh_full = native_function(
    "_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)"
)
eigh = native_function(
    "linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    module="linalg",
    name="eigh",
    out=exact_out(),
)
eigvalsh = native_function(
    "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor", module="linalg", name="eigvalsh", out=exact_out()
)
eig = native_function(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    module="linalg",
    name="eig",
    out=exact_out(row_major=True),
)
eigvals = native_function("linalg_eigvals(Tensor self) -> Tensor", module="linalg", name="eigvals", out=exact_out())


@eigh_full.meta
def eigh_meta(A, UPLO, compute_v):
    check_square_floating(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    values = TensorMeta(A._array.shape[:-1], dtype_of(A).to_real())
    return values, columns(A) if compute_v else TensorMeta((0,), dtype_of(A))


@eigh_full.impl()
def eigh_cpu(A, UPLO, compute_v, eigenvalues, eigenvectors):
    if compute_v:
        eigenvalues._array[...], eigenvectors._array[...] = np.linalg.eigh(A._array, UPLO.upper())
    else:
        eigenvalues._array[...] = np.linalg.eigvalsh(A._array, UPLO.upper())


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

    def eigenvalues__eigenvectors(A_t, eigenvalues, eigenvectors):
        V = eigenvectors
        turn = V.mH.matmul(A_t.matmul(V))
        diagonal = turn.diagonal(0, -2, -1)
        inner = (turn - at.diag_embed(diagonal)) / offdiagonal_difference(eigenvalues)
        return at.real(diagonal) if turn.dtype.is_complex else diagonal, V.matmul(inner)


@eigh.compose
def eigh_composite(self, UPLO):
    return return_types.linalg_eigh(*eigh_full.call(self, UPLO, True))


@eigvalsh.compose
def eigvalsh_composite(self, UPLO):
    return eigh_full.call(self, UPLO, may_require_gradient(self))[0]


@eig.meta
def eig_meta(self):
    """Always complex, as a real matrix may have complex eigenvalues."""
    check_square_floating(self, "linalg.eig")
    dtype = dtype_of(self).to_complex()
    return TensorMeta(self._array.shape[:-1], dtype), columns(self, dtype=dtype)


@eig.impl()
def eig_cpu(self, eigenvalues, eigenvectors):
    eigenvalues._array[...], eigenvectors._array[...] = np.linalg.eig(self._array)


@eig.backward
class LinalgEigBackward0:
    def self(grads, self_scalar_type, eigenvalues, eigenvectors):
        """As for eigh, but V⁻ᴴ in the place of V; and vectors of length 1 cannot grow: their gradient's part along
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

    def eigenvalues__eigenvectors(self_t, eigenvalues, eigenvectors):
        """The vectors keep their length: what a change has along its own vector is taken away."""
        V = eigenvectors
        turn = at.linalg_solve(V, self_t.to(V.dtype).matmul(V))
        diagonal = turn.diagonal(0, -2, -1)
        change = V.matmul((turn - at.diag_embed(diagonal)) / offdiagonal_difference(eigenvalues))
        along = at.real(V.mH.matmul(change).diagonal(0, -2, -1))
        return diagonal, change - V * along.unsqueeze(-2)


@eigvals.compose
def eigvals_composite(self):
    return eig.call(self)[0]
