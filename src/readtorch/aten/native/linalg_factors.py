"""Working with factors: lu, lu_unpack, lu_solve, cholesky_inverse, cholesky_solve, triangular_solve, LDL.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in
`torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from ..dispatcher import NOT_IMPLEMENTED
from ..functions import at
from ..native_function import native_function, python_face
from . import return_types
from .exact_out import exact_out, type_name
from .linalg_common import (check_floating, check_info, check_square, check_square_floating, each_matrix, lapack,
                            wrap_columns)
from .linalg_triangular import linalg_lu_solve, lu_factor_ex, permutation_arrays
from .tensor_iterator import broadcast_shape, conj, not_implemented

BOTH = "function, method"

# --------------------------------------------------------------------------------------------------------- LU

lu_with_info = native_function(
    "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, "
    "Tensor info)"
)
lu_unpack = native_function(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
    "(Tensor P, Tensor L, Tensor U)",
    out=True,
)
lu_solve = native_function(
    "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", BOTH, out=True
)


@lu_with_info.compose
def lu_with_info_composite(self, pivot, check_errors):
    return return_types._lu_with_info(*lu_factor_ex.call(self, pivot, check_errors))


@python_face("lu", BOTH)
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


@lu_unpack.kernel
def lu_unpack_cpu(LU_data, LU_pivots, unpack_data, unpack_pivots):
    """P, L and U as matrices; an empty tensor for what is not asked for."""
    packed, pivots = LU_data._array, LU_pivots._array
    if packed.ndim < 2:
        raise RuntimeError(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(packed.shape)} instead"
        )
    if unpack_pivots and pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by "
            "torch.linalg.lu_factor"
        )
    m, n = packed.shape[-2:]
    k = min(m, n)
    P = L = U = wrap(np.empty(0, packed.dtype))
    if unpack_pivots:
        if pivots.size and not (1 <= pivots.min() and pivots.max() <= m):
            raise RuntimeError(
                "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly "
                "pass the result of lu_factor?"
            )
        P = wrap(permutation_arrays(pivots, m).astype(packed.dtype))
    if unpack_data:
        L = wrap(np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=packed.dtype))
        U = wrap(np.triu(packed[..., :k, :]))
    return return_types.lu_unpack(P, L, U)


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


# --------------------------------------------------------------------------------------------------- Cholesky

cholesky_inverse = native_function(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor", BOTH, out=True
)
cholesky_solve = native_function(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor", BOTH, out=True
)


def cholesky_inverse_one(factor, upper):
    if not factor.size:
        return (factor.copy(),)
    half, _ = lapack("potri", factor)(factor, lower=not upper)
    other = np.triu(half, 1) if upper else np.tril(half, -1)
    return ((np.triu(half) if upper else np.tril(half)) + other.conj().T,)


@cholesky_inverse.kernel
def cholesky_inverse_cpu(self, upper):
    """The inverse of the matrix that has this factor."""
    check_square(self, "cholesky_inverse")
    return wrap_columns(each_matrix(lambda a: cholesky_inverse_one(a, upper), self._array)[0])


@cholesky_inverse.backward
class CholeskyInverseBackward0:
    def self(grad, self, upper, result):
        both = result.matmul((grad + grad.mH).matmul(result))
        return -self.matmul(both) if upper else -both.matmul(self)


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


def broadcast_systems(b, A):
    """Arrays of both with the batch dimensions they have in common."""
    batch = broadcast_shape(b._array.shape[:-2], A._array.shape[:-2])
    return [np.broadcast_to(t._array, batch + t._array.shape[-2:]) for t in (b, A)]


@cholesky_solve.kernel
def cholesky_solve_cpu(self, input2, upper):
    """X in A X = self, where input2 is A's Cholesky factor."""
    check_systems(
        self, input2, "cholesky_solve", "{} should have at least 2 dimensions, but has {} dimensions instead"
    )
    b, factor = broadcast_systems(self, input2)
    if not b.size:
        return wrap(np.zeros(b.shape, b.dtype))
    solve = lapack("potrs", b)
    return wrap_columns(each_matrix(lambda x, c: (solve(c, x, lower=not upper)[0],), b, factor)[0])


@cholesky_solve.backward
class CholeskySolveBackward0:
    def self__input2(grad, self, input2, result, upper, grad_input_mask):
        to_self = cholesky_solve.call(grad, input2, upper)
        if not grad_input_mask[1]:
            return to_self, None
        common = to_self.matmul(result.mH)
        common = common + common.mH
        return to_self, -input2.matmul(common) if upper else -common.matmul(input2)


# ------------------------------------------------------------------------------------------- triangular_solve

triangular_solve = native_function(
    "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
    "unitriangular=False) -> "
    "(Tensor solution, Tensor cloned_coefficient)",
    BOTH,
    out=("X", "M"),
)


@triangular_solve.kernel
def triangular_solve_cpu(self, A, upper, transpose, unitriangular):
    """(X in A X = self, or Aᵀ X = self; a copy of A)"""
    check_systems(
        self,
        A,
        "triangular_solve",
        "torch.triangular_solve: Expected {} to have at least 2 dimensions, but it has {} dimensions instead",
    )
    b, a = broadcast_systems(self, A)
    solution = b
    if b.size:
        solve = lapack("trtrs", b)
        solution = each_matrix(
            lambda x, m: (solve(m, x, lower=not upper, trans=int(transpose), unitdiag=unitriangular)[0],),
            b,
            a,
        )[0]
    return return_types.triangular_solve(wrap_columns(solution), wrap_columns(a))


@triangular_solve.backward
class TriangularSolveBackward0:
    def self__A(grads, A, solution, upper, transpose, unitriangular, grad_input_mask):
        to_x, to_copy = grads
        to_b = to_a = None
        if to_x is not None:
            to_b = triangular_solve.call(to_x, conj(A), upper, not transpose, unitriangular)[0]
            if grad_input_mask[1]:
                to_a = -conj(solution).matmul(to_b.mT) if transpose else -to_b.matmul(solution.mH)
                to_a = to_a.triu(int(unitriangular)) if upper else to_a.tril(-int(unitriangular))
        if to_copy is not None and grad_input_mask[1]:
            to_a = to_copy if to_a is None else to_a + to_copy
        return to_b, to_a


# -------------------------------------------------------------------------------------------------------- LDL

ldl_factor_ex = native_function(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
    "(Tensor LD, Tensor pivots, Tensor info)",
    module="linalg",
    name="ldl_factor_ex",
    out=True,
)
ldl_factor = native_function(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    module="linalg",
    name="ldl_factor",
    out=True,
)
ldl_solve = native_function(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    module="linalg",
    name="ldl_solve",
    out=True,
)


def symmetric_or_hermitian(array, hermitian):
    return "he" if hermitian and array.dtype.kind == "c" else "sy"


def ldl_one(a, hermitian):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:1], np.int32), np.int32(0)
    factor, pivots, info = lapack(f"{symmetric_or_hermitian(a, hermitian)}trf", a)(a, lower=1)
    return np.tril(factor), pivots.astype(np.int32), np.int32(info)


@ldl_factor_ex.kernel
def ldl_factor_ex_cpu(self, hermitian, check_errors):
    check_square_floating(self, "torch.linalg.ldl_factor_ex")
    factor, pivots, info = each_matrix(lambda a: ldl_one(a, hermitian), self._array)
    info = wrap(np.asarray(info))
    if check_errors:
        check_info(info, "torch.linalg.ldl_factor_ex", describe_zero_pivot)
    return return_types.linalg_ldl_factor_ex(wrap_columns(factor), wrap(pivots), info)


def describe_zero_pivot(code):
    return (
        f"D[{code},{code}] is zero. The factorization has been completed, but the block diagonal matrix D "
        f"is exactly "
        "singular, and division by zero will occur if it is used to solve a system of equations."
    )


ldl_factor_ex.backward(NOT_IMPLEMENTED)


@ldl_factor.compose
def ldl_factor_composite(self, hermitian):
    factor, pivots, info = ldl_factor_ex.call(self, hermitian, False)
    check_info(info, "torch.linalg.ldl_factor", describe_zero_pivot)
    return return_types.linalg_ldl_factor(factor, pivots)


@ldl_solve.kernel
def ldl_solve_cpu(LD, pivots, B, hermitian):
    name = "torch.linalg.ldl_solve"
    if dtype_of(LD) is not dtype_of(B):
        raise RuntimeError(f"Expected b and A to have the same dtype, but found b of type {type_name(B)} and A of type "
                           f"{type_name(LD)} instead.")
    check_square(LD, name)
    check_floating(LD, name, low_precision=True)
    if B._array.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected B to have at least 2 dimensions, but it has {B._array.ndim} dimensions instead"
        )
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {type_name(pivots)}")
    if LD._array.shape[:-1] != pivots._array.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots._array.shape)} instead"
        )
    n = LD._array.shape[-1]
    if B._array.shape[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is "
            f"{B._array.shape[-2]} by {B._array.shape[-1]}"
        )
    b, factor = broadcast_systems(B, LD)
    if dtype_of(LD).itemsize == 2:
        raise not_implemented("ldl_solve_kernel_cpu")(dtype_of(LD))
    check_blocks(pivots._array, n)
    if not b.size:
        return wrap_columns(b)
    places = np.broadcast_to(pivots._array, factor.shape[:-1])[..., None, :]
    solve = lapack(f"{symmetric_or_hermitian(factor, hermitian)}trs", factor)
    return wrap_columns(each_matrix(lambda x, a, p: (solve(a, p[0], x, lower=1)[0],), b, factor, places)[0])


def check_blocks(pivots, rows):
    """Raises RuntimeError for pivots that name no row, and for a negative one, which stands for half of a block of two rows,
    without its other half: LAPACK would exchange what lies outside. (In PyTorch: halves are not looked for.)
    """
    places = abs(pivots.astype(np.int64))
    if pivots.size and places.max() > rows:
        raise RuntimeError("Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result "
                           "of ldl_factor?")
    if pivots.size and places.min() < 1:
        raise RuntimeError("Pivots given to ldl_solve must all satisfy |pivot| >= 1. Did you properly pass the result of "
                           "ldl_factor?")
    for matrix in pivots.reshape(-1, rows) if rows else ():
        signs = "".join("-" if p < 0 else " " for p in matrix)
        if any(len(run) % 2 for run in signs.split()):
            raise RuntimeError("Negative pivots given to ldl_solve must come in pairs. Did you properly pass the result of "
                               "ldl_factor?")


ldl_solve.backward(NOT_IMPLEMENTED)

exact_out(lu_unpack)
exact_out(lu_solve)
exact_out(cholesky_inverse)
exact_out(cholesky_solve)
exact_out(triangular_solve)
exact_out(ldl_factor_ex)
exact_out(ldl_factor)
exact_out(ldl_solve)
