"""Sizes, strides and offset of a tensor without its data.

In PyTorch: `aten/src/ATen/TensorGeometry.h`.
"""

from .dispatch_key import MATH_BITS
from .tensor_impl import storage_offset, strides_of


class TensorGeometry:
    """What a graph node saves of a tensor when it needs only its layout in memory."""

    __slots__ = ("sizes", "strides", "offset", "dtype", "bits")

    def __init__(self, t):
        self.sizes, self.strides, self.offset = t._array.shape, strides_of(t), storage_offset(t)
        self.dtype = t._array.dtype
        self.bits = t._keys & MATH_BITS  # conjugated or negated: whether its elements are what lies in memory
