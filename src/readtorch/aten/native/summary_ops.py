"""bincount: how often each non-negative integer occurs.

In PyTorch: `aten/src/ATen/native/SummaryOps.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.scalar_type import BOOL, FLOAT
from readtorch.c10.tensor_impl import dtype_of, wrap

from .reduce_ops.min_max import comparable
from .tensor_iterator import not_implemented

# ------------------------------------------------------------------------------------------- bincount, histc

bincount = native_function("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", BOTH)


@bincount.kernel
def bincount_cpu(self, weights, minlength):
    x, dtype = self._array, dtype_of(self)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if dtype.category in (BOOL, FLOAT) or dtype.is_complex:
        raise not_implemented("bincount_cpu")(dtype)
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(x, minlength=minlength))
    if weights._array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    target = np.float32 if weights._array.dtype == np.float32 else np.float64
    return wrap(np.bincount(x, comparable(weights._array), minlength).astype(target))
