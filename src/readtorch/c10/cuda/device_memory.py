"""The bytes behind tensors on a device: a block of the caching allocator, seen through NumPy.

In PyTorch: `aten/src/ATen/cuda/EmptyTensor.cpp`, and the `DataPtr` of `c10/core/Allocator.h` that
`CUDACachingAllocator::allocate` returns, which gives the block back when it is destroyed. Explained in the chapter "The
caching allocator".
"""

import weakref
from typing import NamedTuple

import numpy as np

from readtorch.c10.device import cuda_device
from readtorch.c10.dispatch_key import CUDA_TENSOR, SIMULATED_CUDA_TENSOR
from readtorch.c10.storage_impl import ReturnableStorageImpl, StorageImpl, address_of, owner_of
from readtorch.c10.tensor_impl import contiguous_strides, storage_nbytes, wrap

from . import runtime
from .cuda_graphs_c10_utils import current_stream_capture_id
from .cuda_stream import current_stream


class DeviceMemory:
    """A block of the allocator as memory that NumPy can use; freed when no array looks at it any more.

    Note [ Arrays over device memory ]
    Sizes, strides and offset of every tensor live in a NumPy array, also those of a tensor on a device: views
    are then made by the same code. Such an array's address is that of the device's memory, or of the host
    memory behind it if the device is simulated. Only kernels of that device and copies may read or write
    elements: the dispatcher ensures it, as the tensor carries the device's key.
    """

    __slots__ = ("allocator", "block", "host", "storage", "device", "__array_interface__", "__weakref__")

    def __init__(self, storage, nbytes):
        self.device = storage.device
        index = self.device.index
        self.allocator = runtime.allocator()  # it may be replaced while the block is in use
        self.block = self.allocator.malloc(index, nbytes, current_stream(index).handle)
        self.storage = weakref.ref(storage)
        self._look(nbytes)

    @classmethod
    def foreign(cls, device, address, nbytes, owner):
        """Memory that another library has allocated, and that `owner` keeps."""
        self = cls.__new__(cls)
        self.device, self.allocator, self.block = device, ForeignAllocator, ForeignBlock(address, owner)
        self._look(nbytes)
        return self

    def _look(self, nbytes):
        self.host = runtime.driver().window(self.block.address, nbytes)  # keeps it mapped as long as it is used
        self.__array_interface__ = {
            "data": (address_of(self.host), False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def __del__(self):
        if hasattr(self, "block"):  # there is none if there was no memory left
            self.allocator.free(self.block)


class ForeignBlock(NamedTuple):
    """What has a block's place for memory of another library."""

    address: int
    owner: object
    pool: None = None  # so it is none of the allocator's


class ForeignAllocator:
    """What has the allocator's place for it."""

    @staticmethod
    def free(block):
        """The owner gives the memory back when the last reference to it goes."""


class CUDAStorageImpl(StorageImpl):
    """A run of bytes on a device, from the caching allocator. OutOfMemoryError if it has none."""

    __slots__ = ("memory",)
    keys = CUDA_TENSOR

    def __init__(self, device, nbytes):
        super().__init__(None, device)
        self._allocate(nbytes)

    def _allocate(self, nbytes):
        self.memory = DeviceMemory(self, nbytes) if nbytes else None
        self.buffer = np.asarray(self.memory) if nbytes else np.empty(0, np.uint8)

    @classmethod
    def over(cls, memory):
        """A new storage over memory whose first storage is gone."""
        storage = new_storage(memory.device, 0)
        storage.memory, storage.buffer = memory, np.asarray(memory)
        memory.storage = weakref.ref(storage)
        return storage

    def data_ptr(self):
        """The address of the first byte on the device."""
        return self.memory.block.address if self.memory else 0

    def host_array(self, array):
        return fetched(self.device, array)

    def host_bytes(self):
        return fetched(self.device, self.buffer)

    def resize(self, nbytes):
        kept, keeper = self.buffer, self.memory  # the old block goes back when its bytes have been copied
        self._allocate(nbytes)
        copy_bytes(self.device, self.buffer, kept, min(nbytes, kept.nbytes))
        del keeper

    def __reduce__(self):
        return _rebuild, (self.device, fetched(self.device, self.buffer).tobytes())

    def copy(self):
        copied = new_storage(self.device, self.nbytes)
        copy_bytes(self.device, copied.buffer, self.buffer, self.nbytes)
        return copied


class SimulatedCUDAStorageImpl(CUDAStorageImpl):
    """On a simulated device that computes with the CPU's kernels: Note [ Simulated devices ]."""

    __slots__ = ()
    keys = SIMULATED_CUDA_TENSOR

    def host_array(self, array):
        """The array itself, for its elements lie in host memory; while a graph is captured there is nothing to see yet."""
        if current_stream_capture_id(self.device.index) is not None:
            runtime.driver().stream_synchronize(self.device.index, current_stream(self.device.index).handle)
        return array


class ReturnableCUDAStorageImpl(ReturnableStorageImpl):
    """The same on a simulated device: its block of the allocator goes back and comes again; the address may be another one then.

    What the elements are is the host's matter: Note [ Memory that comes back to the same place ].
    """

    __slots__ = ("allocator_of_block", "block")
    keys = SIMULATED_CUDA_TENSOR

    def __init__(self, device, nbytes):
        super().__init__(nbytes, device)
        self.allocator_of_block, self.block = runtime.allocator(), None
        self._take(nbytes)

    def _take(self, nbytes):
        if nbytes:
            index = self.device.index
            self.block = self.allocator_of_block.malloc(index, nbytes, current_stream(index).handle)

    def resize(self, nbytes):
        if self.block is not None:
            self.allocator_of_block.free(self.block)
            self.block = None
        super().resize(nbytes)
        self._take(nbytes)

    def data_ptr(self):
        return self.block.address if self.block is not None else 0

    def __del__(self):
        if getattr(self, "block", None) is not None:
            self.allocator_of_block.free(self.block)
        super().__del__()


def empty_returnable(device, count, numpy_dtype):
    """A one-dimensional tensor whose storage gives its memory back: on the CPU or a simulated device that has no kernels."""
    nbytes = count * numpy_dtype.itemsize
    storage = ReturnableStorageImpl(nbytes) if device.type == "cpu" else ReturnableCUDAStorageImpl(device, nbytes)
    return _over(storage, storage.as_strided(numpy_dtype, (count,), (1,), 0))


def new_storage(device, nbytes):
    """Memory on a device of the process's driver."""
    return (CUDAStorageImpl if runtime.driver().runs_kernels else SimulatedCUDAStorageImpl)(device, nbytes)


def _rebuild(device, data):
    """A storage on `device` from its pickled bytes."""
    storage = new_storage(device, len(data))
    copy_bytes(device, storage.buffer, np.frombuffer(data, np.uint8), len(data))
    return storage


# ---------------------------------------------------------------------------------------------------- copies


def copy_bytes(device, destination, source, nbytes, wait=False):
    """Copy the first `nbytes` of an array to another's, on the device's current stream. Either may be in host
    memory.

    wait: until it is done.
    """
    if nbytes:
        for array in (destination, source):
            check_copy_in_capture(device.index, array)
        stream = current_stream(device.index).handle
        runtime.driver().copy(device.index, stream, address_of(destination), address_of(source), nbytes)
        if wait:
            runtime.driver().stream_synchronize(device.index, stream)


def check_copy_in_capture(index, array):
    """RuntimeError if the device's current stream captures a graph and the array is in host memory that is not pinned: nobody
    knows what will be there when the graph is replayed."""
    if current_stream_capture_id(index) is None or type(owner_of(array).base) is DeviceMemory:
        return
    if not runtime.driver().is_host_pinned(address_of(owner_of(array))):
        raise RuntimeError(
            "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned. Please use "
            "tensor.pin_memory() or allocate the tensor with pin_memory=True."
        )


def reach_of(array):
    """How many bytes lie between an array's beginning and its end."""
    if not array.size:
        return 0
    return sum([(n - 1) * s for n, s in zip(array.shape, array.strides)]) + array.itemsize


def fetched(device, array, wait=True):
    """A host array with the elements of one over device memory, laid out in the same way."""
    if wait and current_stream_capture_id(device.index) is not None:  # for the host would have to wait
        runtime.driver().stream_synchronize(device.index, current_stream(device.index).handle)
    memory = np.empty(reach_of(array), np.uint8)
    copy_bytes(device, memory, array, memory.nbytes, wait)
    return (
        np.ndarray(array.shape, array.dtype, memory, 0, array.strides)
        if array.size
        else np.empty(array.shape, array.dtype)
    )


# --------------------------------------------------------------------------------------------------- tensors


def tensor_on(device, array):
    """A new tensor on `device` with the elements of a host array, laid out in the same way."""
    reach = reach_of(array)
    storage = new_storage(device, reach)
    if not array.size:
        return _over(storage, array)
    staged = array
    if reach != array.nbytes:  # elements have gaps between them, or overlap
        staged = np.ndarray(array.shape, array.dtype, np.zeros(reach, np.uint8), 0, array.strides)
        np.copyto(staged, array)
    copy_bytes(device, storage.buffer, staged, reach, wait=staged is not array)
    return _over(storage, np.ndarray(array.shape, array.dtype, storage.buffer, 0, array.strides))


def empty_on(device, shape, numpy_dtype, strides=None):
    """A new tensor with whatever is in its memory. strides: in elements; by default those of a contiguous
    tensor."""
    shape = tuple(shape)
    strides = contiguous_strides(shape) if strides is None else strides
    storage = new_storage(device, storage_nbytes(shape, strides, numpy_dtype.itemsize))
    return _over(storage, storage.as_strided(numpy_dtype, shape, strides, 0))


def tensor_over(address, numpy_dtype, shape, strides, owner):
    """A tensor over memory of a device that another library has allocated; strides in elements. RuntimeError if no device knows it.

    In PyTorch: `at::from_blob`.
    """
    index = runtime.driver().device_of(address)
    if index is None:
        raise RuntimeError("The specified pointer resides on host memory and is not registered with any CUDA device.")
    nbytes = storage_nbytes(shape, strides, numpy_dtype.itemsize)
    storage = CUDAStorageImpl.over(DeviceMemory.foreign(cuda_device(index), address, nbytes, owner))
    storage.resizable = False
    return _over(storage, storage.as_strided(numpy_dtype, tuple(shape), strides, 0))


def device_array(index, shape, dtype):
    """Memory for a kernel's own use, on the device of that number."""
    shape = (shape,) if isinstance(shape, int) else shape
    return empty_on(cuda_device(index), shape, np.dtype(dtype))._array


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
