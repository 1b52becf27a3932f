"""The larger or the smaller of two tensors, element by element: maximum, minimum, fmax, fmin.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_iterator import F4, computing, result_type
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.scalar_type import COMPLEX
from readtorch.c10.tensor_impl import wrap_result


def binary(name, function, refusal, refused=(COMPLEX,), common_type=result_type, inplace=True):
    """Declare `name(Tensor self, Tensor other)`; `refusal(dtype)` is raised for dtypes of the categories `refused`."""
    python_name = name.partition(".")[0]
    operator = native_function(
        f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=inplace, out=True, direct=True, name=python_name
    )

    @operator.kernel
    def kernel(self, other):
        x, y = self._array, other._array
        if x.dtype is F4 and y.dtype is F4 and x.shape == y.shape:
            return wrap_result(function(x, y))
        common = common_type(self, other)
        if common.category in refused:
            raise refusal(common)
        return computing(function, self, other, common=common)

    return operator


def no_complex(name):
    return lambda dtype: RuntimeError(f"{name} not implemented for complex tensors.")


# ----------------------------------------------------------------------------------------- larger and smaller

maximum = binary("maximum", np.maximum, no_complex("maximum"), inplace=False)
minimum = binary("minimum", np.minimum, no_complex("minimum"), inplace=False)
fmax = binary("fmax", np.fmax, no_complex("fmax"), inplace=False)
fmin = binary("fmin", np.fmin, no_complex("fmin"), inplace=False)


def shared_gradient(grad, self, other, loses):
    """Gradient of `self` in maximum or minimum: half where both are equal, none where it loses."""
    return at.where(self == other, grad / 2, grad).masked_fill(loses, 0)


@maximum.backward
class MaximumBackward0:
    def self(grad, self, other):
        return shared_gradient(grad, self, other, self < other)

    def other(grad, self, other):
        return shared_gradient(grad, self, other, self > other)


@minimum.backward
class MinimumBackward0:
    def self(grad, self, other):
        return shared_gradient(grad, self, other, self > other)

    def other(grad, self, other):
        return shared_gradient(grad, self, other, self < other)


@fmax.backward
class FmaxBackward0:
    def self(grad, self, other):
        return grad.masked_fill(~((self >= other) | other.isnan()), 0)

    def other(grad, self, other):
        return grad.masked_fill((self >= other) | other.isnan(), 0)


@fmin.backward
class FminBackward0:
    def self(grad, self, other):
        return grad.masked_fill(~((self <= other) | other.isnan()), 0)

    def other(grad, self, other):
        return grad.masked_fill((self <= other) | other.isnan(), 0)
