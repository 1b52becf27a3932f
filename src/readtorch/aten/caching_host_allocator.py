"""Page-locked host memory, kept for reuse: the allocator behind `pin_memory`.

Note [ A caching allocator for the host ]
To lock pages is slow, and to unlock them makes the device wait for all that it has to do. So a block that is freed goes
to a list and is handed out again. Sizes are rounded up to powers of two, and each power has its list: a block is taken
whole or not at all, nothing is split or merged (Note [ A split block is no segment ] needs no counterpart here).

A copy that nobody waits for may still be reading a block when the last tensor over it dies. Whoever puts such a copy on
a stream therefore says so (`record_event`), and `free` puts an event on every stream that used the block. The block waits
in a queue until the devices have reached all of them; the queue is looked through whenever memory is asked for. So the
host never waits, and never overwrites what a device has not read.

While a graph is captured nothing runs and no event may be asked. A block that a captured copy uses is never handed out again:
each replay uses its address.

Simulated devices have the same allocator: what it hands out is then plain host memory, and when an event is reached their
clock decides (Note [ Virtual time ]).

In PyTorch: `aten/src/ATen/core/CachingHostAllocator.h`, `aten/src/ATen/cuda/CachingHostAllocator.cpp`. There a capture
has a pool of its own, which ends with the graph, and with `pinned_use_background_threads` a thread looks through the queue.
"""

import threading
import warnings
from collections import deque

import numpy as np

from readtorch.c10.caching_device_allocator import DurationStat, Stat
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_exception import AcceleratorError, MemoryAllocationError
from readtorch.c10.cuda.cuda_graphs_c10_utils import current_stream_capture_id
from readtorch.c10.cuda.sizes import MIB
from readtorch.c10.storage_impl import StorageImpl, address_of, owner_of

PAGE = 4096
MAX_SIZE_INDEX = 64  # lists of free blocks: one for each power of two
COUNTED = ("allocations", "allocated_bytes", "active_requests", "active_bytes")


class HostBlock:
    """A run of page-locked bytes."""

    __slots__ = ("address", "size", "registered", "allocated", "event_count", "streams", "in_capture")

    def __init__(self, address, size, registered=None):
        self.address = address
        self.size = size
        self.registered = registered  # the array whose pages were locked afterwards; None if the driver made the memory
        self.allocated = True  # whether the program has it
        self.event_count = 0  # how many marks the devices must still reach before it can be used again
        self.in_capture = False  # whether the current stream captured when it was handed out
        self.streams = set()  # (device, handle) of the streams that copy from it or to it

    @property
    def index(self):
        """The number of its list: its size is 2 to the power of it, or less if sizes are not rounded."""
        return (self.size - 1).bit_length()


class PinnedReserveSegment:
    """One large block from which others are cut, one behind the other, without asking the driver."""

    def __init__(self, block):
        self.start = self.next = block.address
        self.end = block.address + block.size

    def allocate(self, size):
        """The address of `size` bytes, or None if there is no room."""
        address, end = self.next, self.next - (-size // PAGE * PAGE)
        if end > self.end:
            return None
        self.next = end
        return address

    def owns(self, address):
        return self.start <= address < self.end


class HostStats:
    """What is counted. `allocations`, `allocated_bytes`: blocks that the allocator has; `active_…`: those that the program
    or a stream uses, a Stat for each list of free blocks."""

    def __init__(self):
        self.allocations, self.allocated_bytes = Stat(), Stat()
        self.active_requests = [Stat() for _ in range(MAX_SIZE_INDEX)]
        self.active_bytes = [Stat() for _ in range(MAX_SIZE_INDEX)]
        self.host_alloc_time, self.host_free_time = DurationStat(), DurationStat()

    def every(self):
        own = self.allocations, self.allocated_bytes, self.host_alloc_time, self.host_free_time
        return [*own, *self.active_requests, *self.active_bytes]

    def as_nested_dict(self):
        """As `torch.cuda.host_memory_stats_as_nested_dict()` gives them. A peak of the active ones is the sum of the lists'
        peaks, which need not have been at one time; so in PyTorch."""
        return {
            "num_host_alloc": self.allocations.allocated,
            "num_host_free": self.allocations.freed,
            "allocations": self.allocations.as_dict(),
            "active_requests": total(self.active_requests),
            "allocated_bytes": self.allocated_bytes.as_dict(),
            "active_bytes": total(self.active_bytes),
            "host_alloc_time": self.host_alloc_time.as_dict(),
            "host_free_time": self.host_free_time.as_dict(),
        }


def total(stats):
    parts = [stat.as_dict() for stat in stats]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


class CachingHostAllocator:
    """See Note [ A caching allocator for the host ]. `config`: an AllocatorConfig, whose names begin with `pinned_`."""

    def __init__(self, driver, config):
        self.driver, self.config = driver, config
        self.stats = HostStats()
        self._lock = (
            threading.RLock()
        )  # one that its holder may take again: a block is freed whenever Python finds garbage
        self._blocks = {}  # address -> block, in use or not
        self._free = [[] for _ in range(MAX_SIZE_INDEX)]
        self._pending = deque()  # (event, device, block): the oldest at the right
        self._events = {}  # device -> events that nobody uses
        self._reserve = None  # the PinnedReserveSegment, made when memory is first wanted

    def allocate(self, nbytes):
        """A block of at least so many bytes, more than 0. AcceleratorError if the host has no more to lock."""
        with self._lock:
            self._process_events()
            size = self._round_size(nbytes)
            block = self._free_block(size) or self._new_block(size)
            self._activate(block)
            return block

    def free(self, block):
        """Give a block back. It is used again when every stream that used it is past what it was put on."""
        try:
            with self._lock:
                block.allocated = False
                streams, block.streams = block.streams, set()
                block.event_count += len(streams)
                for device, stream in () if block.in_capture else streams:
                    self._pending.appendleft((self._mark(device, stream), device, block))
                if not streams:
                    self._cache(block)
        except AcceleratorError as error:  # a device that is out of order takes no more marks
            if not self.config.pinned_free_catch_all:
                raise
            warnings.warn(f"CachingHostAllocator: free failed, the block is lost: {error}", stacklevel=2)

    def record_event(self, array, device, stream):
        """A stream uses memory of `array`, if that lies in one of this allocator's blocks; whether it does."""
        memory = owner_of(array).base
        if type(memory) is not PinnedMemory or memory.allocator is not self:
            return False
        with self._lock:
            memory.block.streams.add((device, stream))
        return True

    def empty_cache(self):
        """Give back to the system all that nobody uses."""
        with self._lock:
            self._process_events()
            for free in self._free:
                while free:
                    self._destroy(free.pop())

    def reset_accumulated_stats(self):
        for stat in self.stats.every():
            stat.reset_accumulated()

    def reset_peak_stats(self):
        for stat in self.stats.every():
            stat.reset_peak()

    # ------------------------------------------------------------------------------------- blocks and their lists

    def _round_size(self, nbytes):
        most = min(self.config.pinned_max_round_threshold, self.config.pinned_max_cached_size)
        return 1 << (nbytes - 1).bit_length() if nbytes <= most else nbytes

    def _free_block(self, size):
        """The one of this size that was freed last, or None.

        In PyTorch: the last one of its list, whatever its size, which may be less than `size` if sizes are not rounded.
        """
        free = self._free[(size - 1).bit_length()]
        found = next((block for block in reversed(free) if block.size >= size), None)
        if found is not None:
            free.remove(found)
        return found

    def _activate(self, block):
        block.allocated, block.in_capture = True, current_stream_capture_id() is not None
        self.stats.active_requests[block.index].increase(1)
        self.stats.active_bytes[block.index].increase(block.size)

    def _deactivate(self, block):
        self.stats.active_requests[block.index].decrease(1)
        self.stats.active_bytes[block.index].decrease(block.size)

    def _cache(self, block):
        """Nobody uses the block any more: keep it, unless it is larger than what is kept."""
        self._deactivate(block)
        if block.size > self.config.pinned_max_cached_size:
            self._destroy(block)
        else:
            self._free[block.index].append(block)

    # ------------------------------------------------------------------------------------------------------ events

    def _mark(self, device, stream):
        """An event behind what is on a stream now."""
        unused = self._events.get(device)
        event = unused.pop() if unused else self.driver.event_create(device)
        self.driver.event_record(event, device, stream)
        return event

    def _process_events(self):
        """Look through the queue from its oldest event up to the first that has not been reached."""
        while self._pending and current_stream_capture_id() is None:
            event, device, block = self._pending[-1]
            if not self.driver.event_query(event):
                return
            self._pending.pop()
            self._events.setdefault(device, []).append(event)
            block.event_count -= 1
            if not block.event_count:
                self._cache(block)

    # ------------------------------------------------------------------------------------ memory from the driver

    def _new_block(self, size):
        if self._reserve is None and self.config.pinned_reserve_segment_size_mb:
            self._reserve = PinnedReserveSegment(self._locked(self.config.pinned_reserve_segment_size_mb * MIB))
        address = self._reserve and self._reserve.allocate(size)
        block = HostBlock(address, size) if address else self._locked(size)
        self._blocks[block.address] = block
        self.stats.allocations.increase(1)
        self.stats.allocated_bytes.increase(size)
        return block

    def _locked(self, size):
        """A block of fresh memory."""
        began = self.driver.microseconds()
        try:
            if self.config.pinned_use_cuda_host_register:
                memory = np.empty(size, np.uint8)
                memory[::PAGE] = 0  # the system finds its pages now. In PyTorch: by pinned_num_register_threads threads
                block = HostBlock(address_of(memory), size, memory)
                with self.driver.stream_capture_mode_guard():
                    self.driver.host_register(block.address, size)
            else:
                with self.driver.stream_capture_mode_guard():
                    block = HostBlock(self.driver.host_alloc(size), size)
        except MemoryAllocationError:
            raise AcceleratorError("CUDA error: out of memory") from None
        self.stats.host_alloc_time.increase(self.driver.microseconds() - began)
        return block

    def _destroy(self, block):
        del self._blocks[block.address]
        self.stats.allocations.decrease(1)
        self.stats.allocated_bytes.decrease(block.size)
        if self._reserve is not None and self._reserve.owns(block.address):
            return  # that segment is never given back
        began = self.driver.microseconds()
        if block.registered is not None:
            self.driver.host_unregister(block.address)
        else:
            self.driver.host_free(block.address)
        self.stats.host_free_time.increase(self.driver.microseconds() - began)


class PinnedMemory:
    """A block as memory that NumPy can use; freed when no array looks at it any more."""

    __slots__ = ("allocator", "block", "__array_interface__", "__weakref__")

    def __init__(self, allocator, nbytes):
        self.allocator = allocator
        self.block = allocator.allocate(nbytes)
        place = self.block.address, False
        self.__array_interface__ = {"data": place, "shape": (nbytes,), "typestr": "|u1", "version": 3}

    def __del__(self):
        if hasattr(self, "block"):  # there is none if there was no memory left
            self.allocator.free(self.block)


_allocator = None


def host_allocator():
    """The allocator of the process's driver. AssertionError if there is none."""
    global _allocator
    driver = runtime.driver()
    if _allocator is None or _allocator.driver is not driver:
        _allocator = CachingHostAllocator(driver, runtime.config())
    return _allocator


def pinned_storage(nbytes):
    """A storage in page-locked memory, which cannot be made larger."""
    buffer = np.asarray(PinnedMemory(host_allocator(), nbytes)) if nbytes else np.empty(0, np.uint8)
    return StorageImpl(buffer, resizable=False)


def is_pinned_pointer(array):
    """Whether the driver knows the memory that `array` looks at as page-locked."""
    return runtime.is_available() and runtime.driver().is_host_pinned(address_of(owner_of(array)))
