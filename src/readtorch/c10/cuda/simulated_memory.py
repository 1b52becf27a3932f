"""The memory of devices that do not exist: fictional addresses, and host memory behind them.

Note [ Fictional addresses ]
An address is a number that no pointer of this process equals, so it cannot be mistaken for one. Device d
hands out addresses from 0x700000000000 + d * 2**42 upwards, or from the end of that range downwards; none
is used twice, as far as 4 TiB go. Sizes are counted in pages of 2 MiB, as CUDA does for all but small
allocations. Addresses that are reserved for pages to be mapped start at 0x500000000000. The bytes behind an
address are made when they are first asked for, and by the operating system only when they are first
touched: a device of 80 GiB costs nothing until its memory is used.

PyTorch has no such file: it has no simulated devices.
"""

import bisect
import contextlib
import mmap
import threading

import numpy as np

from .cuda_exception import AcceleratorError, MemoryAllocationError
from .memory_locks import Locks

PAGE = 2 << 20
FIRST_ADDRESS = 0x700000000000
DEVICE_SPAN = 1 << 42
FIRST_RESERVED_ADDRESS = 0x500000000000

_MAP_NORESERVE = 0x4000  # from Linux's mman.h: the range may be larger than the memory there is


def round_to_pages(nbytes):
    return -(-nbytes // PAGE) * PAGE


class Region:
    """A run of addresses: what one `malloc` returned, or what one `mem_address_reserve` set aside."""

    def __init__(self, address, nbytes, reserved=False, locks=None):
        self.address = address
        self.locks = locks  # the Locks that keep the host memory, or None
        self.nbytes = nbytes
        # Of a reserved range: the addresses that pages are mapped to, and how many bytes each has.
        self.pages = {} if reserved else None
        self._map = None
        self._bytes = None

    def host(self):
        """The host memory behind it, one uint8 array."""
        if self._bytes is None:
            mapped = self.pages is not None or self.locks
            self._bytes = self._reserve() if mapped else np.empty(self.nbytes, np.uint8)
            if self.locks:
                self.locks.add(self._bytes)
        return self._bytes

    def _reserve(self):
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._map = mmap.mmap(-1, self.nbytes, flags=flags)
        return np.frombuffer(self._map, np.uint8)

    def forget(self, address, nbytes):
        """The bytes of unmapped pages go back to the system."""
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED, address - self.address, nbytes)

    def is_mapped(self, address, end):
        """Whether all addresses of a reserved range, from `address` to `end`, stand for memory."""
        while address < end:
            ends = [start + size for start, size in self.pages.items() if start <= address < start + size]
            if not ends:
                return False
            address = ends[0]
        return True


class SimulatedMemory:
    """The memory of all devices; `capacities` in bytes, one a device."""

    def __init__(self, capacities, addresses="up", locked=False):
        self.capacities = capacities
        self.locks = Locks() if locked else None
        self.downwards = {"up": False, "down": True}[addresses]
        self.used = [0] * len(capacities)
        self._handed_out = [0] * len(capacities)  # bytes of each device's address range
        self._next_reserved = FIRST_RESERVED_ADDRESS
        self._pieces = {}  # handle -> (device, bytes) of memory without an address
        self._next_piece = 1
        self._regions = {}  # first address -> Region
        self._starts = []  # the first addresses, ascending
        self._lock = threading.Lock()

    # ------------------------------------------------------------------------------------- malloc and free

    def malloc(self, device, nbytes):
        nbytes = round_to_pages(nbytes)
        with self._lock:
            self._take(device, nbytes)
            return self._add(Region(self._fresh_address(device, nbytes), nbytes, locks=self.locks))

    def free(self, device, address):
        with self._lock:
            region = self._regions.get(address)
            if region is None or region.pages is not None:
                raise AcceleratorError("CUDA error: invalid argument")
            self._remove(region)
            self.used[device] -= region.nbytes

    def _take(self, device, nbytes):
        if self.used[device] + nbytes > self.capacities[device]:
            raise MemoryAllocationError
        self.used[device] += nbytes

    def _fresh_address(self, device, nbytes):
        before = self._handed_out[device]
        self._handed_out[device] += nbytes
        start = FIRST_ADDRESS + device * DEVICE_SPAN
        return start + DEVICE_SPAN - before - nbytes if self.downwards else start + before

    # ------------------------------------------------------------------------------------- virtual memory

    def reserve(self, nbytes):
        with self._lock:
            address = self._next_reserved
            self._next_reserved += round_to_pages(nbytes)
            return self._add(Region(address, nbytes, reserved=True, locks=self.locks))

    def free_reserved(self, address):
        with self._lock:
            region = self._regions.get(address)
            if region is None or region.pages is None or region.pages:
                raise AcceleratorError("CUDA error: invalid argument")
            self._remove(region)

    def create(self, device, nbytes):
        with self._lock:
            self._take(device, nbytes)
            handle = self._next_piece
            self._next_piece += 1
            self._pieces[handle] = device, nbytes
            return handle

    def release(self, handle):
        with self._lock:
            device, nbytes = self._pieces.pop(handle)
            self.used[device] -= nbytes

    def map(self, address, nbytes, handle):
        with self._lock:
            region = self._region(address)
            if region is None or region.pages is None or address in region.pages or handle not in self._pieces:
                raise AcceleratorError("CUDA error: invalid argument")
            region.pages[address] = nbytes

    def unmap(self, address, nbytes):
        with self._lock:
            region = self._region(address)
            if region is None or region.pages is None or region.pages.pop(address, None) != nbytes:
                raise AcceleratorError("CUDA error: invalid argument")
            region.forget(address, nbytes)

    # --------------------------------------------------------------------------------- from address to bytes

    def host(self, address, nbytes):
        """The `nbytes` behind `address`, a uint8 array. AcceleratorError if they are not all memory of a
        device."""
        region = self._region(address)
        if (
            region is None
            or address + nbytes > region.address + region.nbytes
            or (region.pages is not None and not region.is_mapped(address, address + nbytes))
        ):
            raise AcceleratorError("CUDA error: an illegal memory access was encountered")
        offset = address - region.address
        return region.host()[offset : offset + nbytes]

    def is_used(self, address):
        """Whether an address lies in what `malloc` returned."""
        region = self._region(address)
        return region is not None and address < region.address + region.nbytes

    def unlocked(self):
        """`with memory.unlocked():` inside, the bytes may be read and written."""
        return contextlib.nullcontext() if self.locks is None else self.locks

    def _region(self, address):
        """The region that an address may lie in, or None."""
        i = bisect.bisect_right(self._starts, address)
        return self._regions.get(self._starts[i - 1]) if i else None

    def _add(self, region):
        bisect.insort(self._starts, region.address)
        self._regions[region.address] = region
        return region.address

    def _remove(self, region):
        del self._starts[bisect.bisect_left(self._starts, region.address)]
        del self._regions[region.address]
