"""LDL factorization of symmetric and Hermitian matrices, and solving with it.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import (
    check_floating,
    check_info,
    check_square,
    check_square_floating,
    columns,
    each_matrix,
    info_of,
    lapack,
    pivots_of,
    repeated,
)
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.native_function import native_function
from readtorch.c10.tensor_impl import dtype_of, type_name

from .cholesky import columns_together

# -------------------------------------------------------------------------------------------------------- LDL

ldl_factor_ex = native_function(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
    "(Tensor LD, Tensor pivots, Tensor info)",
    module="linalg",
    name="ldl_factor_ex",
    out=exact_out(),
)
ldl_factor = native_function(
    "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    module="linalg",
    name="ldl_factor",
    out=exact_out(),
)
ldl_solve = native_function(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    module="linalg",
    name="ldl_solve",
    out=exact_out(),
)


def symmetric_or_hermitian(array, hermitian):
    return "he" if hermitian and array.dtype.kind == "c" else "sy"


def ldl_one(a, hermitian):
    if not a.size:
        return a.copy(), np.zeros(a.shape[:1], np.int32), np.int32(0)
    factor, pivots, info = lapack(f"{symmetric_or_hermitian(a, hermitian)}trf", a)(a, lower=1)
    return np.tril(factor), pivots.astype(np.int32), np.int32(info)


@ldl_factor_ex.meta
def ldl_factor_ex_meta(self, hermitian, check_errors):
    check_square_floating(self, "torch.linalg.ldl_factor_ex")
    return columns(self), pivots_of(self), info_of(self)


@ldl_factor_ex.impl()
def ldl_factor_ex_cpu(self, hermitian, check_errors, LD, pivots, info):
    each_matrix(lambda a: ldl_one(a, hermitian), [self._array], [LD._array, pivots._array, info._array])
    if check_errors:
        check_info(info, "torch.linalg.ldl_factor_ex", describe_zero_pivot)


def describe_zero_pivot(code):
    return (
        f"D[{code},{code}] is zero. The factorization has been completed, but the block diagonal matrix D is exactly "
        "singular, and division by zero will occur if it is used to solve a system of equations."
    )


ldl_factor_ex.backward(NOT_IMPLEMENTED)


@ldl_factor.compose
def ldl_factor_composite(self, hermitian):
    factor, pivots, info = ldl_factor_ex.call(self, hermitian, False)
    check_info(info, "torch.linalg.ldl_factor", describe_zero_pivot)
    return return_types.linalg_ldl_factor(factor, pivots)


@ldl_solve.meta
def ldl_solve_meta(LD, pivots, B, hermitian):
    name = "torch.linalg.ldl_solve"
    if dtype_of(LD) is not dtype_of(B):
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {type_name(B)} and A of type "
            f"{type_name(LD)} instead."
        )
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
    return columns_together(B, LD)[0]


@ldl_solve.impl()
def ldl_solve_cpu(LD, pivots, B, hermitian, out):
    if dtype_of(LD).itemsize == 2:
        raise not_implemented("ldl_solve_kernel_cpu")(dtype_of(LD))
    check_blocks(pivots._array, LD._array.shape[-1])
    if not out._array.size:
        return
    solve = lapack(f"{symmetric_or_hermitian(out._array, hermitian)}trs", out._array)
    inputs = [repeated(a, out._array.shape[:-2]) for a in (LD._array, pivots._array[..., None, :], B._array)]
    each_matrix(lambda a, p, b: (solve(a, p[0], b, lower=1)[0],), inputs, [out._array])


def check_blocks(pivots, rows):
    """Raises RuntimeError for pivots outside of the matrix, and for a negative one, which stands for half of a block of
    two rows, without its other half: LAPACK would exchange memory beyond the matrix. (In PyTorch: halves are not
    checked.)
    """
    places = abs(pivots.astype(np.int64))
    if pivots.size and places.max() > rows:
        raise RuntimeError(
            "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass "
            "the result of ldl_factor?"
        )
    if pivots.size and places.min() < 1:
        raise RuntimeError(
            "Pivots given to ldl_solve must all satisfy |pivot| >= 1. Did you properly pass the result of ldl_factor?"
        )
    for matrix in pivots.reshape(-1, rows) if rows else ():
        signs = "".join("-" if p < 0 else " " for p in matrix)
        if any(len(run) % 2 for run in signs.split()):
            raise RuntimeError(
                "Negative pivots given to ldl_solve must come in pairs. Did you properly pass the result of ldl_factor?"
            )


ldl_solve.backward(NOT_IMPLEMENTED)
