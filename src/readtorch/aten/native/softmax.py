"""softmax and log_softmax.

In PyTorch: `aten/src/ATen/native/SoftMax.cpp`. Explained in the chapter "One training step, end to end".
"""

import functools
import math

import numpy as np

from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.parallel import parallel_for
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import float32
from readtorch.c10.tensor_impl import dtype_of, wrap, wrap_result
from readtorch.c10.wrap_dim import wrap_dim

from .exact_out import exact_out
from .tensor_iterator import F4, compute, not_implemented, wrap_reduced

_BACKWARD = "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"

softmax = native_function(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", BOTH, out=exact_out(), direct=True
)
_softmax = native_function("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", out=True)
_softmax_backward_data = native_function(f"_softmax_backward_data{_BACKWARD}")

log_softmax = native_function(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", BOTH, out=exact_out(), direct=True
)
_log_softmax = native_function("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", out=True)
_log_softmax_backward_data = native_function(f"_log_softmax_backward_data{_BACKWARD}")


@softmax.compose
def softmax_composite(self, dim, dtype):
    return _softmax.call(self if dtype is None else self.to(dtype), dim, False)


@log_softmax.compose
def log_softmax_composite(self, dim, dtype):
    return _log_softmax.call(self if dtype is None else self.to(dtype), dim, False)


@_softmax.meta
@_log_softmax.meta
def softmax_meta(self, dim, half_to_float):
    wrap_dim(dim, self._array.ndim)
    return TensorMeta(self._array.shape, float32 if half_to_float else dtype_of(self))


special_softmax = native_function(
    "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", module="special", name="softmax"
)
special_log_softmax = native_function(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    module="special",
    name="log_softmax",
)
special_softmax.compose(softmax_composite)
special_log_softmax.compose(log_softmax_composite)


def along(function, self, dim, kernel_name):
    """`function(array, axis)` on a tensor of floats; a 0-dimensional tensor counts as one of size 1."""
    x, kind = self._array, dtype_of(self)
    axis = wrap_dim(dim, x.ndim)
    if not kind.is_floating_point:
        place = "_lastdim" if axis == max(x.ndim - 1, 0) else ""
        raise not_implemented(f"{kernel_name}{place}_kernel_impl")(kind)
    if x.size == 0:
        return wrap_result(np.empty(x.shape, x.dtype))
    if x.ndim == 0:
        return wrap_result(compute(lambda x: function(x[None], 0)[0], (x,), kind))
    return wrap_result(compute(lambda x: function(x, axis), (np.ascontiguousarray(x),), kind))


def softmax_array(x, axis):
    """exp(x) / Σ exp(x), shifted by the largest element so that no exp overflows."""
    result = np.subtract(x, np.maximum.reduce(x, axis, keepdims=True))
    np.exp(result, out=result)
    result /= np.add.reduce(result, axis, keepdims=True)
    return result


def log_softmax_array(x, axis):
    """x - log Σ exp(x). Never takes the logarithm of a rounded probability."""
    result = np.subtract(x, np.maximum.reduce(x, axis, keepdims=True))
    result -= np.log(np.add.reduce(np.exp(result), axis, keepdims=True))
    return result


# The compiled loops are used for float32 from this many elements on: fewer are not worth loading the compiler for.
FROM_SIZE = 256
# This many elements are work enough for a thread.
PIECE = 32768


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from .cpu import softmax_kernel

    return softmax_kernel


def by_loops(name, dim, *arrays):
    """The loop `name` of `cpu/softmax_kernel.py` along one dimension of these arrays of one shape."""
    shape = arrays[0].shape
    dim = wrap_dim(dim, len(shape))
    inner = math.prod(shape[dim + 1 :])
    if inner == 1:
        loop, folded, pieces = getattr(loops(), name), (-1, shape[dim]), arrays[0].size // shape[dim]
    else:
        loop, folded = getattr(loops(), f"{name}_strided"), (-1, shape[dim], inner)
        pieces = math.prod(shape[:dim]) * -(-inner // loops().COLUMNS)
    out = np.empty(shape, F4)
    arrays = [np.ascontiguousarray(a).reshape(folded) for a in arrays]
    result = out.reshape(folded)
    grain = PIECE * pieces // out.size + 1
    parallel_for(0, pieces, grain, lambda begin, end: loop(*arrays, result, begin, end))
    return wrap(out)


NO_HALF_TO_FLOAT = "softmax with half to float conversion is not supported on CPU"  # in one step; for CUDA's kernels


@_softmax.kernel
def softmax_cpu(self, dim, half_to_float):
    if half_to_float:
        raise RuntimeError(NO_HALF_TO_FLOAT)
    x = self._array
    if x.size >= FROM_SIZE and x.dtype is F4:
        return by_loops("softmax", dim, x)
    return along(softmax_array, self, dim, "softmax")


@_log_softmax.kernel
def log_softmax_cpu(self, dim, half_to_float):
    if half_to_float:
        raise RuntimeError(NO_HALF_TO_FLOAT)
    x = self._array
    if x.size >= FROM_SIZE and x.dtype is F4:
        return by_loops("log_softmax", dim, x)
    if x.dtype.itemsize == 2 and dim in (-1, x.ndim - 1):
        return along(log_softmax_rounding_sum(x.dtype), self, dim, "log_softmax")
    return along(log_softmax_array, self, dim, "log_softmax")


def log_softmax_rounding_sum(narrow):
    """As PyTorch has it for 16-bit floats along the last dimension: the sum and its logarithm are rounded."""

    def rounded(x):
        return x.astype(narrow).astype(x.dtype)

    def log_softmax_array(x, axis):
        shifted = x - np.maximum.reduce(x, axis, keepdims=True)
        total = rounded(np.add.reduce(np.exp(shifted), axis, keepdims=True))
        return shifted - rounded(np.log(total))

    return log_softmax_array


@_softmax.backward
class SoftmaxBackward0:
    def self(grad, result, dim, self_scalar_type):
        return _softmax_backward_data.call(grad, result, dim, self_scalar_type)

    def result(self_t, result, dim):
        return result * (self_t - (result * self_t).sum(dim, True))


@_log_softmax.backward
class LogSoftmaxBackward0:
    def self(grad, result, dim, self_scalar_type):
        return _log_softmax_backward_data.call(grad, result, dim, self_scalar_type)

    def result(self_t, result, dim):
        return self_t - (result.exp() * self_t).sum(dim, True)


def backward_along(function, grad_output, output, dim, input_dtype):
    """`function(g, y, axis)` on the gradient and the result; 0 dimensions are read as 1."""
    g, y = grad_output._array, output._array
    if y.ndim == 0:
        return wrap_result(
            compute(lambda g, y: function(g[None], y[None], 0)[0], (g, y), dtype_of(output), input_dtype)
        )
    axis = wrap_dim(dim, y.ndim)
    return wrap_reduced(compute(lambda g, y: function(g, y, axis), (g, y), dtype_of(output), input_dtype))


def softmax_slope(g, y, axis):
    """y (g - Σ g y)."""
    result = g * y
    result -= y * np.add.reduce(result, axis, keepdims=True)
    return result


def log_softmax_slope(g, y, axis):
    """g - exp(y) Σ g."""
    result = np.exp(y)
    result *= np.add.reduce(g, axis, keepdims=True)
    return np.subtract(g, result, out=result)


def gradient(operator, name, slope):
    @operator.meta
    def gradient_meta(grad_output, output, dim, input_dtype):
        g, y = grad_output._array, output._array
        if g.shape != y.shape:
            raise RuntimeError(
                "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but "
                f"{list(g.shape)} does not equal {list(y.shape)} (while checking arguments for {name})"
            )
        wrap_dim(dim, y.ndim)
        return TensorMeta(g.shape, input_dtype)

    @operator.kernel
    def gradient_cpu(grad_output, output, dim, input_dtype):
        g, y = grad_output._array, output._array
        if g.shape != y.shape:
            gradient_meta(grad_output, output, dim, input_dtype)
        if y.size >= FROM_SIZE and y.dtype is F4 and g.dtype is F4 and input_dtype.numpy is F4:
            return by_loops(name, dim, g, y)
        return backward_along(slope, grad_output, output, dim, input_dtype)


gradient(_softmax_backward_data, "softmax_backward", softmax_slope)
gradient(_log_softmax_backward_data, "log_softmax_backward", log_softmax_slope)


@_softmax_backward_data.backward
class SoftmaxBackwardDataBackward0:
    def grad_output(grad, output, dim, input_dtype):
        return _softmax_backward_data.call(grad.to(output.dtype), output, dim, input_dtype)

    def output(grad, grad_output, output, dim):
        g = grad.to(output.dtype)
        return g * grad_output - (output * grad_output).sum(dim, True) * g - grad_output * (output * g).sum(dim, True)

    def result(grad_output_p, grad_output_t, output_p, output_t, dim, input_dtype):
        along = (grad_output_p * output_p).sum(dim, True)
        bend = output_t * (grad_output_p - along) - output_p * (grad_output_p * output_t).sum(dim, True)
        return _softmax_backward_data.call(grad_output_t, output_p, dim, input_dtype) + bend


@_log_softmax_backward_data.backward
class LogSoftmaxBackwardDataBackward0:
    def grad_output(grad, output, dim):
        g = grad.to(output.dtype)
        return g - (g * output.exp()).sum(dim, True)

    def output(grad, grad_output, output, dim):
        g = grad.to(output.dtype)
        return (-grad_output.sum(dim, True) * output.exp() * g).to(output.dtype)

    def result(grad_output_p, grad_output_t, output_p, output_t, dim, input_dtype):
        bend = output_p.exp() * output_t * grad_output_p.sum(dim, True)
        return _log_softmax_backward_data.call(grad_output_t, output_p, dim, input_dtype) - bend
