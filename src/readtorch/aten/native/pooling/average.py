"""Average pooling: the mean of each window.

In PyTorch: `aten/src/ATen/native/Pooling.cpp` (1-D), `aten/src/ATen/native/AveragePool2d.cpp`,
`aten/src/ATen/native/AveragePool3d.cpp`, `aten/src/ATen/native/cpu/AvgPoolKernel.cpp`.
Explained in the chapter "Layers, functional, init".
"""

import functools
import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.division import trunc_quotient
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import cast
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_utils import check_pooled
from readtorch.c10.tensor_impl import wrap
from readtorch.c10.wrap_dim import wrap_dim

from .max import check_dims, check_numbers, check_one, in_float32
from .windows import (
    for_planes,
    laid_out_like,
    look,
    planes_of,
    pool2d_outputs,
    pool3d_outputs,
    sliding,
    sliding_windows,
    volumes,
    worth_loops,
)

_REST = "bool ceil_mode=False, bool count_include_pad=True"
_SIZES = f"int[{{0}}] kernel_size, int[{{0}}] stride=[], int[{{0}}] padding=0, {_REST}"
_BACKWARD = (
    "Tensor grad_output, Tensor self, int[{0}] kernel_size, int[{0}] stride, int[{0}] padding, "
    "bool ceil_mode, bool count_include_pad, int? divisor_override"
)

avg_pool1d = native_function(f"avg_pool1d(Tensor self, {_SIZES.format(1)}) -> Tensor")
avg_pool2d = native_function(
    f"avg_pool2d(Tensor self, {_SIZES.format(2)}, int? divisor_override=None) -> Tensor", module="nn", out=True
)
avg_pool3d = native_function(
    f"avg_pool3d(Tensor self, {_SIZES.format(3)}, int? divisor_override=None) -> Tensor", module="nn", out=True
)
avg_pool2d_backward = native_function(f"avg_pool2d_backward({_BACKWARD.format(2)}) -> Tensor", "")
avg_pool3d_backward = native_function(f"avg_pool3d_backward({_BACKWARD.format(3)}) -> Tensor", "")

exact_out(avg_pool2d)
exact_out(avg_pool3d)


# -------------------------------------------------------------------------------------------------------- means


def averages(planes, windows, divisors):
    """The sum of each window, divided: an array (planes, results). An empty window gives 0."""
    if worth_loops(planes):
        return averages_by_loops(planes, windows, divisors)
    total = np.zeros((len(planes), divisors.shape[1]), planes.dtype)
    for here, inside in windows.entries:
        total += zero_outside(look(planes, here), inside)
    return quotients(total, divisors)


def quotients(numbers, divisors):
    if numbers.dtype.kind == "i":
        return trunc_quotient(numbers, divisors)
    return numbers / divisors.astype(numbers.dtype)


@functools.cache
def average_loops():
    """The compiled loops; imported when first needed."""
    from readtorch.aten.native.cpu import avg_pool_kernel

    return avg_pool_kernel


def averages_by_loops(planes, windows, divisors):
    means = np.empty((len(planes), divisors.shape[1]), planes.dtype)
    given = (
        volumes(planes, windows.sizes),
        *windows.bounds,
        by_results(divisors, windows, planes.dtype),
        volumes(means, windows.outputs),
    )
    for_planes(*planes.shape, lambda begin, end: average_loops().average(*given, begin, end))
    return means


def by_results(divisors, windows, dtype):
    """The divisors as numbers of that type: (layers, rows, columns)."""
    return volumes(divisors.astype(dtype), windows.outputs)[0]


def distribute(grads, windows, divisors, count):
    """Each gradient, divided, to every element of its window: (planes, count)."""
    result = np.zeros((len(grads), count), grads.dtype)
    if worth_loops(grads):
        given = (
            volumes(grads, windows.outputs),
            *windows.bounds,
            by_results(divisors, windows, grads.dtype),
            volumes(result, windows.sizes),
        )
        for_planes(len(grads), count, lambda begin, end: average_loops().share_out(*given, begin, end))
        return result
    divided = quotients(grads, divisors)
    planes = np.arange(len(grads))[:, None]
    for here, inside in windows.entries:
        np.add.at(result, (planes, here), zero_outside(divided, inside))
    return result


def zero_outside(numbers, inside):
    return numbers if inside is None else np.where(inside, numbers, numbers.dtype.type(0))


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


def check_divisor(divisor_override):
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")


# ------------------------------------------------------------------------------------------------- the kernels


def averages_of(x, slide, outputs, count_include_pad, divisor_override):
    """The means of the array's planes, (planes, results), in its own type."""
    sizes = x.shape[-len(outputs) :]
    divisors = divisors_of(slide, sizes, outputs, count_include_pad, divisor_override)
    windows = sliding_windows(slide, sizes, outputs)
    return cast(averages(planes_of(in_float32(x), len(sizes)), windows, divisors), x.dtype)


def shares_of(x, grad_output, slide, outputs, count_include_pad, divisor_override):
    """The gradients for the array's planes, (planes, elements), in its own type."""
    sizes = x.shape[-len(outputs) :]
    divisors = divisors_of(slide, sizes, outputs, count_include_pad, divisor_override)
    grads = planes_of(in_float32(grad_output._array), len(sizes))
    return cast(distribute(grads, sliding_windows(slide, sizes, outputs), divisors, math.prod(sizes)), x.dtype)


def check_type(name, self, takes):
    """Averages know floats and int64."""
    if self._array.dtype != np.int64:
        check_numbers(name, self, takes)


def window_of_2d(x, kernel_size, stride, padding, ceil_mode, divisor_override):
    """The Sliding of a 2d average and the sizes of its result. Raises RuntimeError."""
    slide = sliding("avg_pool2d", 2, kernel_size, stride, padding, ceil_mode=ceil_mode)
    check_divisor(divisor_override)
    wrap_dim(-3, x.ndim)
    return slide, pool2d_outputs(slide, x.shape)


@avg_pool2d.kernel
def avg_pool2d_cpu(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    x = self._array
    slide, outputs = window_of_2d(x, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_type("avg_pool2d", self, "fV")
    means = averages_of(x, slide, outputs, count_include_pad, divisor_override)
    return wrap(laid_out_like(means, x, x.shape[:-2] + outputs))


@avg_pool2d_backward.kernel
def avg_pool2d_backward_cpu(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    x = self._array
    slide, outputs = window_of_2d(x, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled((*x.shape[:-2], *outputs), 2, grad_output)
    shares = shares_of(x, grad_output, slide, outputs, count_include_pad, divisor_override)
    return wrap(laid_out_like(shares, x, x.shape))


def window_of_3d(x, kernel_size, stride, padding, ceil_mode, divisor_override):
    """The Sliding of a 3d average and the sizes of its result. Raises RuntimeError."""
    slide = sliding("avg_pool3d", 3, kernel_size, stride, padding, ceil_mode=ceil_mode, either="")
    if x.ndim not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    check_divisor(divisor_override)
    return slide, pool3d_outputs(slide, x.shape, "avg_pool3d()", check_size=True)


@avg_pool3d.kernel
def avg_pool3d_cpu(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    x = self._array
    slide, outputs = window_of_3d(x, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_type("avg_pool3d_out_frame", self, "f" if x.itemsize > 2 else "")
    means = averages_of(x, slide, outputs, count_include_pad, divisor_override)
    return wrap(means.reshape(x.shape[:-3] + outputs))


@avg_pool3d_backward.kernel
def avg_pool3d_backward_cpu(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    x = self._array
    slide, outputs = window_of_3d(x, kernel_size, stride, padding, ceil_mode, divisor_override)
    check_pooled((*x.shape[:-3], *outputs), 3, grad_output)
    shares = shares_of(x, grad_output, slide, outputs, count_include_pad, divisor_override)
    return wrap(shares.reshape(x.shape))


# ------------------------------------------------------------------------------------------------- derivatives


def averaging_derivatives(dims, pool, backward):
    """The derivatives of an average and of its backward: each is the other's transpose."""

    class Backward:
        def self(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return backward.call(
                grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )

    class BackwardBackward:
        def grad_output(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return pool.call(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)

        def self(self_sym_sizes, self_scalar_type, self_device):
            return at.zeros(self_sym_sizes, dtype=self_scalar_type, device=self_device)

    Backward.__name__ = f"AvgPool{dims}DBackward0"
    BackwardBackward.__name__ = f"AvgPool{dims}DBackwardBackward0"
    pool.backward(Backward)
    backward.backward(BackwardBackward)


averaging_derivatives(2, avg_pool2d, avg_pool2d_backward)
averaging_derivatives(3, avg_pool3d, avg_pool3d_backward)


@avg_pool1d.compose
def avg_pool1d_composite(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """The average of images of height 1."""
    stride = stride or kernel_size
    check_dims("avg_pool1d", self)
    check_one("avg_pool1d", kernel_size=kernel_size, stride=stride, padding=padding)
    return avg_pool2d.call(
        self.unsqueeze(-2), (1, *kernel_size), (1, *stride), (0, *padding), ceil_mode, count_include_pad, None
    ).squeeze(-2)
