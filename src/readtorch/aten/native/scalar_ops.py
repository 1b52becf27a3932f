"""A tensor and a number, as PyTorch's C++ code combines them: add.Scalar, sub.Scalar, mul.Scalar, div.Scalar.

Python's `t * 2` becomes `mul.Tensor` with a wrapped number; the same line in C++ calls `mul.Scalar`, whose
node bears another number (MulBackward1). Composites and formulas that are to leave PyTorch's graph use the
functions below.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp`.
"""
from ..native_function import native_function
from .binary_ops import add, mul, sub
from .division import div
from .tensor_iterator import scalar_tensor

add_scalar = native_function("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "")
sub_scalar = native_function("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "")
mul_scalar = native_function("mul.Scalar(Tensor self, Scalar other) -> Tensor", "")
div_scalar = native_function("div.Scalar(Tensor self, Scalar other) -> Tensor", "")


@add_scalar.kernel
def add_scalar_cpu(self, other, alpha):
    return add.call(self, scalar_tensor(other), alpha)


@sub_scalar.kernel
def sub_scalar_cpu(self, other, alpha):
    return sub.call(self, scalar_tensor(other), alpha)


@mul_scalar.kernel
def mul_scalar_cpu(self, other):
    return mul.call(self, scalar_tensor(other))


@div_scalar.kernel
def div_scalar_cpu(self, other):
    return div.call(self, scalar_tensor(other))


@add_scalar.backward
class AddBackward1:
    def self(grad):
        return grad


@sub_scalar.backward
class SubBackward1:
    def self(grad):
        return grad


@mul_scalar.backward
class MulBackward1:
    def self(grad, other):
        return mul_scalar.call(grad, other.conjugate())


@div_scalar.backward
class DivBackward1:
    def self(grad, other):
        return div_scalar.call(grad, other.conjugate())


def maybe_multiply(t, factor):
    """`t * factor`, or `t` itself when that changes nothing."""
    return t if factor == 1 else mul_scalar.call(t, factor)
