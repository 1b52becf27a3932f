"""Inverse, determinant, linear equations.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.copy import constant_beside
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import (
    check_info,
    check_square_floating,
    columns,
    describe_singular,
    each_matrix,
    info_of,
    lu_factor,
    lu_factor_one,
    lu_solve,
    lu_solve_one,
    parity,
    pivots_of,
)
from readtorch.aten.native.tensor_iterator import conj
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.numpy_errors import _LinAlgError
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import META
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.tensor_impl import dtype_of, host_array, type_name, whole_array

# ---------------------------------------------------------------------------------------------------- inverse

inv_ex = native_function(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    module="linalg",
    name="inv_ex",
    out=exact_out(),
)
inv = native_function("linalg_inv(Tensor A) -> Tensor", module="linalg", name="inv", out=exact_out())
inverse = native_function("inverse(Tensor self) -> Tensor", BOTH, out=exact_out())


def inverse_one(a):
    """(X with A X = I, info); info says which pivot was zero."""
    lu, pivots, info = lu_factor_one(a)
    return lu_solve_one(lu, pivots, np.eye(*a.shape, dtype=a.dtype), False), info


@inv_ex.meta
def inv_ex_meta(A, check_errors):
    check_square_floating(A, "linalg.inv")
    return columns(A), info_of(A)


@inv_ex.impl()
def inv_ex_cpu(A, check_errors, inverse, info):
    each_matrix(inverse_one, [A._array], [inverse._array, info._array])
    if check_errors:
        check_info(info, "linalg.inv_ex", describe_singular)


@inv_ex.backward
class LinalgInvExBackward0:
    output_differentiability = [True, False]

    def A(grad, inverse):
        """d(A⁻¹) = -A⁻¹ dA A⁻¹."""
        return -inverse.mH.matmul(grad.matmul(inverse.mH))

    def inverse(A_t, inverse):
        return -inverse.matmul(A_t.matmul(inverse))


@inv.compose
def inv_composite(A):
    result, info = inv_ex.call(A, False)
    check_info(info, "linalg.inv", describe_singular)
    return result


@inverse.compose
def inverse_composite(self):
    return inv_composite(self)


# ------------------------------------------------------------------------------------------------ determinant

det_with_factors = native_function("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
det = native_function("linalg_det(Tensor A) -> Tensor", module="linalg", name="det", out=exact_out())
torch_det = native_function("det(Tensor self) -> Tensor", BOTH)


@det_with_factors.meta
def det_meta(A):
    check_square_floating(A, "linalg.det")
    return TensorMeta(A._array.shape[:-2], dtype_of(A)), columns(A), pivots_of(A)


@det_with_factors.impl()
def det_cpu(A, result, LU, pivots):
    """The product of U's diagonal, and a sign for the rows that were exchanged."""
    lu_factor(A._array, LU._array, pivots._array)
    diagonal = np.diagonal(LU._array, axis1=-2, axis2=-1)
    result._array[...] = diagonal.prod(-1) * parity(pivots._array)


@det_with_factors.backward
class LinalgDetBackward0:
    output_differentiability = [True, False, False]

    def A(grad, result, A, LU, pivots):
        """d det(A) = det(A) tr(A⁻¹ dA), so the gradient G solves Aᴴ G = conj(det) grad · I."""
        if not A.numel():
            return at.zeros_like(A)
        if A.shape[-1] == 1:
            return grad.unsqueeze(-1).unsqueeze(-1).expand(A.shape)
        d = grad * conj(result)
        if grad_mode_enabled():
            return det_gradient(A, result, d, grad)
        return lu_solve_adjoint(without_zeros(LU), pivots, diagonal_matrices(d, A))

    def result(A_t, result, LU, pivots):
        return at.linalg_lu_solve(without_zeros(LU), pivots, A_t).diagonal(0, -2, -1).sum(-1) * result


def diagonal_matrices(d, like):
    """d · I for each d of a batch."""
    return at.diag_embed(d.unsqueeze(-1).expand((*d.shape, like.shape[-1])))


def without_zeros(LU):
    """The factors of a matrix next to a singular one: det is smooth, so its gradient may be taken there."""
    missing = (LU.diagonal(0, -2, -1) == 0).to(LU.dtype)
    return LU + at.diag_embed(missing * float(np.finfo(LU._array.dtype).eps))


def lu_solve_adjoint(LU, pivots, B):
    return at.linalg_lu_solve(LU, pivots, B, adjoint=True)


def det_gradient(A, det, d, grad):
    """The differentiable form: by solving where A is regular, by singular values where it is not."""
    singular = host_array(det) == 0
    if not singular.any():
        return at.linalg_solve(A.mH, diagonal_matrices(d, A))
    if singular.all():
        return det_gradient_singular(A, grad)
    mask = constant_beside(det, singular)
    regular = mask.logical_not()
    solved = at.linalg_solve(A[regular].mH, diagonal_matrices(d[regular], A))
    result = at.zeros_like(A).index_put((regular,), solved)
    return result.index_put((mask,), det_gradient_singular(A[mask], grad[mask]))


def det_gradient_singular(A, grad):
    """conj(det(U Vᴴ)) U · (products of the other singular values) · Vᴴ: no division by a singular value."""
    U, S, Vh = at.linalg_svd(A, full_matrices=True)
    alpha = conj(torch_det.call(U) * torch_det.call(Vh)) * grad
    return U.matmul((alpha.unsqueeze(-1) * products_of_others(S)).unsqueeze(-1) * Vh)


def products_of_others(s):
    """For each element along the last dimension the product of all the others."""
    n = s.shape[-1]
    one = at.ones_like(s[..., :1])
    before = at.cat([one, s[..., : n - 1]], -1).cumprod(-1)
    after = at.cat([one, s.flip([-1])[..., : n - 1]], -1).cumprod(-1).flip([-1])
    return before * after


@det.compose
@torch_det.compose
def det_composite(A):
    return det_with_factors.call(A)[0]


slogdet_with_factors = native_function(
    "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"
)
slogdet = native_function(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", module="linalg", name="slogdet", out=exact_out()
)
torch_slogdet = native_function("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", BOTH)
logdet = native_function("logdet(Tensor self) -> Tensor", BOTH)


@slogdet_with_factors.meta
def slogdet_meta(A):
    check_square_floating(A, "linalg.slogdet")
    batch, kind = A._array.shape[:-2], dtype_of(A)
    return TensorMeta(batch, kind), TensorMeta(batch, kind.to_real()), columns(A), pivots_of(A)


@slogdet_with_factors.impl()
def slogdet_cpu(A, sign, logabsdet, LU, pivots):
    lu_factor(A._array, LU._array, pivots._array)
    diagonal = np.diagonal(LU._array, axis1=-2, axis2=-1)
    size = np.abs(diagonal)
    signs = np.where(size == 0, 0, diagonal / np.where(size == 0, 1, size))
    sign._array[...] = signs.prod(-1) * parity(pivots._array)
    logabsdet._array[...] = np.log(size).sum(-1)


@slogdet_with_factors.backward
class LinalgSlogdetBackward0:
    output_differentiability = [True, True, False, False]

    def A(grads, A, sign, LU, pivots):
        """d log|det| is the real part of tr(A⁻¹ dA), and the sign turns by its imaginary part."""
        to_sign, to_log = grads[0], grads[1]
        if to_sign is None and to_log is None:
            return None
        g = to_log
        if A.is_complex():
            g = 0 if to_log is None else to_log + 0j
            if to_sign is not None:
                g = g + at.imag(to_sign * sign.conj()) * 1j
        elif to_log is None:
            return at.zeros_like(A)
        d = diagonal_matrices(g, A)
        return at.linalg_solve(A.mH, d) if grad_mode_enabled() else lu_solve_adjoint(LU, pivots, d)

    def sign__logabsdet(A_t, sign, LU, pivots):
        trace = at.linalg_lu_solve(LU, pivots, A_t).diagonal(0, -2, -1).sum(-1)
        if not trace.dtype.is_complex:
            return at.zeros_like(trace), trace
        return at.imag(trace) * 1j * sign, at.real(trace)


@slogdet.compose
def slogdet_composite(A):
    sign, logabsdet, _, _ = slogdet_with_factors.call(A)
    return return_types.linalg_slogdet(sign, logabsdet)


@torch_slogdet.compose
def torch_slogdet_composite(A):
    return return_types.slogdet(slogdet.call(A))


@logdet.compose
def logdet_composite(self):
    """log det(A): nan where the determinant is negative."""
    check_square_floating(self, "logdet")
    sign, logabsdet = slogdet_composite(self)
    if self.is_complex():
        return sign.log() + logabsdet
    return at.where(sign == -1.0, float("nan"), logabsdet)


# ------------------------------------------------------------------------------------------------------ solve

_LEFT = "Tensor A, Tensor B, *, bool left=True"
solve_with_factors = native_function(
    f"_linalg_solve_ex({_LEFT}, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)"
)
solve_ex = native_function(
    f"linalg_solve_ex({_LEFT}, bool check_errors=False) -> (Tensor result, Tensor info)",
    module="linalg",
    name="solve_ex",
    out=exact_out(),
)
solve = native_function(f"linalg_solve({_LEFT}) -> Tensor", module="linalg", name="solve", out=exact_out())


def is_vector(A, B):
    """Whether B holds vectors: it is one, or a batch shaped as A without its last dimension."""
    a, b = A._array.shape, B._array.shape
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])


@solve_with_factors.meta
def solve_meta(A, B, left, check_errors):
    check_square_floating(A, "linalg.solve")
    if dtype_of(A) is not dtype_of(B):
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {type_name(A)} "
            f"and B of type {type_name(B)} instead"
        )
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    sizes = B._array.shape[-2:] if not vector else (B._array.shape[-1], 1)
    n = A._array.shape[-1]
    if sizes[0 if left else 1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {equation} "
            f"({n}x{n} and {sizes[0]}x{sizes[1]})"
        )
    batch = broadcast_shape(A._array.shape[:-2], B._array.shape[: -1 if vector else -2])
    shape = (*batch, n) if vector else (*batch, *sizes)
    by_columns = left and len(shape) > 1  # also where the columns hold a batch of vectors
    solution = columns(A, shape) if by_columns else TensorMeta(shape, dtype_of(A))
    return solution, columns(A), pivots_of(A), info_of(A)


@solve_with_factors.impl()
def solve_cpu(A, B, left, check_errors, result, LU, pivots, info):
    """XA = B is solved as AᵀXᵀ = Bᵀ."""
    a, b, x = A._array, B._array, result._array
    if is_vector(A, B):
        b, x = b[..., None], x[..., None]
    if not left:
        a, b, x = (array.swapaxes(-1, -2) for array in (a, b, x))
    lu_factor(a, LU._array, pivots._array, info._array)
    lu_solve(LU._array, pivots._array, b, x)
    if check_errors:
        check_singular(info)


def check_singular(info):
    if info._keys & META:
        return
    codes = whole_array(info)
    failure = np.flatnonzero(codes.reshape(-1))
    if len(failure):
        place = f"(Batch element {failure[0]}): " if codes.ndim else ""
        raise _LinAlgError(f"torch.linalg.solve: {place}The solver failed because the input matrix is singular.")


@solve_with_factors.backward
class LinalgSolveExBackward0:
    output_differentiability = [True, False, False, False]

    def A__B(grad, A, B, result, left, grad_input_mask):
        """B's gradient solves the adjoint equation; A's is minus its product with the solution."""
        vector = is_vector(A, B)
        to_b = solve.call(A.mH, grad, left) if not vector else solve.call(A.mH, grad.unsqueeze(-1), True)
        x = result.unsqueeze(-1) if vector else result
        to_a = None
        if grad_input_mask[0]:
            to_a = -to_b.matmul(x.mH) if left else -x.mH.matmul(to_b)
        return to_a, to_b.squeeze(-1) if vector else to_b

    def result(A_p, A_t, B_p, B_t, result, LU, pivots, left):
        """A dX = dB - dA X."""
        vector = is_vector(A_p, B_p)
        x, change = (result.unsqueeze(-1), B_t.unsqueeze(-1)) if vector else (result, B_t)
        change = change - (A_t.matmul(x) if left or vector else x.matmul(A_t))
        change = at.linalg_lu_solve(LU, pivots, change, left=left or vector)
        return change.squeeze(-1) if vector else change


@solve_ex.compose
def solve_ex_composite(A, B, left, check_errors):
    result, _, _, info = solve_with_factors.call(A, B, left, check_errors)
    return return_types.linalg_solve_ex(result, info)


@solve.compose
def solve_composite(A, B, left):
    result, _, _, info = solve_with_factors.call(A, B, left, False)
    check_singular(info)
    return result
