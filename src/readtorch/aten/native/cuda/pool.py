"""What the operators of pooling have in common: views of their inputs and outputs, and memory to compute in.

In PyTorch: `aten/src/ATen/native/Pool.h`.
"""

import contextlib
import math

from readtorch.aten.native.tensor_iterator import WIDENED, not_implemented
from readtorch.c10.tensor_impl import dtype_of

from .copy import copy
from .fill_kernel import filled
from .register_dispatch_key import empty
from .rows import contiguous
from .scatter_gather_kernel import scatter_add
from .softmax import wide


def planes(t):
    """(N, C, H, W) of a tensor with or without N."""
    return t._array if t._array.ndim == 4 else t._array[None]


def volumes(t, dims=3):
    """(N, C, D, H, W) of volumes, with or without N; or of images (2 dims), as volumes of one layer."""
    array = t._array if t._array.ndim == dims + 2 else t._array[None]
    return array if dims == 3 else array[:, :, None]


def numbers_of(slide):
    return slide.kernel, slide.stride, slide.padding


def numbers_in_space(slide):
    """(kernel, stride, padding) for volumes: of a window on images one that is one layer deep."""
    if len(slide.kernel) == 3:
        return numbers_of(slide)
    return (1, *slide.kernel), (1, *slide.stride), (0, *slide.padding)


def check_floating(name, self):
    if not dtype_of(self).is_floating_point:
        raise not_implemented(name)(dtype_of(self))


def in_wide(out, row_major=False):
    """The tensor in which to compute an output: itself, or one of float32 for 16-bit floats, which are rounded at the end.

    row_major: whether it must be contiguous.
    """
    array = out._array
    return computed_in(out, WIDENED.get(array.dtype, array.dtype), array.flags.c_contiguous or not row_major)


def in_rows(out):
    """The same in the output's own dtype: contiguous."""
    return computed_in(out, out._array.dtype, out._array.flags.c_contiguous)


@contextlib.contextmanager
def computed_in(out, dtype, has_right_strides):
    array = out._array
    computed = out if dtype == array.dtype and has_right_strides else empty(array.shape, dtype)
    yield computed
    if computed is not out:
        copy(computed._array, array)


def put_back(grad_output, indices, dims, grad_input):
    """Zeros in `grad_input`, to which each gradient is added where its maximum lay."""
    with in_wide(grad_input, row_major=True) as sums:
        filled(sums, 0)
        if grad_output._array.size:
            count = math.prod(sums._array.shape[:-dims])
            rows = [contiguous(t._array).reshape(count, -1) for t in (sums, indices, wide(grad_output))]
            scatter_add(rows[0], 1, *rows[1:])
