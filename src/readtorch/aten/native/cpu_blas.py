"""gemm: alpha · x y + beta · out, written into `out` by BLAS itself.

NumPy's `dot` can only overwrite. A bias that is in `out` before the product starts costs no pass over
memory of its own.

In PyTorch: `aten/src/ATen/native/CPUBlas.cpp`.
"""
import functools

import numpy as np

from .. import parallel

F4, F8 = np.dtype(np.float32), np.dtype(np.float64)


@functools.cache
def routine(dtype):
    """SciPy's binding; imported when first needed."""
    from scipy.linalg import blas
    parallel.claim_cores()
    return blas.sgemm if dtype is F4 else blas.dgemm


def gemm(x, y, out, beta=1.0, alpha=1.0):
    """`out` is contiguous by rows and of x's type, float32 or float64; no size may be 0.

    BLAS thinks in columns. Read by columns, the memory of `out` is outᵀ = yᵀ xᵀ.
    """
    by_rows = y.flags.c_contiguous
    x_by_rows = x.flags.c_contiguous
    routine(out.dtype)(
        alpha, y.T if by_rows else y, x.T if x_by_rows else x, beta, out.T, not by_rows, not x_by_rows, True
    )
