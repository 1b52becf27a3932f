"""Activation functions made of straight pieces: relu, threshold, leaky_relu, prelu, hardtanh and other hard
ones.

In PyTorch: `aten/src/ATen/native/Activation.cpp` and `cpu/Activation.cpp`.
Explained in the chapter "Layers, functional, init".
"""
import functools

import numpy as np

from ...c10.overflows import check_fits, every_dtype_has, number_as
from ...c10.scalar_type import FLOAT, int64, op_math_type
from ...c10.scalar_type import bool as bool_
from ...c10.tensor_impl import dtype_of, wrap, wrap_result
from ..functions import at
from ..native_function import native_function, write_result
from .tensor_iterator import F4, F8, compute, computing, not_implemented, refuse_overlap, scalar_tensor
from .vectorized import loop

BOTH = "function, method"


# Fewer numbers than this are not worth loading the compiler for.
FROM_SIZE = 1024


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import activation_kernels
    return activation_kernels


def are_flat(x, *others):
    """Whether the loops serve: enough float32, one after the other, of one shape."""
    if x.dtype is not F4 or x.size < FROM_SIZE or not x.flags.c_contiguous:
        return False
    for y in others:
        if y.dtype is not F4 or y.shape != x.shape or not y.flags.c_contiguous:
            return False
    return True


def in_one_pass(name, *arrays, numbers=()):
    """The tensor that the compiled loop `name` makes of flat arrays."""
    return wrap(loop(name, *arrays, numbers=numbers, kernels=loops))


def activation(function, kernel_name, complex_too=False, compiled=None, read_as=op_math_type):
    """A CPU kernel `function(x, *parameters)` for floats of any width; raises NotImplementedError for other
    dtypes, and RuntimeError for a parameter that `read_as(dtype)` does not have.

    compiled: the name of the loop that does the same for many float32, with the same parameters.
    """
    def kernel(self, *parameters):
        x = self._array
        try:
            for number in parameters:
                if not -100 <= number <= 100:  # every dtype has these
                    check_parameter(self, number, read_as)
        except TypeError:  # complex numbers have no order
            check_parameter(self, number, read_as)
        if compiled is not None and x.size >= FROM_SIZE and are_flat(x):
            return in_one_pass(compiled, x, numbers=parameters)
        if x.dtype is F4 or x.dtype is F8:
            return wrap_result(function(x, *parameters))
        if not (dtype_of(self).is_floating_point or complex_too and dtype_of(self).is_complex):
            raise not_implemented(kernel_name)(dtype_of(self))
        return wrap_result(compute(lambda x: function(x, *parameters), (x,), dtype_of(self)))
    return kernel


def check_parameter(self, number, read_as):
    """Raises RuntimeError if `read_as(dtype)` does not have the number; for dtypes without such a kernel, nothing."""
    if dtype_of(self).is_floating_point:
        check_fits(number, read_as(dtype_of(self)))


def activation_backward(function, compiled=None):
    """A CPU kernel `function(grad, x, *parameters)`: the gradient passed on at `x`. compiled: see
    `activation`.
    """
    def kernel(grad, self, *parameters):
        g, x = grad._array, self._array
        if compiled is not None and are_flat(g, x):
            return in_one_pass(compiled, g, x, numbers=parameters)
        if g.dtype is x.dtype is F4:
            return wrap_result(function(g, x, *parameters))
        return computing(lambda g, x: function(g, x, *parameters), grad, self)
    return kernel


def declare(text, variants="function", module="nn"):
    """An activation with its in-place and out= forms."""
    return native_function(text, variants, module=module, inplace=True, out=True, direct=True)


I4 = np.dtype(np.int32)


def where_zero(condition, grad):
    """0 where `condition`, else `grad`; a nan in `grad` does not leak through a zero, as it would through a
    product.

    For float32 without a branch, which on random signs costs ten times more: `bits & 0` or `bits & -1`.
    """
    if grad.dtype is F4 and grad.shape == condition.shape:
        mask = condition.astype(I4)
        mask -= 1
        mask &= grad.view(I4)
        return mask.view(F4)
    return np.where(condition, grad.dtype.type(0), grad)


# ------------------------------------------------------------------------------------------------------- relu

relu = declare("relu(Tensor self) -> Tensor", BOTH, "torch")
_ZERO = np.zeros((), F4)  # an array: NumPy takes twice as long over a number


@relu.kernel
def relu_cpu(self):
    x = self._array
    if x.dtype is F4:
        if x.size >= FROM_SIZE and x.flags.c_contiguous:
            return in_one_pass("relu", x)
        return wrap_result(np.maximum(_ZERO,
                                      x))  # of two zeros NumPy takes the second: -0 stays, as in PyTorch
    check_relu(self)
    return wrap_result(np.maximum(x.dtype.type(0), x))


@relu.inplace.kernel
def relu_cpu_(self):
    check_relu(self)
    refuse_overlap(self)
    np.maximum(self._array.dtype.type(0), self._array, out=self._array)
    self._counter[0] += 1
    return self


def check_relu(self):
    kind = self._array.dtype.kind
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


@relu.backward
class ReluBackward0:
    """Needs only its result: where that is 0, no gradient passes."""

    def self(grad, result):
        return threshold_backward.call(grad, result, 0)


# -------------------------------------------------------------------------------------------------- threshold

threshold = native_function("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", out=True)
threshold_ = native_function("threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)")
threshold_backward = native_function("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) "
                                     "-> Tensor")


def threshold_numbers(self, threshold, value):
    """The numbers as the dtypes have them as which they are read.

    Raises NotImplementedError for bool and complex tensors, and RuntimeError for a number that its dtype does not have.
    """
    dtype = dtype_of(self)
    if dtype is bool_ or dtype.is_complex:
        raise not_implemented("threshold_cpu")(dtype)
    return number_as(threshold, op_math_type(dtype)), number_as(value, dtype)


@threshold.kernel
def threshold_cpu(self, threshold, value):
    x = self._array
    if x.dtype is F4 and every_dtype_has(threshold, value):
        return wrap_result(np.where(x <= threshold, np.array(value, F4), x))
    threshold, value = threshold_numbers(self, threshold, value)
    return wrap_result(np.where(x <= threshold, value, x))


@threshold_.kernel
def threshold_cpu_(self, threshold, value):
    threshold, value = threshold_numbers(self, threshold, value)
    np.copyto(self._array, value, where=self._array <= threshold, casting="unsafe")
    self._counter[0] += 1
    return self


@threshold_backward.kernel
def threshold_backward_cpu(grad_output, self, threshold):
    g, x = grad_output._array, self._array
    if are_flat(g, x):
        return in_one_pass("threshold_backward", g, x, numbers=(threshold,))
    if g.dtype is x.dtype:
        return wrap_result(where_zero(x <= threshold, g))
    return computing(lambda g, x: where_zero(x <= threshold, g), grad_output, self)


@threshold.backward
class ThresholdBackward0:
    def self(grad, self, threshold):
        return threshold_backward.call(grad, self, threshold)


@threshold_.backward
class ThresholdBackward1:
    def self(grad, self, threshold):
        return threshold_backward.call(grad, self, threshold)


@threshold_backward.backward
class ThresholdBackwardBackward0:
    def grad_output(grad, self, threshold):
        return threshold_backward.call(grad, self, threshold)

    def self(grad):
        return at.zeros_like(grad)


# --------------------------------------------------------------------------------------- leaky_relu and prelu

leaky_relu = native_function("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> "
                             "Tensor", module="nn", out=True, direct=True)
leaky_relu_ = native_function("leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> "
                              "Tensor(a!)", module="nn")
leaky_relu_backward = native_function("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar "
                                      "negative_slope, bool self_is_result) -> Tensor", module="nn")
leaky_relu_cpu = leaky_relu.kernel(
    activation(lambda x, slope: np.where(x > 0, x, x * slope), "leaky_relu_cpu", compiled="leaky_relu")
)
_leaky_relu_backward = activation_backward(
    lambda g, x, slope: np.where(x > 0, g, g * slope), "leaky_relu_backward")


@leaky_relu_.kernel
def leaky_relu_cpu_(self, negative_slope):
    return write_result(self, leaky_relu_cpu(self, negative_slope))


@leaky_relu_backward.kernel
def leaky_relu_backward_cpu(grad_output, self, negative_slope, self_is_result):
    if self_is_result and negative_slope < 0:
        raise RuntimeError("In-place leakyReLu backward calculation is triggered with a negative slope which "
                           "is not supported. "
                           "This is caused by calling in-place forward function with a negative slope, "
                           "please call "
                           "out-of-place version instead. File an issue at "
                           "https://github.com/pytorch/pytorch if you do "
                           "require supporting in-place leakRelu backward calculation with negative slope")
    return _leaky_relu_backward(grad_output, self, negative_slope)


@leaky_relu.backward
class LeakyReluBackward0:
    def self(grad, self, negative_slope):
        return leaky_relu_backward.call(grad, self, negative_slope, False)


@leaky_relu_.backward
class LeakyReluBackward1:
    """In place: the input is gone, but the result has its sign."""

    def self(grad, result, negative_slope):
        return leaky_relu_backward.call(grad, result, negative_slope, True)


@leaky_relu_backward.backward
class LeakyReluBackwardBackward0:
    def grad_output(grad, self, negative_slope):
        return leaky_relu_backward.call(grad, self, negative_slope, False)

    def self(grad):
        return at.zeros_like(grad)


prelu = native_function("prelu(Tensor self, Tensor weight) -> Tensor", BOTH, direct=True)
_prelu_kernel = native_function("_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
_prelu_kernel_backward = native_function("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor "
                                         "weight) -> (Tensor, Tensor)")


@prelu.compose
def prelu_composite(self, weight):
    """A slope for each channel (dimension 1), or one for all."""
    x, w = self._array, weight._array
    if dtype_of(self) is not dtype_of(weight):
        from ...c10.scalar_type import SCALAR_TYPE_NAMES as names
        raise RuntimeError(f"prelu: Type promoting not supported. Got {names[dtype_of(self)]} and "
                           f"{names[dtype_of(weight)]}")
    if w.size != 1:
        if x.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.size:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter "
                               "numbers = "
                               f"{w.size} and channel size = {channels}.")
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if w.ndim != x.ndim:
        weight = weight.reshape([w.size if d == (1 if x.ndim > 1 else 0) else 1 for d in range(x.ndim)])
    return _prelu_kernel.call(self, weight)


@_prelu_kernel.kernel
def prelu_kernel_cpu(self, weight):
    return computing(lambda x, w: np.where(x > 0, x, w * x), self, weight)


@_prelu_kernel.backward
class PreluKernelBackward0:
    def self__weight(grad, self, weight):
        return _prelu_kernel_backward.call(grad, self, weight)


@_prelu_kernel_backward.kernel
def prelu_kernel_backward_cpu(grad_output, self, weight):
    return (computing(lambda g, x, w: np.where(x > 0, g, g * w), grad_output, self, weight),
            computing(lambda g, x: np.where(x > 0, 0, g * x).astype(x.dtype), grad_output, self))


@_prelu_kernel_backward.backward
class PreluKernelBackwardBackward0:
    def grad_output(grads, self, weight):
        to_input, to_weight = grads
        if to_input is None:
            return at.where(self >= 0, scalar_tensor(0), to_weight * self)
        below = to_input * weight
        return at.where(self >= 0, to_input, below if to_weight is None else below + to_weight * self)

    def self(grads, grad_output, self):
        return (
            at.zeros_like(self)
            if grads[1] is None
            else at.where(self >= 0, scalar_tensor(0), grad_output * grads[1])
        )

    def weight(grads, grad_output, self):
        return (
            at.zeros_like(self)
            if grads[0] is None
            else at.where(self >= 0, scalar_tensor(0), grad_output * grads[0])
        )


# ----------------------------------------------------------------------------------------- hardtanh and relu6

hardtanh = declare("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
hardtanh_backward = native_function("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, "
                                    "Scalar max_val) -> Tensor", module="nn")
_outside_is_zero = activation_backward(lambda g, x, low, high: where_zero((x <= low) | (x >= high), g),
                                       "hardtanh_backward")


@hardtanh.kernel
def hardtanh_cpu(self, min_val, max_val):
    x = self._array
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if dtype_of(self).category < FLOAT:
        min_val, max_val = int(number_as(min_val, int64)), int(number_as(max_val, int64))
        if dtype_of(self).is_signed is False and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if not every_dtype_has(min_val, max_val):
        check_fits(min_val, dtype_of(self))
        check_fits(max_val, dtype_of(self))
    if are_flat(x):
        return in_one_pass("hardtanh", x, numbers=(min_val, max_val))
    if x.dtype is F4:
        return wrap_result(np.minimum(np.maximum(x, min_val), max_val))
    return wrap_result(compute(lambda x: np.minimum(np.maximum(x, min_val), max_val), (x,), dtype_of(self)))


@hardtanh.backward
class HardtanhBackward0:
    def self(grad, self, min_val, max_val):
        return hardtanh_backward.call(grad, self, min_val, max_val)


hardtanh_backward.kernel(_outside_is_zero)


@hardtanh_backward.backward
class HardtanhBackwardBackward0:
    def grad_output(grad, self, min_val, max_val):
        return hardtanh_backward.call(grad, self, min_val, max_val)

    def self(grad):
        return at.zeros_like(grad)


relu6 = native_function("relu6(Tensor self) -> Tensor", module="nn", inplace=True)


@relu6.compose
def relu6_composite(self):
    return hardtanh.call(self, 0, 6)


@relu6.inplace.compose
def relu6_composite_(self):
    return hardtanh.inplace.call(self, 0, 6)
