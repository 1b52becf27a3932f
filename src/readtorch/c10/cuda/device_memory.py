"""The bytes behind tensors on a device: a block of the caching allocator, seen through NumPy.

In PyTorch: the `DataPtr` that `CUDACachingAllocator::allocate` returns, which gives the block back when it goes.
Explained in the chapter "The caching allocator".
"""
import weakref

import numpy as np

from ..dispatch_key import SIMULATED_CUDA_TENSOR
from ..storage_impl import StorageImpl, address_of, owner_of
from ..tensor_impl import wrap
from . import runtime
from .stream import current_stream


class DeviceMemory:
    """Lends a block of the allocator to NumPy, and frees it when no array looks at it any more.

    Note [ Arrays over device memory ]
    Sizes, strides and offset of every tensor live in a NumPy array, also those of a tensor on a device: views are then
    made by the same code. Such an array's address is that of the simulated device's memory in the host. Who wants to
    read or write elements must be a kernel of that device: the dispatcher sees to that, as the tensor carries its key.
    """

    __slots__ = ("allocator", "block", "host", "storage", "device", "__array_interface__", "__weakref__")

    def __init__(self, storage, nbytes):
        self.device = storage.device
        index = self.device.index
        self.allocator = runtime.allocator()  # it may be replaced while the block is out
        self.block = self.allocator.malloc(index, nbytes, current_stream(index).handle)
        self.host = runtime.driver().host(self.block.address, nbytes)  # keeps it mapped as long as it is lent
        self.storage = weakref.ref(storage)
        self.__array_interface__ = {"data": (address_of(self.host), False), "shape": (nbytes,), "typestr": "|u1",
                                    "version": 3}

    def __del__(self):
        if hasattr(self, "block"):  # there is none if there was no memory left
            self.allocator.free(self.block)


class CUDAStorageImpl(StorageImpl):
    """A run of bytes on a device, which the caching allocator lends. OutOfMemoryError if it has none."""

    __slots__ = ("memory",)
    keys = SIMULATED_CUDA_TENSOR

    def __init__(self, device, nbytes):
        super().__init__(None, device)
        self._lend(nbytes)

    def _lend(self, nbytes):
        self.memory = DeviceMemory(self, nbytes) if nbytes else None
        self.buffer = np.asarray(self.memory) if nbytes else np.empty(0, np.uint8)

    @classmethod
    def over(cls, memory):
        """A new storage over memory whose first storage is gone."""
        storage = cls(memory.device, 0)
        storage.memory, storage.buffer = memory, np.asarray(memory)
        memory.storage = weakref.ref(storage)
        return storage

    def data_ptr(self):
        """The address of the first byte on the device."""
        return self.memory.block.address if self.memory else 0

    def resize(self, nbytes):
        kept, keeper = self.buffer, self.memory  # the old block goes back when its bytes have been copied
        self._lend(nbytes)
        shared = min(nbytes, kept.nbytes)
        self.buffer[:shared] = kept[:shared]
        del keeper

    def __reduce__(self):
        return _rebuild, (self.device, self.buffer.tobytes())

    def copy(self):
        copied = CUDAStorageImpl(self.device, self.nbytes)
        copied.buffer[:] = self.buffer
        return copied


def _rebuild(device, data):
    """A storage on `device` from its pickled bytes."""
    storage = CUDAStorageImpl(device, len(data))
    storage.buffer[:] = np.frombuffer(data, np.uint8)
    return storage


def tensor_on(device, array):
    """A new tensor on `device` with the elements of a host array, laid out in the same way."""
    if not array.size:
        storage, target = CUDAStorageImpl(device, 0), array
    else:
        reach = sum([(n - 1) * s for n, s in zip(array.shape, array.strides)]) + array.itemsize
        storage = CUDAStorageImpl(device, reach)
        target = np.ndarray(array.shape, array.dtype, storage.buffer, 0, array.strides)
        np.copyto(target, array)
    return _over(storage, target)


def tensor_within(array):
    """A tensor over an array that looks at device memory already; None if `array` looks at host memory."""
    memory = owner_of(array).base
    if type(memory) is not DeviceMemory:
        return None
    return _over(memory.storage() or CUDAStorageImpl.over(memory), array)


def _over(storage, array):
    t = wrap(array)
    t._keys = storage.keys
    t._storage_impl = storage
    return t
