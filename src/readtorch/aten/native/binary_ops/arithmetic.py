"""add, sub and mul of two tensors, and of a tensor and a number. Division has a file of its own.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
Explained in the chapter "One operator call".
"""

import numpy as np

from readtorch.aten.native import math as f
from readtorch.aten.native.functions_manual import scaled_by
from readtorch.aten.native.tensor_iterator import (
    BOOL,
    NUMBERS,
    binary_inplace_kernel,
    binary_kernel,
    computing,
    conj,
    elementwise,
    number_of,
    refuse_overlap,
    result_type,
    scalar_tensor,
)
from readtorch.aten.native_function import BOTH, alias_of, native_function, python_binding
from readtorch.aten.register_dispatch_key import any_device, write_result
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import BACKENDS
from readtorch.c10.overflows import check_fits
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import TensorImpl

from .division import div


def check_alpha(common, alpha):
    """Raises RuntimeError when `alpha` is of a higher category than the result."""
    if isinstance(alpha, bool) and common is not scalar_type.bool:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if common.category < FLOAT and isinstance(alpha, (float, complex)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if not common.is_complex and isinstance(alpha, complex):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    check_fits(alpha, common)


FEW = 1024  # numbers for which computing in float64 costs next to nothing


def with_factor(ufunc, alpha, common, size):
    """(x, y) -> `ufunc(x, alpha * y)`, where alpha is an element of the result's type.

    In PyTorch: 16-bit numbers that do not fill a vector register go through a loop that rounds the product to 16 bits; float32
    and float64 are multiplied and added in one rounding, here a few float32 numbers: by way of float64.
    """
    if common is scalar_type.float32 and size < FEW:
        return lambda x, y, factor=np.float64(np.float32(alpha)): ufunc(x, factor * y)
    factor = np.asarray(alpha).astype(common.numpy).astype(scalar_type.op_math_type(common).numpy)
    if common.itemsize == 2 and common.category >= FLOAT and size < 32:
        return lambda x, y: ufunc(x, (factor * y).astype(common.numpy).astype(factor.dtype))
    return lambda x, y: ufunc(x, factor * y)


def scaled(ufunc, self, other, alpha):
    """`ufunc(self, alpha * other)`."""
    common = result_type(self, other)
    check_alpha(common, alpha)
    size = max(self._array.size, other._array.size)
    return computing(with_factor(ufunc, alpha, common, size), self, other, common=common)


def maybe_scale(grad, alpha):
    return grad if alpha == 1 else grad * (alpha.conjugate() if type(alpha) is complex else alpha)


# -------------------------------------------------------------------------------------------------- add, sub

add = native_function(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
    numbers_as_tensors=True,
)


def check_add(self, other, alpha):
    check_alpha(result_type(self, other), alpha)


elementwise(add, f.add, scalars=lambda alpha: (alpha,), check=check_add)
_add, _add_ = binary_kernel(np.add), binary_inplace_kernel(np.add)


@add.kernel
def add_cpu(self, other, alpha):
    if alpha == 1 and type(alpha) is int:
        return _add(self, other)
    return scaled(np.add, self, other, alpha)


@add.inplace.kernel
def add_cpu_(self, other, alpha):
    if alpha == 1 and type(alpha) is int:
        return _add_(self, other)
    refuse_overlap(self, other)
    return write_result(self, add_cpu(self, other, alpha))


@add.backward
class AddBackward0:
    def self(grad):
        return grad

    def other(grad, alpha):
        return maybe_scale(grad, alpha)

    def result(self_t, other_t, alpha):
        return self_t + scaled_by(other_t, alpha)


sub = native_function(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
    numbers_as_tensors=True,
)


def check_sub(self, other, alpha):
    """PyTorch refuses `-` on bools rather than guess what it means."""
    a, b = self._array.dtype.kind, other._array.dtype.kind
    if a == "b" and b == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if a == "b" or b == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead."
        )
    check_add(self, other, alpha)


elementwise(sub, f.sub, scalars=lambda alpha: (alpha,), check=check_sub)
_sub, _sub_ = binary_kernel(np.subtract), binary_inplace_kernel(np.subtract)


@sub.kernel
def sub_cpu(self, other, alpha):
    if self._array.dtype is not other._array.dtype or self._array.dtype is BOOL:
        check_sub(self, other, alpha)
    if alpha == 1 and type(alpha) is int:
        return _sub(self, other)
    return scaled(np.subtract, self, other, alpha)


@sub.inplace.kernel
def sub_cpu_(self, other, alpha):
    if self._array.dtype is not other._array.dtype or self._array.dtype is BOOL:
        check_sub(self, other, alpha)
    if alpha == 1 and type(alpha) is int:
        return _sub_(self, other)
    refuse_overlap(self, other)
    return write_result(self, sub_cpu(self, other, alpha))


@sub.backward
class SubBackward0:
    def self(grad):
        return grad

    def other(grad, alpha):
        return -maybe_scale(grad, alpha)

    def result(self_t, other_t, alpha):
        return self_t - scaled_by(other_t, alpha)


alias_of("subtract", "sub")

rsub = native_function("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "function")
rsub_scalar = native_function("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "function")
elementwise(rsub, f.rsub, scalars=lambda alpha: (alpha,), check=check_sub)


@rsub.kernel
def rsub_cpu(self, other, alpha):
    return sub_cpu(other, self, alpha)


@rsub_scalar.kernel
@any_device
def rsub_scalar_any(self, other, alpha):
    return rsub.table[self._keys & BACKENDS](self, scalar_tensor(other), alpha)


@rsub.backward
class RsubBackward0:
    def self(grad, alpha):
        return -maybe_scale(grad, alpha)

    def other(grad):
        return grad

    def result(self_t, other_t, alpha):
        return other_t - scaled_by(self_t, alpha)


@rsub_scalar.backward
class RsubBackward1:
    def self(grad, alpha):
        return -maybe_scale(grad, alpha)

    result = "auto_element_wise"


@python_binding("__rsub__", "method")
def __rsub__(self, other):
    """`other - self`, where `other` is not a tensor."""
    if isinstance(other, NUMBERS):
        return rsub_scalar.call(self, number_of(other), 1)
    return rsub.call(self, other, 1) if isinstance(other, TensorImpl) else NotImplemented


# ------------------------------------------------------------------------------------------------------- mul

mul = native_function(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
    numbers_as_tensors=True,
)
elementwise(mul, f.mul)
mul.kernel(binary_kernel(np.multiply, exact_numbers=True))
mul.inplace.kernel(binary_inplace_kernel(np.multiply, exact_numbers=True))


@mul.backward
class MulBackward0:
    def self(grad, other):
        return grad * conj(other)

    def other(grad, self):
        return grad * conj(self)

    def result(self_p, self_t, other_p, other_t):
        return other_t * self_p + self_t * other_p


alias_of("multiply", "mul")


# -------------------------------------------------------------------------------------- a tensor and a number
# Python's `t * 2` becomes `mul.Tensor` with a wrapped number; the same line in C++ calls `mul.Scalar`, whose node bears
# another number (MulBackward1). Composites and formulas that are to leave PyTorch's graph use the functions below.

add_scalar = native_function("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "")
sub_scalar = native_function("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", "")
mul_scalar = native_function("mul.Scalar(Tensor self, Scalar other) -> Tensor", "")
div_scalar = native_function("div.Scalar(Tensor self, Scalar other) -> Tensor", "")


@add_scalar.kernel
@any_device
def add_scalar_any(self, other, alpha):
    return add.call(self, scalar_tensor(other), alpha)


@sub_scalar.kernel
@any_device
def sub_scalar_any(self, other, alpha):
    return sub.call(self, scalar_tensor(other), alpha)


@mul_scalar.kernel
@any_device
def mul_scalar_any(self, other):
    return mul.call(self, scalar_tensor(other))


@div_scalar.kernel
@any_device
def div_scalar_any(self, other):
    return div.call(self, scalar_tensor(other))


@add_scalar.backward
class AddBackward1:
    def self(grad):
        return grad

    def result(self_t):
        return self_t.clone()


@sub_scalar.backward
class SubBackward1:
    def self(grad):
        return grad

    result = "auto_element_wise"


@mul_scalar.backward
class MulBackward1:
    def self(grad, other):
        return mul_scalar.call(grad, other.conjugate())

    def result(self_t, other):
        return self_t * other


@div_scalar.backward
class DivBackward1:
    def self(grad, other):
        return div_scalar.call(grad, other.conjugate())

    def result(self_t, other):
        return self_t / other


def maybe_multiply(t, factor):
    """`t * factor`, or `t` itself when that changes nothing."""
    return t if factor == 1 else mul_scalar.call(t, factor)
