"""Variance and standard deviation: var, std, and both together with the mean.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp` (`std_var_out`); derivatives in
`torch/csrc/autograd/FunctionsManual.cpp`.
"""

import warnings

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.arithmetic import mul_scalar
from readtorch.aten.native.reduce_ops_utils import reduced_axes, reduction_meta, unreduce
from readtorch.aten.native.tensor_iterator import wrap_reduced
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import dtype_of

from .sum import add_up, mean_array, mean_dim, reduced_count


def sum_of_squares(x):
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def variance_array(array, axes, correction, keepdim):
    """Mean of squared distances from the mean, with `correction` taken from the count; all in double
    precision. The mean is that of the distances from the first number, so that of equal numbers it is exact.
    """
    x = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)
    if x.size:
        x = x - x[tuple(slice(0, 1) if d in axes else slice(None) for d in range(x.ndim))]
        x -= mean_array(x, axes, True, None)
    squares = sum_of_squares(x)
    count = max(0, reduced_count(array.shape, axes) - correction)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(add_up(squares, axes, None, None, keepdim) / np.float64(count))


def variance_meta(self, dim, correction, keepdim, name="std and var"):
    if dtype_of(self).category < FLOAT:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    return reduction_meta(self, reduced_axes(self, dim), keepdim, dtype_of(self).to_real())


def warn_of_freedom(name, self, axes, correction):
    """Warn where fewer numbers are put together than the correction takes from their count."""
    count = reduced_count(self._array.shape, axes) if self._array.size else 0
    if count - correction <= 0:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided "
            "by output numel).",
            stacklevel=6,
        )


def variance_or_std(self, dim, correction, keepdim, root, name):
    dtype = dtype_of(self)
    if dtype.category < FLOAT:
        variance_meta(self, dim, correction, keepdim)
    axes, correction = reduced_axes(self, dim), 1 if correction is None else correction
    warn_of_freedom(name, self, axes, correction)
    variance = variance_array(self._array, axes, correction, keepdim)
    return wrap_reduced((np.sqrt(variance) if root else variance).astype(dtype.to_real().numpy))


def overloads(name, root):
    """Declare var or std: the two older overloads call the one with `correction`."""
    of_all = native_function(f"{name}(Tensor self, bool unbiased=True) -> Tensor", BOTH)
    of_dim = native_function(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", BOTH, out=True
    )
    general = native_function(
        f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
        BOTH,
        out=True,
    )
    general.meta(variance_meta)
    general.kernel(lambda self, dim, correction, keepdim: variance_or_std(self, dim, correction, keepdim, root, name))
    of_all.compose(lambda self, unbiased: general.call(self, None, None if unbiased else 0, False))
    of_dim.compose(lambda self, dim, unbiased, keepdim: general.call(self, dim, int(unbiased), keepdim))
    return general


var = overloads("var", root=False)
std = overloads("std", root=True)


def var_gradient(grad, self, dim, correction, keepdim):
    """2 / (n - correction) * (self - mean) for each element."""
    sizes = self._array.shape
    freedom = reduced_count(sizes, dim) - (1 if correction is None else correction)
    if dim is None:
        distance = self - self.mean()
    else:
        grad = unreduce(grad, sizes, dim, keepdim)
        distance = self - mean_dim.call(self, tuple(dim or range(len(sizes))), True, None)
    if freedom <= 0:
        return grad * at.where(distance == 0, float("nan"), float("inf"))
    return mul_scalar.call(grad, 2.0 / freedom) * distance


def std_gradient(grad, self, result, dim, correction, keepdim):
    """That of the variance over 2 * std; where std is 0 the derivative is taken to be 0."""
    return var_gradient((grad / (result * 2)).masked_fill(result == 0, 0), self, dim, correction, keepdim)


def mean_gradient(grad, sizes, dim, keepdim):
    return unreduce(grad, sizes, dim, keepdim).expand(sizes) / max(1, reduced_count(sizes, dim))


def var_jvp(self_p, self_t, dim, correction, keepdim):
    change = var_gradient(self_t.conj(), self_p, dim, correction, True)
    change = at.real(change) if change.dtype.is_complex else change
    return change.sum(dim or (), keepdim)


def std_jvp(self_p, self_t, dim, correction, keepdim, result):
    return (var_jvp(self_p, self_t, dim, correction, keepdim) / (2 * result)).masked_fill(result == 0, 0)


@var.backward
class VarBackward0:
    self = var_gradient

    result = var_jvp


@std.backward
class StdBackward0:
    self = std_gradient

    result = std_jvp


# ---------------------------------------------------------------------------------------------- with the mean


def overloads_with_mean(name, root):
    of_all = native_function(f"{name}_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)")
    of_dim = native_function(
        f"{name}_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)"
    )
    general = native_function(
        f"{name}_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)"
    )

    @general.meta
    def with_mean_meta(self, dim, correction, keepdim):
        variance = variance_meta(self, dim, correction, keepdim, f"{name}_mean")
        return variance, TensorMeta(variance.shape, dtype_of(self))

    @general.kernel
    def variance_or_std_and_mean(self, dim, correction, keepdim):
        if dtype_of(self).category < FLOAT:
            with_mean_meta(self, dim, correction, keepdim)
        result = variance_or_std(self, dim, correction, keepdim, root, f"{name}_mean")
        with np.errstate(invalid="ignore"):
            return result, wrap_reduced(mean_array(self._array, reduced_axes(self, dim), keepdim, None))

    of_all.compose(lambda self, unbiased: general.call(self, None, int(unbiased), False))
    of_dim.compose(lambda self, dim, unbiased, keepdim: general.call(self, dim, int(unbiased), keepdim))
    return general


var_mean = overloads_with_mean("var", root=False)
std_mean = overloads_with_mean("std", root=True)


def sum_of_two(first, second):
    return second if first is None else first if second is None else first + second


@var_mean.backward
class VarMeanBackward0:
    def self(grads, self, dim, correction, keepdim):
        from_var = None if grads[0] is None else var_gradient(grads[0], self, dim, correction, keepdim)
        from_mean = None if grads[1] is None else mean_gradient(grads[1], self._array.shape, dim, keepdim)
        return sum_of_two(from_var, from_mean)

    result0 = var_jvp

    def result1(self_t, dim, keepdim):
        return at.mean(self_t, dim or (), keepdim)


@std_mean.backward
class StdMeanBackward0:
    def self(grads, self, result0, dim, correction, keepdim):
        from_std = None if grads[0] is None else std_gradient(grads[0], self, result0, dim, correction, keepdim)
        from_mean = None if grads[1] is None else mean_gradient(grads[1], self._array.shape, dim, keepdim)
        return sum_of_two(from_std, from_mean)

    def result0(self_p, self_t, dim, correction, keepdim, result0):
        return std_jvp(self_p, self_t, dim, correction, keepdim, result0)

    def result1(self_t, dim, keepdim):
        return at.mean(self_t, dim or (), keepdim)
