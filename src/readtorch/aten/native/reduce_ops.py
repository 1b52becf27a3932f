"""Reductions: many elements to one.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp`.
"""
import math

import numpy as np

from ...c10 import scalar_type
from ...c10.tensor_impl import wrap_result
from ...c10.wrap_dim import wrap_dims
from ..functions import at
from ..native_function import native_function

sum_all = native_function("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", "", name="sum")
sum_dim = native_function(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "function, method",
    out=True)


def sum_array(array, dim, keepdim, dtype):
    """Integers and bools add up in int64, 16-bit floats in float32."""
    target = dtype or (scalar_type.int64 if array.dtype.kind in "iub" else scalar_type.by_numpy[array.dtype])
    wide = scalar_type.op_math_type(target).numpy
    return np.add.reduce(array, dim, wide, None, keepdim).astype(target.numpy, copy=False)


@sum_all.kernel
def sum_all_cpu(self, dtype):
    return wrap_result(sum_array(self._array, None, False, dtype))


@sum_all.backward
class SumBackward0:
    def self(grad, self_sym_sizes):
        return grad.expand(self_sym_sizes)


@sum_dim.kernel
def sum_dim_cpu(self, dim, keepdim, dtype):
    return wrap_result(sum_array(self._array, reduced_axes(self, dim), keepdim, dtype))


def reduced_axes(t, dim):
    """The axes that `dim` names; no dims at all means every one."""
    ndim = t._array.ndim
    axes = wrap_dims(dim, ndim) if dim else range(ndim)
    return tuple(axes) if ndim else ()


@sum_dim.backward
class SumBackward1:
    def self(grad, self_sym_sizes, dim, keepdim):
        return unreduce(grad, self_sym_sizes, dim, keepdim).expand(self_sym_sizes)


def unreduce(grad, sizes, dim, keepdim):
    """`grad` with the reduced dimensions back, of size 1."""
    if keepdim or not sizes:
        return grad
    axes = wrap_dims(dim, len(sizes)) if dim else range(len(sizes))
    return grad.reshape([1 if d in axes else n for d, n in enumerate(sizes)])


sum_to_size = native_function("sum_to_size(Tensor self, SymInt[] size) -> Tensor", "function, method")


@sum_to_size.compose
def sum_to_size_composite(self, size):
    shape = self._array.shape
    added = len(shape) - len(size)
    if added < 0 or any(n not in (1, m) for n, m in zip(size, shape[added:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    dims = [d for d in range(len(shape)) if d < added or (size[d - added] == 1 and shape[d] != 1)]
    result = at.sum(self, dims, True) if dims else self
    return result.reshape(size) if added else result


# -------------------------------------------------------------------------------------------------------- mean

mean_all = native_function("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", "function, method", out=True)
mean_dim = native_function(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "function, method", out=True)


def mean_array(array, axes, keepdim, dtype):
    target = dtype or scalar_type.by_numpy[array.dtype]
    if target.category < scalar_type.FLOAT:
        kind = "Input" if dtype is None else "Optional"
        raise RuntimeError(f"mean(): could not infer output dtype. {kind} dtype must be either a floating point or complex dtype. "
                           f"Got: {scalar_type.SCALAR_TYPE_NAMES[target]}")
    total = np.add.reduce(array, axes, scalar_type.op_math_type(target).numpy, None, keepdim)
    count = array.size // total.size if total.size else math.prod([array.shape[d] for d in axes])
    return (total / total.dtype.type(count)).astype(target.numpy, copy=False)


@mean_all.kernel
def mean_all_cpu(self, dtype):
    return wrap_result(mean_array(self._array, None, False, dtype))


@mean_all.backward
class MeanBackward0:
    def self(grad, self_sym_sizes):
        return grad.expand(self_sym_sizes) / math.prod(self_sym_sizes)


@mean_dim.kernel
def mean_dim_cpu(self, dim, keepdim, dtype):
    return wrap_result(mean_array(self._array, reduced_axes(self, dim), keepdim, dtype))


@mean_dim.backward
class MeanBackward1:
    def self(grad, self_sym_sizes, dim, keepdim):
        count = math.prod([self_sym_sizes[d] for d in wrap_dims(dim or range(len(self_sym_sizes)), len(self_sym_sizes))]
                          if self_sym_sizes else [])
        return unreduce(grad, self_sym_sizes, dim, keepdim).expand(self_sym_sizes) / count
