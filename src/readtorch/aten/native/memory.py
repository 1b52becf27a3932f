"""Pinned (page-locked) host memory, from which a device can copy while the host does something else.

A simulated device needs no such thing; its pinned memory only knows that it is.

In PyTorch: `aten/src/ATen/native/Memory.cpp`; the memory comes from `aten/src/ATen/core/CachingHostAllocator.h`.
Explained in the chapter "Dataset, Sampler, DataLoader".
"""

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function, python_binding
from readtorch.aten.register_dispatch_key import only_geometry
from readtorch.c10.device import backend_keys, no_cuda
from readtorch.c10.storage_impl import StorageImpl
from readtorch.c10.tensor_impl import storage_impl, storage_offset, strides_of


class PinnedStorageImpl(StorageImpl):
    """Page-locked bytes."""

    __slots__ = ()
    pinned = True


is_pinned_operator = native_function("is_pinned(Tensor self, Device? device=None) -> bool", "")
pin_memory_operator = native_function("_pin_memory(Tensor self, Device? device=None) -> Tensor", "")


@is_pinned_operator.kernel
@only_geometry
def is_pinned_cpu(self, device):
    return self._storage_impl is not None and self._storage_impl.pinned


@pin_memory_operator.kernel
def pin_memory_cpu(self, device):
    copy = at.empty_strided(self._array.shape, strides_of(self), dtype=self.dtype)
    pinned = PinnedStorageImpl(storage_impl(copy).buffer)
    copy._array = pinned.as_strided(copy._array.dtype, copy._array.shape, strides_of(copy), storage_offset(copy))
    copy._storage_impl = pinned
    return copy.copy_(self)


@python_binding("is_pinned", "method")
def is_pinned(self, device=None):
    """Whether the memory is locked for copies to an accelerator."""
    return self.device.type == "cpu" and is_pinned_cpu(self, device)


@python_binding("pin_memory", "method")
def pin_memory(self, device=None):
    """`self` if its memory is pinned, else a copy in pinned memory. RuntimeError if there is no accelerator."""
    if backend_keys["cuda"] is no_cuda:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if self.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    return self if is_pinned(self) else pin_memory_operator.call(self, None)
