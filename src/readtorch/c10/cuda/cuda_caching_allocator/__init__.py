"""The caching allocator of device memory.

Read it in this order: `block` (blocks and the pools that free ones wait in), `expandable_segment`,
`device_caching_allocator` (every decision about one device's memory), `native_caching_allocator` (all devices, and the
public functions). What it did is written down by `history`, with `reasons` for each decision; `snapshot` shows what
it holds. Sizes, settings and errors stand beside this package, counters in `c10/caching_device_allocator.py`.

In PyTorch: `c10/cuda/CUDACachingAllocator.cpp`, one file.
Explained in the chapter "The caching allocator".
"""

from .device_caching_allocator import DeviceCachingAllocator
from .native_caching_allocator import CachingAllocator

__all__ = ["CachingAllocator", "DeviceCachingAllocator"]
