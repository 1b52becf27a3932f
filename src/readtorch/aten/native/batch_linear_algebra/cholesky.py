"""Cholesky factorization, and solving and inverting with the factor.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.empty_tensor import empty_cpu
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import (
    check_info,
    check_square,
    check_square_floating,
    columns,
    describe_indefinite,
    each_matrix,
    info_of,
    lapack,
    repeated,
)
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of, type_name

# --------------------------------------------------------------------------------------------------- Cholesky

cholesky_ex = native_function(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    module="linalg",
    name="cholesky_ex",
    out=exact_out(),
)
linalg_cholesky = native_function(
    "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", module="linalg", name="cholesky", out=exact_out()
)
cholesky = native_function("cholesky(Tensor self, bool upper=False) -> Tensor", BOTH, out=exact_out(row_major=True))


def cholesky_one(a, upper):
    if not a.size:
        return a.copy(), np.int32(0)
    factor, info = lapack("potrf", a)(a, lower=not upper, clean=True)
    if info == 0 and np.isnan(pivots := factor.diagonal()).any():  # OpenBLAS goes on with NaN, MKL and LAPACK stop
        info = 1 + np.isnan(pivots).argmax()
    return factor, np.int32(info)


@cholesky_ex.meta
def cholesky_ex_meta(self, upper, check_errors):
    check_square_floating(self, "linalg.cholesky")
    return columns(self), info_of(self)


@cholesky_ex.impl()
def cholesky_ex_cpu(self, upper, check_errors, L, info):
    each_matrix(lambda a: cholesky_one(a, upper), [self._array], [L._array, info._array])
    if check_errors:
        check_info(info, "linalg.cholesky_ex", describe_indefinite)


def cholesky_backward(grad, upper, factor):
    """With A = L Lᴴ: L⁻ᴴ Φ(Lᴴ grad) L⁻¹, where Φ keeps the lower triangle, halves its diagonal and makes the
    result Hermitian (I. Murray: Differentiation of the Cholesky decomposition, 2016)."""
    L, g = (factor.mH, grad.mH) if upper else (factor, grad)
    phi = L.mH.matmul(g).tril()
    phi = phi + phi.tril(-1).mH
    half = at.linalg_solve_triangular(L.mH, phi, upper=True)
    result = at.linalg_solve_triangular(L, half, upper=False, left=False)
    return result / 2


def cholesky_jvp(change, factor, upper):
    """L⁻¹ dA L⁻ᴴ = X + Xᴴ with the lower triangular X = L⁻¹ dL: half of its diagonal and what is below it."""
    L = factor.mH if upper else factor
    inner = at.linalg_solve_triangular(L, change, upper=False)
    inner = at.linalg_solve_triangular(L.mH, inner, upper=True, left=False).tril()
    dL = L.matmul(inner - at.diag_embed(inner.diagonal(0, -2, -1)) / 2)
    return dL.mH if upper else dL


@cholesky_ex.backward
class LinalgCholeskyExBackward0:
    output_differentiability = [True, False]

    def self(grad, upper, L):
        return cholesky_backward(grad, upper, L)

    def L(self_t, L, upper):
        return cholesky_jvp(self_t, L, upper)


@linalg_cholesky.compose
def linalg_cholesky_composite(self, upper):
    factor, info = cholesky_ex.call(self, upper, False)
    check_info(info, "linalg.cholesky", describe_indefinite)
    return factor


@cholesky.meta
def cholesky_meta(self, upper):
    check_square_floating(self, "cholesky")
    return columns(self) if self._array.size else TensorMeta(self._array.shape, dtype_of(self))


@cholesky.impl()
def cholesky_cpu(self, upper, out):
    info = empty_cpu(info_of(self))
    cholesky_ex_cpu(self, upper, False, out, info)
    check_info(info, "cholesky", describe_indefinite)


@cholesky.backward
class CholeskyBackward0:
    def self(grad, upper, result):
        return cholesky_backward(grad, upper, result)

    def result(self_t, result, upper):
        return cholesky_jvp(self_t, result, upper)


# ------------------------------------------------------------------------------------ solving with the factor

# --------------------------------------------------------------------------------------------------- Cholesky

cholesky_inverse = native_function(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", BOTH, out=exact_out(row_major=True)
)
cholesky_solve = native_function(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", BOTH, out=exact_out(row_major=True)
)


def cholesky_inverse_one(factor, upper):
    if not factor.size:
        return (factor.copy(),)
    half, _ = lapack("potri", factor)(factor, lower=not upper)
    other = np.triu(half, 1) if upper else np.tril(half, -1)
    return ((np.triu(half) if upper else np.tril(half)) + other.conj().T,)


@cholesky_inverse.meta
def cholesky_inverse_meta(self, upper):
    check_square(self, "cholesky_inverse")
    return columns(self)


@cholesky_inverse.impl()
def cholesky_inverse_cpu(self, upper, out):
    """The inverse of the matrix that has this factor."""
    each_matrix(lambda a: cholesky_inverse_one(a, upper), [self._array], [out._array])


@cholesky_inverse.backward
class CholeskyInverseBackward0:
    def self(grad, self, upper, result):
        both = result.matmul((grad + grad.mH).matmul(result))
        return -self.matmul(both) if upper else -both.matmul(self)

    def result(self_p, self_t, upper, result):
        half = self_t.mH.matmul(self_p) if upper else self_t.matmul(self_p.mH)
        return -result.matmul(half + half.mH).matmul(result)


def check_systems(b, A, name, few_dimensions):
    """Raises RuntimeError unless A X = b makes sense."""
    for which, t in (("b", b), ("A" if name == "triangular_solve" else "u", A)):
        if t._array.ndim < 2:
            raise RuntimeError(few_dimensions.format(which, t._array.ndim))
    if b._array.dtype != A._array.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_name(b)} and A of type "
            f"{type_name(A)} instead."
        )
    rows, columns = A._array.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {columns} by {rows} matrices"
            if name != "cholesky_solve"
            else f"A must be batches of square matrices, but they are {rows} by {columns} matrices"
        )
    if columns != b._array.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {columns} by {columns} but each b "
            f"matrix is {b._array.shape[-2]} by {b._array.shape[-1]}"
        )


def columns_together(*tensors):
    """Outputs like these batches of matrices, with the batch dimensions that they have in common."""
    batch = broadcast_shape(*[t._array.shape[:-2] for t in tensors])
    return [columns(t, (*batch, *t._array.shape[-2:])) for t in tensors]


@cholesky_solve.meta
def cholesky_solve_meta(self, input2, upper):
    check_systems(self, input2, "cholesky_solve", "{} should have at least 2 dimensions, but has {} dimensions instead")
    return columns_together(self, input2)[0]


@cholesky_solve.impl()
def cholesky_solve_cpu(self, input2, upper, out):
    """X in A X = self, where input2 is A's Cholesky factor."""
    if not out._array.size:
        return
    solve = lapack("potrs", out._array)
    inputs = [repeated(t._array, out._array.shape[:-2]) for t in (self, input2)]
    each_matrix(lambda b, factor: (solve(factor, b, lower=not upper)[0],), inputs, [out._array])


@cholesky_solve.backward
class CholeskySolveBackward0:
    def self__input2(grad, self, input2, result, upper, grad_input_mask):
        to_self = cholesky_solve.call(grad, input2, upper)
        if not grad_input_mask[1]:
            return to_self, None
        common = to_self.matmul(result.mH)
        common = common + common.mH
        return to_self, -input2.matmul(common) if upper else -common.matmul(input2)

    def result(self_t, input2_p, input2_t, upper, result):
        """A dX = dB - dA X, where A is the product of the factors."""
        half = input2_t.mH.matmul(input2_p) if upper else input2_t.matmul(input2_p.mH)
        return cholesky_solve.call(self_t - (half + half.mH).matmul(result), input2_p, upper)
