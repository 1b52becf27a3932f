"""Products of arrays by BLAS: `multiply` makes a new array or fills one, `gemm` adds to one that exists.

A large product is cut into blocks of rows or columns, which the threads of the one pool (Note [ One pool ]) share.

In PyTorch: `aten/src/ATen/native/CPUBlas.cpp`.
"""

import functools

import numpy as np

from readtorch.aten import parallel

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)

# Multiplications that are worth handing over to another thread: about a tenth of a millisecond.
GRAIN = 4_000_000
SHARED = 2 * GRAIN  # from here on threads share a product
LARGE = 200_000  # from about here on BLAS would use threads of its own


def multiply(x, y, out=None):
    """x @ y for vectors, matrices and batches of matrices of one dtype. out: contiguous by rows."""
    if x.ndim == 2 == y.ndim:
        return multiply_matrices(x, y, out)
    return multiply_batches(x, y, out) if x.ndim > 2 or y.ndim > 2 else x.dot(y, out)


def multiply_matrices(x, y, out=None):
    """x @ y for matrices of one dtype."""
    work = x.size * y.shape[1]
    if work < LARGE:
        return x.dot(y, out)
    numpy_takes_one_thread()
    if work < SHARED or parallel.get_num_threads() == 1:
        return x.dot(y, out)
    if out is None:
        out = np.empty((x.shape[0], y.shape[1]), x.dtype)
    in_blocks(x, y, out, lambda x, y, out: np.matmul(x, y, out=out))
    return out


@functools.cache
def numpy_takes_one_thread():
    """See Note [ One pool ]."""
    parallel.claim_cores()


def in_blocks(x, y, out, multiply):
    """`multiply(x, y, out)` for pieces of `out`, of whichever of its sides is longer."""
    rows, columns = out.shape
    work = x.size * columns
    if rows >= columns:
        parallel.parallel_for(0, rows, grain_of(rows, work), lambda b, e: multiply(x[b:e], y, out[b:e]))
    else:
        parallel.parallel_for(0, columns, grain_of(columns, work), lambda b, e: multiply(x, y[:, b:e], out[:, b:e]))


def grain_of(length, work):
    """How many of `length` equal steps make up one grain of the `work`."""
    return max(1, GRAIN * length // max(work, 1))


def multiply_batches(x, y, out=None):
    numpy_takes_one_thread()
    # Columns times rows, as in the gradients of a weight for each example: BLAS is four times slower at these.
    product = np.multiply if x.ndim > 1 and x.shape[-1] == 1 and y.ndim > 1 else np.matmul
    if parallel.get_num_threads() == 1 or x.ndim != 3 or y.ndim != 3 or x.shape[0] != y.shape[0]:
        return product(x, y, out=out)
    batch, rows, _ = x.shape
    if out is None:
        out = np.empty((batch, rows, y.shape[2]), x.dtype)
    grain = grain_of(batch, x.size * y.shape[2])
    parallel.parallel_for(0, batch, grain, lambda b, e: product(x[b:e], y[b:e], out=out[b:e]))
    return out


@functools.cache
def routine(dtype):
    """SciPy's binding; imported when first needed."""
    from scipy.linalg import blas

    parallel.claim_cores()
    return blas.sgemm if dtype is F4 else blas.dgemm


@functools.cache
def kernels():
    """The compiled form, which does not hold Python's lock; imported when first needed."""
    from .cpu import blas_kernel

    return blas_kernel


def gemm(x, y, out, beta=1.0, alpha=1.0):
    """alpha · x y + beta · out, written into `out` by BLAS itself: NumPy's `dot` can only overwrite.

    `out` is contiguous by rows and of x's type, float32 or float64; no size may be 0.
    """
    if x.size * y.shape[1] >= SHARED and parallel.get_num_threads() > 1:
        in_blocks(x, y, out, lambda x, y, out: kernels().add_product(*readable(x), *readable(y), out, beta, alpha))
        return
    # BLAS is column-major. Read by columns, the memory of `out` is outᵀ = yᵀ xᵀ.
    by_rows = y.flags.c_contiguous
    x_by_rows = x.flags.c_contiguous
    routine(out.dtype)(
        alpha, y.T if by_rows else y, x.T if x_by_rows else x, beta, out.T, not by_rows, not x_by_rows, True
    )


def readable(x):
    """(matrix whose rows are contiguous, whether `x` is its transpose)."""
    width = x.itemsize
    if x.strides[1] == width and x.strides[0] >= width * x.shape[1]:
        return x, False
    if x.strides[0] == width and x.strides[1] >= width * x.shape[0]:
        return x.T, True
    return np.ascontiguousarray(x), False
