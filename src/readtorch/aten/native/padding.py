"""Padding by reflection (the mirror image) and by replication (the last element).

In PyTorch: `aten/src/ATen/native/Padding.h`, `aten/src/ATen/native/ReflectionPad.cpp`,
`aten/src/ATen/native/ReplicationPadding.cpp`, `aten/src/ATen/native/cpu/PaddingKernel.cpp`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import in_format_of
from readtorch.c10.tensor_impl import dtype_of

from .dispatch_stub import dispatch_stub
from .tensor_iterator import not_implemented

FROM_SIZE = 4096  # fewer elements are not worth loading the compiler for

# Note [ Pairs of padding ]
#
# `padding` names dimensions from the last one: (left, right, top, bottom, front, back). A pair may be
# negative: it crops. Padding is done one dimension at a time, and a mode is defined by the index in the input
# of each element of the result, its *source*:
#
#     reflection   2 1 | 0 1 2 3 | 2 1
#     replication  0 0 | 0 1 2 3 | 3 3
#     circular     2 3 | 0 1 2 3 | 0 1


@functools.lru_cache(128)
def mirrored(size, left, right):
    places = np.abs(np.arange(-left, size + right))
    return np.where(places < size, places, 2 * (size - 1) - places)


@functools.lru_cache(128)
def nearest(size, left, right):
    return np.arange(-left, size + right).clip(0, size - 1)


def pairs(padding, ndim):
    """(axis, left, right) for each padded dimension, the last one first."""
    return [(ndim - 1 - i, padding[2 * i], padding[2 * i + 1]) for i in range(len(padding) // 2)]


def padded_shape(shape, padding):
    sizes = list(shape)
    for axis, left, right in pairs(padding, len(sizes)):
        sizes[axis] += left + right
    return tuple(sizes)


def inside(shape, padding):
    """The part of the result that holds the input, if no padding is negative."""
    places = [slice(None)] * len(shape)
    for axis, left, _ in pairs(padding, len(shape)):
        places[axis] = slice(left, left + shape[axis])
    return (..., *places)  # so that a tensor without dimensions remains an array


@dispatch_stub("padding_kernel", FROM_SIZE)
def pad_array(x, padding, sources, result):
    """Write `x` and what pads it into `result`."""
    if min(padding) < 0:
        for axis, left, right in pairs(padding, x.ndim):
            x = x.take(sources(x.shape[axis], left, right), axis)
        result[...] = x
        return
    result[inside(x.shape, padding)] = x
    for axis, left, right in pairs(padding, x.ndim):
        end = left + x.shape[axis]
        source = sources(x.shape[axis], left, right) + left
        lines = result.swapaxes(0, axis)
        lines[:left] = lines[source[:left]]
        lines[end:] = lines[source[end:]]


def unpad_array(grad, padding, sources, result):
    """The adjoint of `pad_array`: each element of `result` gets the sum over the elements that it was copied to."""
    *others, (axis, left, right) = pairs(padding, result.ndim)
    for other, before, after in others:
        size = result.shape[other]
        sums = np.empty((*grad.shape[:other], size, *grad.shape[other + 1 :]), grad.dtype)
        grad = unpad_axis(grad, other, before, sources(size, before, after), sums)
    unpad_axis(grad, axis, left, sources(result.shape[axis], left, right), result)


def unpad_axis(grad, axis, left, source, result):
    result[...] = 0
    lines, sums = grad.swapaxes(0, axis), result.swapaxes(0, axis)
    is_inside = source == np.arange(-left, len(source) - left)
    first, count = is_inside.argmax(), np.count_nonzero(is_inside)
    sums[source[first] : source[first] + count] = lines[first : first + count]
    for place in np.flatnonzero(~is_inside):
        sums[source[place]] += lines[place]
    return result


# ----------------------------------------------------------------------------------------------------- checks


def check_input(x, padding, dims, is_reflection):
    """`dims` dimensions are to be padded, after the channels and perhaps the batch."""
    if len(padding) != 2 * dims:
        but = f", but got: {len(padding)}" if is_reflection else ""
        raise RuntimeError(f"padding size is expected to be {2 * dims}{but}")
    is_batch = x.ndim == dims + 2
    if not is_batch and x.ndim != dims + 1 or 0 in x.shape[is_batch:]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and "
            f"other non-zero dimensions for input, but got: {list(x.shape)}"
        )


def check_reflection(x, padding):
    """A reflection cannot reach past the other edge."""
    for number, (axis, left, right) in enumerate(pairs(padding, x.ndim)):
        if left >= x.shape[axis] or right >= x.shape[axis]:
            raise RuntimeError(
                f"Argument #{4 + 2 * number}: Padding size should be less than the corresponding input dimension, but "
                f"got: padding ({left}, {right}) at dimension {axis} of input {list(x.shape)}"
            )


def check_output(x, padding, dims, name):
    """The result's shape. PyTorch refuses one in which every padded dimension is empty; its words differ a little."""
    shape = padded_shape(x.shape, padding)
    if max(shape[-dims:]) < 1:
        have, get = (
            ", ".join([f"{name}: {n}" for name, n in zip("DHW"[-dims:], sizes[-dims:])]) for sizes in (x.shape, shape)
        )
        have, get = have.replace(", H", " H"), get.replace(",", "")
        raise RuntimeError(
            f"input ({have}{' ' if name == 'replication_pad2d' else ''}) is too small. Calculated output {get}"
        )
    if min(shape) < 0:
        if name == "reflection_pad2d":
            raise RuntimeError("numel: integer multiplication overflow")
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def check_gradient(grad, shape, padding):
    for number, (axis, left, right) in enumerate(pairs(padding, len(shape))):
        expected = shape[axis] + left + right
        if grad.shape[axis] != expected:
            label = ("width", "height", "depth")[number]
            raise RuntimeError(f"gradOutput {label} unexpected. Expected: {expected}, Got: {grad.shape[axis]}")


# -------------------------------------------------------------------------------------------------- operators


def declare(name, node, dims, sources):
    """The operator that pads `dims` dimensions, its backward, and the backward of that."""
    padding_type = f"SymInt[{2 * dims}] padding"
    operator = native_function(f"{name}(Tensor self, {padding_type}) -> Tensor", module="nn", out=True)
    backward = native_function(
        f"{name}_backward(Tensor grad_output, Tensor self, {padding_type}) -> Tensor", "", module="nn"
    )
    no_such_type = not_implemented(name)
    is_reflection = sources is mirrored

    @operator.meta
    def pad_meta(self, padding):
        x = self._array
        check_input(x, padding, dims, is_reflection)
        if is_reflection:
            check_reflection(x, padding)
        return in_format_of(self, check_output(x, padding, dims, name))

    @operator.impl()
    def pad_cpu(self, padding, out):
        if self._array.dtype.kind == "b":
            raise no_such_type(dtype_of(self))
        pad_array(self._array, padding, sources, out._array)

    @backward.meta
    def unpad_meta(grad_output, self, padding):
        check_gradient(grad_output._array, self._array.shape, padding)
        return in_format_of(self, self._array.shape, dtype_of(grad_output))

    @backward.impl()
    def unpad_cpu(grad_output, self, padding, grad_input):
        if grad_output._array.size:
            unpad_array(grad_output._array, padding, sources, grad_input._array)
        else:
            grad_input._array[...] = 0

    @operator.backward
    class PadBackward:
        def self(grad, self, padding):
            return backward.call(grad, self, padding)

        result = "auto_linear"

    @backward.backward
    class PadBackwardBackward:
        def grad_output(grad, padding):
            return operator.call(grad, padding)

        def self(grad):
            return at.zeros_like(grad)

        def result(grad_output_t, self_p, padding):
            return backward.call(grad_output_t, self_p, padding)

    PadBackward.__name__ = f"{node}{dims}DBackward0"
    PadBackwardBackward.__name__ = f"{node}{dims}DBackwardBackward0"
    return operator


reflection_pad = {dims: declare(f"reflection_pad{dims}d", "ReflectionPad", dims, mirrored) for dims in (1, 2, 3)}
replication_pad = {dims: declare(f"replication_pad{dims}d", "ReplicationPad", dims, nearest) for dims in (1, 2, 3)}
