"""numba takes its memory from our caching allocator: an External Memory Manager plug-in.

    install()                          numba.cuda.device_array and to_device now ask us

Without it numba calls the driver for each array. No run on a GPU has been recorded yet; tests give the
plug-in a context that is none.

PyTorch has no such file; RAPIDS' memory manager plugs into both in this way. Interface: "External Memory
Management (EMM) Plugin interface" in numba's documentation.
"""

import ctypes
import functools

from . import runtime
from .cuda_stream import current_stream

INTERFACE_VERSION = 1


@functools.cache
def manager_class():
    """The plug-in's class; made at the first call, as numba is not loaded before it is needed."""
    from numba import cuda
    from numba.cuda.cudadrv.driver import MemoryPointer, _SizeNotSet

    class CachingMemoryManager(cuda.GetIpcHandleMixin, cuda.HostOnlyCUDAMemoryManager):
        """Device memory from the process's caching allocator; pinned and mapped host memory as numba does
        it."""

        interface_version = INTERFACE_VERSION

        def memalloc(self, size):
            """A pointer whose last owner gives the block back."""
            device = device_of(self.context)
            allocator = runtime.allocator()
            block = allocator.malloc(device, max(size, 1), current_stream(device).handle)
            pointer = ctypes.c_void_p(block.address)
            return MemoryPointer(self.context, pointer, size, finalizer=lambda: allocator.free(block))

        def get_memory_info(self):
            free, total = runtime.driver().mem_get_info(device_of(self.context))
            return cuda.MemoryInfo(free=free, total=total)

        def initialize(self):
            """Pinned host memory is given back in batches, whose size numba derives from the device's. numba calls this each
            time that it looks up a context."""
            if self.deallocations.memory_capacity == _SizeNotSet:
                self.deallocations.memory_capacity = self.get_memory_info().total

    return CachingMemoryManager


def device_of(context):
    """The number of the device that one of numba's contexts is on."""
    return context.device.id


def install():
    """Make ours numba's memory manager. Must come before numba makes its first context."""
    from numba import cuda

    cuda.set_memory_manager(manager_class())
