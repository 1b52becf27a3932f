"""More activation functions of straight pieces: hardsigmoid, hardswish, hardshrink, softshrink.

In PyTorch: `aten/src/ATen/native/Activation.cpp`. Explained in the chapter "Layers, functional, init".
"""
import ml_dtypes
import numpy as np

from ...c10.tensor_impl import dtype_of
from ..dispatcher import NOT_IMPLEMENTED
from ..functions import at
from ..native_function import native_function
from .activation import activation, activation_backward, declare, where_zero
from .exact_out import type_name
from .tensor_iterator import scalar_tensor

BOTH = "function, method"

hardsigmoid = declare("hardsigmoid(Tensor self) -> Tensor")
hardsigmoid_backward = native_function("hardsigmoid_backward(Tensor grad_output, Tensor self) -> "
                                       "Tensor", module="nn")
hardsigmoid.kernel(activation(lambda x: np.clip(x + 3, 0, 6) / 6, "hardsigmoid_cpu"))
hardsigmoid_backward.kernel(activation_backward(lambda g, x: where_zero((x <= -3) | (x >= 3), g * (1 / 6))))


@hardsigmoid.backward
class HardsigmoidBackward0:
    def self(grad, self):
        return hardsigmoid_backward.call(grad, self)


hardsigmoid_backward.backward(NOT_IMPLEMENTED)


hardswish = declare("hardswish(Tensor self) -> Tensor")
hardswish_backward = native_function("hardswish_backward(Tensor grad_output, Tensor self) -> "
                                     "Tensor", module="nn")
hardswish.kernel(activation(lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardswish_cpu", compiled="hardswish"))
hardswish_backward.kernel(activation_backward(
    lambda g, x: np.where(x <= -3, g.dtype.type(0), np.where(x < 3, g * (x / 3 + g.dtype.type(0.5)), g)),
    "hardswish_backward"))


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


# -------------------------------------------------------------------------------------------------- shrinkage

hardshrink = native_function("hardshrink(Tensor self, Scalar lambd=0.5) -> "
                             "Tensor", BOTH, out=True, direct=True)
hardshrink_backward = native_function("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> "
                                      "Tensor", BOTH)
softshrink = native_function("softshrink(Tensor self, Scalar lambd=0.5) -> "
                             "Tensor", module="nn", out=True, direct=True)
softshrink_backward = native_function("softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> "
                                      "Tensor", module="nn")

hardshrink.kernel(activation(lambda x, lambd: where_zero(abs(x) <= lambd, x), "hardshrink_cpu",
                             read_as=lambda dtype: dtype))
_shrunk_is_zero = activation_backward(lambda g, x, lambd: where_zero((x >= -lambd) & (x <= lambd), g))
hardshrink_backward.kernel(_shrunk_is_zero)
softshrink_backward.kernel(_shrunk_is_zero)
_softshrink = activation(
    lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)), "softshrink_cpu"
)


@softshrink.kernel
def softshrink_cpu(self, lambd):
    kind = dtype_of(self)
    if kind.is_floating_point and not 0 <= lambd <= ml_dtypes.finfo(kind.numpy).max:
        raise RuntimeError(f"lambda must be in range [0, {float(ml_dtypes.finfo(kind.numpy).max):g}] for "
                           f"input dtype {type_name(self)}, "
                           f"but found {lambd:g}")
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
