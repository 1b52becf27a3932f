"""Activations and their backward as arithmetic. In PyTorch: `torch/_decomp/decompositions.py`."""

import math
import operator

import readtorch as rt
from readtorch._ops import ops

from .opmath import in_opmath, widened
from .table import register_decomposition

aten = ops.aten


def elementwise(*names):
    """Decorator: the decomposition of these operators, computed in float32 where kernels do."""

    def decorator(function):
        register_decomposition([operator.attrgetter(name)(aten) for name in names])(in_opmath(function))
        return function

    return decorator


# -- backward, from the result


@elementwise("tanh_backward.default")
def tanh_backward(grad_output, output):
    return grad_output * (1 - output * output).conj_physical()


@elementwise("sigmoid_backward.default")
def sigmoid_backward(grad_output, output):
    return grad_output * (output * (1 - output)).conj_physical()


# -- piecewise linear


@elementwise("threshold_backward.default")
def threshold_backward(grad_output, self, threshold):
    return rt.where(self <= threshold, 0, grad_output)


@elementwise("leaky_relu_backward.default")
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    return rt.where(self > 0, grad_output, grad_output * negative_slope)


@elementwise("hardtanh_backward.default")
def hardtanh_backward(grad_output, self, min_val, max_val):
    inside = (self > min_val) & (self < max_val)
    return rt.where(inside, grad_output, 0.0)


@elementwise("hardsigmoid.default")
def hardsigmoid(self):
    return (self + 3).clamp(0, 6) / 6


@elementwise("hardsigmoid_backward.default")
def hardsigmoid_backward(grad_output, self):
    return rt.where((self > -3.0) & (self < 3.0), grad_output * (1 / 6), 0.0)


@elementwise("hardswish.default")
def hardswish(self):
    return self * (self + 3).clamp(0, 6) / 6


@elementwise("hardswish_backward.default")
def hardswish_backward(grad_output, self):
    sloping = grad_output * (self / 3 + 0.5)
    return rt.where(self <= -3, 0.0, rt.where(self < 3, sloping, grad_output))


@elementwise("hardshrink.default")
def hardshrink(self, lambd=0.5):
    return rt.where(self.abs() <= lambd, 0.0, self)


@elementwise("softshrink.default")
def softshrink(self, lambd=0.5):
    return rt.where(self.abs() > lambd, self - self.sign() * lambd, self * 0)


@elementwise("_prelu_kernel.default")
def _prelu_kernel(self, weight):
    return rt.where(self > 0, self, weight * self)


@elementwise("_prelu_kernel_backward.default")
def _prelu_kernel_backward(grad_output, self, weight):
    to_self = rt.where(self > 0, grad_output, weight * grad_output)
    return to_self, rt.where(self > 0, 0.0, self * grad_output)


# -- with exponentials


@elementwise("silu.default")
def silu(self):
    return self * self.sigmoid()


@elementwise("silu_backward.default")
def silu_backward(grad_output, self):
    s = self.sigmoid()
    return grad_output * s * (1 + self * (1 - s))


@elementwise("mish.default")
def mish(self):
    return self * rt.nn.functional.softplus(self).tanh()


@elementwise("mish_backward.default")
def mish_backward(grad_output, self):
    t = rt.nn.functional.softplus(self).tanh()
    return grad_output * (t + self * self.sigmoid() * (1 - t * t))


@elementwise("gelu_backward.default")
def gelu_backward(grad_output, self, *, approximate="none"):
    if approximate == "tanh":
        return grad_output * slope_of_tanh_gelu(self)
    below = 0.5 * (1 + (self * math.sqrt(0.5)).erf())  # the normal distribution
    density = (self * self * -0.5).exp() / math.sqrt(2 * math.pi)
    return grad_output * (below + self * density)


def slope_of_tanh_gelu(x):
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    t = (scale * (x + cubic * x * x * x)).tanh()
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x)


@elementwise("elu_backward.default")
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    negative = alpha * scale
    below = self_or_result + negative if is_result else negative * (self_or_result * input_scale).exp()
    return rt.where(self_or_result <= 0, grad_output * input_scale * below, grad_output * scale)


@elementwise("softplus.default")
def softplus(self, beta=1, threshold=20):
    scaled = self * beta
    return rt.where(scaled > threshold, self, scaled.exp().log1p() / beta)


@elementwise("softplus_backward.default")
def softplus_backward(grad_output, self, beta, threshold):
    z = (self * beta).exp()
    return rt.where(self * beta > threshold, grad_output, grad_output * z / (z + 1.0))


@elementwise("log_sigmoid_forward.default")
def log_sigmoid_forward(self):
    z = (-self.abs()).exp()
    return self.clamp(max=0) - z.log1p(), z


@elementwise("log_sigmoid_backward.default")
def log_sigmoid_backward(grad_output, self, buffer):
    z = buffer if buffer.numel() else (-self.abs()).exp()
    share = z / (1 + z)
    return grad_output * rt.where(self < 0, 1 - share, share)


@elementwise("glu.default")
def glu(self, dim=-1):
    value, gate = self.chunk(2, dim)
    return value * gate.sigmoid()


@elementwise("glu_backward.default")
def glu_backward(grad_output, self, dim):
    value, gate = self.chunk(2, dim)
    s = gate.sigmoid()
    return rt.cat([s * grad_output, (1 - s) * s * value * grad_output], dim)


# -- softmax, whose results have the dtype that is asked for


@register_decomposition(aten._softmax_backward_data.default)
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    grad_output, output = widened(grad_output), widened(output)
    weighted = grad_output * output
    return (weighted - output * weighted.sum(dim, keepdim=True)).to(input_dtype)


@register_decomposition(aten._log_softmax_backward_data.default)
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    grad_output, output = widened(grad_output), widened(output)
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


@elementwise("native_dropout_backward.default")
def native_dropout_backward(grad_output, mask, scale):
    return grad_output * (mask.to(grad_output.dtype) * scale)
