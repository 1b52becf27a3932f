"""Max pooling: the largest element of each window, and its index in the flat plane.

Backward needs nothing but the indices: each gradient goes back to the element that it came from.

In PyTorch: `aten/src/ATen/native/Pooling.cpp`, `aten/src/ATen/native/MaxPooling.cpp`,
`aten/src/ATen/native/DilatedMaxPool2d.cpp`, `aten/src/ATen/native/DilatedMaxPool3d.cpp`,
`aten/src/ATen/native/cpu/MaxPoolKernel.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.dispatch_stub import dispatch_stub
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import cast, not_implemented
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta, in_format_of, remembered
from readtorch.aten.tensor_utils import check_pooled
from readtorch.c10.memory_format import channels_last, strides_in_order, suggested_format
from readtorch.c10.scalar_type import int64
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .windows import (
    FROM_SIZE,
    Sliding,
    in_float32,
    look,
    output_size,
    planes_of,
    pool2d_outputs,
    pool3d_outputs,
    put_rows,
    rows_to_fill,
    sliding,
    sliding_windows,
)

_SIZES = "int[{0}] kernel_size, int[{0}] stride=[], int[{0}] padding=0, int[{0}] dilation=1, bool ceil_mode=False"
_BACKWARD = (
    "Tensor grad_output, Tensor self, int[{0}] kernel_size, int[{0}] stride, int[{0}] padding, "
    "int[{0}] dilation, bool ceil_mode, Tensor indices"
)

# ------------------------------------------------------------------------------ the maxima and the way back


def lowest(dtype):
    """The lowest number of that type."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@dispatch_stub("max_pool_kernel", FROM_SIZE)
def find_maxima(planes, windows, best, places):
    """Write the maximum of each window of the planes to `best`, and its index to `places`: arrays (planes, results).

    Of equal numbers the first counts. A nan wins, and of several the last.
    """
    best[...], places[...] = lowest(planes.dtype), windows.first
    for here, inside in windows.entries:
        seen = look(planes, here)
        better = (seen > best) | (seen != seen)
        if inside is not None:
            better &= inside
        np.copyto(best, seen, where=better)
        np.copyto(places, here, where=better)


@dispatch_stub("max_pool_kernel", FROM_SIZE)
def put_back(grads, places, sums):
    """Add each gradient to the index of its maximum: `sums` is (planes, elements)."""
    sums[...] = 0
    np.add.at(sums, (np.arange(len(grads))[:, None], places), grads)


def fill_maxima(x, windows, values, indices):
    """The kernel of every maximum: fills the outputs from the planes of the array `x`."""
    dims = len(windows.sizes)
    planes = planes_of(in_float32(x), dims)
    best, places = rows_to_fill(values, dims, planes.dtype), rows_to_fill(indices, dims, np.dtype(np.int64))
    find_maxima(planes, windows, best, places)
    put_rows(best, values)
    put_rows(places, indices)


def fill_put_back(grad_output, indices, dims, grad_input):
    """The kernel of every maximum's backward."""
    grads = planes_of(in_float32(grad_output._array), dims)
    sums = rows_to_fill(grad_input, dims, grads.dtype)
    put_back(grads, planes_of(indices._array, dims), sums)
    put_rows(sums, grad_input)


def pair_in_format_of(self, sizes):
    """The outputs of a maximum: values and indices, in the memory format of `self`."""
    return in_format_of(self, sizes), in_format_of(self, sizes, int64)


def check_numbers(name, self, kinds="fiuV"):
    if self._array.dtype.kind not in kinds:
        raise not_implemented(name)(dtype_of(self))


def max_derivative(name, backward, dims):
    class Derivative:
        output_differentiability = [True, False]

        def self(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1):
            return backward.call(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)

        def result0(self_t, result1):
            return pick_again(self_t, result1, dims)

    Derivative.__name__ = name
    return Derivative


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

        result = "auto_linear"

    Derivative.__name__ = name
    return Derivative


# -------------------------------------------------------------------------------------------------- max_pool2d

max_pool2d = native_function(f"max_pool2d(Tensor self, {_SIZES.format(2)}) -> Tensor")
max_pool2d_with_indices = native_function(
    f"max_pool2d_with_indices(Tensor self, {_SIZES.format(2)}) -> (Tensor, Tensor)",
    module="nn",
    out=exact_out(names=("out", "indices")),
)
max_pool2d_with_indices_backward = native_function(
    f"max_pool2d_with_indices_backward({_BACKWARD.format(2)}) -> Tensor", ""
)


@max_pool2d.compose
def max_pool2d_composite(self, kernel_size, stride, padding, dilation, ceil_mode):
    return max_pool2d_with_indices.call(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@remembered
def window_of_2d(shape, kernel_size, stride, padding, dilation, ceil_mode):
    """The Sliding of a 2d maximum and the sizes of its result. Raises RuntimeError."""
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode)
    if len(shape) not in (3, 4):
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    return slide, pool2d_outputs(slide, shape)


@max_pool2d_with_indices.meta
def max_pool2d_meta(self, kernel_size, stride, padding, dilation, ceil_mode):
    shape = self._array.shape
    _, outputs = window_of_2d(shape, kernel_size, stride, padding, dilation, ceil_mode)
    return pair_in_format_of(self, shape[:-2] + outputs)


@max_pool2d_with_indices.impl()
def max_pool2d_cpu(self, kernel_size, stride, padding, dilation, ceil_mode, values, indices):
    check_numbers("max_pool2d", self)
    shape = self._array.shape
    slide, outputs = window_of_2d(shape, kernel_size, stride, padding, dilation, ceil_mode)
    fill_maxima(self._array, sliding_windows(slide, shape[-2:], outputs), values, indices)


@max_pool2d_with_indices_backward.meta
def max_pool2d_backward_meta(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    shape = self._array.shape
    _, outputs = window_of_2d(shape, kernel_size, stride, padding, dilation, ceil_mode)
    check_pooled(shape[:-2] + outputs, 2, grad_output, indices)
    return in_format_of(self, shape)


@max_pool2d_with_indices_backward.impl()
def max_pool2d_backward_cpu(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input):
    fill_put_back(grad_output, indices, 2, grad_input)


max_pool2d_with_indices.backward(max_derivative("MaxPool2DWithIndicesBackward0", max_pool2d_with_indices_backward, 2))
max_pool2d_with_indices_backward.backward(picking_backward("MaxPool2DWithIndicesBackwardBackward0", 2))


# -------------------------------------------------------------------------------------------------- max_pool3d


def found_other_type(out, result, *arguments):
    return f"expected scalar type {type_name(result)} but found {type_name(out)}"


max_pool3d = native_function(f"max_pool3d(Tensor self, {_SIZES.format(3)}) -> Tensor")
max_pool3d_with_indices = native_function(
    f"max_pool3d_with_indices(Tensor self, {_SIZES.format(3)}) -> (Tensor, Tensor)",
    module="nn",
    out=exact_out(found_other_type, found_other_type, names=("out", "indices")),
)
max_pool3d_with_indices_backward = native_function(
    f"max_pool3d_with_indices_backward({_BACKWARD.format(3)}) -> Tensor", ""
)


@max_pool3d.compose
def max_pool3d_composite(self, kernel_size, stride, padding, dilation, ceil_mode):
    return max_pool3d_with_indices.call(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@remembered
def window_of_3d(shape, kernel_size, stride, padding, dilation, ceil_mode, caller):
    """The Sliding of a 3d maximum and the sizes of its result. Raises RuntimeError."""
    slide = sliding("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode)
    if len(shape) not in (4, 5):
        raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
    return slide, pool3d_outputs(slide, shape, f"max_pool3d_with_indices_{caller}_template()")


@max_pool3d_with_indices.meta
def max_pool3d_meta(self, kernel_size, stride, padding, dilation, ceil_mode):
    x, device = self._array, self.device.type
    of_images = suggested_format(x) is channels_last  # the batch of images that four dimensions would be elsewhere
    if of_images and device == "cpu":
        raise RuntimeError("Unsupported memory format. Supports only ChannelsLast3d, Contiguous")
    _, outputs = window_of_3d(x.shape, kernel_size, stride, padding, dilation, ceil_mode, f"out_{device}")
    sizes = x.shape[:-3] + outputs
    if of_images:
        return TensorMeta(sizes, dtype_of(self)), TensorMeta(sizes, int64)
    if x.ndim == 4 and not x.flags.c_contiguous and x.transpose(1, 2, 3, 0).flags.c_contiguous:
        strides = strides_in_order(sizes, (0, 3, 2, 1))  # without a batch max_pool3d alone keeps channels last
        return TensorMeta(sizes, dtype_of(self), strides), TensorMeta(sizes, int64, strides)
    return pair_in_format_of(self, sizes)


@max_pool3d_with_indices.impl()
def max_pool3d_cpu(self, kernel_size, stride, padding, dilation, ceil_mode, values, indices):
    x = self._array
    check_numbers("max_pool3d", self)
    slide, outputs = window_of_3d(x.shape, kernel_size, stride, padding, dilation, ceil_mode, "out_cpu")
    fill_maxima(x, sliding_windows(slide, x.shape[-3:], outputs), values, indices)


@max_pool3d_with_indices_backward.meta
def max_pool3d_backward_meta(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    shape, caller = self._array.shape, f"backward_out_{self.device.type}"
    _, outputs = window_of_3d(shape, kernel_size, stride, padding, dilation, ceil_mode, caller)
    check_pooled(shape[:-3] + outputs, 3, grad_output, indices)
    return in_format_of(self, shape)


@max_pool3d_with_indices_backward.impl()
def max_pool3d_backward_cpu(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input):
    fill_put_back(grad_output, indices, 3, grad_input)


max_pool3d_with_indices.backward(max_derivative("MaxPool3DWithIndicesBackward0", max_pool3d_with_indices_backward, 3))
max_pool3d_with_indices_backward.backward(picking_backward("MaxPool3DWithIndicesBackwardBackward0", 3))


# -------------------------------------------------------------------------------------------------- max_pool1d

max_pool1d = native_function(f"max_pool1d(Tensor self, {_SIZES.format(1)}) -> Tensor")
max_pool1d_with_indices = native_function(
    f"max_pool1d_with_indices(Tensor self, {_SIZES.format(1)}) -> (Tensor, Tensor)"
)


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
    rows = planes_of(in_float32(x), 1)
    best = np.empty((len(rows), outputs), rows.dtype)
    slide = Sliding(*map(tuple, (kernel_size, stride or kernel_size, padding, dilation)), ceil_mode)
    find_maxima_in_rows(rows, slide, best)
    return wrap(cast(best, x.dtype).reshape(*x.shape[:-1], outputs))


@dispatch_stub("max_pool_kernel", FROM_SIZE)
def find_maxima_in_rows(rows, slide, best):
    """The same along rows, and without the places."""
    places = np.empty(best.shape, np.int64)
    find_maxima.plain(rows, sliding_windows(slide, rows.shape[1:], best.shape[1:]), best, places)
