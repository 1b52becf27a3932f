"""Unpooling: elements back at the indices that max pooling took them from, zeros everywhere else.

In PyTorch: `aten/src/ATen/native/MaxUnpooling.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta, in_format_of
from readtorch.c10.tensor_impl import dtype_of, type_name

from .max import check_numbers, found_other_type, pick_again
from .windows import COUNT, by, planes_of, put_rows, rows_to_fill


def fill_unpooled(x, indices, out, dims):
    """Write the array's numbers to planes of zeros, each at its index. The last of several stays.

    Raises RuntimeError for an index that the planes do not have.
    """
    rows = rows_to_fill(out, dims, x.dtype)
    rows[...] = 0
    if rows.size == 0:
        return
    places, count = planes_of(indices, dims), rows.shape[1]
    wrong = places[(places < 0) | (places >= count)]
    if wrong.size:
        sizes = by(*out._array.shape[-dims:])
        raise RuntimeError(f"Found an invalid max index: {wrong[-1]} (output volumes are of size {sizes})")
    np.put_along_axis(rows, places, planes_of(x, dims), 1)
    put_rows(rows, out)


def check_length(name, numbers, dims, axes, but="but got"):
    if len(numbers) != dims:
        raise RuntimeError(
            f"There should be exactly {COUNT[dims]} elements {axes} in {name}, {but} {len(numbers)} elements."
        )


def check_shapes(self, indices, output_size, dims):
    """Raises RuntimeError unless there is an index for each number, and room for them."""
    x = self._array
    if x.shape != indices._array.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but "
            f"got indices tensor with shape: {list(indices._array.shape)}"
        )
    for dim in range(1, x.ndim):
        if x.shape[dim] == 0:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size "
                f"for non-batch dimensions, but got {list(x.shape)} with dimension {dim} being empty."
            )
    if min(output_size) < 0:
        raise RuntimeError(
            f"max_unpooling{dims}d(): output_size must contain non-negative spatial dimensions, "
            f"but got output_size={tuple(output_size)}"
        )


def check_ndim(x, dims):
    if x.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but "
            f"got a tensor with {x.ndim} dimensions."
        )


# ------------------------------------------------------------------------------------------------ max_unpool2d

max_unpool2d = native_function(
    "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
    module="nn",
    out=exact_out(found_other_type),
)


@max_unpool2d.meta
def max_unpool2d_meta(self, indices, output_size):
    check_length("output_size", output_size, 2, "(height, width)")
    if indices._array.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {type_name(indices)}")
    check_ndim(self._array, 2)
    check_shapes(self, indices, output_size, 2)
    return in_format_of(self, (*self._array.shape[:-2], *output_size))


@max_unpool2d.impl()
def max_unpool2d_cpu(self, indices, output_size, out):
    check_numbers("max_unpool2d", self, "fV")
    fill_unpooled(self._array, indices._array, out, 2)


@max_unpool2d.backward
class MaxUnpool2DBackward0:
    def self(grad, indices):
        return pick_again(grad, indices, 2)

    result = "auto_linear"


# ------------------------------------------------------------------------------------------------ max_unpool3d

max_unpool3d = native_function(
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
    module="nn",
    out=exact_out(found_other_type),
)


@max_unpool3d.meta
def max_unpool3d_meta(self, indices, output_size, stride, padding):
    check_length("output_size", output_size, 3, "(depth, height, width)")
    if indices._array.dtype != np.int64:
        raise RuntimeError("elements in indices should be type int64")
    check_ndim(self._array, 3)
    check_length("stride", stride, 3, "(depth, height, width)", "but got:")
    check_length("padding", padding, 3, "(depth, height, width)", "but got:")
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    check_shapes(self, indices, output_size, 3)
    return TensorMeta((*self._array.shape[:-3], *output_size), dtype_of(self))


@max_unpool3d.impl()
def max_unpool3d_cpu(self, indices, output_size, stride, padding, out):
    check_numbers("max_unpool3d", self, "fV")
    fill_unpooled(self._array, indices._array, out, 3)


@max_unpool3d.backward
class MaxUnpool3DBackward0:
    def self(grad, indices):
        return pick_again(grad, indices, 3)

    result = "auto_linear"
