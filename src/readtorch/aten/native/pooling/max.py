"""Max pooling: the largest element of each window, and its index in the flat plane.

Backward needs nothing but the indices: each gradient goes back to the element that it came from.

In PyTorch: `aten/src/ATen/native/Pooling.cpp`, `aten/src/ATen/native/MaxPooling.cpp`,
`aten/src/ATen/native/DilatedMaxPool2d.cpp`, `aten/src/ATen/native/DilatedMaxPool3d.cpp`,
`aten/src/ATen/native/cpu/MaxPoolKernel.cpp`. Explained in the chapter "Layers, functional, init".
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import WIDENED, cast, not_implemented
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_utils import check_pooled
from readtorch.c10.memory_format import suggested_format
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .windows import (
    Sliding,
    for_planes,
    laid_out_like,
    look,
    loops,
    output_size,
    planes_of,
    pool2d_outputs,
    pool3d_outputs,
    sliding,
    sliding_windows,
    volumes,
    worth_loops,
)

_SIZES = "int[{0}] kernel_size, int[{0}] stride=[], int[{0}] padding=0, int[{0}] dilation=1, bool ceil_mode=False"
_BACKWARD = (
    "Tensor grad_output, Tensor self, int[{0}] kernel_size, int[{0}] stride, int[{0}] padding, "
    "int[{0}] dilation, bool ceil_mode, Tensor indices"
)

max_pool1d = native_function(f"max_pool1d(Tensor self, {_SIZES.format(1)}) -> Tensor")
max_pool2d = native_function(f"max_pool2d(Tensor self, {_SIZES.format(2)}) -> Tensor")
max_pool3d = native_function(f"max_pool3d(Tensor self, {_SIZES.format(3)}) -> Tensor")
max_pool1d_with_indices = native_function(
    f"max_pool1d_with_indices(Tensor self, {_SIZES.format(1)}) -> (Tensor, Tensor)"
)
max_pool2d_with_indices = native_function(
    f"max_pool2d_with_indices(Tensor self, {_SIZES.format(2)}) -> (Tensor, Tensor)", module="nn", out=("out", "indices")
)
max_pool3d_with_indices = native_function(
    f"max_pool3d_with_indices(Tensor self, {_SIZES.format(3)}) -> (Tensor, Tensor)", module="nn", out=("out", "indices")
)
max_pool2d_with_indices_backward = native_function(
    f"max_pool2d_with_indices_backward({_BACKWARD.format(2)}) -> Tensor", ""
)
max_pool3d_with_indices_backward = native_function(
    f"max_pool3d_with_indices_backward({_BACKWARD.format(3)}) -> Tensor", ""
)


def found_other_type(out, result, *arguments):
    return f"expected scalar type {type_name(result)} but found {type_name(out)}"


exact_out(max_pool2d_with_indices)
exact_out(max_pool3d_with_indices, found_other_type, found_other_type)


# ------------------------------------------------------------------------------------------------ the maxima


def lowest(dtype):
    """The lowest number of that type."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def maxima(planes, windows):
    """The maximum of each window and its index: two arrays (planes, results).

    Of equal numbers the first counts. A nan wins, and of several the last.
    """
    if windows.bounds is not None and worth_loops(planes):
        return maxima_by_loops(planes, windows)
    places = np.broadcast_to(windows.first, (len(planes), windows.first.shape[1])).copy()
    best = np.full(places.shape, lowest(planes.dtype), planes.dtype)
    for here, inside in windows.entries:
        seen = look(planes, here)
        better = (seen > best) | (seen != seen)
        if inside is not None:
            better &= inside
        np.copyto(best, seen, where=better)
        np.copyto(places, here, where=better)
    return best, places


def maxima_by_loops(planes, windows):
    x, count = volumes(planes, windows.sizes), math.prod(windows.outputs)
    best, places = np.empty((len(x), count), x.dtype), np.empty((len(x), count), np.int64)
    given = (
        x,
        *windows.bounds,
        windows.steps,
        windows.square,
        volumes(best, windows.outputs),
        volumes(places, windows.outputs),
    )
    for_planes(len(x), planes.shape[1], lambda begin, end: loops().search(*given, begin, end))
    return best, places


def put_back(grads, places, count):
    """Each gradient, added at the index of its maximum: (planes, count)."""
    result = np.zeros((len(grads), count), grads.dtype)
    if worth_loops(grads):
        for_planes(len(grads), count, lambda begin, end: loops().put_back(grads, places, result, begin, end))
    else:
        np.add.at(result, (np.arange(len(grads))[:, None], places), grads)
    return result


# ------------------------------------------------------------------------------------------------- the kernels


def check_numbers(name, self, kinds="fiuV"):
    if self._array.dtype.kind not in kinds:
        raise not_implemented(name)(dtype_of(self))


def in_float32(array):
    """16-bit floats as float32: comparing and adding them is done there."""
    return cast(array, WIDENED.get(array.dtype, array.dtype))


def maxima_of(x, slide, outputs):
    """The maxima of the array's planes and their indices, as arrays (planes, results)."""
    sizes = x.shape[-len(outputs) :]
    best, places = maxima(planes_of(in_float32(x), len(sizes)), sliding_windows(slide, sizes, outputs))
    return cast(best, x.dtype), places


def window_of_2d(x, kernel_size, stride, padding, dilation, ceil_mode):
    """The Sliding of a 2d maximum and the sizes of its result. Raises RuntimeError."""
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode)
    if x.ndim not in (3, 4):
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    return slide, pool2d_outputs(slide, x.shape)


def window_of_3d(x, kernel_size, stride, padding, dilation, ceil_mode, caller):
    """The same in 3d."""
    slide = sliding("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode)
    if x.ndim not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    return slide, pool3d_outputs(slide, x.shape, caller)


@max_pool2d_with_indices.kernel
def max_pool2d_with_indices_cpu(self, kernel_size, stride, padding, dilation, ceil_mode):
    x = self._array
    slide, outputs = window_of_2d(x, kernel_size, stride, padding, dilation, ceil_mode)
    check_numbers("max_pool2d", self)
    best, places = maxima_of(x, slide, outputs)
    sizes = x.shape[:-2] + outputs
    return wrap(laid_out_like(best, x, sizes)), wrap(laid_out_like(places, x, sizes))


@max_pool3d_with_indices.kernel
def max_pool3d_with_indices_cpu(self, kernel_size, stride, padding, dilation, ceil_mode):
    x = self._array
    slide, outputs = window_of_3d(
        x, kernel_size, stride, padding, dilation, ceil_mode, "max_pool3d_with_indices_out_cpu_template()"
    )
    if suggested_format(x) is channels_last:
        raise RuntimeError("Unsupported memory format. Supports only ChannelsLast3d, Contiguous")
    check_numbers("max_pool3d", self)
    best, places = maxima_of(x, slide, outputs)
    sizes = x.shape[:-3] + outputs
    if x.ndim == 4 and not x.flags.c_contiguous and x.transpose(1, 2, 3, 0).flags.c_contiguous:
        return wrap(channels_last(best, sizes)), wrap(channels_last(places, sizes))
    return wrap(laid_out_like(best, x, sizes)), wrap(laid_out_like(places, x, sizes))


def channels_last(rows, sizes):
    """Rows, one a plane, as an array (C, T, H, W) whose channels lie side by side: max_pool3d alone does so."""
    return np.ascontiguousarray(rows.T).T.reshape(sizes)


def put_back_in(self, grad_output, indices, dims):
    """The gradients for the planes of `self`, from the gradients of the maxima: (planes, elements)."""
    x = self._array
    grads = planes_of(in_float32(grad_output._array), dims)
    return cast(put_back(grads, planes_of(indices._array, dims), math.prod(x.shape[x.ndim - dims :])), x.dtype)


@max_pool2d_with_indices_backward.kernel
def max_pool2d_with_indices_backward_cpu(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    _, outputs = window_of_2d(self._array, kernel_size, stride, padding, dilation, ceil_mode)
    check_pooled((*self._array.shape[:-2], *outputs), 2, grad_output, indices)
    return wrap(laid_out_like(put_back_in(self, grad_output, indices, 2), self._array, self._array.shape))


@max_pool3d_with_indices_backward.kernel
def max_pool3d_with_indices_backward_cpu(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    _, outputs = window_of_3d(
        self._array,
        kernel_size,
        stride,
        padding,
        dilation,
        ceil_mode,
        "max_pool3d_with_indices_backward_out_cpu_template()",
    )
    check_pooled((*self._array.shape[:-3], *outputs), 3, grad_output, indices)
    return wrap(laid_out_like(put_back_in(self, grad_output, indices, 3), self._array, self._array.shape))


# ------------------------------------------------------------------------------------------------- derivatives


def max_derivative(name, backward):
    class Derivative:
        output_differentiability = [True, False]

        def self(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1):
            return backward.call(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)

    Derivative.__name__ = name
    return Derivative


max_pool2d_with_indices.backward(max_derivative("MaxPool2DWithIndicesBackward0", max_pool2d_with_indices_backward))
max_pool3d_with_indices.backward(max_derivative("MaxPool3DWithIndicesBackward0", max_pool3d_with_indices_backward))


def pick_again(grad, indices, dims):
    """The elements of `grad`, shaped like the input, at the indices of the maxima (`max_pool_double_backward`)."""
    rows = (*indices.shape[:-dims], indices.shape[-dims:].numel())
    picked = (*grad.shape[:-dims], grad.shape[-dims:].numel())
    return (
        grad.contiguous(memory_format=suggested_format(indices._array))
        .view(picked)
        .gather(-1, indices.view(rows))
        .view(indices.shape)
    )


def picking_backward(name, dims):
    """The derivative of a backward that puts gradients back: it is linear in them."""

    class Derivative:
        def grad_output(grad, indices):
            return pick_again(grad, indices, dims)

        def self(self_sym_sizes, self_scalar_type, self_device):
            return at.zeros(self_sym_sizes, dtype=self_scalar_type, device=self_device)

    Derivative.__name__ = name
    return Derivative


max_pool2d_with_indices_backward.backward(picking_backward("MaxPool2DWithIndicesBackwardBackward0", 2))
max_pool3d_with_indices_backward.backward(picking_backward("MaxPool3DWithIndicesBackwardBackward0", 3))


# -------------------------------------------------------------------------------------------------- composites


@max_pool2d.compose
def max_pool2d_composite(self, kernel_size, stride, padding, dilation, ceil_mode):
    return max_pool2d_with_indices.call(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@max_pool3d.compose
def max_pool3d_composite(self, kernel_size, stride, padding, dilation, ceil_mode):
    return max_pool3d_with_indices.call(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def check_dims(caller, self, fewest=2, most=3):
    """Raises RuntimeError unless `self` has 2 or 3 dimensions."""
    ndim = self._array.ndim
    if not fewest <= ndim <= most:
        raise RuntimeError(
            f"Expected {fewest} to {most} dimensions, but got {ndim}-dimensional tensor for "
            f"argument #1 'self' (while checking arguments for {caller})"
        )


def check_one(caller, **arguments):
    """Raises RuntimeError for a list that does not hold one number."""
    for name, numbers in arguments.items():
        if len(numbers) != 1:
            raise RuntimeError(f"{caller}() argument '{name}' should contain one int (got {len(numbers)})")


@max_pool1d_with_indices.compose
def max_pool1d_with_indices_composite(self, kernel_size, stride, padding, dilation, ceil_mode):
    """Max pooling of images of height 1."""
    stride = stride or kernel_size
    check_dims("max_pool1d", self)
    check_one("max_pool1d", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
    values, indices = max_pool2d_with_indices.call(
        self.unsqueeze(-2), (1, *kernel_size), (1, *stride), (0, *padding), (1, *dilation), ceil_mode
    )
    return values.squeeze(-2), indices.squeeze(-2)


def check_max_pool1d(shape, kernel_size, stride, padding, dilation, ceil_mode):
    """The length of max_pool1d's result. Raises RuntimeError unless its arguments fit."""
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(shape)}"
        )
    for name, numbers, kinds in (
        ("kernel_size", kernel_size, "an int, list of ints or"),
        ("stride", stride or kernel_size, "None, an int, list of ints, or"),
        ("padding", padding, "an int, list of ints, or"),
        ("dilation", dilation, "an int, list of ints or"),
    ):
        if len(numbers) != 1:
            raise RuntimeError(
                f"max_pool1d() {name} must be {kinds} tuple of ints of size 1 but got size {len(numbers)}"
            )
    (kernel,), (step,), (pad,), (gap,) = kernel_size, stride or kernel_size, padding, dilation
    if kernel <= 0:
        raise RuntimeError(f"max_pool1d() kernel_size must be greater than zero, but got {kernel}")
    if step <= 0:
        raise RuntimeError(f"max_pool1d() stride must be greater than zero, but got {step}")
    if pad < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {pad}")
    if pad > kernel // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={pad} "
            f"and kernel_size={kernel}"
        )
    if gap <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {gap}")
    outputs = output_size(shape[-1], pad, step, gap * (kernel - 1) + 1, ceil_mode)
    if outputs <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {outputs}")
    return outputs


@max_pool1d.compose
def max_pool1d_composite(self, kernel_size, stride, padding, dilation, ceil_mode):
    check_max_pool1d(self._array.shape, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool1d_with_indices.call(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@max_pool1d.kernel
def max_pool1d_cpu(self, kernel_size, stride, padding, dilation, ceil_mode):
    """Without gradients there is no need for indices; PyTorch's loop for that case knows floats only."""
    x = self._array
    outputs = check_max_pool1d(x.shape, kernel_size, stride, padding, dilation, ceil_mode)
    check_numbers("max_pool1d_impl", self, "fV")
    (kernel,), (step,), (pad,), (gap,) = kernel_size, stride or kernel_size, padding, dilation
    if worth_loops(x):
        best = maxima_in_rows(planes_of(x, 1), kernel, step, pad, gap, outputs)
    else:
        best, _ = maxima_of(x, Sliding((kernel,), (step,), (pad,), (gap,), ceil_mode), (outputs,))
    return wrap(best.reshape(*x.shape[:-1], outputs))


def maxima_in_rows(rows, kernel, stride, padding, dilation, outputs):
    best = np.empty((len(rows), outputs), rows.dtype)
    given = (rows, kernel, stride, padding, dilation, best)
    for_planes(*rows.shape, lambda begin, end: loops().maxima_in_rows(*given, begin, end))
    return best
