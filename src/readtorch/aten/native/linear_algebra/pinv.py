"""Pseudo-inverse and rank, which compare singular values with a tolerance.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`; `pinv_backward` in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_floating
from readtorch.aten.native.linear_algebra_utils import svd as lapack_svd
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import int64
from readtorch.c10.tensor_impl import dtype_of, wrap

# ------------------------------------------------------------------------------------ pseudo-inverse and rank

pinv_tensor = native_function(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
    "hermitian=False) -> Tensor",
    module="linalg",
    name="pinv",
    out=exact_out(),
)
pinv_float = native_function(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    module="linalg",
    name="pinv",
    out=exact_out(),
)
pinv_rcond = native_function(
    "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    module="linalg",
    name="pinv",
    out=exact_out(),
)
pinverse = native_function("pinverse(Tensor self, float rcond=1e-15) -> Tensor", BOTH)


def tolerance(x, values, atol, rtol):
    """Singular values up to this count as zero: max(atol, rtol · the largest), where rtol is eps · max(m, n) by
    default."""
    largest = values.max(-1, initial=0)
    atol = 0 if atol is None else atol
    if rtol is None:
        eps = np.finfo(x.dtype).eps * max(x.shape[-2:])
        rtol = np.where(np.asarray(atol) > 0, 0, eps)
    return np.maximum(np.asarray(atol), np.asarray(rtol) * largest)


def as_array(t):
    return None if t is None else t._array


@pinv_tensor.meta
def pinv_meta(self, atol, rtol, hermitian):
    check_floating(self, "linalg.pinv")
    *batch, m, n = self._array.shape
    return TensorMeta((*batch, n, m), dtype_of(self))


@pinv_tensor.impl()
def pinv_cpu(self, atol, rtol, hermitian, out):
    x = self._array
    if not x.size:
        return
    if hermitian:
        values, vectors = np.linalg.eigh(x)
        U, S, Vh = vectors, values, vectors.conj().swapaxes(-1, -2)
    else:
        U, S, Vh = lapack_svd(x, full_matrices=False)
    limit = tolerance(x, np.abs(S), as_array(atol), as_array(rtol))
    inverse = np.where(np.abs(S) > limit[..., None], 1 / S, 0).astype(S.dtype)
    np.matmul(Vh.conj().swapaxes(-1, -2) * inverse[..., None, :], U.conj().swapaxes(-1, -2), out=out._array)


def pinv_jvp(A, P, dA):
    """With P = A⁺: -P dA P, and two terms for the spaces that A and P leave out."""
    dAh = dA.mH
    left = dAh.matmul(P.mH).matmul(P)
    right = P.matmul(P.mH).matmul(dAh)
    return left - P.matmul(A.matmul(left)) + right - right.matmul(A).matmul(P) - P.matmul(dA.matmul(P))


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

    def result(self_p, self_t, result):
        return pinv_jvp(self_p, result, self_t)


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
    module="linalg",
    name="matrix_rank",
    out=exact_out(),
)
rank_float = native_function(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
    "hermitian=False) -> Tensor",
    module="linalg",
    name="matrix_rank",
    out=exact_out(),
)
rank_tol = native_function(
    "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    module="linalg",
    name="matrix_rank",
    out=exact_out(),
)


@rank_float.meta
@rank_tol.meta
def matrix_rank_meta(self, *_):
    check_floating(self, "linalg.matrix_rank")
    return TensorMeta(self._array.shape[:-2], int64)


@rank_tensor.meta
def matrix_rank_tensor_meta(input, atol, rtol, hermitian):
    """A tolerance for each matrix, or for more than there are: the shapes broadcast."""
    check_floating(input, "linalg.matrix_rank")
    shape = input._array.shape[:-2]
    if input._array.size:
        shape = broadcast_shape(*[t._array.shape for t in (atol, rtol) if t is not None], shape)
    return TensorMeta(shape, int64)


@rank_float.impl()
def matrix_rank_cpu(self, atol, rtol, hermitian, out):
    x = self._array
    if not x.size:
        out._array[...] = 0
        return
    values = np.abs(np.linalg.eigvalsh(x)) if hermitian else lapack_svd(x, compute_uv=False)
    limit = tolerance(x, values, atol, rtol)
    (values > limit[..., None]).sum(-1, out=out._array)


@rank_tensor.impl()
def matrix_rank_tensor_cpu(input, atol, rtol, hermitian, out):
    matrix_rank_cpu(input, as_array(atol), as_array(rtol), hermitian, out)


@rank_tol.impl()
def matrix_rank_tol_cpu(self, tol, hermitian, out):
    matrix_rank_cpu(self, tol, 0.0, hermitian, out)
