"""Every element the same: fill_, zero_.

In PyTorch: `aten/src/ATen/native/Fill.cpp`.
"""
import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from ..functions import at
from ..native_function import native_function
from .copy import cast, number_as

BOTH = "function, method"

# PyTorch's two functional forms exist for their derivatives; Python has only `fill_` and `torch.fill`.
fill_scalar = native_function("fill.Scalar(Tensor self, Scalar value) -> Tensor", "function", inplace=True)
fill_tensor = native_function("fill.Tensor(Tensor self, Tensor value) -> Tensor", "function", inplace=True)


@fill_scalar.kernel
def fill_cpu(self, value):
    return wrap(np.full_like(self._array, number_as(value, dtype_of(self))))


@fill_scalar.inplace.kernel
def fill_cpu_(self, value):
    self._array[...] = number_as(value, dtype_of(self))
    self._counter[0] += 1
    return self


@fill_scalar.backward
class FillBackward0:
    def self(grad):
        return at.zeros_like(grad)


@fill_tensor.kernel
def fill_tensor_cpu(self, value):
    check_fill_value(value)
    return wrap(np.full_like(self._array, cast(value._array, self._array.dtype)))


@fill_tensor.inplace.kernel
def fill_tensor_cpu_(self, value):
    check_fill_value(value)
    self._array[...] = cast(value._array, self._array.dtype)
    self._counter[0] += 1
    return self


def check_fill_value(value):
    if value._array.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions.")


@fill_tensor.backward
class FillBackward1:
    def self(grad):
        return at.zeros_like(grad)

    def value(grad):
        return grad.sum()


zero_ = native_function("zero_(Tensor(a!) self) -> Tensor(a!)", BOTH, direct=True)


@zero_.kernel
def zero_cpu_(self):
    self._array[...] = 0
    self._counter[0] += 1
    return self


@zero_.backward
class ZeroBackward0:
    def self(grad):
        return at.zeros_like(grad)
