"""Pinned (page-locked) host memory, from which a device can copy while the host does something else.

In PyTorch: `aten/src/ATen/native/Memory.cpp`; the memory comes from `aten/src/ATen/core/CachingHostAllocator.h`, here
`aten/caching_host_allocator.py`. Explained in the chapter "Dataset, Sampler, DataLoader".
"""

import warnings

from readtorch.aten.caching_host_allocator import is_pinned_pointer, pinned_storage
from readtorch.aten.native_function import native_function, python_binding
from readtorch.aten.register_dispatch_key import only_geometry
from readtorch.c10.device import has_accelerator
from readtorch.c10.tensor_impl import dtype_of, legacy_type_name, storage_nbytes, strides_of, wrap

is_pinned_operator = native_function("is_pinned(Tensor self, Device? device=None) -> bool", "")
pin_memory_operator = native_function("_pin_memory(Tensor self, Device? device=None) -> Tensor", "")


@is_pinned_operator.kernel
@only_geometry
def is_pinned_cpu(self, device):
    return is_pinned_pointer(self._array)


@pin_memory_operator.kernel
def pin_memory_cpu(self, device):
    return pinned_tensor(self._array.shape, strides_of(self), dtype_of(self)).copy_(self)


def pinned_tensor(shape, strides, dtype):
    """A new tensor in pinned memory; strides in elements."""
    storage = pinned_storage(storage_nbytes(shape, strides, dtype.numpy.itemsize))
    result = wrap(storage.as_strided(dtype.numpy, shape, strides, 0))
    result._storage_impl = storage
    return result


@python_binding("is_pinned", "method")
def is_pinned(self, device=None):
    """Whether the memory is locked for copies to an accelerator."""
    warn_of_device("is_pinned", device)
    return self.device.type == "cpu" and is_pinned_cpu(self, device)


@python_binding("pin_memory", "method")
def pin_memory(self, device=None):
    """`self` if its memory is pinned, else a copy in pinned memory. RuntimeError if there is no accelerator."""
    warn_of_device("pin_memory", device)
    if self.device.type != "cpu":
        raise RuntimeError(f"cannot pin '{legacy_type_name(self)}' only dense CPU tensors can be pinned")
    if not has_accelerator():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return self if is_pinned(self) else pin_memory_operator.call(self, None)


def warn_of_device(name, device):
    if device is not None:
        warnings.warn(
            f"The argument 'device' of Tensor.{name}() is deprecated. Please do not pass this argument.",
            DeprecationWarning,
            stacklevel=3,
        )
