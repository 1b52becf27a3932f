"""Functions of two or three tensors, element by element: extremes, interpolation, fused products, lengths.

In PyTorch: `aten/src/ATen/native/{BinaryOps,PointwiseOps,Lerp,TensorCompare}.cpp`.
"""
import math

import numpy as np

from ...c10 import scalar_type
from ...c10.overflows import check_fits
from ...c10.scalar_type import C_TYPE_NAMES, COMPLEX, FLOAT
from ...c10.tensor_impl import dtype_of, wrap, wrap_result
from ..dispatcher import NOT_IMPLEMENTED
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out
from .tensor_iterator import (F4, computing, conj, float_result_type, not_implemented, result_type,
                              scalar_tensor)
from .vectorized import are_flat, loop

BOTH = "function, method"


def binary(name, function, refusal, refused=(COMPLEX,), common_type=result_type, inplace=True):
    """Declare `name(Tensor self, Tensor other)`; `refusal(dtype)` is raised for dtypes of the categories
    `refused`.
    """
    python_name = name.partition(".")[0]
    operator = native_function(f"{name}(Tensor self, Tensor other) -> Tensor", BOTH, inplace=inplace,
                               out=True, direct=True, name=python_name)

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


# ------------------------------------------------------------------------------------------------------- lerp

lerp = native_function("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", BOTH, inplace=True,
                       out=True)
lerp_scalar = native_function("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", BOTH,
                              inplace=True, out=True)


def lerp_array(start, end, weight):
    """Counted from the nearer end, so that weight 1 gives exactly `end`."""
    way = end - start
    result = np.where(np.abs(weight) < 0.5, start + weight * way, end - way * (1 - weight))
    return result.astype(start.dtype, copy=False)


def check_lerp(self, other, name):
    if self._array.dtype != other._array.dtype:
        raise RuntimeError(f"expected dtype {C_TYPE_NAMES[dtype_of(self)]} for `{name}` but got dtype "
                           f"{C_TYPE_NAMES[dtype_of(other)]}")


@lerp.kernel
def lerp_cpu(self, end, weight):
    check_lerp(self, end, "end")
    if weight._array.ndim:
        check_lerp(self, weight, "weight")
    return interpolate(self, end, weight, "lerp_kernel_tensor")


@lerp_scalar.kernel
def lerp_scalar_cpu(self, end, weight):
    check_lerp(self, end, "end")
    check_fits(weight, dtype_of(self))
    if are_flat(self._array, end._array) and not isinstance(weight, complex):
        return wrap(loop("lerp", self._array, end._array, numbers=(weight,)))
    return interpolate(self, end, scalar_tensor(weight), "lerp_kernel_scalar")


def interpolate(self, end, weight, name):
    common = dtype_of(self)
    if common.category < FLOAT:
        raise not_implemented(name)(common)
    return computing(lerp_array, self, end, weight, common=common, exact_numbers=True)


@lerp_scalar.backward
class LerpBackward0:
    def self(grad, weight):
        return grad * (1 - weight.conjugate())

    def end(grad, weight):
        return grad * weight.conjugate()


@lerp.backward
class LerpBackward1:
    def self(grad, weight):
        return grad * conj(1 - weight)

    def end(grad, weight):
        return grad * conj(weight)

    def weight(grad, self, end):
        return grad * conj(end - self)


# ------------------------------------------------------------------------------------------- addcmul, addcdiv

addcmul = native_function("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                          BOTH, inplace=True,
                          out=True)
addcdiv = native_function("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                          BOTH, inplace=True,
                          out=True)


@addcmul.kernel
def addcmul_cpu(self, tensor1, tensor2, value):
    common = result_type(self, tensor1, tensor2)
    if common is scalar_type.bool:
        raise not_implemented("addcmul_cpu_out")(common)
    factor = factor_in(common, value)
    if are_flat(self._array, tensor1._array, tensor2._array):
        return wrap(loop("addcmul", self._array, tensor1._array, tensor2._array, numbers=(factor,)))
    return computing(lambda x, a, b: x + factor * a * b, self, tensor1, tensor2, common=common)


@addcdiv.kernel
def addcdiv_cpu(self, tensor1, tensor2, value):
    if result_type(tensor1, tensor2).category < FLOAT:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
            "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented "
            "as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
            "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the "
            "latter implementation: (input + value * tensor1 / tensor2), for all dtypes.")
    common = result_type(self, tensor1, tensor2)
    factor = factor_in(common, value)
    if are_flat(self._array, tensor1._array, tensor2._array):
        return wrap(loop("addcdiv", self._array, tensor1._array, tensor2._array, numbers=(factor,)))
    return computing(lambda x, a, b: x + factor * a / b, self, tensor1, tensor2, common=common)


def factor_in(dtype, value):
    """A Python number as an element of the type in which `dtype` is computed.

    Raises RuntimeError if it would lose a part.
    """
    wide = scalar_type.op_math_type(dtype)
    if isinstance(value, complex) and not wide.is_complex:
        raise RuntimeError(f"value cannot be converted to type {C_TYPE_NAMES[wide].replace(' int', '')} "
                           "without overflow")
    check_fits(value, dtype)
    return np.asarray(value).astype(wide.numpy)[()]


@addcmul.backward
class AddcmulBackward0:
    def self(grad):
        return grad

    def tensor1(grad, tensor2, value):
        return grad * conj(tensor2 * value)

    def tensor2(grad, tensor1, value):
        return grad * conj(tensor1 * value)


@addcdiv.backward
class AddcdivBackward0:
    def self(grad):
        return grad

    def tensor1(grad, tensor2, value):
        return grad * conj(value / tensor2)

    def tensor2(grad, tensor1, tensor2, value):
        return -grad * conj(value * tensor1 / (tensor2 * tensor2))


# --------------------------------------------------------------------------- lengths and sums of exponentials

hypot = binary("hypot", np.hypot, not_implemented("hypot_cpu"), 
               refused=(scalar_type.BOOL, scalar_type.INTEGRAL, COMPLEX))


@hypot.backward
class HypotBackward0:
    def self(grad, self, result):
        return grad * self / result

    def other(grad, other, result):
        return grad * other / result


def logaddexp_array(x, y):
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    larger, smaller = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    return np.where(x == y, x + math.log(2), larger + np.log1p(np.exp(smaller - larger))).astype(x.dtype)


logaddexp = binary("logaddexp", logaddexp_array, not_implemented("logaddexp_cpu"), inplace=False,
                   refused=(scalar_type.BOOL, scalar_type.INTEGRAL))
logaddexp2 = binary("logaddexp2", np.logaddexp2, not_implemented("logaddexp2_cpu"), inplace=False,
                    refused=(scalar_type.BOOL, scalar_type.INTEGRAL, COMPLEX))


@logaddexp.backward
class LogaddexpBackward0:
    def self(grad, self, other):
        return grad / conj(1 + at.exp(other - self))

    def other(grad, self, other):
        return grad / conj(1 + at.exp(self - other))


@logaddexp2.backward
class Logaddexp2Backward0:
    def self(grad, self, other):
        return grad / (1 + at.pow(2, other - self))

    def other(grad, self, other):
        return grad / (1 + at.pow(2, self - other))


# ------------------------------------------------------------------------------------------- signs and steps

copysign = binary("copysign.Tensor", np.copysign, not_implemented("copysign_cpu"), common_type=float_result_type)
copysign_scalar = native_function("copysign.Scalar(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True,
                                  out=True)
copysign_scalar.kernel(lambda self, other: copysign.call(self, scalar_tensor(other)))


def copysign_gradient(grad, self, result):
    """The result is self or -self; at 0 it has no slope."""
    ratio = result / self
    return grad * ratio.masked_fill(self == 0, 0)


@copysign.backward
class CopysignBackward0:
    def self(grad, self, result):
        return copysign_gradient(grad, self, result)

    def other(other):
        return at.zeros_like(other)


@copysign_scalar.backward
class CopysignBackward1:
    def self(grad, self, result):
        return copysign_gradient(grad, self, result)


heaviside = native_function("heaviside(Tensor self, Tensor values) -> Tensor", BOTH, inplace=True, out=True)
heaviside.backward(NOT_IMPLEMENTED)
exact_out(heaviside, lambda *_: "heaviside is not yet implemented for tensors with different dtypes.")


@heaviside.kernel
def heaviside_cpu(self, values):
    if "c" in (self._array.dtype.kind, values._array.dtype.kind):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self._array.dtype != values._array.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return computing(lambda x, at_zero: np.where(x == 0, at_zero, (x > 0).astype(x.dtype)), self, values)


nextafter = binary("nextafter", np.nextafter, not_implemented("nextafter_cpu"),
                   refused=(scalar_type.BOOL, scalar_type.INTEGRAL, COMPLEX))


@nextafter.backward
class NextafterBackward0:
    def self(grad, self, other):
        return at.where(self != other, grad, 0)

    def other(other):
        return at.zeros_like(other)
