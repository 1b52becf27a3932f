"""Reductions: sum, mean, prod, extremes, all, any, variances and norms.

In PyTorch: `aten/src/ATen/native/cuda/ReduceOps.cpp`, `aten/src/ATen/native/cuda/ReduceSumProdKernel.cu`,
`aten/src/ATen/native/cuda/ReduceMomentKernel.cu`, `aten/src/ATen/native/cuda/ReduceNormKernel.cu`,
`aten/src/ATen/native/cuda/ReduceLogicKernel.cu`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.reduce_ops.min_max import check_not_empty, check_reducible
from readtorch.aten.native.reduce_ops.sum import check_mean_type, reduced_axes, reduced_count, sum_type
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT, op_math_type
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .copy import copy as copy_kernel
from .reduce import ALL, AMAX, AMIN, ANY, MEAN, NORM_1, NORM_2, NORM_INF, PROD, SUM, reduce
from .reduce_arg_max_kernel import arg_reduce, largest, smallest
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .rows import flat

LONG = np.dtype(np.int64)


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


def kept_shape(self, axes, keepdim):
    """The result's shape."""
    return [1 if d in axes else n for d, n in enumerate(self._array.shape) if keepdim or d not in axes]


def reduced(reduction, self, axes, keepdim, result, computing=None):
    """The tensor of dtype `result` that `reduction` gives over these axes."""
    computing = computing or wide_enough(result)
    out = empty(kept_shape(self, axes, keepdim), computing)
    reduce(reduction, self._array, tuple(axes), out._array)
    return converted(out, result)


def all_axes(self):
    return tuple(range(self._array.ndim))


@cuda_kernel(operator_named("sum"))
def sum_cuda(self, dtype):
    return reduced(SUM, self, all_axes(self), False, sum_type(self._array, dtype).numpy)


@cuda_kernel(operator_named("sum.dim_IntList"))
def sum_dim_cuda(self, dim, keepdim, dtype):
    return reduced(SUM, self, reduced_axes(self, dim), keepdim, sum_type(self._array, dtype).numpy)


@cuda_kernel(operator_named("mean"))
def mean_cuda(self, dtype):
    return mean_dim_cuda(self, None, False, dtype)


@cuda_kernel(operator_named("mean.dim"))
def mean_dim_cuda(self, dim, keepdim, dtype):
    target = dtype or dtype_of(self)
    check_mean_type(target, dtype)
    return reduced(MEAN, self, reduced_axes(self, dim), keepdim, target.numpy)


@cuda_kernel(operator_named("prod"))
def prod_cuda(self, dtype):
    return reduced(PROD, self, all_axes(self), False, sum_type(self._array, dtype).numpy)


@cuda_kernel(operator_named("prod.dim_int"))
def prod_dim_cuda(self, dim, keepdim, dtype):
    return reduced(PROD, self, reduced_axes(self, (dim,)), keepdim, sum_type(self._array, dtype).numpy)


def truth_of(name, reduction):
    def result(self):
        return np.dtype(np.uint8 if self._array.dtype == np.uint8 else np.bool_)

    def over(self, axes, keepdim):
        return reduced(reduction, self, axes, keepdim, result(self), np.dtype(np.bool_))

    cuda_kernel(operator_named(name))(lambda self: over(self, all_axes(self), False))
    cuda_kernel(operator_named(f"{name}.dim"))(
        lambda self, dim, keepdim: over(self, reduced_axes(self, (dim,)), keepdim)
    )
    cuda_kernel(operator_named(f"{name}.dims"))(
        lambda self, dim, keepdim: over(self, () if dim is not None and not dim else reduced_axes(self, dim), keepdim)
    )


truth_of("all", ALL)
truth_of("any", ANY)


def extremes(name, reduction, wins):
    """max or min in all its forms, amax, argmax."""
    result_of = getattr(return_types, name)

    def dims_extreme(self, dim, keepdim):
        if not dim:
            check_not_empty(f"a{name}", self._array)
        axes = reduced_axes(self, dim)
        for axis in axes:
            check_reducible(f"a{name}", self._array, axis)
        return reduced(reduction, self, axes, keepdim, self._array.dtype)

    def total(self):
        check_not_empty(name, self._array)
        return reduced(reduction, self, all_axes(self), False, self._array.dtype)

    def with_index(self, dim, keepdim):
        axis = wrap_dim(dim, self._array.ndim)
        check_reducible(name, self._array, axis)
        values, indices = found(wins, self, (axis,) if self._array.ndim else (), keepdim)
        return result_of(values, indices)

    def place(self, dim, keepdim):
        if dim is None:
            if not self._array.size:
                raise IndexError(f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            return index_of_all(wins, self, keepdim)
        axis = wrap_dim(dim, self._array.ndim)
        check_reducible(f"arg{name}", self._array, axis)
        return found(wins, self, (axis,) if self._array.ndim else (), keepdim)[1]

    cuda_kernel(operator_named(f"a{name}"))(dims_extreme)
    cuda_kernel(operator_named(name))(total)
    cuda_kernel(operator_named(f"{name}.dim"))(with_index)
    cuda_kernel(operator_named(f"arg{name}"))(place)


def found(wins, self, axes, keepdim):
    """(values, indices) of the extremes along one axis, or of a tensor without dimensions."""
    shape = kept_shape(self, axes, keepdim)
    wide = wide_enough(self._array.dtype)
    values, indices = empty(shape, wide), empty(shape, LONG)
    source = converted(self, wide)._array
    arg_reduce(wins, source, axes[0] if axes else 0, values._array, indices._array)
    return converted(values, self._array.dtype), indices


def index_of_all(wins, self, keepdim):
    wide = wide_enough(self._array.dtype)
    row = flat(converted(self, wide)._array)
    value, index = empty((), wide), empty([1] * self._array.ndim if keepdim else (), LONG)
    arg_reduce(wins, row, 0, value._array, index._array)
    return index


extremes("max", AMAX, largest)
extremes("min", AMIN, smallest)


@cuda_kernel(operator_named("aminmax"))
def aminmax_cuda(self, dim, keepdim):
    axes = reduced_axes(self, None if dim is None else (dim,))
    return return_types.aminmax(*[reduced(r, self, axes, keepdim, self._array.dtype) for r in (AMIN, AMAX)])


def variance(self, dim, correction, keepdim):
    """The mean first, then the squared distances from it: no cancellation."""
    if dtype_of(self).category < FLOAT:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    count = reduced_count(self._array.shape, dim)
    distance = self - mean_dim_cuda(self, dim, True, None)
    total = sum_dim_cuda(distance * distance, dim, keepdim, None)
    freedom = max(0, count - (1 if correction is None else correction))
    return total / freedom if freedom else total / at.zeros_like(total)


cuda_kernel(operator_named("var.correction"))(variance)
cuda_kernel(operator_named("std.correction"))(
    lambda self, dim, correction, keepdim: variance(self, dim, correction, keepdim).sqrt()
)
cuda_kernel(operator_named("var_mean.correction"))(
    lambda self, dim, correction, keepdim: (
        variance(self, dim, correction, keepdim),
        mean_dim_cuda(self, dim, keepdim, None),
    )
)
cuda_kernel(operator_named("std_mean.correction"))(
    lambda self, dim, correction, keepdim: (
        variance(self, dim, correction, keepdim).sqrt(),
        mean_dim_cuda(self, dim, keepdim, None),
    )
)


NORMS = {1: NORM_1, 2: NORM_2, math.inf: NORM_INF}


@cuda_kernel(operator_named("linalg_vector_norm"))
def vector_norm_cuda(self, ord, dim, keepdim, dtype):
    self = self if dtype is None else self.to(dtype)
    reduction, axes = NORMS.get(ord), reduced_axes(self, dim)
    if reduction is not None:
        return reduced(reduction, self, axes, keepdim, self._array.dtype)
    if ord == -math.inf:
        return reduced(AMIN, self.abs(), axes, keepdim, self._array.dtype)
    if ord == 0:
        return sum_dim_cuda(at.ne(self, 0).to(self.dtype), axes, keepdim, None)
    return sum_dim_cuda(self.abs() ** ord, axes, keepdim, None) ** (1.0 / ord)


@cuda_kernel(operator_named("norm.ScalarOpt_dim"))
def norm_dim_cuda(self, p, dim, keepdim):
    return vector_norm_cuda(self, 2 if p is None else p, dim, keepdim, None)


@cuda_kernel(operator_named("norm.Scalar"))
def norm_cuda(self, p):
    return vector_norm_cuda(self, p, None, False, None)


@cuda_kernel(operator_named("logsumexp"))
def logsumexp_cuda(self, dim, keepdim):
    self = self if dtype_of(self).category >= FLOAT else self.to(scalar_type.get_default_dtype())
    axes = reduced_axes(self, dim)
    largest = at.amax(self, axes, True)
    largest = largest.masked_fill(largest.abs() == math.inf, 0)
    total = sum_dim_cuda((self - largest).exp(), axes, keepdim, None).log()
    return total + (largest if keepdim else largest.reshape(total._array.shape))


@cuda_kernel(operator_named("count_nonzero"), operator_named("count_nonzero.dim_IntList"))
def count_nonzero_cuda(self, dim):
    return at.ne(self, 0).sum(dim)


@cuda_kernel(operator_named("nansum"))
def nansum_cuda(self, dim, keepdim, dtype):
    if dtype_of(self).is_complex:
        raise RuntimeError("nansum does not support complex inputs")
    numbers = self if dtype_of(self).category < FLOAT else at.where(self != self, 0.0, self)
    return at.sum(numbers, dim, keepdim, dtype=dtype)
