"""What a shape rule says of an output: sizes, dtype and strides, before there is any memory.

    @silu.meta
    def silu_meta(self):
        return like(self)                     # shape, dtype and order of dimensions of `self`

    @mm.meta
    def mm_meta(self, mat2): ...; return TensorMeta((n, m), dtype_of(self))

In PyTorch: `aten/src/ATen/TensorMeta.h`; a shape rule calls `set_output_strided` there, where ours returns.
Explained in the chapter "One operator call".
"""

import functools
import math

from readtorch.c10.memory_format import (
    contiguous_format,
    dense_strides,
    fastest_first,
    format_strides,
    strides_in_order,
    suggested_format,
)
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of, storage_nbytes

from .expand_utils import broadcast_shape, broadcast_strides


class TensorMeta:
    """An output to be: its shape, its dtype, and its strides in elements (None: row by row, without gaps)."""

    __slots__ = ("shape", "dtype", "strides")

    def __init__(self, shape, dtype, strides=None):
        self.shape = shape
        self.dtype = dtype
        self.strides = strides

    def __repr__(self):
        return f"TensorMeta({self.shape}, {self.dtype}, {self.strides})"


def like(t, dtype=None):
    """An output in the likeness of `t`: its shape, its strides if it has no gaps, else none in the same order."""
    array = t._array
    strides = None if array.flags.c_contiguous else dense_strides(array)
    return TensorMeta(array.shape, dtype or dtype_of(t), strides)


def in_format_of(t, shape, dtype=None):
    """An output of another shape in the memory format (contiguous or channels-last) of `t`."""
    array = t._array
    # A size of 1 leaves open what NumPy calls contiguous: its stride may say channels last.
    is_plain = array.flags.c_contiguous and 1 not in array.shape or suggested_format(array) is contiguous_format
    strides = None if is_plain else format_strides(array, shape)
    return TensorMeta(tuple(shape), dtype or dtype_of(t), strides)


def broadcast(dtype, *tensors):
    """The output of a pointwise operator. RuntimeError if the shapes do not broadcast."""
    arrays = [t._array for t in tensors]
    shape = arrays[0].shape if len(arrays) == 1 else broadcast_shape(*[a.shape for a in arrays])
    return TensorMeta(shape, dtype, pointwise_strides(shape, arrays))


def pointwise_strides(shape, arrays):
    """The strides of a loop's output over `arrays`, broadcast to `shape`: in the order in which theirs lie.

    In PyTorch: `TensorIteratorBase::reorder_dimensions` and `allocate_or_resize_outputs`.
    """
    arrays = [a for a in arrays if a.ndim]
    for a in arrays:
        if not a.flags.c_contiguous:
            break
    else:
        return None
    strides = [broadcast_strides(a, shape) for a in arrays]
    return strides_in_order(shape, fastest_first(shape, *strides))


def remembered(function):
    """Decorator: what follows from sizes alone is worked out once. An operator's shape rule and its kernel ask for the same.

    In PyTorch: TORCH_PRECOMPUTE_META_FUNC, whose structure of numbers goes from the one to the other.
    """
    known = functools.lru_cache(64)(function)

    def ask(*arguments):
        try:
            return known(*arguments)
        except TypeError:  # lists, which TorchScript passes, or sizes that are left open
            return function(*[tuple(a) if isinstance(a, list) else a for a in arguments])

    return functools.update_wrapper(ask, function)


def reach_of(meta):
    """How many bytes such an output takes. RuntimeError if that is more than an address can tell apart."""
    shape = meta.shape
    if 0 in shape:
        return 0
    strides = contiguous_strides(shape) if meta.strides is None else meta.strides
    nbytes = storage_nbytes(shape, strides, meta.dtype.numpy.itemsize)
    if nbytes > MOST or math.prod(shape) > MOST:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return nbytes


MOST = 2**63 - 1
