"""What the operators of `readtorch.linalg` share: checks, errors, and LAPACK on batches of matrices.

In PyTorch: `aten/src/ATen/native/LinearAlgebraUtils.h` and `aten/src/ATen/native/BatchLinearAlgebra.cpp`.
"""

import numpy as np

from readtorch.aten.numpy_errors import _LinAlgError
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import META
from readtorch.c10.scalar_type import FLOAT, int32
from readtorch.c10.tensor_impl import AutogradMetaFactory, contiguous_strides, dtype_of, type_name, whole_array


def may_require_gradient(t):
    """Whether a derivative, backward or forward, may be wanted of what is computed from `t`. In PyTorch: `_may_require_fw_or_bw_grad`."""
    return t.requires_grad or AutogradMetaFactory.fw_grad(t, 0) is not None


def check_floating(t, name, argument="A", low_precision=False):
    """Raises RuntimeError unless `t` is a batch of matrices that LAPACK can take."""
    kind = dtype_of(t)
    if kind.category < FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(t)}")
    if not low_precision and kind.itemsize == 2:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(t)}")
    if t._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(t, name, argument="A"):
    if t._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")
    n, m = t._array.shape[-2:]
    if n != m:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are {n} by {m} matrices")


def check_square_floating(t, name, argument="A"):
    check_square(t, name, argument)
    check_floating(t, name, argument)


def column_major_strides(shape):
    """Strides of matrices that lie column by column. In PyTorch: `batched_matrix_contiguous_strides`."""
    own = (1, max(shape[-2], 1))
    return own if len(shape) == 2 else (*contiguous_strides(shape)[:-2], *own)


def columns(t, shape=None, dtype=None):
    """An output of matrices that lie column by column, as LAPACK leaves its results; by default of t's shape and dtype."""
    shape = t._array.shape if shape is None else shape
    return TensorMeta(shape, dtype or dtype_of(t), column_major_strides(shape))


def pivots_of(A):
    """An output for the rows that were exchanged in each matrix."""
    *batch, m, n = A._array.shape
    return TensorMeta((*batch, min(m, n)), int32)


def info_of(A):
    """An output for what LAPACK reports of each matrix."""
    return TensorMeta(A._array.shape[:-2], int32)


def lapack(name, array):
    """SciPy's binding of a LAPACK routine for the array's dtype."""
    from scipy.linalg import lapack as bindings

    return bindings.get_lapack_funcs((name,), (array,))[0]


# Note [ Infinite numbers in LAPACK ]
# OpenBLAS never returns from the decomposition of some matrices with an infinite element. Such a matrix is not given to
# it: all its factors are nan, as with MKL, which PyTorch uses. A nan is refused, by PyTorch and by NumPy.


def infinite(x):
    """Which matrices have an infinite number; raises NumPy's LinAlgError if there is a nan."""
    if np.isnan(x).any():
        raise np.linalg.LinAlgError("SVD did not converge")
    return np.isinf(x).any((-2, -1))


def svd(x, full_matrices=True, compute_uv=True):
    """NumPy's singular value decomposition. See Note [ Infinite numbers in LAPACK ]."""
    if np.isfinite(x).all():
        return np.linalg.svd(x, full_matrices, compute_uv)
    endless = infinite(x)
    parts = np.linalg.svd(np.where(endless[..., None, None], 0, x), full_matrices, compute_uv)
    for part in parts if compute_uv else [parts]:
        part[endless] = np.nan
    return parts


def each_matrix(function, inputs, outputs):
    """Applies `function` to matrices, one batch element at a time, and stores the results that it returns."""
    for index in np.ndindex(inputs[0].shape[:-2]):
        for out, result in zip(outputs, function(*[a[index] for a in inputs])):
            out[index] = result


def repeated(array, batch):
    """The matrices of `array`, as if there were one for each element of the batch."""
    return np.broadcast_to(array, (*batch, *array.shape[-2:]))


def first_failure(info):
    """(batch prefix for a message, the code) of the first matrix that LAPACK failed on, or None."""
    failed = np.argwhere(info != 0)
    if not len(failed):
        return None
    place = int(np.flatnonzero(info.reshape(-1))[0])
    prefix = f"(Batch element {place}): " if info.ndim else ""
    return prefix, int(info.reshape(-1)[place])


def check_info(info, name, describe):
    """Raises _LinAlgError if LAPACK reported a failure; `describe(code)` says what it means."""
    failure = None if info._keys & META else first_failure(whole_array(info))
    if failure is not None:
        raise _LinAlgError(f"{name}: {failure[0]}{describe(failure[1])}")


def describe_singular(code):
    return (
        f"The diagonal element {code} is zero, the inversion could not be completed because the input "
        f"matrix is singular."
    )


def describe_indefinite(code):
    return (
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        f"order {code} is not positive-definite)."
    )


# ----------------------------------------------------------------------------------------------- LU on arrays


def lu_factor_one(a):
    """(L and U in one matrix, pivots from 1, info)."""
    if not a.size:
        return a.copy(), np.arange(1, min(a.shape) + 1, dtype=np.int32), np.int32(0)
    lu, pivots, info = lapack("getrf", a)(a)
    return lu, (pivots + 1).astype(np.int32), np.int32(info)


def lu_factor(a, lu, pivots, info=None):
    """Factors of each matrix."""
    info = np.empty(a.shape[:-2], np.int32) if info is None else info
    each_matrix(lu_factor_one, [a], [lu, pivots, info])


def lu_solve_one(lu, pivots, b, adjoint):
    if not b.size:
        return b.copy()
    trans = 0 if not adjoint else 2 if lu.dtype.kind == "c" else 1
    return lapack("getrs", lu)(lu, pivots - 1, b, trans)[0]


def lu_solve(lu, pivots, b, x, adjoint=False):
    """x: that of A x = b (or Aᴴ x = b), from A's factors; batches broadcast to that of x."""
    inputs = [repeated(a, x.shape[:-2]) for a in (lu, pivots[..., None, :], b)]
    each_matrix(lambda lu, p, b: (lu_solve_one(lu, p[0], b, adjoint),), inputs, [x])


def parity(pivots):
    """The determinant of the permutation that the pivots spell: -1 for each row that moved."""
    moved = pivots != np.arange(1, pivots.shape[-1] + 1)
    return 1 - 2 * (moved.sum(-1) % 2)
