"""What the operators of pooling have in common: views of their inputs, results in their memory format and dtype.

In PyTorch: `aten/src/ATen/native/Pool.h`.
"""

import math

from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.memory_format import contiguous_format, format_strides, suggested_format
from readtorch.c10.tensor_impl import dtype_of

from .fill_kernel import filled
from .reduce_ops import LONG, converted
from .register_dispatch_key import empty
from .rows import contiguous
from .scatter_gather_kernel import scatter_add
from .softmax import wide


def planes(t):
    """(N, C, H, W) of an input with or without N."""
    return t._array if t._array.ndim == 4 else t._array[None]


def empty_like_format(t, shape):
    """A new tensor with the dtype and the memory format of `t`."""
    return empty(shape, t._array.dtype, format_strides(t._array, shape))


def numbers_of(slide):
    return slide.kernel, slide.stride, slide.padding


def volumes(t):
    """(N, C, D, H, W) of a tensor with or without N."""
    return t._array if t._array.ndim == 5 else t._array[None]


def empty_pair(x, like, sizes):
    """New values, in the dtype of `x`, and indices, in the memory format of `like`."""
    strides = format_strides(like._array, sizes)
    return empty(sizes, x._array.dtype, strides), empty(sizes, LONG, strides)


def check_floating(name, self):
    if not dtype_of(self).is_floating_point:
        raise not_implemented(name)(dtype_of(self))


def in_type_of(self, values):
    return converted(values, self._array.dtype)


def put_back(grad_output, self, indices, dims):
    """Zeros in the likeness of `self`, to which each gradient is added where its maximum lay."""
    x, grad = self._array, wide(grad_output)
    result = filled(empty(x.shape, grad._array.dtype), 0)
    if grad._array.size:
        planes = math.prod(x.shape[:-dims])
        rows = [contiguous(t._array).reshape(planes, -1) for t in (result, indices, grad)]
        scatter_add(rows[0], 1, *rows[1:])
    return in_format_of(self, result)


def in_format_of(self, result):
    """`result` with the dtype and the memory format of `self`."""
    suggested = suggested_format(self._array)
    result = in_type_of(self, result)
    return result if suggested is contiguous_format else result.contiguous(memory_format=suggested)
