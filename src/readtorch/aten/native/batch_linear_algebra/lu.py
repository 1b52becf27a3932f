"""LU factorization, unpacking it, and solving with it.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.empty_tensor import empty_cpu
from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import (
    check_floating,
    check_square,
    columns,
    first_failure,
    info_of,
    pivots_of,
)
from readtorch.aten.native.linear_algebra_utils import lu_factor as lu_factor_arrays
from readtorch.aten.native.linear_algebra_utils import lu_solve as lu_solve_arrays
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import META
from readtorch.c10.tensor_impl import dtype_of, type_name, whole_array

from .cholesky import columns_together
from .triangular import check_equation, solve_triangular

# --------------------------------------------------------------------------------------------------------- LU

lu_factor_ex = native_function(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
    "pivots, Tensor info)",
    module="linalg",
    name="lu_factor_ex",
    out=exact_out(),
)
lu_factor = native_function(
    "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    module="linalg",
    name="lu_factor",
    out=exact_out(),
)
linalg_lu = native_function(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    module="linalg",
    name="lu",
    out=exact_out(),
)
linalg_lu_solve = native_function(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
    module="linalg",
    name="lu_solve",
    out=exact_out(),
)


@lu_factor_ex.meta
def lu_factor_ex_meta(A, pivot, check_errors):
    check_floating(A, "torch.lu_factor")
    return columns(A), pivots_of(A), info_of(A)


@lu_factor_ex.impl()
def lu_factor_ex_cpu(A, pivot, check_errors, LU, pivots, info):
    if not pivot and A._array.size:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    lu_factor_arrays(A._array, LU._array, pivots._array, info._array)
    if check_errors:
        check_zero_pivot(info)


def check_zero_pivot(info):
    failure = None if info._keys & META else first_failure(whole_array(info))
    if failure is not None:
        prefix, i = failure
        raise RuntimeError(
            f"torch.linalg.lu_factor: {prefix}U[{i},{i}] is zero and using it on lu_solve would result "
            "in a division by zero. If you still want to perform the factorization, consider calling "
            "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )


@lu_factor.compose
def lu_factor_composite(A, pivot):
    packed, pivots, info = lu_factor_ex.call(A, pivot, False)
    check_zero_pivot(info)
    return return_types.linalg_lu_factor(packed, pivots)


def permutation_arrays(pivots, m):
    """The permutation matrices P for which A = P L U, from the row exchanges that LAPACK reports."""
    result = np.empty(pivots.shape[:-1] + (m, m))
    for index in np.ndindex(pivots.shape[:-1]):
        rows = list(range(m))
        for i, p in enumerate(pivots[index].tolist()):
            rows[i], rows[p - 1] = rows[p - 1], rows[i]
        result[index] = np.eye(m)[:, rows]
    return result


@linalg_lu.meta
def lu_meta(A, pivot):
    check_floating(A, "linalg.lu")
    return unpacked(A, pivot, True)


def unpacked(A, with_pivots, with_factors):
    """Outputs for P, L and U; empty ones for what is not wanted."""
    *batch, m, n = A._array.shape
    k = min(m, n)
    wanted = ((m, m), with_pivots), ((m, k), with_factors), ((k, n), with_factors)
    return [TensorMeta((*batch, *size) if asked else (0,), dtype_of(A)) for size, asked in wanted]


@linalg_lu.impl()
def lu_cpu(A, pivot, P, L, U):
    packed, pivots, info = [empty_cpu(output) for output in lu_factor_ex_meta(A, pivot, False)]
    lu_factor_ex_cpu(A, pivot, False, packed, pivots, info)
    unpack(packed._array, pivots._array, True, pivot, P, L, U)


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
    """A tall or wide matrix has a square block with square factors, and a rest which is linear in one of them."""
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


def lu_jvp(change, L, U):
    """Of the leading square part L⁻¹ dA U⁻¹ = L⁻¹ dL + dU U⁻¹, a lower and an upper triangular matrix; the rest follows.

    change: Pᵀ dA.
    """
    m, n = change.shape[-2:]
    k = min(m, n)
    L1, U1 = L[..., :k, :], U[..., :k]
    inner = at.linalg_solve_triangular(L1, change[..., :k, :k], upper=False, unitriangular=True)
    inner = at.linalg_solve_triangular(U1, inner, upper=True, left=False)
    dL, dU = L1.matmul(inner.tril(-1)), inner.triu().matmul(U1)
    if m > n:
        below = change[..., k:, :] - L[..., k:, :].matmul(dU)
        dL = at.cat([dL, at.linalg_solve_triangular(U1, below, upper=True, left=False)], -2)
    elif n > m:
        beside = change[..., k:] - dL.matmul(U[..., k:])
        dU = at.cat([dU, at.linalg_solve_triangular(L1, beside, upper=False, unitriangular=True)], -1)
    return dL, dU


@linalg_lu.backward
class LinalgLuBackward0:
    output_differentiability = [False, True, True]

    def A(grads, P, L, U):
        return P.matmul(lu_backward(grads[0], grads[1], L, U))

    def L__U(A_t, P, L, U):
        return lu_jvp(P.mT.matmul(A_t), L, U)


@lu_factor_ex.backward
class LinalgLuFactorExBackward0:
    output_differentiability = [True, False, False]

    def A(grad, LU, pivots):
        m, n = LU.shape[-2:]
        k = min(m, n)
        L = LU[..., :k].tril(-1) + at.eye(m, k, dtype=LU.dtype, device=LU.device)
        U = LU[..., :k, :].triu()
        P = lu_unpack.call(LU, pivots, False, True)[0]
        return P.matmul(lu_backward(grad[..., :k].tril(-1), grad[..., :k, :].triu(), L, U))

    def LU(A_t, LU, pivots):
        P, L, U = lu_unpack.call(LU, pivots, True, True)
        change_of_L, change_of_U = lu_jvp(P.mT.matmul(A_t), L, U)
        m, n = A_t.shape[-2:]
        lower = at.pad(change_of_L.tril(-1), (0, max(n - m, 0)))
        return lower + at.pad(change_of_U, (0, 0, 0, max(m - n, 0)))


@linalg_lu_solve.meta
def lu_solve_meta(LU, pivots, B, left, adjoint):
    if dtype_of(LU) is not dtype_of(B):
        raise RuntimeError(
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
            f"{type_name(LU)} and B of type {type_name(B)} instead"
        )
    if pivots._array.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve")
    check_equation(LU, B, left, "linalg.lu_solve")
    if LU._array.shape[-1] != (pivots._array.shape or (0,))[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if LU._array.shape[:-2] != pivots._array.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots "
            f"with shape {list(pivots._array.shape)} instead"
        )
    check_floating(LU, "torch.linalg.lu_solve", low_precision=True)
    output = columns_together(B, LU)[0]
    return output if left else TensorMeta(output.shape, output.dtype)


def check_rows(pivots, rows):
    """Raises RuntimeError for a pivot outside of the matrix: LAPACK would exchange memory beyond it."""
    if pivots.size and pivots.min() < 1:
        raise RuntimeError(
            "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?"
        )
    if pivots.size and pivots.max() > rows:
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly "
            "pass the result of lu_factor?"
        )


@linalg_lu_solve.impl()
def lu_solve_cpu(LU, pivots, B, left, adjoint, out):
    """XA = B is solved as Aᴴ Xᴴ = Bᴴ."""
    if dtype_of(LU).itemsize == 2:
        raise not_implemented("linalg.lu_solve_cpu")(dtype_of(LU))
    if B._array.size:
        check_rows(pivots._array, LU._array.shape[-1])
    if left:
        lu_solve_arrays(LU._array, pivots._array, B._array, out._array, adjoint)
    else:
        b, x = B._array.conj().swapaxes(-1, -2), out._array.swapaxes(-1, -2)
        lu_solve_arrays(LU._array, pivots._array, b, x, not adjoint)
        np.conj(x, x)


@linalg_lu_solve.backward
class LinalgLuSolveBackward0:
    def LU__B(grad, LU, pivots, result, left, adjoint, grad_input_mask):
        """B's gradient solves the adjoint equation; A's is minus a product, and is propagated to A's factors."""
        to_b = linalg_lu_solve.call(LU, pivots, grad, left, not adjoint)
        if not grad_input_mask[0]:
            return None, to_b
        a, b = (to_b, result.mH) if left else (result.mH, to_b)
        to_a = -(b.mH.matmul(a.mH) if adjoint else a.matmul(b))
        n = LU.shape[-1]
        P = lu_unpack.call(LU, pivots, False, True)[0]
        L, U = LU.tril(-1) + at.eye(n, dtype=LU.dtype, device=LU.device), LU.triu()
        moved = P.mT.matmul(to_a)
        return moved.matmul(U.mH).tril(-1) + L.mH.matmul(moved).triu(), to_b

    def result(LU_p, LU_t, pivots, B_t, left, adjoint, result):
        """A dX = dB - dA X, and dA = P (dL U + L dU)."""
        n = LU_p.shape[-1]
        P = lu_unpack.call(LU_p, pivots, False, True)[0]
        L, U = LU_p.tril(-1) + at.eye(n, dtype=LU_p.dtype, device=LU_p.device), LU_p.triu()
        change = P.matmul(LU_t.tril(-1).matmul(U) + L.matmul(LU_t.triu()))
        change = change.mH if adjoint else change
        change = B_t - (change.matmul(result) if left else result.matmul(change))
        return linalg_lu_solve.call(LU_p, pivots, change, left, adjoint)


# --------------------------------------------------------------------------------- torch.lu and its relatives

# --------------------------------------------------------------------------------------------------------- LU

lu_with_info = native_function(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)"
)
lu_unpack = native_function(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
    "(Tensor P, Tensor L, Tensor U)",
    out=exact_out(),
)
lu_solve = native_function("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", BOTH, out=exact_out())


@lu_with_info.compose
def lu_with_info_composite(self, pivot, check_errors):
    return return_types._lu_with_info(*lu_factor_ex.call(self, pivot, check_errors))


@python_binding("lu", BOTH)
def lu(A, pivot=True, get_infos=False, out=None):
    """(LU, pivots), and with get_infos what LAPACK reports. In PyTorch: `torch.functional.lu`."""
    result = lu_with_info.call(A, pivot, not get_infos)
    result = result if get_infos else tuple(result[:2])
    if out is None:
        return result
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(result):
        raise TypeError(f"expected tuple of {len(result)} elements but got {len(out)}")
    for target, value in zip(out, result):
        target.resize_as_(value).copy_(value)
    return out


lu_solve.compose(lambda self, LU_data, LU_pivots: linalg_lu_solve.call(LU_data, LU_pivots, self, True, False))


@lu_unpack.meta
def lu_unpack_meta(LU_data, LU_pivots, unpack_data, unpack_pivots):
    shape = LU_data._array.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(shape)} instead"
        )
    if unpack_pivots and LU_pivots._array.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    return unpacked(LU_data, unpack_pivots, unpack_data)


@lu_unpack.impl()
def lu_unpack_cpu(LU_data, LU_pivots, unpack_data, unpack_pivots, P, L, U):
    packed, pivots = LU_data._array, LU_pivots._array
    if unpack_pivots and pivots.size and not (1 <= pivots.min() and pivots.max() <= packed.shape[-2]):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly "
            "pass the result of lu_factor?"
        )
    unpack(packed, pivots, unpack_data, unpack_pivots, P, L, U)


def unpack(packed, pivots, unpack_data, unpack_pivots, P, L, U):
    """P, L and U as matrices."""
    m, n = packed.shape[-2:]
    k = min(m, n)
    if unpack_pivots:
        P._array[...] = permutation_arrays(pivots, m)
    if unpack_data:
        L._array[...] = np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=packed.dtype)
        U._array[...] = np.triu(packed[..., :k, :])


@lu_unpack.backward
class LuUnpackBackward0:
    output_differentiability = [False, True, True]

    def LU_data(grads, LU_data_sym_sizes):
        """Both halves lie side by side in one matrix."""
        m, n = LU_data_sym_sizes[-2:]
        lower = upper = None
        if grads[0] is not None:
            lower = grads[0].tril(-1)
            lower = at.pad(lower, (0, n - m)) if n > m else lower
        if grads[1] is not None:
            upper = grads[1].triu()
            upper = at.pad(upper, (0, 0, 0, m - n)) if m > n else upper
        return lower if upper is None else upper if lower is None else lower + upper

    def L(LU_data_t, unpack_data):
        if not unpack_data:
            return None
        m, n = LU_data_t.shape[-2:]
        return LU_data_t[..., : min(m, n)].tril(-1)

    def U(LU_data_t, unpack_data):
        if not unpack_data:
            return None
        m, n = LU_data_t.shape[-2:]
        return LU_data_t[..., : min(m, n), :].triu()
