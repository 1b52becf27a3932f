"""Changing a tensor's sizes or storage in place: resize_, resize_as_, set_.

In PyTorch: `aten/src/ATen/native/Resize.cpp`; `set_` in `aten/src/ATen/native/TensorShape.cpp`.
Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function, python_binding
from readtorch.aten.register_dispatch_key import only_geometry, resize
from readtorch.c10.dispatch_key import COPY_ON_WRITE
from readtorch.c10.memory_format import format_strides_of, preserve_format, suggested_format
from readtorch.c10.scalar_type import C_TYPE_NAMES, SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import (
    contiguous_strides,
    dtype_of,
    storage_impl,
    storage_nbytes,
    storage_offset,
    strides_of,
    wrap,
)

resize_ = native_function(
    "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", "method"
)
resize_as_ = native_function(
    "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    "function, method",
)


@resize_.kernel
@only_geometry
def resize_cpu(self, size, memory_format):
    """`self` gets another size; the storage grows if it must, and its elements stay where they are."""
    if min(size, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    strides = None if memory_format is None else format_strides_of(size, memory_format)
    if tuple(size) != self._array.shape or strides is not None and strides != strides_of(self):
        resize(self, tuple(size), strides)
    return self


@resize_as_.kernel
@only_geometry
def resize_as_cpu(self, the_template, memory_format):
    if memory_format is preserve_format:
        memory_format = suggested_format(the_template._array)
    return resize_cpu(self, the_template._array.shape, memory_format)


@python_binding("set_", "method")
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make `self` a view of another storage: that of a tensor, or a Storage with given sizes and strides."""
    if source is None:
        set_storage(self, storage_impl(at.empty(0, device=self.device)), 0, (0,), (1,))
    elif hasattr(source, "_array"):
        check_same_dtype(self, source)
        place = (
            (storage_offset_of(source), source._array.shape, strides_of(source))
            if size is None
            else (storage_offset, size, stride)
        )
        set_storage(self, storage_impl(source), *place)
    else:
        check_same_dtype_as_storage(self, source)
        storage = getattr(source, "_untyped_storage", source)._impl
        size = (storage.nbytes // self._array.itemsize,) if size is None else size
        set_storage(self, storage, storage_offset, size, stride)
    return self


storage_offset_of = storage_offset


def check_same_dtype(self, source):
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {C_TYPE_NAMES[dtype_of(source)]} to a tensor of type "
            f"{C_TYPE_NAMES[dtype_of(self)]}"
        )


def check_same_dtype_as_storage(self, source):
    """RuntimeError if the storage is one of elements of another dtype."""
    if hasattr(source, "_untyped_storage") and source.dtype is not dtype_of(self):
        raise RuntimeError(
            f"Expected a Storage of type {C_TYPE_NAMES[dtype_of(self)]} or an UntypedStorage, but got type "
            f"{SCALAR_TYPE_NAMES[source.dtype]} for argument 1 'storage'"
        )


def set_storage(self, storage, offset, size, stride):
    """Give `self` the storage, offset, sizes and strides; the storage grows if it is too small."""
    if storage.device != self.device:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{self.device}" to a storage on different device '
            f'"{storage.device}".  This is no longer allowed; the devices must match.'
        )
    stride = stride or contiguous_strides(size)
    needed = storage_nbytes(size, stride, self._array.itemsize, offset)
    if needed > storage.nbytes:
        storage.resize(needed)
    self._array = storage.as_strided(self._array.dtype, tuple(size), stride, offset)
    self._storage_impl = storage
    self._keys |= storage.keys & COPY_ON_WRITE
    self._counter[0] += 1


def check_in_bounds(storage, size, stride, offset, itemsize):
    """RuntimeError unless a tensor of these sizes and strides fits into the storage."""
    needed = storage_nbytes(size, stride, itemsize, offset)
    if needed > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {storage.nbytes}"
        )


is_set_to = native_function("is_set_to(Tensor self, Tensor tensor) -> bool", "method")


@is_set_to.kernel
@only_geometry
def is_set_to_cpu(self, tensor):
    """Whether two tensors have the same storage, offset, sizes and strides."""
    return (
        storage_impl(self) is storage_impl(tensor)
        and storage_offset(self) == storage_offset(tensor)
        and self._array.shape == tensor._array.shape
        and strides_of(self) == strides_of(tensor)
    )


# ------------------------------------------------------------------------------------- questions as functions

_shape_as_tensor = native_function("_shape_as_tensor(Tensor self) -> Tensor")


@_shape_as_tensor.compose
def shape_as_tensor(self):
    """The sizes as a tensor, on the CPU: a tracer keeps what is computed with it."""
    return wrap(np.array(self._array.shape, np.int64))


@python_binding("numel", "function")
def numel(input):
    """How many elements a tensor has."""
    if not hasattr(input, "_array"):
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input._array.size
