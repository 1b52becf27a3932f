"""Reductions: sum, mean, prod, extremes, all, any, spreads and norms; cumulative sums; sort and topk.

In PyTorch:
`aten/src/ATen/native/cuda/{ReduceSumProdKernel,ReduceMomentKernel,ReduceNormKernel,ReduceMaxValuesKernel,
ReduceArgMaxKernel,ReduceLogicKernel,TensorCompare,ScanKernels,Sort,TensorTopK}`.
"""

import math

import numpy as np

from .....c10 import scalar_type
from .....c10.scalar_type import FLOAT, op_math_type
from .....c10.tensor_impl import dtype_of
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ... import return_types
from ...reduce_ops.min_max import check_not_empty, check_reducible
from ...reduce_ops.sum import check_mean_type, reduced_axes, reduced_count, sum_type
from ...tensor_iterator import not_implemented
from .. import arg_reduce, scan, sort
from .. import reduce as kernels
from ..copy import copy as copy_kernel
from ..rows import flat
from .pointwise import operator_named
from .registration import cuda_kernel, empty

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
    kernels.reduce(reduction, self._array, tuple(axes), out._array)
    return converted(out, result)


def all_axes(self):
    return tuple(range(self._array.ndim))


# ---------------------------------------------------------------------------------------------- sum, mean,
# prod


@cuda_kernel(operator_named("sum"))
def sum_cuda(self, dtype):
    return reduced(kernels.SUM, self, all_axes(self), False, sum_type(self._array, dtype).numpy)


@cuda_kernel(operator_named("sum.dim_IntList"))
def sum_dim_cuda(self, dim, keepdim, dtype):
    return reduced(kernels.SUM, self, reduced_axes(self, dim), keepdim, sum_type(self._array, dtype).numpy)


@cuda_kernel(operator_named("mean"))
def mean_cuda(self, dtype):
    return mean_dim_cuda(self, None, False, dtype)


@cuda_kernel(operator_named("mean.dim"))
def mean_dim_cuda(self, dim, keepdim, dtype):
    target = dtype or dtype_of(self)
    check_mean_type(target, dtype)
    return reduced(kernels.MEAN, self, reduced_axes(self, dim), keepdim, target.numpy)


@cuda_kernel(operator_named("prod"))
def prod_cuda(self, dtype):
    return reduced(kernels.PROD, self, all_axes(self), False, sum_type(self._array, dtype).numpy)


@cuda_kernel(operator_named("prod.dim_int"))
def prod_dim_cuda(self, dim, keepdim, dtype):
    return reduced(
        kernels.PROD, self, reduced_axes(self, (dim,)), keepdim, sum_type(self._array, dtype).numpy
    )


# --------------------------------------------------------------------------------------------------- all and
# any


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
        lambda self, dim, keepdim: over(
            self, () if dim is not None and not dim else reduced_axes(self, dim), keepdim
        )
    )


truth_of("all", kernels.ALL)
truth_of("any", kernels.ANY)


# ------------------------------------------------------------------------------------------------------
# extremes


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
                raise IndexError(
                    f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0."
                )
            return place_of_all(wins, self, keepdim)
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
    arg_reduce.arg_reduce(wins, source, axes[0] if axes else 0, values._array, indices._array)
    return converted(values, self._array.dtype), indices


def place_of_all(wins, self, keepdim):
    wide = wide_enough(self._array.dtype)
    row = flat(converted(self, wide)._array)
    value, index = empty((), wide), empty([1] * self._array.ndim if keepdim else (), LONG)
    arg_reduce.arg_reduce(wins, row, 0, value._array, index._array)
    return index


extremes("max", kernels.AMAX, arg_reduce.greatest)
extremes("min", kernels.AMIN, arg_reduce.least)


@cuda_kernel(operator_named("aminmax"))
def aminmax_cuda(self, dim, keepdim):
    axes = reduced_axes(self, None if dim is None else (dim,))
    return return_types.aminmax(
        *[reduced(r, self, axes, keepdim, self._array.dtype) for r in (kernels.AMIN, kernels.AMAX)]
    )


# ------------------------------------------------------------------------------------------------ spreads,
# norms


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

NORMS = {1: kernels.NORM_1, 2: kernels.NORM_2, math.inf: kernels.NORM_INF}


@cuda_kernel(operator_named("linalg_vector_norm"))
def vector_norm_cuda(self, ord, dim, keepdim, dtype):
    self = self if dtype is None else self.to(dtype)
    reduction, axes = NORMS.get(ord), reduced_axes(self, dim)
    if reduction is not None:
        return reduced(reduction, self, axes, keepdim, self._array.dtype)
    if ord == -math.inf:
        return reduced(kernels.AMIN, self.abs(), axes, keepdim, self._array.dtype)
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
    greatest = at.amax(self, axes, True)
    greatest = greatest.masked_fill(greatest.abs() == math.inf, 0)
    total = sum_dim_cuda((self - greatest).exp(), axes, keepdim, None).log()
    return total + (greatest if keepdim else greatest.reshape(total._array.shape))


# -------------------------------------------------------------------------------------------- along a
# dimension


def cumulative(name, run):
    @cuda_kernel(operator_named(name))
    def kernel(self, dim, dtype):
        dim = wrap_dim(dim, self._array.ndim)
        target = sum_type(self._array, dtype).numpy
        out = empty(self._array.shape, wide_enough(target))
        run(self._array, dim, out._array)
        return converted(out, target)


cumulative("cumsum", scan.cumsum)
cumulative("cumprod", scan.cumprod)


def running_extreme(name, wins):
    @cuda_kernel(operator_named(name))
    def kernel(self, dim):
        dim = wrap_dim(dim, self._array.ndim)
        x = converted(self, wide_enough(self._array.dtype))
        values, indices = empty(self._array.shape, x._array.dtype), empty(self._array.shape, LONG)
        scan.running_extreme(wins, x._array, dim, values._array, indices._array)
        return getattr(return_types, name)(converted(values, self._array.dtype), indices)


running_extreme("cummax", scan.at_least)
running_extreme("cummin", scan.at_most)


@cuda_kernel(operator_named("logcumsumexp"))
def logcumsumexp_cuda(self, dim):
    dim, dtype = wrap_dim(dim, self._array.ndim), dtype_of(self)
    if not dtype.is_floating_point:
        raise not_implemented("logcumsumexp_cuda")(dtype)
    out = empty(self._array.shape, wide_enough(self._array.dtype))
    scan.logcumsumexp(self._array, dim, out._array)
    return converted(out, self._array.dtype)


def sorted_first(result, self, k, dim, largest):
    """The first `k` of the sorted rows, with their places."""
    shape = list(self._array.shape)
    dim = wrap_dim(dim, len(shape))
    if shape:
        shape[dim] = k
    values, indices = empty(shape, self._array.dtype), empty(shape, LONG)
    sort.topk(self._array, k, dim if shape else 0, largest, values._array, indices._array)
    return result(values, indices)


def length_along(self, dim):
    return self._array.shape[wrap_dim(dim, self._array.ndim)] if self._array.ndim else 1


@cuda_kernel(operator_named("sort"))
def sort_cuda(self, dim, descending):
    return sorted_first(return_types.sort, self, length_along(self, dim), dim, descending)


@cuda_kernel(operator_named("sort.stable"))
def stable_sort_cuda(self, stable, dim, descending):
    return sort_cuda(self, dim, descending)


@cuda_kernel(operator_named("topk"))
def topk_cuda(self, k, dim, largest, sorted):
    if not 0 <= k <= length_along(self, dim):
        raise RuntimeError("selected index k out of range")
    return sorted_first(return_types.topk, self, k, dim, largest)
