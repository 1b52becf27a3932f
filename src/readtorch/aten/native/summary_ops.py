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


def check_bincount(self, weights, minlength, kernel_name, least):
    """How many numbers there can be is known to the elements alone: no shape rule says it. least: asks for the least."""
    dtype, shape = dtype_of(self), self._array.shape
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if dtype.category in (BOOL, FLOAT) or dtype.is_complex:
        raise not_implemented(kernel_name)(dtype)
    if len(shape) != 1 or (shape[0] and least() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")


@bincount.kernel
def bincount_cpu(self, weights, minlength):
    check_bincount(self, weights, minlength, "bincount_cpu", self._array.min)
    if weights is None:
        return wrap(np.bincount(self._array, minlength=minlength))
    target = np.float32 if weights._array.dtype == np.float32 else np.float64
    return wrap(np.bincount(self._array, comparable(weights._array), minlength).astype(target))
