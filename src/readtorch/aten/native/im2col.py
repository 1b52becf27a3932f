"""im2col: the blocks under a sliding window as columns; and col2im, its transpose, which adds the columns up again.

Convolution is a matrix product between them. In Python they are `F.unfold` and `F.fold`.

In PyTorch: `aten/src/ATen/native/Im2Col.cpp` and `aten/src/ATen/native/Col2Im.cpp`. Explained in the chapter "Layers:
convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .tensor_iterator import not_implemented

_WINDOW = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"


def window_counts(size, kernel_size, dilation, padding, stride):
    """How many positions the window has in each dimension."""
    return tuple(
        [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel_size, dilation, padding, stride)]
    )


def window_elements(padded, counts, kernel_size, dilation, stride):
    """For each element of the window: (its place in the window, the view of what lies under it everywhere)."""
    for place in np.ndindex(*kernel_size):
        starts = [i * d for i, d in zip(place, dilation)]
        yield place, padded[(..., *[slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, stride)])]


def with_border(images, padding):
    """New zeros for images with a border of `padding`; and the part of them inside the border."""
    (height, width), (p, q) = images.shape[-2:], padding
    zeros = np.zeros((*images.shape[:-2], height + 2 * p, width + 2 * q), images.dtype)
    return zeros, zeros[..., p : p + height, q : q + width]


# ----------------------------------------------------------------------------------------------------- checks


def spell(**pair):
    """The text `name=(a, b)`."""
    ((name, (first, second)),) = pair.items()
    return f"{name}=({first}, {second})"


def check_pairs(**pairs):
    for name, values in pairs.items():
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")


def check_window(kernel_size, dilation, padding, stride):
    check_pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    for name, label, pair in (
        ("kernel size", "kernel", kernel_size),
        ("dilation", "dilation", dilation),
        ("padding", "pad", padding),
        ("stride", "stride", stride),
    ):
        least, words = (0, "non-negative") if label == "pad" else (1, "greater than zero")
        if min(pair) < least:
            raise RuntimeError(f"{name} should be {words}, but got {label}_height: {pair[0]} {label}_width: {pair[1]}")


def check_images(x):
    wrap_dim(1, x.ndim)
    wrap_dim(2, x.ndim)
    if x.ndim not in (3, 4) or 0 in x.shape[x.ndim - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(x.shape)}"
        )


def check_counts(x, counts, kernel_size, dilation, padding):
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size ({x.shape[-2]}, {x.shape[-1]}), {spell(kernel_size=kernel_size)}, "
            f"{spell(dilation=dilation)}, {spell(padding=padding)}, calculated shape of the array of sliding blocks as "
            f"({counts[0]}, {counts[1]}), but its components must be at least one."
        )


def check_columns(x, output_size, kernel_size, dilation, padding, stride, counts):
    if x.ndim not in (2, 3) or 0 in x.shape[x.ndim - 2 :]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            f"dimensions for input, but got: {list(x.shape)}"
        )
    rows, columns = x.shape[-2:]
    if rows % (kernel_size[0] * kernel_size[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
            f"got input.size(1)={rows} and {spell(kernel_size=kernel_size)}."
        )
    if columns != counts[0] * counts[1]:
        raise RuntimeError(
            f"Given {spell(output_size=output_size)}, {spell(kernel_size=kernel_size)}, {spell(dilation=dilation)}, "
            f"{spell(padding=padding)}, {spell(stride=stride)}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {counts[0]} * {counts[1]} = {counts[0] * counts[1]}, but got "
            f"input.size(2)={columns}."
        )
    if min(output_size) < 1:
        raise RuntimeError(f"Expected output spatial size to be positive, but got: {spell(output_size=output_size)}.")


def check_dtype(self, kernel_name):
    if self._array.dtype.kind in "iu":
        raise not_implemented(kernel_name)(dtype_of(self))


# ----------------------------------------------------------------------------------------------------- im2col

im2col = native_function(f"im2col(Tensor self, {_WINDOW}) -> Tensor", module="nn", out=True)


@im2col.meta
def im2col_meta(self, kernel_size, dilation, padding, stride):
    """(N, C, H, W) -> (N, C · kernel elements, places); the batch may be missing."""
    x = self._array
    check_window(kernel_size, dilation, padding, stride)
    check_images(x)
    counts = window_counts(x.shape[-2:], kernel_size, dilation, padding, stride)
    check_counts(x, counts, kernel_size, dilation, padding)
    channels = x.shape[-3] * kernel_size[0] * kernel_size[1]
    return TensorMeta((*x.shape[:-3], channels, counts[0] * counts[1]), dtype_of(self))


@im2col.impl()
def im2col_cpu(self, kernel_size, dilation, padding, stride, out):
    check_dtype(self, "im2col_out_cpu")
    x = self._array
    counts = window_counts(x.shape[-2:], kernel_size, dilation, padding, stride)
    padded = x
    if any(padding):
        padded, inner = with_border(x, padding)
        inner[...] = x
    columns = out._array.reshape(*x.shape[:-2], *kernel_size, *counts)
    for place, under in window_elements(padded, counts, kernel_size, dilation, stride):
        columns[(..., *place, slice(None), slice(None))] = under


@im2col.backward
class Im2ColBackward0:
    def self(grad, self_sym_sizes, kernel_size, dilation, padding, stride):
        return col2im.call(grad, tuple(self_sym_sizes[-2:]), kernel_size, dilation, padding, stride)

    result = "auto_linear"


# ----------------------------------------------------------------------------------------------------- col2im

col2im = native_function(f"col2im(Tensor self, SymInt[2] output_size, {_WINDOW}) -> Tensor", module="nn", out=True)


@col2im.meta
def col2im_meta(self, output_size, kernel_size, dilation, padding, stride):
    """(N, C · kernel elements, places) -> (N, C, *output_size): each pixel is the sum of its copies."""
    x = self._array
    check_pairs(output_size=output_size)
    check_window(kernel_size, dilation, padding, stride)
    counts = window_counts(output_size, kernel_size, dilation, padding, stride)
    check_columns(x, output_size, kernel_size, dilation, padding, stride, counts)
    channels = x.shape[-2] // (kernel_size[0] * kernel_size[1])
    return TensorMeta((*x.shape[:-2], channels, *output_size), dtype_of(self))


@col2im.impl()
def col2im_cpu(self, output_size, kernel_size, dilation, padding, stride, out):
    check_dtype(self, "col2im_out_cpu")
    x, shape = self._array, out._array.shape
    counts = window_counts(output_size, kernel_size, dilation, padding, stride)
    columns = x.reshape(*shape[:-2], *kernel_size, *counts)
    padded, inner = with_border(out._array, padding)
    for place, under in window_elements(padded, counts, kernel_size, dilation, stride):
        under += columns[(..., *place, slice(None), slice(None))]
    out._array[...] = inner


@col2im.backward
class Col2ImBackward0:
    def self(grad, kernel_size, dilation, padding, stride):
        return im2col.call(grad, kernel_size, dilation, padding, stride)

    result = "auto_linear"
