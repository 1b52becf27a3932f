"""What `torch._C` tells of a tensor's memory and of its life: where they are, and when it ends.

In PyTorch: `torch/csrc/Module.cpp`; `_is_alias_of` is in `torch/csrc/jit/python/init.cpp`.
"""

import weakref

from readtorch.aten.context import context
from readtorch.c10.cow import is_copy_on_write
from readtorch.c10.tensor_impl import storage_impl


class WeakTensorRef:
    """Does not keep its tensor alive, and knows whether it is still there."""

    def __init__(self, tensor):
        self._ref = weakref.ref(tensor)

    def expired(self):
        return self._ref() is None


def storage_address(tensor):
    """A number that only tensors with the same storage share."""
    return id(storage_of(tensor))


def data_address(tensor):
    """Where the bytes of the tensor's storage begin; 0 if it has none."""
    return storage_of(tensor).data_ptr()


def storage_of(tensor):
    storage = storage_impl(tensor)
    if storage is None:
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")
    return storage


def is_cow_tensor(tensor):
    """Whether the tensor's memory may be another storage's, too, until one of them is written to: c10/cow.py."""
    return is_copy_on_write(storage_of(tensor))


def is_alias_of(tensor, other):
    """Whether two tensors share a storage."""
    return storage_of(tensor) is storage_of(other)


def get_deterministic_fill_uninitialized_memory():
    return context.fill_uninitialized_memory


set_deterministic_fill_uninitialized_memory = context.set_fill_uninitialized_memory
