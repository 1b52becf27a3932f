"""More activation functions of straight pieces: hardsigmoid, hardswish, hardshrink, softshrink, and the random rrelu.

In PyTorch: `aten/src/ATen/native/Activation.cpp`. Explained in the chapter "Layers as functions".
"""
import numpy as np

from ...c10.tensor_impl import dtype_of
from ..functions import at
from ..native_function import native_function, write_result
from .activation import activation, activation_backward, declare, leaky_relu, leaky_relu_, where_zero
from .tensor_iterator import not_implemented, scalar_tensor

BOTH = "function, method"

hardsigmoid = declare("hardsigmoid(Tensor self) -> Tensor")
hardsigmoid_backward = native_function("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
hardsigmoid.kernel(activation(lambda x: np.clip(x + 3, 0, 6) / 6, "hardsigmoid_cpu"))
hardsigmoid_backward.kernel(activation_backward(lambda g, x: where_zero((x <= -3) | (x >= 3), g * (1 / 6))))


@hardsigmoid.backward
class HardsigmoidBackward0:
    def self(grad, self):
        return hardsigmoid_backward.call(grad, self)


@hardsigmoid_backward.backward
class HardsigmoidBackwardBackward0:  # in PyTorch: not implemented
    def grad_output(grad, self):
        return hardsigmoid_backward.call(grad, self)

    def self(grad):
        return at.zeros_like(grad)


hardswish = declare("hardswish(Tensor self) -> Tensor")
hardswish_backward = native_function("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
hardswish.kernel(activation(lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardswish_cpu"))
hardswish_backward.kernel(activation_backward(
    lambda g, x: np.where(x <= -3, g.dtype.type(0), np.where(x < 3, g * (x / 3 + g.dtype.type(0.5)), g))))


@hardswish.backward
class HardswishBackward0:
    def self(grad, self):
        return hardswish_backward.call(grad, self)


@hardswish_backward.backward
class HardswishBackwardBackward0:
    def grad_output(grad, self):
        return hardswish_backward.call(grad, self)

    def self(grad, grad_output, self):
        inside = at.logical_and(self > -3.0, self < 3.0)
        return at.where(inside, grad * grad_output / 3.0, scalar_tensor(0.0))


# --------------------------------------------------------------------------------------------------- shrinkage

hardshrink = native_function("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", BOTH, out=True, direct=True)
hardshrink_backward = native_function("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", BOTH)
softshrink = native_function("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", module="nn", out=True, direct=True)
softshrink_backward = native_function("softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", module="nn")

hardshrink.kernel(activation(lambda x, lambd: where_zero((x >= -lambd) & (x <= lambd), x), "hardshrink_cpu"))
_shrunk_is_zero = activation_backward(lambda g, x, lambd: where_zero((x >= -lambd) & (x <= lambd), g))
hardshrink_backward.kernel(_shrunk_is_zero)
softshrink_backward.kernel(_shrunk_is_zero)
_softshrink = activation(lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)), "softshrink_cpu")


@softshrink.kernel
def softshrink_cpu(self, lambd):
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    return _softshrink(self, lambd)


@hardshrink.backward
class HardshrinkBackward0:
    def self(grad, self, lambd):
        return hardshrink_backward.call(grad, self, lambd)


@softshrink.backward
class SoftshrinkBackward0:
    def self(grad, self, lambd):
        return softshrink_backward.call(grad, self, lambd)


@hardshrink_backward.backward
class HardshrinkBackwardBackward0:
    def grad_out(grad, self, lambd):
        return hardshrink_backward.call(grad, self, lambd)

    def self(grad):
        return at.zeros_like(grad)


@softshrink_backward.backward
class SoftshrinkBackwardBackward0:
    def grad_output(grad, self, lambd):
        return softshrink_backward.call(grad, self, lambd)

    def self(grad):
        return at.zeros_like(grad)
