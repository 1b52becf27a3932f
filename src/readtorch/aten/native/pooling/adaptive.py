"""Adaptive pooling: the caller gives the size of the result, and the windows share the input among them.

In PyTorch: `aten/src/ATen/native/Pooling.cpp` (1-D), `aten/src/ATen/native/AdaptiveAveragePooling.cpp`,
`aten/src/ATen/native/AdaptiveAveragePooling3d.cpp`, `aten/src/ATen/native/AdaptiveMaxPooling2d.cpp`,
`aten/src/ATen/native/AdaptiveMaxPooling3d.cpp`. Explained in the chapter "Layers, functional, init".
"""

import math

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import cast
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_utils import check_adaptive, check_like_indices
from readtorch.c10.memory_format import contiguous_format, suggested_format
from readtorch.c10.scalar_type import C_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, wrap

from .average import averages, distribute
from .max import check_dims, check_numbers, check_one, in_float32, maxima, picking_backward, put_back_in
from .windows import adaptive_windows, check_sizes, laid_out_like, planes_of

adaptive_avg_pool1d = native_function("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")
adaptive_avg_pool2d = native_function(
    "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", module="nn", out=True
)
adaptive_avg_pool3d = native_function(
    "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", module="nn", out=True
)
_adaptive_avg_pool2d = native_function("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
_adaptive_avg_pool3d = native_function("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
_adaptive_avg_pool2d_backward = native_function(
    "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", ""
)
_adaptive_avg_pool3d_backward = native_function(
    "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor", ""
)

adaptive_max_pool1d = native_function("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")
adaptive_max_pool2d = native_function(
    "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", module="nn", out=("out", "indices")
)
adaptive_max_pool3d = native_function(
    "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", module="nn", out=("out", "indices")
)
adaptive_max_pool2d_backward = native_function(
    "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", ""
)
adaptive_max_pool3d_backward = native_function(
    "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", ""
)


def wrong_output_type(out, result, self, output_size):
    return f"expected dtype {C_TYPE_NAMES[dtype_of(self)]} for `output` but got dtype {C_TYPE_NAMES[dtype_of(out)]}"


exact_out(adaptive_avg_pool2d, wrong_output_type)
exact_out(adaptive_avg_pool3d, wrong_output_type)
exact_out(adaptive_max_pool2d)
exact_out(adaptive_max_pool3d)


# ------------------------------------------------------------------------------------------------------ checks


def check_dimensions(caller, shape, dims, colon=""):
    """Raises RuntimeError unless channels, and maybe a batch, stand in front of the plane."""
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{caller}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(shape)}")


def check_not_empty(caller, shape, from_dim=1, what="input"):
    """Raises RuntimeError if a dimension from `from_dim` on is empty."""
    for dim in range(from_dim, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{caller}(): Expected {what} to have non-zero size for non-batch dimensions, "
                f"but {what} has sizes {list(shape)} with dimension {dim} being empty"
            )


def check_output_size(caller, output_size, dims):
    """Raises RuntimeError unless there is a size for each dimension of the plane, and none is negative."""
    if len(output_size) != dims:
        raise RuntimeError(f"{caller}: output_size must be {dims}")
    if min(output_size) < 0:
        received = ", ".join(map(str, output_size[:2])) + "".join(f",{n}" for n in output_size[2:])
        raise RuntimeError(
            f"{caller}: elements of output_size must be greater than or equal to 0 but received {{{received}}}"
        )


# ----------------------------------------------------------------------------------------------------- average


def mean_or_pool(self, output_size, pool):
    """One window over everything is a mean, and PyTorch's graph says so."""
    if any(n != 1 for n in output_size):
        return pool.call(self, output_size)
    mean = self.mean(list(range(-1, -len(output_size) - 1, -1)), True)
    if suggested_format(self._array) is not contiguous_format:
        batch, channels = mean.shape[:2]
        ones = len(output_size)
        at.as_strided_(mean, (batch, channels, *[1] * ones), (channels, 1, *[channels] * ones))
    return mean


@adaptive_avg_pool2d.compose
def adaptive_avg_pool2d_composite(self, output_size):
    check_output_size("adaptive_avg_pool2d", output_size, 2)
    return mean_or_pool(self, output_size, _adaptive_avg_pool2d)


@adaptive_avg_pool3d.compose
def adaptive_avg_pool3d_composite(self, output_size):
    check_output_size("adaptive_avg_pool3d", output_size, 3)
    return mean_or_pool(self, output_size, _adaptive_avg_pool3d)


@adaptive_avg_pool1d.compose
def adaptive_avg_pool1d_composite(self, output_size):
    """The average of images of height 1."""
    check_dims("adaptive_avg_pool1d", self)
    check_one("adaptive_avg_pool1d", output_size=output_size)
    return adaptive_avg_pool2d.call(self.unsqueeze(-2), (1, *output_size)).squeeze(-2)


def shares_of(x, grad, dims):
    """The gradients for the array's planes, (planes, elements), in its own type."""
    sizes = x.shape[-dims:]
    windows = adaptive_windows(sizes, grad.shape[-dims:])
    shares = distribute(planes_of(in_float32(grad), dims), windows, windows.counts, math.prod(sizes))
    return cast(shares, x.dtype)


@_adaptive_avg_pool2d.kernel
def _adaptive_avg_pool2d_cpu(self, output_size):
    x = self._array
    check_output_size("adaptive_avg_pool2d", output_size, 2)
    check_dimensions("adaptive_avg_pool2d", x.shape, 2)
    check_not_empty("adaptive_avg_pool2d", x.shape, x.ndim - 2)
    check_numbers("adaptive_avg_pool2d", self, "fV")
    windows = adaptive_windows(x.shape[-2:], tuple(output_size))
    means = averages(planes_of(in_float32(x), 2), windows, windows.counts)
    return wrap(laid_out_like(cast(means, x.dtype), x, (*x.shape[:-2], *output_size)))


@_adaptive_avg_pool3d.kernel
def _adaptive_avg_pool3d_cpu(self, output_size):
    x = self._array
    check_output_size("adaptive_avg_pool3d", output_size, 3)
    check_not_empty("adaptive_avg_pool3d", x.shape)
    check_dimensions("adaptive_avg_pool3d", x.shape, 3)
    check_numbers("adaptive_avg_pool3d_cpu", self, "fV")
    windows = adaptive_windows(x.shape[-3:], tuple(output_size))
    # 16-bit floats add up in 16 bits here, as in PyTorch.
    means = averages(planes_of(x, 3), windows, windows.counts)
    return wrap(means.reshape(*x.shape[:-3], *output_size))


@_adaptive_avg_pool2d_backward.kernel
def _adaptive_avg_pool2d_backward_cpu(grad_output, self):
    x, grad = self._array, grad_output._array
    check_not_empty("adaptive_avg_pool2d_backward", grad.shape, what="grad_output")
    check_adaptive("adaptive_avg_pool2d_backward_out_cpu_template", grad_output, self, 2, "grad_output")
    return wrap(laid_out_like(shares_of(x, grad, 2), x, x.shape))


@_adaptive_avg_pool3d_backward.kernel
def _adaptive_avg_pool3d_backward_cpu(grad_output, self):
    x, grad = self._array, grad_output._array
    check_not_empty("adaptive_avg_pool3d_backward", grad.shape, what="grad_output")
    check_adaptive("adaptive_avg_pool3d_backward_out_cpu_template", grad_output, self, 3, "gradOutput_")
    return wrap(shares_of(x, grad, 3).reshape(x.shape))


def averaging_derivatives(dims, pool, backward):
    """The derivatives of an average and of its backward: each is the other's transpose."""

    class Backward:
        def self(grad, self):
            return backward.call(grad, self)

    class BackwardBackward:
        def grad_output(grad, grad_output_sym_sizes):
            return pool.call(grad, grad_output_sym_sizes[-dims:])

        def self(self_sym_sizes, self_scalar_type, self_device):
            return at.zeros(self_sym_sizes, dtype=self_scalar_type, device=self_device)

    Backward.__name__ = f"AdaptiveAvgPool{dims}DBackward0"
    BackwardBackward.__name__ = f"AdaptiveAvgPool{dims}DBackwardBackward0"
    pool.backward(Backward)
    backward.backward(BackwardBackward)


averaging_derivatives(2, _adaptive_avg_pool2d, _adaptive_avg_pool2d_backward)
averaging_derivatives(3, _adaptive_avg_pool3d, _adaptive_avg_pool3d_backward)


# ----------------------------------------------------------------------------------------------------- maximum


def maxima_of(caller, x, output_size, dims):
    """The maxima of the array's planes and their indices, both (planes, results); the result's sizes."""
    if len(output_size) != dims:
        raise RuntimeError(f"{caller}(): internal error: output_size.size() must be {dims}")
    check_dimensions(caller, x.shape, dims, ":")
    check_not_empty(caller, x.shape)
    sizes = (*x.shape[:-dims], *output_size)
    check_sizes(sizes)
    windows = adaptive_windows(x.shape[-dims:], tuple(output_size))
    best, places = maxima(planes_of(in_float32(x), dims), windows)
    return cast(best, x.dtype), places, sizes


@adaptive_max_pool2d.kernel
def adaptive_max_pool2d_cpu(self, output_size):
    x = self._array
    check_numbers("adaptive_max_pool2d", self, "fV")
    best, places, sizes = maxima_of("adaptive_max_pool2d", x, output_size, 2)
    return wrap(laid_out_like(best, x, sizes)), wrap(laid_out_like(places, x, sizes))


@adaptive_max_pool3d.kernel
def adaptive_max_pool3d_cpu(self, output_size):
    check_numbers("adaptive_max_pool3d_cpu", self, "fV")
    best, places, sizes = maxima_of("adaptive_max_pool3d", self._array, output_size, 3)
    return wrap(best.reshape(sizes)), wrap(places.reshape(sizes))


@adaptive_max_pool2d_backward.kernel
def adaptive_max_pool2d_backward_cpu(grad_output, self, indices):
    check_not_empty("adaptive_max_pool2d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pooling2d_backward", grad_output, indices, self, 2, "grad_output")
    return wrap(laid_out_like(put_back_in(self, grad_output, indices, 2), self._array, self._array.shape))


@adaptive_max_pool3d_backward.kernel
def adaptive_max_pool3d_backward_cpu(grad_output, self, indices):
    check_not_empty("adaptive_max_pool3d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pool3d_backward", grad_output, indices, self, 3, "gradOutput")
    return wrap(put_back_in(self, grad_output, indices, 3).reshape(self._array.shape))


def max_derivative(name, backward):
    class Derivative:
        output_differentiability = [True, False]

        def self(grad, self, result1):
            return backward.call(grad, self, result1)

    Derivative.__name__ = name
    return Derivative


adaptive_max_pool2d.backward(max_derivative("AdaptiveMaxPool2DBackward0", adaptive_max_pool2d_backward))
adaptive_max_pool3d.backward(max_derivative("AdaptiveMaxPool3DBackward0", adaptive_max_pool3d_backward))
adaptive_max_pool2d_backward.backward(picking_backward("AdaptiveMaxPool2DBackwardBackward0", 2))
adaptive_max_pool3d_backward.backward(picking_backward("AdaptiveMaxPool3DBackwardBackward0", 3))


@adaptive_max_pool1d.compose
def adaptive_max_pool1d_composite(self, output_size):
    """The maximum of images of height 1."""
    check_dims("adaptive_max_pool1d", self)
    check_one("adaptive_max_pool1d", output_size=output_size)
    check_not_empty("adaptive_max_pool1d", self._array.shape)
    values, indices = adaptive_max_pool2d.call(self.unsqueeze(-2), (1, *output_size))
    return values.squeeze(-2), indices.squeeze(-2)
