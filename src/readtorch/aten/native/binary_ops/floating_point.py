"""Functions of two floating point tensors: hypot, logaddexp, copysign, heaviside, nextafter, ldexp.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import math

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import math_special as special
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import computing, conj, float_result_type, is_floating, is_real, takes_number
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import broadcast
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import dtype_of

from .arithmetic import mul_scalar
from .maximum import binary

# --------------------------------------------------------------------------- lengths and sums of exponentials

hypot = binary("hypot", np.hypot, f.hypot, is_floating)


@hypot.backward
class HypotBackward0:
    def self(grad, self, result):
        return grad * self / result

    def other(grad, other, result):
        return grad * other / result

    def result(self_p, self_t, other_p, other_t, result):
        return self_t * self_p / result + other_t * other_p / result


def logaddexp_array(x, y):
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    larger, smaller = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    return np.where(x == y, x + math.log(2), larger + np.log1p(np.exp(smaller - larger))).astype(x.dtype)


logaddexp = binary(
    "logaddexp",
    logaddexp_array,
    special.logaddexp,
    lambda dtype: dtype.category >= FLOAT,
    inplace=False,
    cuda_takes=is_floating,  # in PyTorch: CUDA knows complex numbers, too
)
logaddexp2 = binary("logaddexp2", np.logaddexp2, special.logaddexp2, is_floating, inplace=False)


@logaddexp.backward
class LogaddexpBackward0:
    def self(grad, self, other):
        return grad / conj(1 + at.exp(other - self))

    def other(grad, self, other):
        return grad / conj(1 + at.exp(self - other))

    def result(self_p, self_t, other_p, other_t):
        return self_t / (1 + at.exp(other_p - self_p)) + other_t / (1 + at.exp(self_p - other_p))


@logaddexp2.backward
class Logaddexp2Backward0:
    def self(grad, self, other):
        return grad / (1 + at.pow(2, other - self))

    def other(grad, self, other):
        return grad / (1 + at.pow(2, self - other))

    def result(self_p, self_t, other_p, other_t):
        return self_t / (1 + at.pow(2, other_p - self_p)) + other_t / (1 + at.pow(2, self_p - other_p))


# ------------------------------------------------------------------------------------------- signs and steps

copysign = binary("copysign.Tensor", np.copysign, f.copysign, is_real, float_result_type)
copysign_scalar = native_function("copysign.Scalar(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True, out=True)
takes_number(copysign_scalar, copysign)


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

    def result(self_t, self_p, result):
        return copysign_gradient(self_t, self_p, result)


@copysign_scalar.backward
class CopysignBackward1:
    def self(grad, self, result):
        return copysign_gradient(grad, self, result)

    result = "auto_element_wise"


heaviside = native_function(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(lambda *_: "heaviside is not yet implemented for tensors with different dtypes."),
)
heaviside.backward(NOT_IMPLEMENTED)


@heaviside.meta
def heaviside_meta(self, values):
    if "c" in (self._array.dtype.kind, values._array.dtype.kind):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self._array.dtype != values._array.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return broadcast(dtype_of(self), self, values)


@heaviside.kernel
def heaviside_cpu(self, values):
    heaviside_meta(self, values)
    return computing(lambda x, at_zero: np.where(x == 0, at_zero, (x > 0).astype(x.dtype)), self, values)


nextafter = binary(
    "nextafter",
    np.nextafter,
    f.nextafter,
    is_floating,
    cuda_takes=lambda dtype: dtype in (scalar_type.float32, scalar_type.float64),
)


@nextafter.backward
class NextafterBackward0:
    def self(grad, self, other):
        return at.where(self != other, grad, 0)

    def other(other):
        return at.zeros_like(other)

    def result(self_p, self_t, other_p):
        return at.where(self_p != other_p, self_t, 0)


# ------------------------------------------------------------------------------------------------------ ldexp

ldexp = native_function("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True)


@ldexp.kernel
@any_device
def ldexp_any(self, other):
    """self · 2 ** other"""
    with below_autograd():
        return at.mul(self, at.pow(2.0, other))


@ldexp.backward
class LdexpBackward0:
    def self(grad, other):
        return grad * conj(at.pow(2, other))

    def other(grad, result):
        return mul_scalar.call(grad * conj(result), math.log(2))

    def result(self_t, other_p, other_t, result):
        return self_t * at.pow(2, other_p) + other_t * result * math.log(2)
