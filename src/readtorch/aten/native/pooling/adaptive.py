"""Adaptive pooling: the caller gives the size of the result, and the windows share the input among them.

In PyTorch: `aten/src/ATen/native/Pooling.cpp` (1-D), `aten/src/ATen/native/AdaptiveAveragePooling.cpp`,
`aten/src/ATen/native/AdaptiveAveragePooling3d.cpp`, `aten/src/ATen/native/AdaptiveMaxPooling2d.cpp`,
`aten/src/ATen/native/AdaptiveMaxPooling3d.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta, in_format_of, remembered
from readtorch.aten.tensor_utils import check_adaptive, check_like_indices
from readtorch.c10.memory_format import contiguous_format, suggested_format
from readtorch.c10.scalar_type import C_TYPE_NAMES, int64
from readtorch.c10.tensor_impl import dtype_of

from .average import fill_averages, fill_shares
from .max import (
    check_dims,
    check_numbers,
    check_one,
    fill_maxima,
    fill_put_back,
    pair_in_format_of,
    pick_again,
    picking_backward,
)
from .windows import adaptive_windows, check_sizes, in_float32, planes_of

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
    if tuple(output_size) != (1,) * len(output_size):
        return pool.call(self, output_size)
    mean = self.mean(list(range(-1, -len(output_size) - 1, -1)), True)
    ones = len(output_size)
    if mean.dim() == ones + 2 and suggested_format(self._array) is not contiguous_format:
        batch, channels = mean.shape[:2]
        at.as_strided_(mean, (batch, channels, *[1] * ones), (channels, 1, *[channels] * ones))
    return mean


def averaging_derivatives(dims, pool, backward):
    """The derivatives of an average and of its backward: each is the other's transpose."""

    class Backward:
        def self(grad, self):
            return backward.call(grad, self)

        result = "auto_linear"

    class BackwardBackward:
        def grad_output(grad, grad_output_sym_sizes):
            return pool.call(grad, grad_output_sym_sizes[-dims:])

        def self(self_sym_sizes, self_scalar_type, self_device):
            return at.zeros(self_sym_sizes, dtype=self_scalar_type, device=self_device)

        def result(grad_output_t, self_p):
            return backward.call(grad_output_t, self_p)

    Backward.__name__ = f"AdaptiveAvgPool{dims}DBackward0"
    BackwardBackward.__name__ = f"AdaptiveAvgPool{dims}DBackwardBackward0"
    pool.backward(Backward)
    backward.backward(BackwardBackward)


def fill_adaptive_averages(self, planes, out, dims):
    windows = adaptive_windows(self._array.shape[-dims:], out._array.shape[-dims:])
    fill_averages(planes, windows, windows.counts, out)


def fill_adaptive_shares(grad_output, grad_input, dims):
    windows = adaptive_windows(grad_input._array.shape[-dims:], grad_output._array.shape[-dims:])
    fill_shares(grad_output, windows, windows.counts, grad_input)


# ---------------------------------------- of images


def wrong_output_type(out, result, self, output_size):
    return f"expected dtype {C_TYPE_NAMES[dtype_of(self)]} for `output` but got dtype {C_TYPE_NAMES[dtype_of(out)]}"


adaptive_avg_pool2d = native_function(
    "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", module="nn", out=exact_out(wrong_output_type)
)
_adaptive_avg_pool2d = native_function("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")
_adaptive_avg_pool2d_backward = native_function(
    "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", ""
)


@adaptive_avg_pool2d.compose
def adaptive_avg_pool2d_composite(self, output_size):
    check_output_size("adaptive_avg_pool2d", output_size, 2)
    return mean_or_pool(self, output_size, _adaptive_avg_pool2d)


@remembered
def sizes_of_2d(shape, output_size):
    """The sizes of the result. Raises RuntimeError."""
    check_output_size("adaptive_avg_pool2d", output_size, 2)
    check_dimensions("adaptive_avg_pool2d", shape, 2)
    check_not_empty("adaptive_avg_pool2d", shape, len(shape) - 2)
    return (*shape[:-2], *output_size)


@_adaptive_avg_pool2d.meta
def adaptive_avg_pool2d_meta(self, output_size):
    return in_format_of(self, sizes_of_2d(self._array.shape, output_size))


@_adaptive_avg_pool2d.impl()
def adaptive_avg_pool2d_cpu(self, output_size, out):
    check_numbers("adaptive_avg_pool2d", self, "fV")
    fill_adaptive_averages(self, planes_of(in_float32(self._array), 2), out, 2)


@_adaptive_avg_pool2d_backward.meta
def adaptive_avg_pool2d_backward_meta(grad_output, self):
    check_not_empty("adaptive_avg_pool2d_backward", grad_output._array.shape, what="grad_output")
    caller = f"adaptive_avg_pool2d_backward_{OUT_OF[self.device.type]}"
    check_adaptive(caller, grad_output, self, 2, "grad_output")
    return in_format_of(self, self._array.shape)


OUT_OF = {"cpu": "out_cpu_template", "cuda": "cuda", "meta": "meta"}


@_adaptive_avg_pool2d_backward.impl()
def adaptive_avg_pool2d_backward_cpu(grad_output, self, grad_input):
    fill_adaptive_shares(grad_output, grad_input, 2)


averaging_derivatives(2, _adaptive_avg_pool2d, _adaptive_avg_pool2d_backward)

# ---------------------------------------- of volumes

adaptive_avg_pool3d = native_function(
    "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", module="nn", out=exact_out(wrong_output_type)
)
_adaptive_avg_pool3d = native_function("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")
_adaptive_avg_pool3d_backward = native_function(
    "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor", ""
)


@adaptive_avg_pool3d.compose
def adaptive_avg_pool3d_composite(self, output_size):
    check_output_size("adaptive_avg_pool3d", output_size, 3)
    return mean_or_pool(self, output_size, _adaptive_avg_pool3d)


@_adaptive_avg_pool3d.meta
def adaptive_avg_pool3d_meta(self, output_size):
    shape = self._array.shape
    check_output_size("adaptive_avg_pool3d", output_size, 3)
    check_not_empty("adaptive_avg_pool3d", shape)
    check_dimensions("adaptive_avg_pool3d", shape, 3)
    return TensorMeta((*shape[:-3], *output_size), dtype_of(self))


@_adaptive_avg_pool3d.impl()
def adaptive_avg_pool3d_cpu(self, output_size, out):
    check_numbers("adaptive_avg_pool3d_cpu", self, "fV")
    # 16-bit floats add up in 16 bits here, as in PyTorch.
    fill_adaptive_averages(self, planes_of(self._array, 3), out, 3)


@_adaptive_avg_pool3d_backward.meta
def adaptive_avg_pool3d_backward_meta(grad_output, self):
    check_not_empty("adaptive_avg_pool3d_backward", grad_output._array.shape, what="grad_output")
    caller = f"adaptive_avg_pool3d_backward_{OUT_OF[self.device.type]}"
    check_adaptive(caller, grad_output, self, 3, "gradOutput_")
    return TensorMeta(self._array.shape, dtype_of(self))


@_adaptive_avg_pool3d_backward.impl()
def adaptive_avg_pool3d_backward_cpu(grad_output, self, grad_input):
    fill_adaptive_shares(grad_output, grad_input, 3)


averaging_derivatives(3, _adaptive_avg_pool3d, _adaptive_avg_pool3d_backward)

# ---------------------------------------- of signals

adaptive_avg_pool1d = native_function("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor")


@adaptive_avg_pool1d.compose
def adaptive_avg_pool1d_composite(self, output_size):
    """The average of images of height 1."""
    check_dims("adaptive_avg_pool1d", self)
    check_one("adaptive_avg_pool1d", output_size=output_size)
    return adaptive_avg_pool2d.call(self.unsqueeze(-2), (1, *output_size)).squeeze(-2)


# ----------------------------------------------------------------------------------------------------- maximum


@remembered
def sizes_of_maximum(caller, shape, output_size, dims):
    """The sizes of the result. Raises RuntimeError."""
    if len(output_size) != dims:
        raise RuntimeError(f"{caller}(): internal error: output_size.size() must be {dims}")
    check_dimensions(caller, shape, dims, ":")
    check_not_empty(caller, shape)
    sizes = (*shape[:-dims], *output_size)
    check_sizes(sizes)
    return sizes


def max_derivative(name, backward, dims):
    class Derivative:
        output_differentiability = [True, False]

        def self(grad, self, result1):
            return backward.call(grad, self, result1)

        def result0(self_t, result1):
            return pick_again(self_t, result1, dims)

    Derivative.__name__ = name
    return Derivative


# ---------------------------------------- of images

adaptive_max_pool2d = native_function(
    "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
    module="nn",
    out=exact_out(names=("out", "indices")),
)
adaptive_max_pool2d_backward = native_function(
    "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", ""
)


@adaptive_max_pool2d.meta
def adaptive_max_pool2d_meta(self, output_size):
    return pair_in_format_of(self, sizes_of_maximum("adaptive_max_pool2d", self._array.shape, output_size, 2))


@adaptive_max_pool2d.impl()
def adaptive_max_pool2d_cpu(self, output_size, values, indices):
    check_numbers("adaptive_max_pool2d", self, "fV")
    fill_maxima(self._array, adaptive_windows(self._array.shape[-2:], tuple(output_size)), values, indices)


@adaptive_max_pool2d_backward.meta
def adaptive_max_pool2d_backward_meta(grad_output, self, indices):
    check_not_empty("adaptive_max_pool2d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pooling2d_backward", grad_output, indices, self, 2, "grad_output")
    return in_format_of(self, self._array.shape)


@adaptive_max_pool2d_backward.impl()
def adaptive_max_pool2d_backward_cpu(grad_output, self, indices, grad_input):
    fill_put_back(grad_output, indices, 2, grad_input)


adaptive_max_pool2d.backward(max_derivative("AdaptiveMaxPool2DBackward0", adaptive_max_pool2d_backward, 2))
adaptive_max_pool2d_backward.backward(picking_backward("AdaptiveMaxPool2DBackwardBackward0", 2))

# ---------------------------------------- of volumes

adaptive_max_pool3d = native_function(
    "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
    module="nn",
    out=exact_out(names=("out", "indices")),
)
adaptive_max_pool3d_backward = native_function(
    "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor", ""
)


@adaptive_max_pool3d.meta
def adaptive_max_pool3d_meta(self, output_size):
    sizes = sizes_of_maximum("adaptive_max_pool3d", self._array.shape, output_size, 3)
    return TensorMeta(sizes, dtype_of(self)), TensorMeta(sizes, int64)


@adaptive_max_pool3d.impl()
def adaptive_max_pool3d_cpu(self, output_size, values, indices):
    check_numbers("adaptive_max_pool3d_cpu", self, "fV")
    fill_maxima(self._array, adaptive_windows(self._array.shape[-3:], tuple(output_size)), values, indices)


@adaptive_max_pool3d_backward.meta
def adaptive_max_pool3d_backward_meta(grad_output, self, indices):
    check_not_empty("adaptive_max_pool3d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pool3d_backward", grad_output, indices, self, 3, "gradOutput")
    return TensorMeta(self._array.shape, dtype_of(self))


@adaptive_max_pool3d_backward.impl()
def adaptive_max_pool3d_backward_cpu(grad_output, self, indices, grad_input):
    fill_put_back(grad_output, indices, 3, grad_input)


adaptive_max_pool3d.backward(max_derivative("AdaptiveMaxPool3DBackward0", adaptive_max_pool3d_backward, 3))
adaptive_max_pool3d_backward.backward(picking_backward("AdaptiveMaxPool3DBackwardBackward0", 3))

# ---------------------------------------- of signals

adaptive_max_pool1d = native_function("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)")


@adaptive_max_pool1d.compose
def adaptive_max_pool1d_composite(self, output_size):
    """The maximum of images of height 1."""
    check_dims("adaptive_max_pool1d", self)
    check_one("adaptive_max_pool1d", output_size=output_size)
    check_not_empty("adaptive_max_pool1d", self._array.shape)
    values, indices = adaptive_max_pool2d.call(self.unsqueeze(-2), (1, *output_size))
    return values.squeeze(-2), indices.squeeze(-2)
