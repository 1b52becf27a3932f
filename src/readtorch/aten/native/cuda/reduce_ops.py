"""Reductions: sum, mean, prod, extremes, all, any, variances and norms.

In PyTorch: `aten/src/ATen/native/cuda/ReduceOps.cpp`, `aten/src/ATen/native/cuda/ReduceSumProdKernel.cu`,
`aten/src/ATen/native/cuda/ReduceMomentKernel.cu`, `aten/src/ATen/native/cuda/ReduceNormKernel.cu`,
`aten/src/ATen/native/cuda/ReduceLogicKernel.cu`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.reduce_ops.all_any import axes_of
from readtorch.aten.native.reduce_ops.sum import reduced_count
from readtorch.aten.native.reduce_ops_utils import axes_along, reduced_axes
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT, op_math_type
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .copy import copy as copy_kernel
from .reduce import ALL, AMAX, AMIN, ANY, COUNT, MEAN, NORM_1, NORM_2, NORM_INF, PROD, SUM, reduce
from .reduce_arg_max_kernel import arg_reduce, largest, smallest
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
from .rows import flat

BOOL, LONG = np.dtype(np.bool_), np.dtype(np.int64)


def converted(t, numpy_dtype):
    """`t`, or a copy of it of this dtype."""
    if t._array.dtype == numpy_dtype:
        return t
    result = empty(t._array.shape, numpy_dtype)
    copy_kernel(t._array, result._array)
    return result


def wide_enough(numpy_dtype):
    """The dtype to reduce in: shuffles move 32 or 64 bits."""
    if numpy_dtype.kind in "iub" and numpy_dtype.itemsize < 4:
        return np.dtype(np.int32)
    return op_math_type(scalar_type.by_numpy[numpy_dtype]).numpy


def store(compute, out, wide=None):
    """`compute(array)` for a contiguous array of the dtype `wide`, by default the narrowest that can be reduced: that of
    `out`, or another one that is then copied to it."""
    wide = wide or wide_enough(out._array.dtype)
    if wide == out._array.dtype and out._array.flags.c_contiguous:
        compute(out._array)
        return
    work = empty(out._array.shape, wide)._array
    compute(work)
    copy_kernel(work, out._array)


# ----------------------------------------------------------------------------------------------- plain reductions


def reduce_to(reduction, self, axes, out):
    """Fill `out` with a reduction of `self` over these axes."""
    wide = BOOL if reduction in (ALL, ANY) else None
    store(lambda array: reduce(reduction, self._array, axes, array), out, wide)


def over_all(self, *_):
    return reduced_axes(self, None)


def register(reduction, name, axes_of):
    """axes_of: the operator's inputs -> the axes to reduce."""
    cuda_impl(operator_named(name))(lambda self, *rest: reduce_to(reduction, self, axes_of(self, *rest[:1]), rest[-1]))


# Reduction, operator, and which axes its arguments name.
for _reduction, _name, _axes in (
    (SUM, "sum", over_all),
    (SUM, "sum.dim_IntList", reduced_axes),
    (MEAN, "mean", over_all),
    (MEAN, "mean.dim", reduced_axes),
    (PROD, "prod", over_all),
    (PROD, "prod.dim_int", axes_along),
    (COUNT, "count_nonzero", axes_along),
    (COUNT, "count_nonzero.dim_IntList", reduced_axes),
    (AMAX, "max", over_all),
    (AMAX, "amax", reduced_axes),
    (AMIN, "min", over_all),
    (AMIN, "amin", reduced_axes),
    (ALL, "all", over_all),
    (ALL, "all.dim", axes_along),
    (ALL, "all.dims", axes_of),
    (ANY, "any", over_all),
    (ANY, "any.dim", axes_along),
    (ANY, "any.dims", axes_of),
):
    register(_reduction, _name, _axes)


@cuda_impl(operator_named("aminmax"))
def aminmax_cuda(self, dim, keepdim, least, greatest):
    for reduction, out in ((AMIN, least), (AMAX, greatest)):
        reduce_to(reduction, self, axes_along(self, dim), out)


# ------------------------------------------------------------------------------------- extremes with their places


def extremes(name, wins):
    """max or min along a dimension, and argmax or argmin."""

    @cuda_impl(operator_named(f"{name}.dim"))
    def with_index(self, dim, keepdim, values, indices):
        x = converted(self, wide_enough(self._array.dtype))._array
        store(lambda array: arg_reduce(wins, x, wrap_dim(dim, x.ndim), array, indices._array), values)

    @cuda_impl(operator_named(f"arg{name}"))
    def place(self, dim, keepdim, out):
        x = converted(self, wide_enough(self._array.dtype))._array
        x, axis = (flat(x), 0) if dim is None else (x, wrap_dim(dim, x.ndim))
        arg_reduce(wins, x, axis, empty(out._array.shape, x.dtype)._array, out._array)


extremes("max", largest)
extremes("min", smallest)

# -------------------------------------------------------------------------------------------- variances and norms


def variance(self, dim, correction, keepdim, root):
    """The mean first, then the squared distances from it: no cancellation."""
    count = reduced_count(self._array.shape, dim)
    distance = self - at.mean(self, dim, True)
    total = at.sum(distance * distance, dim, keepdim)
    freedom = max(0, count - (1 if correction is None else correction))
    result = total / freedom if freedom else total / at.zeros_like(total)
    return result.sqrt() if root else result


def variance_of(name, root):
    @cuda_impl(operator_named(f"{name}.correction"))
    def fill(self, dim, correction, keepdim, out):
        copy_kernel(variance(self, dim, correction, keepdim, root)._array, out._array)

    @cuda_impl(operator_named(f"{name}_mean.correction"))
    def fill_with_mean(self, dim, correction, keepdim, out, mean):
        fill(self, dim, correction, keepdim, out)
        reduce_to(MEAN, self, reduced_axes(self, dim), mean)


variance_of("var", root=False)
variance_of("std", root=True)


NORMS = {1: NORM_1, 2: NORM_2, math.inf: NORM_INF}


@cuda_impl(operator_named("linalg_vector_norm"))
def vector_norm_cuda(self, ord, dim, keepdim, dtype, out):
    self = self if dtype is None else self.to(dtype)
    axes = reduced_axes(self, dim)
    if ord in NORMS:
        reduce_to(NORMS[ord], self, axes, out)
    elif ord == -math.inf:
        reduce_to(AMIN, self.abs(), axes, out)
    elif ord == 0:
        reduce_to(SUM, at.ne(self, 0).to(out.dtype), axes, out)
    else:
        copy_kernel((at.sum(self.abs() ** ord, axes, keepdim) ** (1.0 / ord))._array, out._array)


# ------------------------------------------------------------------------------------------- made of other operators


@cuda_impl(operator_named("logsumexp"))
def logsumexp_cuda(self, dim, keepdim, out):
    x, axes = self.to(dtype_of(out)), reduced_axes(self, dim)
    if not x._array.size:
        total = at.sum(x, axes, keepdim).log()
    else:
        largest = at.amax(x, axes, True)
        largest = largest.masked_fill(largest.abs() == math.inf, 0)
        total = at.sum((x - largest).exp(), axes, True).log() + largest
    copy_kernel(total._array.reshape(out._array.shape), out._array)


@cuda_kernel(operator_named("nansum"))
def nansum_cuda(self, dim, keepdim, dtype):
    if dtype_of(self).is_complex:
        raise RuntimeError("nansum does not support complex inputs")
    numbers = self if dtype_of(self).category < FLOAT else at.where(self != self, 0.0, self)
    return at.sum(numbers, dim, keepdim, dtype=dtype)
