"""Fractional max pooling: windows that begin at random positions, so that a plane can shrink by any factor.

In PyTorch: `aten/src/ATen/native/FractionalMaxPooling.h`, `aten/src/ATen/native/FractionalMaxPool2d.cpp`,
`aten/src/ATen/native/FractionalMaxPool3d.cpp`. B. Graham: Fractional max-pooling (2014). Explained in the chapter
"Layers: convolution, embedding, recurrence".
"""

import math

import numpy as np

from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.tensor_utils import check_picked
from readtorch.c10.scalar_type import int64
from readtorch.c10.tensor_impl import dtype_of

from .max import check_numbers, fill_maxima, fill_put_back, pick_again, picking_backward
from .windows import check_sizes, windows_from

NAMES = {2: ("height", "width"), 3: ("time", "height", "width")}


def starts(sample, size, outputs, kernel):
    """The starts of `outputs` windows along `size` elements: (planes, outputs), from one random number in [0, 1) a
    plane.

    Equal steps of a fractional length, rounded down after a random shift; the last window ends with the
    plane. The arithmetic is that of the samples' type, rounded after every step.
    """
    number = sample.dtype.type
    places = np.full((len(sample), outputs), size - kernel)
    if outputs > 1:
        step = number(size - kernel) / number(outputs - 1)
        shifted = (np.arange(outputs - 1).astype(sample.dtype) + sample[:, None]) * step
        places[:, :-1] = shifted.astype(np.int64) - (sample * step).astype(np.int64)[:, None]
    return places


def check(caller, shape, kernel_size, output_size, dims):
    """Raises RuntimeError unless the windows fit into the planes."""
    lists = "tuple of Ints" if dims == 2 else "tuple of three Ints"
    for name, numbers in (("kernel_size", kernel_size), ("output_size", output_size)):
        if len(numbers) != dims:
            public = caller.removesuffix("_out")
            raise RuntimeError(f"{public}: {name} must either be a single Int or {lists}")
    for dim in range(1, len(shape)):
        if shape[dim] == 0:
            raise RuntimeError(
                f"{caller}(): Expected input to have non-zero size for non-batch dimensions, "
                f"but got{list(shape)} with dimension {dim} being empty."
            )
    if len(shape) not in (dims + 1, dims + 2):
        raise RuntimeError(f"{caller}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(shape)}")
    spare = dims - 2  # in 3d PyTorch requires one element more than the windows need
    found = list(zip(NAMES[dims], kernel_size, output_size, shape[-dims:]))
    for name, kernel, outputs, size in found[:-2] + (found[-2:] if dims == 2 else found[:-3:-1]):
        if outputs + kernel - 1 + spare > size:
            raise RuntimeError(f"{caller}(): pool {name} {kernel} too large relative to input {name} {size}")
    check_sizes((*shape[:-dims], *output_size))


def check_samples(samples, x, dims):
    """Raises RuntimeError unless there is a random number for each plane and dimension."""
    if samples.dtype != x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < (x.shape[0] if x.ndim == dims + 2 else 1):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != x.shape[-dims - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.shape[2]}.")


def describe(caller, self, kernel_size, output_size, random_samples, dims):
    """The outputs: values and indices. Raises RuntimeError."""
    shape = self._array.shape
    check(caller, shape, kernel_size, output_size, dims)
    check_samples(random_samples._array, self._array, dims)
    sizes = (*shape[:-dims], *output_size)
    return TensorMeta(sizes, dtype_of(self)), TensorMeta(sizes, int64)


def random_windows(x, samples, kernel_size, output_size):
    """The windows of every plane of `x`. samples: a row of numbers a plane, one for each dimension."""
    dims = len(output_size)
    sizes, planes = x.shape[-dims:], math.prod(x.shape[:-dims])
    begins = [starts(samples[:planes, d], sizes[d], output_size[d], kernel_size[d]) for d in range(dims)]
    return windows_from(begins, kernel_size, sizes, output_size)


def max_derivative(name, backward, dims):
    class Derivative:
        output_differentiability = [True, False]

        def self(grad, self, kernel_size, output_size, result1):
            return backward.call(grad, self, kernel_size, output_size, result1)

        def result0(self_t, result1):
            return pick_again(self_t, result1, dims)

    Derivative.__name__ = name
    return Derivative


# ------------------------------------------------------------------------------------------ of images

fractional_max_pool2d = native_function(
    "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> "
    "(Tensor, Tensor)",
    module="nn",
    out=exact_out(names=("output", "indices")),
)
fractional_max_pool2d_backward = native_function(
    "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, "
    "Tensor indices) -> Tensor",
    "",
)


@fractional_max_pool2d.meta
def fractional_max_pool2d_meta(self, kernel_size, output_size, random_samples):
    return describe("fractional_max_pool2d", self, kernel_size, output_size, random_samples, 2)


@fractional_max_pool2d.impl()
def fractional_max_pool2d_cpu(self, kernel_size, output_size, random_samples, values, indices):
    check_numbers("fractional_max_pool2d_out_frame", self, "fV")
    samples = random_samples._array.reshape(-1, 2)[:, ::-1]  # the width's number comes first
    fill_maxima(self._array, random_windows(self._array, samples, kernel_size, output_size), values, indices)


@fractional_max_pool2d_backward.meta
def fractional_max_pool2d_backward_meta(grad_output, self, kernel_size, output_size, indices):
    check_picked("fractional_max_pool2d_backward", grad_output, indices, self, 2)
    return TensorMeta(self._array.shape, dtype_of(self))


@fractional_max_pool2d_backward.impl()
def fractional_max_pool2d_backward_cpu(grad_output, self, kernel_size, output_size, indices, grad_input):
    fill_put_back(grad_output, indices, 2, grad_input)


fractional_max_pool2d.backward(max_derivative("FractionalMaxPool2DBackward0", fractional_max_pool2d_backward, 2))
fractional_max_pool2d_backward.backward(picking_backward("FractionalMaxPool2DBackwardBackward0", 2))

# ------------------------------------------------------------------------------------------ of volumes

fractional_max_pool3d = native_function(
    "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> "
    "(Tensor, Tensor)",
    module="nn",
    out=exact_out(names=("output", "indices")),
)
fractional_max_pool3d_backward = native_function(
    "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, "
    "Tensor indices) -> Tensor",
    "",
)


@fractional_max_pool3d.meta
def fractional_max_pool3d_meta(self, kernel_size, output_size, random_samples):
    return describe("fractional_max_pool3d_out", self, kernel_size, output_size, random_samples, 3)


@fractional_max_pool3d.impl()
def fractional_max_pool3d_cpu(self, kernel_size, output_size, random_samples, values, indices):
    check_numbers("fractional_max_pool3d_out_frame", self, "fV")
    samples = random_samples._array.reshape(-1, 3)
    fill_maxima(self._array, random_windows(self._array, samples, kernel_size, output_size), values, indices)


@fractional_max_pool3d_backward.meta
def fractional_max_pool3d_backward_meta(grad_output, self, kernel_size, output_size, indices):
    check_picked("fractional_max_pool3d_backward_out", grad_output, indices, self, 3)
    return TensorMeta(self._array.shape, dtype_of(self))


@fractional_max_pool3d_backward.impl()
def fractional_max_pool3d_backward_cpu(grad_output, self, kernel_size, output_size, indices, grad_input):
    fill_put_back(grad_output, indices, 3, grad_input)


fractional_max_pool3d.backward(max_derivative("FractionalMaxPool3DBackward0", fractional_max_pool3d_backward, 3))
fractional_max_pool3d_backward.backward(picking_backward("FractionalMaxPool3DBackwardBackward0", 3))
