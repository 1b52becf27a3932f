"""Locks on the memory of a simulated device: see Note [ Two kinds of simulated devices ].

PyTorch has no such file: a real GPU's memory has no address in the host.
"""

import ctypes
import mmap
import threading

from readtorch.c10.storage_impl import address_of

CLOSED, OPEN = 0, mmap.PROT_READ | mmap.PROT_WRITE


class Locks:
    """`with locks:` the memory may be used inside, by any thread; it may be nested."""

    def __init__(self):
        self._protect = ctypes.CDLL(None, use_errno=True).mprotect
        self._protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self._ranges = []
        self._inside = 0
        self._lock = threading.RLock()

    def add(self, memory):
        """`memory`: an array that begins and ends with a page; kept, for no other may get its pages while
        they are locked."""
        with self._lock:
            self._ranges.append(memory)
            self._set(memory, OPEN if self._inside else CLOSED)

    def __enter__(self):
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._set_all(OPEN)

    def __exit__(self, *exception):
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._set_all(CLOSED)

    def _set_all(self, access):
        for memory in self._ranges:
            self._set(memory, access)

    def _set(self, memory, access):
        if self._protect(address_of(memory), memory.nbytes, access):
            raise OSError(ctypes.get_errno(), "mprotect")
