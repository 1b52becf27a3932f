"""Smooth activation functions: elu and its relatives, gelu, silu, mish, softplus, log_sigmoid.

In PyTorch: `aten/src/ATen/native/Activation.cpp`.
Explained in the chapter "Layers, functional, init".
"""
import math

import numpy as np

from ...c10.tensor_impl import dtype_of, wrap_result
from ..native_function import native_function, write_result
from .activation import FROM_SIZE, activation, activation_backward, are_flat, declare, in_one_pass
from .exact_out import exact_out, found_dtype, type_name
from .tensor_iterator import compute, conj, not_implemented

BOTH = "function, method"


def sigmoid_array(x):
    return 1 / (1 + np.exp(-x))


# -------------------------------------------------------------------------------------------- elu, selu, celu

_ELU = "Scalar alpha=1, Scalar scale=1, Scalar input_scale=1"
elu = native_function(f"elu(Tensor self, {_ELU}) -> Tensor", module="nn", out=True, direct=True)
elu_ = native_function(f"elu_(Tensor(a!) self, {_ELU}) -> Tensor(a!)", module="nn")
elu_backward = native_function(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
    "self_or_result) "
    "-> Tensor", module="nn")
_elu = activation(lambda x, alpha, scale, input_scale: np.where(
    x < 0, np.expm1(x if input_scale == 1 else x * input_scale) * (alpha * scale), x * scale), "elu_cpu")


@elu.kernel
def elu_cpu(self, alpha, scale, input_scale):
    if self._array.size >= FROM_SIZE and are_flat(self._array):
        return in_one_pass("elu", self._array, numbers=(alpha * scale, scale, input_scale))
    return _elu(self, alpha, scale, input_scale)


@elu_.kernel
def elu_cpu_(self, alpha, scale, input_scale):
    return write_result(self, elu.call(self, alpha, scale, input_scale))


def elu_slope(g, y, alpha, scale, input_scale, is_result):
    """For y <= 0 the slope is input_scale · (result + alpha·scale); the result is known, or computed from the
    input."""
    below = (y + alpha * scale) if is_result else np.exp(y * input_scale) * (alpha * scale)
    return np.where(y > 0, g * scale, g * input_scale * below)


_elu_backward = activation_backward(elu_slope)


@elu_backward.kernel
def elu_backward_cpu(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if is_result and alpha < 0:
        raise RuntimeError("In-place elu backward calculation is triggered with a negative slope which is "
                           "not supported. This is "
                           "caused by calling in-place forward function with a negative slope, please call "
                           "out-of-place "
                           "version instead.")
    g, x = grad_output._array, self_or_result._array
    if not is_result and are_flat(g, x):
        return in_one_pass("elu_backward", g, x, numbers=(alpha * scale, scale, input_scale))
    return _elu_backward(grad_output, self_or_result, alpha, scale, input_scale, is_result)


@elu.backward
class EluBackward0:
    def self(grad, self, alpha, scale, input_scale):
        return elu_backward.call(grad, alpha, scale, input_scale, False, self)


@elu_.backward
class EluBackward1:
    def self(grad, result, alpha, scale, input_scale):
        return elu_backward.call(grad, alpha, scale, input_scale, True, result)


@elu_backward.backward
class EluBackwardBackward0:
    def grad_output(grad, self_or_result, alpha, scale, input_scale, is_result):
        return elu_backward.call(grad, alpha, scale, input_scale, is_result, self_or_result)

    def self_or_result(grad, grad_output, self_or_result, alpha, scale, input_scale, is_result):
        below = grad * grad_output * input_scale * (self_or_result < 0)
        return (
            below if is_result else below * input_scale * alpha * scale * (self_or_result * input_scale).exp()
        )


# Constants with which a layer of unit variance gives a layer of unit variance (Klambauer et al., 2017).
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu = native_function("selu(Tensor self) -> Tensor", inplace=True)


@selu.compose
def selu_composite(self):
    return elu.call(self, SELU_ALPHA, SELU_SCALE, 1)


@selu.inplace.compose
def selu_composite_(self):
    return elu_.call(self, SELU_ALPHA, SELU_SCALE, 1)


celu = native_function("celu(Tensor self, Scalar alpha=1.0) -> Tensor", direct=True)
celu_ = native_function("celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)")


@celu.kernel
def celu_cpu(self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu_cpu(self, alpha, 1, 1 / alpha)


@celu_.kernel
def celu_cpu_(self, alpha):
    return write_result(self, celu_cpu(self, alpha))


@celu.backward
class CeluBackward0:
    def self(grad, self, alpha):
        return elu_backward.call(grad, alpha, 1, 1 / alpha, False, self)


@celu_.backward
class CeluBackward1:
    def self(grad, result, alpha):
        return elu_backward.call(grad, alpha, 1, 1 / alpha, True, result)


# ------------------------------------------------------------------------------------------------------- gelu

gelu = declare("gelu(Tensor self, *, str approximate='none') -> Tensor")
gelu_backward = native_function("gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') "
                                "-> Tensor", module="nn")
_CUBIC = 0.044715  # weight of x³ in the tanh approximation of the normal distribution's cumulative function
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def normal_cdf(x, approximate):
    """Φ(x): how likely a standard normal number is below x."""
    if approximate == "tanh":
        return 0.5 * (1 + np.tanh(_SQRT_2_OVER_PI * (x + _CUBIC * x * x * x)))
    from scipy.special import erf
    return 0.5 * (1 + erf(x * math.sqrt(0.5)))


def gelu_slope(g, x, approximate):
    if approximate == "tanh":
        t = np.tanh(_SQRT_2_OVER_PI * (x + _CUBIC * x * x * x))
        inner = _SQRT_2_OVER_PI * (1 + 3 * _CUBIC * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner)
    return g * (normal_cdf(x, "none") + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


def check_approximate(approximate):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


_gelus = {approximate: activation(lambda x, approximate=approximate: x * normal_cdf(x, approximate), "GeluKernelImpl")
          for approximate in ("none", "tanh")}
_gelu_backward = activation_backward(gelu_slope)


exact_out(gelu, found_dtype)


@gelu.kernel
def gelu_cpu(self, approximate):
    check_approximate(approximate)
    if are_flat(self._array):
        return in_one_pass("gelu_tanh" if approximate == "tanh" else "gelu", self._array)
    return _gelus[approximate](self)


@gelu_backward.kernel
def gelu_backward_cpu(grad_output, self, approximate):
    if are_flat(grad_output._array, self._array):
        name = "gelu_tanh_backward" if approximate == "tanh" else "gelu_backward"
        return in_one_pass(name, grad_output._array, self._array)
    return _gelu_backward(grad_output, self, approximate)


@gelu.backward
class GeluBackward0:
    def self(grad, self, approximate):
        return gelu_backward.call(grad, self, approximate)


@gelu_backward.backward
class GeluBackwardBackward0:
    def grad_output(grad, self, approximate):
        return gelu_backward.call(grad, self, approximate)

    def self(grad, grad_output, self, approximate):
        return (
            grad
            * grad_output
            * (gelu_curvature_tanh(self) if approximate == "tanh" else gelu_curvature(self))
        )


def gelu_curvature(x):
    """The second derivative of x·Φ(x)."""
    return (2 - x * x) * (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))


def gelu_curvature_tanh(x):
    """The second derivative of x·(1 + tanh u(x))/2, where u is the cubic of the approximation."""
    t = (_SQRT_2_OVER_PI * (x + _CUBIC * x * x * x)).tanh()
    u1 = _SQRT_2_OVER_PI * (1 + 3 * _CUBIC * x * x)
    u2 = _SQRT_2_OVER_PI * 6 * _CUBIC * x
    dt = 1 - t * t
    return dt * (u1 + 0.5 * x * u2 - x * t * u1 * u1)


# ------------------------------------------------------------------------------------------------- silu, mish

silu = declare("silu(Tensor self) -> Tensor")
silu_backward = native_function("silu_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
silu.kernel(activation(lambda x: x * sigmoid_array(x), "silu_cpu", complex_too=True, compiled="silu"))


def silu_slope(g, x):
    s = sigmoid_array(x)
    return g * np.conj(s * (1 + x * (1 - s)))


silu_backward.kernel(activation_backward(silu_slope, "silu_backward"))


@silu_backward.compose
def silu_backward_composite(grad_output, self):
    """The same in differentiable steps, for when the gradient itself is to have a graph."""
    s = self.sigmoid()
    return grad_output * conj(s * (1 + self * (1 - s)))


@silu.backward
class SiluBackward0:
    def self(grad, self):
        return silu_backward.call(grad, self)


mish = declare("mish(Tensor self) -> Tensor")
mish_backward = native_function("mish_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
mish.kernel(activation(lambda x: x * np.tanh(np.logaddexp(0, x)), "mish_cpu", compiled="mish"))


def mish_slope(g, x):
    t = np.tanh(np.logaddexp(0, x))
    return g * (t + x * sigmoid_array(x) * (1 - t * t))


mish_backward.kernel(activation_backward(mish_slope, "mish_backward"))


@mish_backward.compose
def mish_backward_composite(grad_output, self):
    t = softplus.call(self, 1, 20).tanh()
    return grad_output * (t + self * self.sigmoid() * (1 - t * t))


@mish.backward
class MishBackward0:
    def self(grad, self):
        return mish_backward.call(grad, self)


# ----------------------------------------------------------------------------------- softplus and log_sigmoid

softplus = native_function("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> "
                           "Tensor", module="nn", out=True, direct=True)
softplus_backward = native_function("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar "
                                    "threshold) -> Tensor", module="nn")
softplus.kernel(
    activation(
        lambda x, beta, threshold: np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta),
        "softplus_cpu",
        compiled="softplus",
    )
)


exact_out(softplus, found_dtype)


def softplus_slope(g, x, beta, threshold):
    z = np.exp(x * beta)
    return np.where(x * beta > threshold, g, g * z / (z + 1))


softplus_backward.kernel(activation_backward(softplus_slope, "softplus_backward"))


@softplus.backward
class SoftplusBackward0:
    def self(grad, self, beta, threshold):
        return softplus_backward.call(grad, self, beta, threshold)


@softplus_backward.backward
class SoftplusBackwardBackward0:
    def grad_output(grad, self, beta, threshold):
        return softplus_backward.call(grad, self, beta, threshold)

    def self(grad, grad_output, self, beta, threshold):
        s = (self * beta).sigmoid()
        return grad * grad_output * s * (1 - s) * (self * beta < threshold) * beta


log_sigmoid = native_function("log_sigmoid(Tensor self) -> Tensor", module="nn", out=True, direct=True)
log_sigmoid_forward = native_function("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor "
                                      "buffer)", module="nn")
log_sigmoid_backward = native_function("log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) "
                                       "-> Tensor", module="nn")


exact_out(log_sigmoid, lambda out, result, *_: f"expected scalar type {type_name(result)} but found "
                                               f"{type_name(out)}")


@log_sigmoid.compose
def log_sigmoid_composite(self):
    return log_sigmoid_forward.call(self)[0]


@log_sigmoid_forward.kernel
def log_sigmoid_forward_cpu(self):
    """The buffer keeps exp(-|x|), which backward would have to compute again."""
    kind = dtype_of(self)
    if not kind.is_floating_point:
        raise not_implemented("log_sigmoid_cpu")(kind)
    x = np.ascontiguousarray(self._array).reshape(self._array.shape)
    return (
        wrap_result(compute(lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))), (x,), kind)),
        wrap_result(compute(lambda x: np.exp(-np.abs(x)), (x,), kind)),
    )


@log_sigmoid_forward.backward
class LogSigmoidBackward0:
    output_differentiability = [True, False]

    def self(grad, self, buffer):
        return log_sigmoid_backward.call(grad, self, buffer)


@log_sigmoid_backward.kernel
def log_sigmoid_backward_cpu(grad_output, self, buffer):
    g, x, z = grad_output._array, self._array, buffer._array
    negative = x < 0
    return wrap_result(
        compute(
            lambda g, z: g * (negative - np.where(negative, 1, -1).astype(g.dtype) * (z / (1 + z))),
            (g, z),
            dtype_of(grad_output),
        )
    )


@log_sigmoid_backward.backward
class LogSigmoidBackwardBackward0:
    def grad_output(grad, self, buffer):
        return log_sigmoid_backward.call(grad, self, buffer)

    def self(grad, grad_output, self):
        z = self.sigmoid()
        return grad * grad_output * (z - 1) * z
