"""`gemm`: the BLAS matrix product, callable from compiled loops.

numba knows `np.dot` of contiguous matrices only; a convolution multiplies tiles that lie inside larger arrays, and adds to
what is there. SciPy publishes the addresses of its BLAS routines for such callers (`scipy.linalg.cython_blas`). They are
Fortran routines: every argument is an address.

In PyTorch: `aten/src/ATen/native/CPUBlas.cpp`.
"""

import llvmlite.binding
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic, overload

from readtorch.aten import parallel

for name in ("sgemm", "dgemm"):
    llvmlite.binding.add_symbol(f"readtorch_{name}", get_cython_function_address("scipy.linalg.cython_blas", name))
parallel.claim_cores()

ADDRESS = types.intp


def routine(name):
    return types.ExternalFunction(f"readtorch_{name}", types.void(*[ADDRESS] * 13))


sgemm, dgemm = routine("sgemm"), routine("dgemm")


@intrinsic
def address_of(typing_context, number):
    """Where a copy of `number` lies on the stack of the calling function, as an integer."""

    def emit(context, builder, signature, arguments):
        place = cgutils.alloca_once_value(builder, arguments[0])
        return builder.ptrtoint(place, ir.IntType(64))

    return types.intp(number), emit


def gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """C = alpha · op(A) op(B) + beta · C for matrices stored by rows: op(A) is m×k, op(B) k×n, C m×n.

    a, b, c: arrays of one dtype, float32 or float64, whose first element is the matrix's first element. lda, ldb, ldc: how
    many elements lie from one row to the next, in the array as it is stored. Only for compiled loops.
    """
    raise TypeError("gemm is for compiled loops")


@overload(gemm)
def compiled_gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    number = c.dtype
    multiply = {types.float32: sgemm, types.float64: dgemm}[number]

    def by_columns(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        # Fortran reads the memory of C as Cᵀ, which is op(B)ᵀ op(A)ᵀ.
        multiply(
            address_of(letter(transpose_b)),
            address_of(letter(transpose_a)),
            address_of(types.int32(n)),
            address_of(types.int32(m)),
            address_of(types.int32(k)),
            address_of(number(alpha)),
            b.ctypes.data,
            address_of(types.int32(ldb)),
            a.ctypes.data,
            address_of(types.int32(lda)),
            address_of(number(beta)),
            c.ctypes.data,
            address_of(types.int32(ldc)),
        )

    return by_columns


@njit(inline="always")
def letter(transposed):
    """BLAS's word for it: "T" or "N"."""
    return types.uint8(84) if transposed else types.uint8(78)
