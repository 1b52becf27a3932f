"""Padding with a constant, circular padding, and `pad`, which chooses among all kinds of padding.

In PyTorch: `aten/src/ATen/native/PadNd.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools

import numpy as np

from readtorch.aten.native_function import native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.tensor_meta import TensorMeta, in_format_of
from readtorch.c10.memory_format import dense_strides
from readtorch.c10.overflows import number_as
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, wrap

from .dispatch_stub import dispatch_stub
from .padding import FROM_SIZE, inside, pad_array, padded_shape, pairs, reflection_pad, replication_pad
from .tensor_shape.slice import slice_

# ------------------------------------------------------------------------------------------- with one number

constant_pad_nd = native_function("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")


@constant_pad_nd.meta
def constant_pad_nd_meta(self, pad, value):
    x = self._array
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * x.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(pad)}while the input has {x.ndim}dimensions."
        )
    x, wider = crop(x, pad)
    if not any(wider):
        return TensorMeta(x.shape, dtype_of(self), dense_strides(x))
    return in_format_of(self, padded_shape(x.shape, wider))


@constant_pad_nd.impl()
def constant_pad_nd_cpu(self, pad, value, out):
    x, wider = crop(self._array, pad)
    if not any(wider):
        out._array[...] = x
        return
    if value != 0 or isinstance(value, complex):  # a plain 0 fits everywhere
        value = number_as(value, dtype_of(self))
    surround(x, wider, value, out._array)


@dispatch_stub("padding_kernel", FROM_SIZE)
def surround(x, padding, value, result):
    """Write `x` to the middle of `result`, and `value` around it."""
    result[...] = value
    result[inside(x.shape, padding)] = x


def crop(x, pad):
    """`x` cropped by its negative padding, and the padding that is left."""
    if min(pad, default=0) >= 0:
        return x, pad
    for axis, left, right in reversed(pairs(pad, x.ndim)):
        start, stop = max(-left, 0), x.shape[axis] - max(-right, 0)
        if stop < start:
            raise RuntimeError("narrow(): length must be non-negative.")
        x = x[(slice(None),) * axis + (slice(start, stop),)]
    return x, [max(n, 0) for n in pad]


@constant_pad_nd.backward
class ConstantPadNdBackward0:
    def self(grad, pad):
        return constant_pad_nd.call(grad, tuple([-n for n in pad]), 0)

    def result(self_t, pad):
        return constant_pad_nd.call(self_t, pad, 0)


# ------------------------------------------------------------------------------------------------- in circles

_pad_circular = native_function("_pad_circular(Tensor self, SymInt[] pad) -> Tensor", module="nn")


@functools.lru_cache(128)
def circular(size, left, right):
    return np.arange(-left, size + right) % size


def check_circles(shape, pad):
    ndim = len(shape)
    if ndim - len(pad) // 2 not in (1, 2):
        raise RuntimeError(
            "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be equivalent to padding of "
            f"length {2 * ndim - 2} or {2 * ndim - 4} respectively but got {len(pad)}"
        )
    for axis, left, right in reversed(pairs(pad, ndim)):
        if max(left, right) > shape[axis]:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if shape[axis] + left + right < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")


def check_overlap(left, right, size):
    """`size` elements are left of a dimension; a wider border would be copied from places it covers itself."""
    # in PyTorch: an error only if both places lie in one piece of memory, else the result depends on chance
    if max(left, right) > size:
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer "
            "to a single memory location. Please clone() the tensor before performing the operation."
        )


@_pad_circular.kernel
def pad_circular_cpu(self, pad):
    check_circles(self._array.shape, pad)
    result = np.empty(padded_shape(self._array.shape, pad), self._array.dtype)
    if not result.size:
        return wrap(result)
    x, wider = crop(self._array, pad)
    for axis, left, right in pairs(wider, x.ndim):
        check_overlap(left, right, x.shape[axis])
    pad_array(x, wider, circular, result)
    return wrap(result)


@_pad_circular.compose
def pad_circular_composite(self, pad):
    """The input goes to its place in an empty tensor, then each border is copied from the far side of that tensor.

    Autograd follows the copies: a graph of slices.
    """
    shape = self._array.shape
    check_circles(shape, pad)
    out = self.new_empty(padded_shape(shape, pad))
    places = [
        (axis, left, right, max(left, 0), out._array.shape[axis] - max(right, 0))
        for axis, left, right in pairs(pad, len(shape))
    ]
    target, source = out, self
    for axis, left, right, start, stop in places:
        target = slice_.call(target, axis, start, stop, 1)
        source = slice_.call(source, axis, max(-left, 0), shape[axis] - max(-right, 0), 1)
    target.copy_(source)
    for axis, left, right, start, stop in places:
        check_overlap(left, right, stop - start)
        if left > 0:
            slice_.call(out, axis, 0, left, 1).copy_(slice_.call(out, axis, stop - left, stop, 1))
        if right > 0:
            slice_.call(out, axis, stop, stop + right, 1).copy_(slice_.call(out, axis, start, start + right, 1))
    return out


# -------------------------------------------------------------------------------------------------------- pad

_pad_enum = native_function("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor", module="nn")
pad_nd = native_function(
    'pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor', module="nn"
)
parse_pad = make_parser(packets["nn", "pad"], is_method=False)

MODES = ("reflect", "replicate", "circular", "constant")  # as numbered in PyTorch's enum


@python_binding("pad", "function", "nn")
def pad_binding(input, pad, mode="constant", value=None):
    """A layer of a network pads in every step: a list of ints goes past the parser."""
    if isinstance(input, TensorImpl) and type(pad) in (tuple, list) and {int}.issuperset(map(type, pad)):
        if type(mode) is str and (value is None or type(value) in (int, float)):
            return pad_nd.call(input, pad, mode, value)
    return parse_pad((input, pad, mode, value), {})


@_pad_enum.compose
def pad_enum_composite(self, pad, mode, value):
    return pad_composite(self, pad, MODES[mode], value)


@pad_nd.compose
def pad_composite(self, pad, mode, value):
    """Only a constant pads any number of dimensions; the others take the last 1 to 3 and leave 1 or 2 alone."""
    ndim, dims = self._array.ndim, len(pad) // 2
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if dims > ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {ndim}"
        )
    if mode == "constant":
        return constant_pad_nd.call(self, pad, 0.0 if value is None else value)
    if value is not None:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if dims not in (1, 2, 3) or ndim - dims not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "reflect":
        return reflection_pad[dims].call(self, pad)
    if mode == "replicate":
        return replication_pad[dims].call(self, pad)
    return _pad_circular.call(self, pad)
