"""Average pooling: the mean of each window.

In PyTorch: `aten/src/ATen/native/Pooling.cpp` (1-D), `aten/src/ATen/native/AveragePool2d.cpp`,
`aten/src/ATen/native/AveragePool3d.cpp`, `aten/src/ATen/native/cpu/AvgPoolKernel.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools
import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.division import trunc_quotient
from readtorch.aten.native.dispatch_stub import dispatch_stub
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta, in_format_of, remembered
from readtorch.aten.tensor_utils import check_pooled
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .max import check_dims, check_numbers, check_one
from .windows import (
    FROM_SIZE,
    in_float32,
    look,
    planes_of,
    pool2d_outputs,
    pool3d_outputs,
    put_rows,
    rows_to_fill,
    sliding,
    sliding_windows,
)

_REST = "bool ceil_mode=False, bool count_include_pad=True"
_SIZES = f"int[{{0}}] kernel_size, int[{{0}}] stride=[], int[{{0}}] padding=0, {_REST}"
_BACKWARD = (
    "Tensor grad_output, Tensor self, int[{0}] kernel_size, int[{0}] stride, int[{0}] padding, "
    "bool ceil_mode, bool count_include_pad, int? divisor_override"
)

# -------------------------------------------------------------------------------------------------------- means


@dispatch_stub("avg_pool_kernel", FROM_SIZE)
def average(planes, windows, divisors, means):
    """Write the sum of each window, divided, to `means`: an array (planes, results). An empty window gives 0."""
    means[...] = 0
    for here, inside in windows.entries:
        means += zero_outside(look(planes, here), inside)
    divide(means, divisors)


@dispatch_stub("avg_pool_kernel", FROM_SIZE)
def distribute(grads, windows, divisors, sums):
    """Add each gradient, divided, to every element of its window: `sums` is (planes, elements)."""
    sums[...] = 0
    divided = grads.copy()
    divide(divided, divisors)
    planes = np.arange(len(grads))[:, None]
    for here, inside in windows.entries:
        np.add.at(sums, (planes, here), zero_outside(divided, inside))


def divide(numbers, divisors):
    """numbers /= divisors, in their own type."""
    if numbers.dtype.kind == "i":
        numbers[...] = trunc_quotient(numbers, divisors)
    else:
        numbers /= divisors.astype(numbers.dtype)


def zero_outside(numbers, inside):
    return numbers if inside is None else np.where(inside, numbers, numbers.dtype.type(0))


def fill_averages(planes, windows, divisors, out):
    """The kernel of every average: fills the output from planes (planes, elements)."""
    means = rows_to_fill(out, len(windows.sizes), planes.dtype)
    average(planes, windows, divisors, means)
    put_rows(means, out)


def fill_shares(grad_output, windows, divisors, grad_input):
    """The kernel of every average's backward."""
    dims = len(windows.sizes)
    grads = planes_of(in_float32(grad_output._array), dims)
    sums = rows_to_fill(grad_input, dims, grads.dtype)
    distribute(grads, windows, divisors, sums)
    put_rows(sums, grad_input)


@functools.lru_cache(32)
def divisors_of(slide, sizes, outputs, count_include_pad, divisor_override):
    """The divisor of each window's sum: the number of its elements, with or without the padding."""
    windows = sliding_windows(slide, sizes, outputs)
    if divisor_override is not None:
        return np.full((1, math.prod(outputs)), divisor_override)
    if not count_include_pad:
        return np.maximum(windows.counts, 1)
    covered = np.ones((), np.int64)
    for kernel, stride, padding, size, n in zip(slide.kernel, slide.stride, slide.padding, sizes, outputs):
        starts = np.arange(n) * stride - padding
        covered = np.multiply.outer(covered, np.minimum(starts + kernel, size + padding) - starts)
    return covered.reshape(1, -1)


def windows_and_divisors(slide, sizes, outputs, count_include_pad, divisor_override):
    return (
        sliding_windows(slide, sizes, outputs),
        divisors_of(slide, sizes, outputs, count_include_pad, divisor_override),
    )


def check_type(name, self, takes):
    """Averages know floats and int64."""
    if self._array.dtype != np.int64:
        check_numbers(name, self, takes)


def check_divisor(divisor_override):
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")


def averaging_derivatives(dims, pool, backward):
    """The derivatives of an average and of its backward: each is the other's transpose."""

    class Backward:
        def self(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return backward.call(
                grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )

        result = "auto_linear"

    class BackwardBackward:
        def grad_output(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return pool.call(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

        def self(self_sym_sizes, self_scalar_type, self_device):
            return at.zeros(self_sym_sizes, dtype=self_scalar_type, device=self_device)

        def result(grad_output_t, self_p, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            settings = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            return backward.call(grad_output_t, self_p, *settings)

    Backward.__name__ = f"AvgPool{dims}DBackward0"
    BackwardBackward.__name__ = f"AvgPool{dims}DBackwardBackward0"
    pool.backward(Backward)
    backward.backward(BackwardBackward)


# -------------------------------------------------------------------------------------------------- avg_pool2d

avg_pool2d = native_function(
    f"avg_pool2d(Tensor self, {_SIZES.format(2)}, int? divisor_override=None) -> Tensor", module="nn", out=exact_out()
)
avg_pool2d_backward = native_function(f"avg_pool2d_backward({_BACKWARD.format(2)}) -> Tensor", "")


@remembered
def window_of_2d(shape, kernel_size, stride, padding, ceil_mode, divisor_override):
    """The Sliding of a 2d average and the sizes of its result. Raises RuntimeError."""
    slide = sliding("avg_pool2d", 2, kernel_size, stride, padding, ceil_mode=ceil_mode)
    check_divisor(divisor_override)
    wrap_dim(-3, len(shape))
    return slide, pool2d_outputs(slide, shape)


@avg_pool2d.meta
def avg_pool2d_meta(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    shape = self._array.shape
    _, outputs = window_of_2d(shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    return in_format_of(self, shape[:-2] + outputs)


@avg_pool2d.impl()
def avg_pool2d_cpu(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out):
    check_type("avg_pool2d", self, "fV")
    x = self._array
    slide, outputs = window_of_2d(x.shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    how = windows_and_divisors(slide, x.shape[-2:], outputs, count_include_pad, divisor_override)
    fill_averages(planes_of(in_float32(x), 2), *how, out)


@avg_pool2d_backward.meta
def avg_pool2d_backward_meta(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    shape = self._array.shape
    _, outputs = window_of_2d(shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled(shape[:-2] + outputs, 2, grad_output)
    return in_format_of(self, shape)


@avg_pool2d_backward.impl()
def avg_pool2d_backward_cpu(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_input
):
    shape = self._array.shape
    slide, outputs = window_of_2d(shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    how = windows_and_divisors(slide, shape[-2:], outputs, count_include_pad, divisor_override)
    fill_shares(grad_output, *how, grad_input)


averaging_derivatives(2, avg_pool2d, avg_pool2d_backward)


# -------------------------------------------------------------------------------------------------- avg_pool3d

avg_pool3d = native_function(
    f"avg_pool3d(Tensor self, {_SIZES.format(3)}, int? divisor_override=None) -> Tensor", module="nn", out=exact_out()
)
avg_pool3d_backward = native_function(f"avg_pool3d_backward({_BACKWARD.format(3)}) -> Tensor", "")


@remembered
def window_of_3d(shape, kernel_size, stride, padding, ceil_mode, divisor_override):
    """The Sliding of a 3d average and the sizes of its result. Raises RuntimeError."""
    slide = sliding("avg_pool3d", 3, kernel_size, stride, padding, ceil_mode=ceil_mode, either="")
    if len(shape) not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    check_divisor(divisor_override)
    return slide, pool3d_outputs(slide, shape, "avg_pool3d()", check_size=True)


@avg_pool3d.meta
def avg_pool3d_meta(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    shape = self._array.shape
    _, outputs = window_of_3d(shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    return TensorMeta(shape[:-3] + outputs, dtype_of(self))


@avg_pool3d.impl()
def avg_pool3d_cpu(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out):
    x = self._array
    check_type("avg_pool3d_out_frame", self, "f" if x.itemsize > 2 else "")
    slide, outputs = window_of_3d(x.shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    how = windows_and_divisors(slide, x.shape[-3:], outputs, count_include_pad, divisor_override)
    fill_averages(planes_of(x, 3), *how, out)


@avg_pool3d_backward.meta
def avg_pool3d_backward_meta(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    shape = self._array.shape
    _, outputs = window_of_3d(shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled(shape[:-3] + outputs, 3, grad_output)
    return TensorMeta(shape, dtype_of(self))


@avg_pool3d_backward.impl()
def avg_pool3d_backward_cpu(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_input
):
    shape = self._array.shape
    slide, outputs = window_of_3d(shape, kernel_size, stride, padding, ceil_mode, divisor_override)
    how = windows_and_divisors(slide, shape[-3:], outputs, count_include_pad, divisor_override)
    fill_shares(grad_output, *how, grad_input)


averaging_derivatives(3, avg_pool3d, avg_pool3d_backward)


# -------------------------------------------------------------------------------------------------- avg_pool1d

avg_pool1d = native_function(f"avg_pool1d(Tensor self, {_SIZES.format(1)}) -> Tensor")


@avg_pool1d.compose
def avg_pool1d_composite(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """The average of images of height 1."""
    stride = stride or kernel_size
    check_dims("avg_pool1d", self)
    check_one("avg_pool1d", kernel_size=kernel_size, stride=stride, padding=padding)
    return avg_pool2d.call(
        self.unsqueeze(-2), (1, *kernel_size), (1, *stride), (0, *padding), ceil_mode, count_include_pad, None
    ).squeeze(-2)
