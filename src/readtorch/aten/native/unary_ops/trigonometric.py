"""Trigonometric and hyperbolic functions, their inverses, and the logistic function.

In PyTorch: `aten/src/ATen/native/UnaryOps.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import math_special as special
from readtorch.aten.native.activation import FROM_SIZE, are_flat, in_one_pass
from readtorch.aten.native.binary_ops.arithmetic import add_scalar
from readtorch.aten.native.tensor_iterator import (
    WIDENED,
    binary_float_kernel,
    computing,
    conj,
    elementwise,
    float_result_type,
    is_real,
    no_derivative,
    not_implemented,
    unary_float_kernel,
)
from readtorch.aten.native.vectorized import loop
from readtorch.aten.native_function import BOTH, alias_of, native_function
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import wrap_result

from .elementary import node_of_its_own, unary_float

# --------------------------------------------------------------------------------------------------- circular

sin = unary_float("sin", np.sin, f.sin)
cos = unary_float("cos", np.cos, f.cos)
tan = unary_float("tan", np.tan, f.tan)
asin = unary_float("asin", np.arcsin, f.asin)
acos = unary_float("acos", np.arccos, f.acos)
atan = unary_float("atan", np.arctan, f.atan)


@sin.backward
class SinBackward0:
    def self(grad, self):
        return grad * conj(self.cos())

    result = "auto_element_wise"


@cos.backward
class CosBackward0:
    def self(grad, self):
        return grad * -conj(self.sin())

    result = "auto_element_wise"


@tan.backward
class TanBackward0:
    def self(grad, result):
        return grad * conj(add_scalar.call(result.pow(2), 1, 1))

    result = "auto_element_wise"


@asin.backward
class AsinBackward0:
    def self(grad, self):
        return grad * conj((-self * self + 1).rsqrt())

    result = "auto_element_wise"


@acos.backward
class AcosBackward0:
    def self(grad, self):
        return grad * -conj((-self * self + 1).rsqrt())

    result = "auto_element_wise"


@atan.backward
class AtanBackward0:
    def self(grad, self):
        return grad / conj(self * self + 1)

    result = "auto_element_wise"


# ------------------------------------------------------------------------------------------------- hyperbolic

sinh = unary_float("sinh", np.sinh, f.sinh)
cosh = unary_float("cosh", np.cosh, f.cosh)
tanh = unary_float("tanh", np.tanh, f.tanh)
asinh = unary_float("asinh", np.arcsinh, f.asinh)
acosh = unary_float("acosh", np.arccosh, f.acosh)
atanh = unary_float("atanh", np.arctanh, f.atanh)


@sinh.backward
class SinhBackward0:
    def self(grad, self):
        return grad * conj(self.cosh())

    result = "auto_element_wise"


@cosh.backward
class CoshBackward0:
    def self(grad, self):
        return grad * conj(self.sinh())

    result = "auto_element_wise"


@tanh.backward
class TanhBackward0:
    def self(grad, result):
        return at.tanh_backward(grad, result)

    result = "auto_element_wise"


@asinh.backward
class AsinhBackward0:
    def self(grad, self):
        return grad * conj((self.pow(2) + 1).rsqrt())

    result = "auto_element_wise"


@node_of_its_own(asinh).backward
class AsinhBackward1:
    self = no_derivative("inplace version of asinh")


@node_of_its_own(acosh).backward
class AcoshBackward1:
    self = no_derivative("inplace version of acosh")


@node_of_its_own(atanh).backward
class AtanhBackward1:
    self = no_derivative("inplace version of atanh")


@acosh.backward
class AcoshBackward0:
    def self(grad, self):
        if self._array.dtype.kind == "c":
            return grad * conj((self + 1).rsqrt() * (self - 1).rsqrt())
        return grad * (self * self - 1).rsqrt()

    result = "auto_element_wise"


@atanh.backward
class AtanhBackward0:
    def self(grad, self):
        return grad * 1 / conj(1 - self.pow(2))

    result = "auto_element_wise"


for _name in ("sin", "cos", "tan"):
    alias_of(f"arc{_name}", f"a{_name}")
    alias_of(f"arc{_name}h", f"a{_name}h")

tanh_backward = native_function("tanh_backward(Tensor grad_output, Tensor output) -> Tensor", "function", direct=True)
elementwise(tanh_backward, f.tanh_backward, takes=is_real)


@tanh_backward.kernel
def tanh_backward_cpu(grad_output, output):
    g, y = grad_output._array, output._array
    if are_flat(g, y):
        return in_one_pass(f.tanh_backward, g, y)
    if y.dtype in WIDENED:
        return computing(lambda g, y: g * (1 - y * y), grad_output, output)
    return wrap_result(g * np.conj(1 - y * y) if y.dtype.kind == "c" else g * (1 - y * y))


@tanh_backward.backward
class TanhBackwardBackward0:
    def grad_output(grad, output):
        return at.tanh_backward(grad, conj(output))

    def output(grad, grad_output, output):
        return conj(grad) * (-2 * conj(output) * grad_output)

    def result(grad_output_p, grad_output_t, output_p, output_t):
        return at.tanh_backward(grad_output_t, output_p) + output_t.conj() * (-2 * output_p.conj() * grad_output_p)


# --------------------------------------------------------------------------------------------------- logistic

_ONE = {t: np.ones((), t) for t in (np.dtype("f4"), np.dtype("f8"), np.dtype("c8"), np.dtype("c16"))}


def sigmoid_array(x):
    """1 / (1 + exp(-x)), each step in the memory of the one before."""
    y = np.asarray(np.negative(x))
    np.exp(y, y)
    np.add(y, _ONE[y.dtype], y)
    return np.reciprocal(y, y)


def sigmoid_in_one_pass(x):
    return loop(f.sigmoid, x) if x.size >= FROM_SIZE and are_flat(x) else sigmoid_array(x)


sigmoid = unary_float("sigmoid", sigmoid_in_one_pass, f.sigmoid)
alias_of("expit", "sigmoid", module="special")


@sigmoid.backward
class SigmoidBackward0:
    def self(grad, result):
        return at.sigmoid_backward(grad, result)

    result = "auto_element_wise"


sigmoid_backward = native_function(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor", "function", direct=True
)
elementwise(sigmoid_backward, f.sigmoid_backward, takes=is_real)


@sigmoid_backward.kernel
def sigmoid_backward_cpu(grad_output, output):
    g, y = grad_output._array, output._array
    if y.dtype == np.float16:  # PyTorch rounds every step
        return wrap_result(g * (1 - y) * y)
    if are_flat(g, y):
        return in_one_pass(f.sigmoid_backward, g, y)
    if output.dtype is scalar_type.bfloat16:
        return computing(lambda g, y: g * (1 - y) * y, grad_output, output)
    slope = (1 - y) * y
    return wrap_result(g * (np.conj(slope) if y.dtype.kind == "c" else slope))


@sigmoid_backward.backward
class SigmoidBackwardBackward0:
    def grad_output(grad, output):
        return at.sigmoid_backward(grad, conj(output))

    def output(grad, grad_output, output):
        return conj(grad) * grad_output * (-2 * conj(output) + 1)

    def result(grad_output_p, grad_output_t, output_p, output_t):
        return at.sigmoid_backward(grad_output_t, output_p) + output_t.conj() * grad_output_p * (
            -2 * output_p.conj() + 1
        )


logit = native_function("logit(Tensor self, float? eps=None) -> Tensor", BOTH, inplace=True, out=True)
alias_of("logit", "logit", module="special")


def is_clipped(eps):
    """Whether probabilities are kept from 0 and 1 by `eps`."""
    return eps is not None and eps >= 0


elementwise(
    logit,
    lambda eps: special.logit_inside if is_clipped(eps) else special.logit,
    float_result_type,
    by_number=True,
    scalars=lambda eps: (eps, 1 - eps) if is_clipped(eps) else (),
    takes=is_real,
)


@logit.kernel
def logit_cpu(self, eps):
    def logit_array(x):
        p = x if not is_clipped(eps) else np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
        return np.log(p / (1 - p))

    return unary_float_kernel(logit_array, not_implemented("logit_cpu"))(self)


@logit.backward
class LogitBackward0:
    def self(grad, self, eps):
        if is_clipped(eps):
            inside, outside = (self >= eps) & (self <= 1 - eps), 0.0
        else:
            inside, outside = (self >= 0) & (self <= 1), float("nan")
        return at.where(inside, grad / (self * (1 - self)), at.full_like(self, outside))

    result = "auto_element_wise"


# ----------------------------------------------------------------------------------------- angles and lengths

atan2 = native_function("atan2(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True)
_atan2 = binary_float_kernel(np.arctan2)
elementwise(atan2, f.atan2, float_result_type, takes=is_real)


@atan2.kernel
def atan2_cpu(self, other):
    if "c" in (self._array.dtype.kind, other._array.dtype.kind):
        raise not_implemented("atan2_cpu")(float_result_type(self, other))
    return _atan2(self, other)


@atan2.backward
class Atan2Backward0:
    def self__other(grad, self, other, grad_input_mask):
        radius = self * self + other * other
        share = (grad / radius).masked_fill(radius == 0, 0)
        return (share * other if grad_input_mask[0] else None, share * -self if grad_input_mask[1] else None)

    def result(self_p, self_t, other_p, other_t):
        return (other_p * self_t - self_p * other_t) / (self_p * self_p + other_p * other_p)


alias_of("arctan2", "atan2")
