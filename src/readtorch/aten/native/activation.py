"""Activation functions: relu and its piecewise linear relatives, then the smooth ones (elu, gelu, silu, mish, softplus
…).

In PyTorch: `aten/src/ATen/native/Activation.cpp` and `aten/src/ATen/native/cpu/Activation.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import math

import ml_dtypes
import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.register_dispatch_key import write_result
from readtorch.aten.tensor_meta import TensorMeta, broadcast, like, pointwise_strides
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled
from readtorch.c10.overflows import check_fits, every_dtype_has, number_as
from readtorch.c10.scalar_type import FLOAT, int64, op_math_type
from readtorch.c10.scalar_type import bool as bool_
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap, wrap_result

from . import math as f
from .cpu import distribution_kernels
from .distributions import generator_of, run
from .exact_out import exact_out, found_dtype
from .tensor_iterator import (
    F4,
    F8,
    compute,
    computing,
    conj,
    elementwise,
    is_floating,
    is_integer_or_floating,
    not_implemented,
    refuse_overlap,
    result_type,
    scalar_tensor,
)
from .vectorized import are_flat_halves, loop

# Fewer elements than this are not worth loading the compiler for.
FROM_SIZE = 1024


def are_flat(x, *others):
    """Whether the loops serve: enough float32 or 16-bit floats, contiguous and of one shape."""
    if x.dtype is not F4 or x.size < FROM_SIZE or not x.flags.c_contiguous:
        return x.itemsize == 2 and are_flat_halves(x, *others)
    for y in others:
        if y.dtype is not F4 or y.shape != x.shape or not y.flags.c_contiguous:
            return False
    return True


def in_one_pass(function, *arrays, numbers=()):
    """The tensor that the compiled loop of `function` makes of flat arrays."""
    return wrap(loop(function, *arrays, numbers=numbers))


def activation(function, kernel_name, complex_too=False, compiled=None, read_as=op_math_type):
    """A CPU kernel `function(x, *parameters)` for floats of any width; raises NotImplementedError for other
    dtypes, and RuntimeError for a parameter that `read_as(dtype)` does not have.

    compiled: the function of aten/native/math.py for many float32, if it is to be compiled; its scalars are the parameters.
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
    """A CPU kernel `function(grad, x, *parameters)`: the gradient for the input `x`. compiled: see `activation`."""

    def kernel(grad, self, *parameters):
        g, x = grad._array, self._array
        if compiled is not None and are_flat(g, x):
            return in_one_pass(compiled, g, x, numbers=parameters)
        if g.dtype is x.dtype is F4:
            return wrap_result(function(g, x, *parameters))
        return computing(lambda g, x: function(g, x, *parameters), grad, self)

    return kernel


def declare(text, variants="function", module="nn", out=True):
    """An activation with its in-place and out= forms."""
    return native_function(text, variants, module=module, inplace=True, out=out, direct=True)


I4 = np.dtype(np.int32)


def where_zero(condition, grad):
    """0 where `condition`, else `grad`; a nan in `grad` does not leak through a zero, as it would through a product.

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


def check_relu(self):
    kind = self._array.dtype.kind
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


elementwise(relu, f.relu, check=check_relu)


@relu.kernel
def relu_cpu(self):
    x = self._array
    if x.dtype is F4:
        if x.size >= FROM_SIZE and x.flags.c_contiguous:
            return in_one_pass(f.relu, x)
        return wrap_result(np.maximum(_ZERO, x))  # of two zeros NumPy takes the second: -0 stays, as in PyTorch
    check_relu(self)
    return in_one_pass(f.relu, x) if are_flat(x) else wrap_result(np.maximum(x.dtype.type(0), x))


@relu.inplace.kernel
def relu_cpu_(self):
    check_relu(self)
    refuse_overlap(self)
    np.maximum(self._array.dtype.type(0), self._array, out=self._array)
    return self


@relu.backward
class ReluBackward0:
    """Needs only its result: where that is 0, no gradient passes."""

    def self(grad, result):
        return threshold_backward.call(grad, result, 0)

    result = "auto_element_wise"


# -------------------------------------------------------------------------------------------------- threshold

threshold = native_function("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", out=True)
threshold_ = native_function("threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)")
threshold_backward = native_function("threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")


elementwise(threshold, f.threshold, scalars=lambda threshold, value: (threshold, value), takes=is_integer_or_floating)
elementwise(threshold_backward, f.threshold_backward, scalars=lambda threshold: (threshold,))


def threshold_numbers(self, threshold, value):
    """The parameters rounded to the dtypes in which the kernel reads them.

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
    """Also of an expanded tensor: each of its elements is compared before it is written."""
    threshold, value = threshold_numbers(self, threshold, value)
    np.copyto(self._array, value, where=self._array <= threshold, casting="unsafe")
    return self


@threshold_backward.kernel
def threshold_backward_cpu(grad_output, self, threshold):
    g, x = grad_output._array, self._array
    if are_flat(g, x):
        return in_one_pass(f.threshold_backward, g, x, numbers=(threshold,))
    if g.dtype is x.dtype:
        return wrap_result(where_zero(x <= threshold, g))
    return computing(lambda g, x: where_zero(x <= threshold, g), grad_output, self)


@threshold.backward
class ThresholdBackward0:
    def self(grad, self, threshold):
        return threshold_backward.call(grad, self, threshold)

    result = "auto_element_wise"


@threshold_.backward
class ThresholdBackward1:
    def self(grad, self, threshold):
        return threshold_backward.call(grad, self, threshold)

    def result(self_p, self_t, threshold):
        return self_t.copy_(threshold_backward.call(self_t, self_p, threshold))


@threshold_backward.backward
class ThresholdBackwardBackward0:
    def grad_output(grad, self, threshold):
        return threshold_backward.call(grad, self, threshold)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, threshold):
        return threshold_backward.call(grad_output_t, self_p, threshold)


# --------------------------------------------------------------------------------------- leaky_relu and prelu

leaky_relu = native_function(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", module="nn", out=True, direct=True
)
leaky_relu_ = native_function("leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)", module="nn")
leaky_relu_backward = native_function(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    module="nn",
)
elementwise(leaky_relu, f.leaky_relu, scalars=lambda slope: (slope,), takes=is_floating)
leaky_relu_cpu = leaky_relu.kernel(
    activation(lambda x, slope: np.where(x > 0, x, x * slope), "leaky_relu_cpu", compiled=f.leaky_relu)
)
_leaky_relu_backward = activation_backward(lambda g, x, slope: np.where(x > 0, g, g * slope), f.leaky_relu_backward)


@leaky_relu_.kernel
def leaky_relu_cpu_(self, negative_slope):
    return write_result(self, leaky_relu_cpu(self, negative_slope))


def check_leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    if self_is_result and negative_slope < 0:
        raise RuntimeError(
            "In-place leakyReLu backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative slope, "
            "please call out-of-place version instead. File an issue at "
            "https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu backward "
            "calculation with negative slope"
        )


elementwise(
    leaky_relu_backward,
    f.leaky_relu_backward,
    scalars=lambda slope, self_is_result: (slope,),
    check=check_leaky_relu_backward,
)


@leaky_relu_backward.kernel
def leaky_relu_backward_cpu(grad_output, self, negative_slope, self_is_result):
    check_leaky_relu_backward(grad_output, self, negative_slope, self_is_result)
    return _leaky_relu_backward(grad_output, self, negative_slope)


@leaky_relu.backward
class LeakyReluBackward0:
    def self(grad, self, negative_slope):
        return leaky_relu_backward.call(grad, self, negative_slope, False)

    result = "auto_element_wise"


@leaky_relu_.backward
class LeakyReluBackward1:
    """In place: the input is gone, but the result has its sign."""

    def self(grad, result, negative_slope):
        return leaky_relu_backward.call(grad, result, negative_slope, True)

    def result(self_t, result, negative_slope):
        return self_t.copy_(leaky_relu_backward.call(self_t, result, negative_slope, True))


@leaky_relu_backward.backward
class LeakyReluBackwardBackward0:
    def grad_output(grad, self, negative_slope):
        return leaky_relu_backward.call(grad, self, negative_slope, False)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, negative_slope, self_is_result):
        return leaky_relu_backward.call(grad_output_t, self_p, negative_slope, self_is_result)


prelu = native_function("prelu(Tensor self, Tensor weight) -> Tensor", BOTH, direct=True)
_prelu_kernel = native_function("_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
_prelu_kernel_backward = native_function(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)"
)


@prelu.compose
def prelu_composite(self, weight):
    """A slope for each channel (dimension 1), or one for all."""
    x, w = self._array, weight._array
    if dtype_of(self) is not dtype_of(weight):
        from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES as names

        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {names[dtype_of(self)]} and {names[dtype_of(weight)]}"
        )
    if w.size != 1:
        if x.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = x.shape[1] if x.ndim > 1 else 1
        if channels != w.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{w.size} and channel size = {channels}."
            )
    if w.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}")
    if w.ndim != x.ndim:
        weight = weight.reshape([w.size if d == (1 if x.ndim > 1 else 0) else 1 for d in range(x.ndim)])
    return _prelu_kernel.call(self, weight)


elementwise(_prelu_kernel, f.prelu)


@_prelu_kernel.kernel
def prelu_kernel_cpu(self, weight):
    return computing(lambda x, w: np.where(x > 0, x, w * x), self, weight)


@_prelu_kernel.backward
class PreluKernelBackward0:
    def self__weight(grad, self, weight):
        return _prelu_kernel_backward.call(grad, self, weight)

    def result(self_p, self_t, weight_p, weight_t):
        return at.where(self_p >= 0, self_t, weight_p * self_t + weight_t * self_p)


@_prelu_kernel_backward.meta
def prelu_kernel_backward_meta(grad_output, self, weight):
    common = result_type(grad_output, self)
    return broadcast(common, grad_output, self, weight), broadcast(common, grad_output, self)


@_prelu_kernel_backward.kernel
def prelu_kernel_backward_cpu(grad_output, self, weight):
    return (
        computing(lambda g, x, w: np.where(x > 0, g, g * w), grad_output, self, weight),
        computing(lambda g, x: np.where(x > 0, 0, g * x).astype(x.dtype), grad_output, self),
    )


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
            at.zeros_like(self) if grads[1] is None else at.where(self >= 0, scalar_tensor(0), grad_output * grads[1])
        )

    def weight(grads, grad_output, self):
        return (
            at.zeros_like(self) if grads[0] is None else at.where(self >= 0, scalar_tensor(0), grad_output * grads[0])
        )

    def result0(grad_output_p, grad_output_t, self_p, weight_p, weight_t):
        return at.where(self_p >= 0, grad_output_t, grad_output_t * weight_p + grad_output_p * weight_t)

    def result1(grad_output_p, grad_output_t, self_p, self_t):
        return at.where(self_p >= 0, scalar_tensor(0), grad_output_p * self_t + grad_output_t * self_p)


# ----------------------------------------------------------------------------------------- hardtanh and relu6

hardtanh = declare("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
hardtanh_backward = native_function(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor", module="nn"
)


def hardtanh_limits(self, min_val, max_val):
    """The limits as numbers of the kind that `self` has. Raises RuntimeError if it is bool, or unsigned and a limit negative."""
    if self._array.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if dtype_of(self).category < FLOAT:
        min_val, max_val = int(number_as(min_val, int64)), int(number_as(max_val, int64))
        if dtype_of(self).is_signed is False and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return min_val, max_val


elementwise(hardtanh, f.clamp, scalars=lambda *limits: limits, check=hardtanh_limits, takes=is_integer_or_floating)


@hardtanh.kernel
def hardtanh_cpu(self, min_val, max_val):
    x = self._array
    if x.dtype is not F4:
        min_val, max_val = hardtanh_limits(self, min_val, max_val)
    if not every_dtype_has(min_val, max_val):
        check_fits(min_val, dtype_of(self))
        check_fits(max_val, dtype_of(self))
    if are_flat(x):
        return in_one_pass(f.clamp, x, numbers=(min_val, max_val))
    if x.dtype is F4:
        return wrap_result(np.minimum(np.maximum(x, min_val), max_val))
    return wrap_result(compute(lambda x: np.minimum(np.maximum(x, min_val), max_val), (x,), dtype_of(self)))


@hardtanh.backward
class HardtanhBackward0:
    def self(grad, self, min_val, max_val):
        return hardtanh_backward.call(grad, self, min_val, max_val)

    result = "auto_element_wise"


elementwise(hardtanh_backward, f.hardtanh_backward, scalars=lambda *limits: limits)
hardtanh_backward.kernel(
    activation_backward(
        lambda g, x, low, high: where_zero((x <= low) | (x >= high), g), compiled=f.hardtanh_backward_vectorized
    )
)


@hardtanh_backward.backward
class HardtanhBackwardBackward0:
    def grad_output(grad, self, min_val, max_val):
        return hardtanh_backward.call(grad, self, min_val, max_val)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, min_val, max_val):
        return hardtanh_backward.call(grad_output_t, self_p, min_val, max_val)


relu6 = native_function("relu6(Tensor self) -> Tensor", module="nn", inplace=True)


@relu6.compose
def relu6_composite(self):
    return hardtanh.call(self, 0, 6)


@relu6.inplace.compose
def relu6_composite_(self):
    return hardtanh.inplace.call(self, 0, 6)


# ------------------------------------------------------------- hardsigmoid, hardswish, hardshrink, softshrink

hardsigmoid = declare("hardsigmoid(Tensor self) -> Tensor")
hardsigmoid_backward = native_function("hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
elementwise(hardsigmoid, f.hardsigmoid, takes=is_floating)
elementwise(hardsigmoid_backward, f.hardsigmoid_backward)
hardsigmoid.kernel(activation(lambda x: np.clip(x + 3, 0, 6) / 6, "hardsigmoid_cpu"))
hardsigmoid_backward.kernel(activation_backward(lambda g, x: where_zero((x <= -3) | (x >= 3), g * (1 / 6))))


@hardsigmoid.backward
class HardsigmoidBackward0:
    def self(grad, self):
        return hardsigmoid_backward.call(grad, self)

    result = "auto_element_wise"


hardsigmoid_backward.backward(NOT_IMPLEMENTED)


hardswish = declare("hardswish(Tensor self) -> Tensor")
hardswish_backward = native_function("hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
elementwise(hardswish, f.hardswish, takes=is_floating)
elementwise(hardswish_backward, f.hardswish_backward)
hardswish.kernel(activation(lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardswish_cpu", compiled=f.hardswish))
hardswish_backward.kernel(
    activation_backward(
        lambda g, x: np.where(x <= -3, g.dtype.type(0), np.where(x < 3, g * (x / 3 + g.dtype.type(0.5)), g)),
        compiled=f.hardswish_backward_vectorized,
    )
)


@hardswish.backward
class HardswishBackward0:
    def self(grad, self):
        return hardswish_backward.call(grad, self)

    result = "auto_element_wise"


@hardswish_backward.backward
class HardswishBackwardBackward0:
    def grad_output(grad, self):
        return hardswish_backward.call(grad, self)

    def self(grad, grad_output, self):
        inside = at.logical_and(self > -3.0, self < 3.0)
        return at.where(inside, grad * grad_output / 3.0, scalar_tensor(0.0))

    def result(grad_output_p, grad_output_t, self_p, self_t):
        inside = at.logical_and(self_p > -3.0, self_p < 3.0)
        curved = at.where(inside, self_t * grad_output_p / 3.0, scalar_tensor(0.0))
        return hardswish_backward.call(grad_output_t, self_p) + curved


# -------------------------------------------------------------------------------------------------- shrinkage

hardshrink = native_function("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", BOTH, out=True, direct=True)
hardshrink_backward = native_function("hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", BOTH)
softshrink = native_function("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", module="nn", out=True, direct=True)
softshrink_backward = native_function(
    "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", module="nn"
)

for _operator, _function in (
    (hardshrink, f.hardshrink),
    (hardshrink_backward, f.shrink_backward),
    (softshrink_backward, f.shrink_backward),
):
    elementwise(_operator, _function, scalars=lambda lambd: (lambd,), takes=is_floating)
hardshrink.kernel(
    activation(lambda x, lambd: where_zero(abs(x) <= lambd, x), "hardshrink_cpu", read_as=lambda dtype: dtype)
)
_shrunk_is_zero = activation_backward(lambda g, x, lambd: where_zero((x >= -lambd) & (x <= lambd), g))
hardshrink_backward.kernel(_shrunk_is_zero)
softshrink_backward.kernel(_shrunk_is_zero)
_softshrink = activation(
    lambda x, lambd: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)), "softshrink_cpu"
)


def check_softshrink(self, lambd):
    kind = dtype_of(self)
    if kind.is_floating_point and not 0 <= lambd <= ml_dtypes.finfo(kind.numpy).max:
        raise RuntimeError(
            f"lambda must be in range [0, {float(ml_dtypes.finfo(kind.numpy).max):g}] for input dtype "
            f"{type_name(self)}, but found {lambd:g}"
        )


elementwise(softshrink, f.softshrink, scalars=lambda lambd: (lambd,), check=check_softshrink, takes=is_floating)


@softshrink.kernel
def softshrink_cpu(self, lambd):
    check_softshrink(self, lambd)
    return _softshrink(self, lambd)


@hardshrink.backward
class HardshrinkBackward0:
    def self(grad, self, lambd):
        return hardshrink_backward.call(grad, self, lambd)

    result = "auto_element_wise"


@softshrink.backward
class SoftshrinkBackward0:
    def self(grad, self, lambd):
        return softshrink_backward.call(grad, self, lambd)

    result = "auto_element_wise"


@hardshrink_backward.backward
class HardshrinkBackwardBackward0:
    def grad_out(grad, self, lambd):
        return hardshrink_backward.call(grad, self, lambd)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_out_t, self_p, lambd):
        return hardshrink_backward.call(grad_out_t, self_p, lambd)


@softshrink_backward.backward
class SoftshrinkBackwardBackward0:
    def grad_output(grad, self, lambd):
        return softshrink_backward.call(grad, self, lambd)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, lambd):
        return softshrink_backward.call(grad_output_t, self_p, lambd)


# --------------------------------------------------------------- elu, gelu, silu, mish, softplus, log_sigmoid


def sigmoid_array(x):
    return 1 / (1 + np.exp(-x))


# -------------------------------------------------------------------------------------------- elu, selu, celu

_ELU = "Scalar alpha=1, Scalar scale=1, Scalar input_scale=1"
elu = native_function(f"elu(Tensor self, {_ELU}) -> Tensor", module="nn", out=True, direct=True)
elu_ = native_function(f"elu_(Tensor(a!) self, {_ELU}) -> Tensor(a!)", module="nn")
elu_backward = native_function(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor "
    "self_or_result) -> Tensor",
    module="nn",
)


def elu_scalars(alpha, scale, input_scale):
    return alpha * scale, scale, input_scale


elementwise(elu, f.elu, scalars=elu_scalars, takes=is_floating)
_elu = activation(
    lambda x, alpha, scale, input_scale: np.where(
        x < 0, np.expm1(x if input_scale == 1 else x * input_scale) * (alpha * scale), x * scale
    ),
    "elu_cpu",
)


@elu.kernel
def elu_cpu(self, alpha, scale, input_scale):
    if self._array.size >= FROM_SIZE and are_flat(self._array):
        return in_one_pass(f.elu, self._array, numbers=elu_scalars(alpha, scale, input_scale))
    return _elu(self, alpha, scale, input_scale)


@elu_.kernel
def elu_cpu_(self, alpha, scale, input_scale):
    return write_result(self, elu.call(self, alpha, scale, input_scale))


def elu_slope(g, y, alpha, scale, input_scale, is_result):
    """For y <= 0 the slope is input_scale · (result + alpha·scale); the result is known, or computed from the input."""
    below = (y + alpha * scale) if is_result else np.exp(y * input_scale) * (alpha * scale)
    return np.where(y > 0, g * scale, g * input_scale * below)


_elu_backward = activation_backward(elu_slope)


def check_elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if is_result and alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative slope, "
            "please call out-of-place version instead."
        )


elementwise(
    elu_backward,
    f.elu_backward,
    scalars=lambda alpha, scale, inside, is_result: (alpha * scale, scale, inside, is_result),
    check=check_elu_backward,
)


@elu_backward.kernel
def elu_backward_cpu(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    check_elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result)
    g, x = grad_output._array, self_or_result._array
    if not is_result and are_flat(g, x):
        return in_one_pass(f.elu_backward, g, x, numbers=(alpha * scale, scale, input_scale, 0))
    return _elu_backward(grad_output, self_or_result, alpha, scale, input_scale, is_result)


@elu.backward
class EluBackward0:
    def self(grad, self, alpha, scale, input_scale):
        return elu_backward.call(grad, alpha, scale, input_scale, False, self)

    result = "auto_element_wise"


@elu_.backward
class EluBackward1:
    def self(grad, result, alpha, scale, input_scale):
        return elu_backward.call(grad, alpha, scale, input_scale, True, result)

    def result(self_t, result, alpha, scale, input_scale):
        return self_t.copy_(elu_backward.call(self_t, alpha, scale, input_scale, True, result))


@elu_backward.backward
class EluBackwardBackward0:
    def grad_output(grad, self_or_result, alpha, scale, input_scale, is_result):
        return elu_backward.call(grad, alpha, scale, input_scale, is_result, self_or_result)

    def self_or_result(grad, grad_output, self_or_result, alpha, scale, input_scale, is_result):
        return elu_bend(grad * grad_output, self_or_result, alpha, scale, input_scale, is_result)

    def result(grad_output_p, grad_output_t, self_or_result_p, self_or_result_t, alpha, scale, input_scale, is_result):
        bend = elu_bend(self_or_result_t * grad_output_p, self_or_result_p, alpha, scale, input_scale, is_result)
        return elu_backward.call(grad_output_t, alpha, scale, input_scale, is_result, self_or_result_p) + bend


def elu_bend(change, self_or_result, alpha, scale, input_scale, is_result):
    """What becomes of the slope where the input, or the result that it is told from, changes."""
    below = change * input_scale * (self_or_result < 0)
    return below if is_result else below * input_scale * alpha * scale * (self_or_result * input_scale).exp()


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


def check_celu(self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


elementwise(celu, f.elu, scalars=lambda alpha: (alpha, 1, 1 / alpha), check=check_celu, takes=is_floating)


@celu.kernel
def celu_cpu(self, alpha):
    check_celu(self, alpha)
    return elu_cpu(self, alpha, 1, 1 / alpha)


@celu_.kernel
def celu_cpu_(self, alpha):
    return write_result(self, celu_cpu(self, alpha))


@celu.backward
class CeluBackward0:
    def self(grad, self, alpha):
        return elu_backward.call(grad, alpha, 1, 1 / alpha, False, self)

    result = "auto_element_wise"


@celu_.backward
class CeluBackward1:
    def self(grad, result, alpha):
        return elu_backward.call(grad, alpha, 1, 1 / alpha, True, result)

    def result(self_t, result, alpha):
        return self_t.copy_(elu_backward.call(self_t, alpha, 1, 1 / alpha, True, result))


# ------------------------------------------------------------------------------------------------------- gelu

gelu = declare("gelu(Tensor self, *, str approximate='none') -> Tensor", out=exact_out(found_dtype))
gelu_backward = native_function(
    "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor", module="nn"
)
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


def check_gelu(self, approximate):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")


_gelus = {
    approximate: activation(lambda x, approximate=approximate: x * normal_cdf(x, approximate), "GeluKernelImpl")
    for approximate in ("none", "tanh")
}
_gelu_backward = activation_backward(gelu_slope)


elementwise(
    gelu,
    lambda approximate: f.gelu_tanh if approximate == "tanh" else f.gelu,
    by_number=True,
    check=check_gelu,
    takes=is_floating,
)
elementwise(
    gelu_backward,
    lambda approximate: f.gelu_tanh_backward if approximate == "tanh" else f.gelu_backward,
    by_number=True,
    takes=is_floating,
)


@gelu.kernel
def gelu_cpu(self, approximate):
    check_gelu(self, approximate)
    if are_flat(self._array):
        return in_one_pass(f.gelu_tanh if approximate == "tanh" else f.gelu, self._array)
    return _gelus[approximate](self)


@gelu_backward.kernel
def gelu_backward_cpu(grad_output, self, approximate):
    if are_flat(grad_output._array, self._array):
        function = f.gelu_tanh_backward if approximate == "tanh" else f.gelu_backward
        return in_one_pass(function, grad_output._array, self._array)
    return _gelu_backward(grad_output, self, approximate)


@gelu.backward
class GeluBackward0:
    def self(grad, self, approximate):
        return gelu_backward.call(grad, self, approximate)

    result = "auto_element_wise"


@gelu_backward.backward
class GeluBackwardBackward0:
    def grad_output(grad, self, approximate):
        return gelu_backward.call(grad, self, approximate)

    def self(grad, grad_output, self, approximate):
        return grad * grad_output * curvature_of_gelu(self, approximate)

    def result(grad_output_p, grad_output_t, self_p, self_t, approximate):
        bend = self_t * grad_output_p * curvature_of_gelu(self_p, approximate)
        return gelu_backward.call(grad_output_t, self_p, approximate) + bend


def curvature_of_gelu(x, approximate):
    return gelu_curvature_tanh(x) if approximate == "tanh" else gelu_curvature(x)


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
elementwise(silu, f.silu, takes=is_floating)
elementwise(silu_backward, f.silu_backward, takes=is_floating)
silu.kernel(activation(lambda x: x * sigmoid_array(x), "silu_cpu", complex_too=True, compiled=f.silu))


def silu_slope(g, x):
    s = sigmoid_array(x)
    return g * np.conj(s * (1 + x * (1 - s)))


silu_backward.kernel(activation_backward(silu_slope, f.silu_backward))


silu_backward.backward(NOT_IMPLEMENTED)


def infinitely_differentiable_silu_backward(grad_output, self):
    """The same in differentiable steps, for when the gradient itself is to have a graph."""
    s = self.sigmoid()
    return grad_output * conj(s * (1 + self * (1 - s)))


@silu.backward
class SiluBackward0:
    def self(grad, self):
        backward = infinitely_differentiable_silu_backward if grad_mode_enabled() else silu_backward.call
        return backward(grad, self)

    result = "auto_element_wise"


mish = declare("mish(Tensor self) -> Tensor")
mish_backward = native_function("mish_backward(Tensor grad_output, Tensor self) -> Tensor", module="nn")
elementwise(mish, f.mish, takes=is_floating)
elementwise(mish_backward, f.mish_backward, takes=is_floating)
mish.kernel(activation(lambda x: x * np.tanh(np.logaddexp(0, x)), "mish_cpu", compiled=f.mish))


def mish_slope(g, x):
    t = np.tanh(np.logaddexp(0, x))
    return g * (t + x * sigmoid_array(x) * (1 - t * t))


mish_backward.kernel(activation_backward(mish_slope, f.mish_backward))


mish_backward.backward(NOT_IMPLEMENTED)


def infinitely_differentiable_mish_backward(grad_output, self):
    t = softplus.call(self, 1, 20).tanh()
    return grad_output * (t + self * self.sigmoid() * (1 - t * t))


@mish.backward
class MishBackward0:
    def self(grad, self):
        backward = infinitely_differentiable_mish_backward if grad_mode_enabled() else mish_backward.call
        return backward(grad, self)

    result = "auto_element_wise"


# ----------------------------------------------------------------------------------- softplus and log_sigmoid

softplus = native_function(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    module="nn",
    out=exact_out(found_dtype),
    direct=True,
)
softplus_backward = native_function(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor", module="nn"
)
elementwise(softplus, f.softplus, scalars=lambda beta, threshold: (beta, threshold), takes=is_floating)
elementwise(
    softplus_backward, f.softplus_backward, takes=is_floating, scalars=lambda beta, threshold: (beta, threshold)
)
softplus.kernel(
    activation(
        lambda x, beta, threshold: np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta),
        "softplus_cpu",
        compiled=f.softplus,
    )
)


def softplus_slope(g, x, beta, threshold):
    z = np.exp(x * beta)
    return np.where(x * beta > threshold, g, g * z / (z + 1))


softplus_backward.kernel(activation_backward(softplus_slope, f.softplus_backward))


@softplus.backward
class SoftplusBackward0:
    def self(grad, self, beta, threshold):
        return softplus_backward.call(grad, self, beta, threshold)

    result = "auto_element_wise"


@softplus_backward.backward
class SoftplusBackwardBackward0:
    def grad_output(grad, self, beta, threshold):
        return softplus_backward.call(grad, self, beta, threshold)

    def self(grad, grad_output, self, beta, threshold):
        return grad * grad_output * softplus_curvature(self, beta, threshold)

    def result(grad_output_p, grad_output_t, self_p, self_t, beta, threshold):
        bend = self_t * grad_output_p * softplus_curvature(self_p, beta, threshold)
        return softplus_backward.call(grad_output_t, self_p, beta, threshold) + bend


def softplus_curvature(x, beta, threshold):
    s = (x * beta).sigmoid()
    return s * (1 - s) * (x * beta < threshold) * beta


log_sigmoid = native_function(
    "log_sigmoid(Tensor self) -> Tensor",
    module="nn",
    out=exact_out(lambda out, result, *_: f"expected scalar type {type_name(result)} but found {type_name(out)}"),
    direct=True,
)
log_sigmoid_forward = native_function("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", module="nn")
log_sigmoid_backward = native_function(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor", module="nn"
)


@log_sigmoid.compose
def log_sigmoid_composite(self):
    return log_sigmoid_forward.call(self)[0]


@log_sigmoid_forward.meta
def log_sigmoid_forward_meta(self):
    output = TensorMeta(self._array.shape, dtype_of(self))
    return output, output


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

    def output(self_p, self_t, buffer):
        return log_sigmoid_backward.call(self_t, self_p, buffer)


@log_sigmoid_backward.meta
def log_sigmoid_backward_meta(grad_output, self, buffer):
    """It lies in memory as `grad_output` does."""
    shape = broadcast_shape(self._array.shape, grad_output._array.shape)
    return TensorMeta(shape, dtype_of(grad_output), pointwise_strides(shape, [grad_output._array]))


@log_sigmoid_backward.impl()
def log_sigmoid_backward_cpu(grad_output, self, buffer, grad_input):
    negative = self._array < 0

    def slope(g, z):
        return g * (negative - np.where(negative, 1, -1).astype(g.dtype) * (z / (1 + z)))

    grad_input._array[...] = compute(slope, (grad_output._array, buffer._array), dtype_of(grad_output))


@log_sigmoid_backward.backward
class LogSigmoidBackwardBackward0:
    def grad_output(grad, self, buffer):
        return log_sigmoid_backward.call(grad, self, buffer)

    def self(grad, grad_output, self):
        z = self.sigmoid()
        return grad * grad_output * (z - 1) * z

    def result(grad_output_p, grad_output_t, self_p, self_t, buffer):
        z = self_p.sigmoid()
        return log_sigmoid_backward.call(grad_output_t, self_p, buffer) + self_t * grad_output_p * (z - 1) * z


# ------------------------------------------------------------------------------------------------------ rrelu

_ARGUMENTS = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"

rrelu_with_noise = native_function(
    f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {_ARGUMENTS}) -> Tensor", module="nn"
)
rrelu_with_noise_ = native_function(
    f"rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, {_ARGUMENTS}) -> Tensor(a!)", module="nn"
)
rrelu_with_noise_backward = native_function(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool "
    "training, bool self_is_result) -> Tensor",
    "",
)


def slopes(array, lower, upper, training, generator):
    """The factor of each element: 1 where positive, else drawn from [lower, upper) (its middle outside training)."""
    noise = np.ones(array.shape, array.dtype)
    negative = array <= 0
    if training:
        drawn = np.empty(int(negative.sum()), np.float64)
        run(distribution_kernels.uniform_, drawn, lower, upper, generator_of(generator))
        noise[negative] = drawn.astype(array.dtype)
    else:
        noise[negative] = (lower + upper) / 2
    return noise


def keep_noise(noise, factors, training):
    """Only backward reads the noise, which the node has saved already, so the version counter does not change."""
    if training:
        noise._array[...] = factors


@rrelu_with_noise.meta
def rrelu_with_noise_meta(self, noise, lower, upper, training, generator):
    return like(self)


@rrelu_with_noise.kernel
def rrelu_with_noise_cpu(self, noise, lower, upper, training, generator):
    factors = slopes(self._array, lower, upper, training, generator)
    keep_noise(noise, factors, training)
    return wrap_result(self._array * factors)


@rrelu_with_noise.backward
class RreluWithNoiseBackward0:
    def self(grad, self, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, self, noise, lower, upper, training, False)

    result = "auto_element_wise"


@rrelu_with_noise_backward.meta
def rrelu_with_noise_backward_meta(grad_output, self, *others):
    return broadcast(dtype_of(grad_output), grad_output, self)


@rrelu_with_noise_backward.kernel
def rrelu_with_noise_backward_cpu(grad_output, self, noise, lower, upper, training, self_is_result):
    """self: the input, or the result, which has the same signs."""
    g = grad_output._array
    if training and upper - lower > 1e-6:
        return wrap_result(g * noise._array)
    return wrap(np.where(self._array > 0, g, g * g.dtype.type((lower + upper) / 2)))


@rrelu_with_noise_backward.backward
class RreluWithNoiseBackwardBackward0:
    def grad_output(grad, self, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, self, noise, lower, upper, training, False)

    def self(grad):
        return at.zeros_like(grad)

    def result(grad_output_t, self_p, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad_output_t, self_p, noise, lower, upper, training, False)


@rrelu_with_noise_.kernel
def rrelu_with_noise_cpu_(self, noise, lower, upper, training, generator):
    return write_result(self, rrelu_with_noise_cpu(self, noise, lower, upper, training, generator))


@rrelu_with_noise_.backward
class RreluWithNoiseBackward1:
    def self(grad, result, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, result, noise, lower, upper, training, True)


rrelu = native_function(f"rrelu(Tensor self, {_ARGUMENTS}) -> Tensor")
rrelu_ = native_function(f"rrelu_(Tensor(a!) self, {_ARGUMENTS}) -> Tensor(a!)")


def check_bounds(lower, upper):
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")


@rrelu.compose
def rrelu_composite(self, lower, upper, training, generator):
    check_bounds(lower, upper)
    return rrelu_with_noise.call(self, at.empty_like(self), lower, upper, training, generator)


@rrelu_.compose
def rrelu_composite_(self, lower, upper, training, generator):
    check_bounds(lower, upper)
    return rrelu_with_noise_.call(self, at.empty_like(self), lower, upper, training, generator)
