"""The larger or the smaller of two tensors, element by element: maximum, minimum, fmax, fmin.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import F4, computing, elementwise, in_order, not_implemented, result_type
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.tensor_impl import wrap_result


def binary(name, ufunc, function, takes=None, common=result_type, inplace=True, check=None, cuda_takes=None):
    """Declare `name(Tensor self, Tensor other)`. takes: the dtypes that its kernels know; other settings: see `elementwise`."""
    python_name = name.partition(".")[0]
    operator = native_function(
        f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=inplace, out=True, direct=True, name=python_name
    )
    elementwise(operator, function, common, check=check, takes=cuda_takes or takes)

    @operator.kernel
    def kernel(self, other):
        x, y = self._array, other._array
        if x.dtype is F4 and y.dtype is F4 and x.shape == y.shape:
            value = ufunc(x, y)
            return wrap_result(value if x.ndim == 1 or x.strides == y.strides else in_order(value, x, y))
        dtype = common(self, other)
        if check:
            check(self, other)
        if takes and not takes(dtype):
            raise not_implemented(f"{python_name}_cpu")(dtype)
        return computing(ufunc, self, other, common=dtype)

    return operator


# ----------------------------------------------------------------------------------------- larger and smaller


def no_complex(name):
    def check(self, other):
        if "c" in (self._array.dtype.kind, other._array.dtype.kind):
            raise RuntimeError(f"{name} not implemented for complex tensors.")

    return check


def larger_or_smaller(name, ufunc, function):
    return binary(name, ufunc, function, inplace=False, check=no_complex(name))


maximum = larger_or_smaller("maximum", np.maximum, f.maximum)
minimum = larger_or_smaller("minimum", np.minimum, f.minimum)
fmax = larger_or_smaller("fmax", np.fmax, f.fmax)
fmin = larger_or_smaller("fmin", np.fmin, f.fmin)


def shared_gradient(grad, self, other, loses):
    """Gradient of `self` in maximum or minimum: half where both are equal, none where it loses."""
    return at.where(self == other, grad / 2, grad).masked_fill(loses, 0)


def between(first, both, self_t, other_t):
    """The tangent of the element that is chosen: the first where `first` holds, and half of each where both are equal."""
    share = at.where(both, 0.5, first.to(self_t.dtype))
    return other_t + share * (self_t - other_t)


@maximum.backward
class MaximumBackward0:
    def self(grad, self, other):
        return shared_gradient(grad, self, other, self < other)

    def other(grad, self, other):
        return shared_gradient(grad, self, other, self > other)

    def result(self_p, self_t, other_p, other_t):
        return between(self_p > other_p, self_p == other_p, self_t, other_t)


@minimum.backward
class MinimumBackward0:
    def self(grad, self, other):
        return shared_gradient(grad, self, other, self > other)

    def other(grad, self, other):
        return shared_gradient(grad, self, other, self < other)

    def result(self_p, self_t, other_p, other_t):
        return between(self_p < other_p, self_p == other_p, self_t, other_t)


@fmax.backward
class FmaxBackward0:
    def self(grad, self, other):
        return grad.masked_fill(~((self >= other) | other.isnan()), 0)

    def other(grad, self, other):
        return grad.masked_fill((self >= other) | other.isnan(), 0)

    def result(self_p, self_t, other_p, other_t):
        return other_t + ((self_p > other_p) | other_p.isnan()) * (self_t - other_t)


@fmin.backward
class FminBackward0:
    def self(grad, self, other):
        return grad.masked_fill(~((self <= other) | other.isnan()), 0)

    def other(grad, self, other):
        return grad.masked_fill((self <= other) | other.isnan(), 0)

    def result(self_p, self_t, other_p, other_t):
        return other_t + ((self_p <= other_p) | other_p.isnan()) * (self_t - other_t)
