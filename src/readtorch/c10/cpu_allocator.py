"""Where the bytes of CPU tensors come from: NumPy asks the C library's malloc.

Note [ Freed memory is kept ]
A training step frees large arrays and asks for as many again a moment later. By default glibc returns the top of its
heap to the system as soon as a few hundred kilobytes of it are free, and maps very large arrays one by one; the system
then hands out fresh pages, zeroed, and each costs a fault at its first touch: up to a seventh of a training step. So we
raise both thresholds. The most that the process holds does not grow by it; memory that is free stays with the process
for longer. A program that sets MALLOC_TRIM_THRESHOLD_ or MALLOC_MMAP_THRESHOLD_ itself is not overruled. Other C
libraries are left alone.

In PyTorch: `c10/core/CPUAllocator.cpp` and `impl/alloc_cpu.cpp`, which ask the same malloc, and its CUDA allocator,
which keeps freed blocks for the same reason (chapter "The caching allocator").
"""

import ctypes
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # from malloc.h
_KEPT = 512 << 20  # bytes that may be free at the top of the heap
_MAPPED_FROM = 256 << 20  # bytes of an array from which on it is mapped by itself


def keep_freed_memory():
    """See Note [ Freed memory is kept ]."""
    if any(f"MALLOC_{name}_THRESHOLD_" in os.environ for name in ("TRIM", "MMAP")):
        return
    _set(_M_TRIM_THRESHOLD, _KEPT)
    _set(_M_MMAP_THRESHOLD, _MAPPED_FROM)


def share_kept_memory():
    """Let threads that start from now on take memory from where the first one does: see Note [ Freed memory is kept ].

    glibc gives each thread a heap of its own, of at most 64 MiB pieces that it returns early.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        _set(_M_ARENA_MAX, 1)


def _set(option, value):
    """glibc's `mallopt`; nothing with another C library."""
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version
        libc.mallopt(option, value)
    except (AttributeError, OSError, TypeError):
        pass
