"""Segments that grow: a range of addresses as large as the device, and pages put under it where they are
needed.

Note [ Expandable segments ]
Segments made to measure fit the requests they were made for. If the next batch is a little larger, none of
them is large enough, each new tensor needs a new segment, and the old ones lie there with room for none:
fragmentation. With `expandable_segments:True` a stream has one long segment instead. The driver lets us
reserve addresses (a little more than the device has memory) without memory, and map pages of 2 MiB (20 MiB
for large blocks) into them afterwards. When no free block fits, pages are added at the lowest address where
enough of them fit: mostly at the end, so that the new memory continues the last free block. When memory is
short, pages without a block on them are unmapped and can appear under other addresses. The price: mapping
and unmapping cost more than a `malloc`, page for page.

In PyTorch: `ExpandableSegment` in `c10/cuda/CUDACachingAllocator.cpp`. Explained in the chapter "The caching
allocator".
"""

from readtorch.c10.cuda.cuda_exception import MemoryAllocationError

from .block import Block


class ExpandableSegment:
    """A reserved range of addresses and the pages mapped into it."""

    def __init__(self, device, stream, page_size, total_memory, driver):
        self.device = device
        self.stream = stream
        self.page_size = page_size
        self.driver = driver
        self.handles = []  # a page's handle, or None where nothing is mapped; nothing behind the last
        # An eighth more than the device has, so that pages can move to the end while holes stay at the
        # beginning.
        self.size = -(-(total_memory + total_memory // 8) // page_size) * page_size
        self.address = driver.mem_address_reserve(device, self.size)

    @property
    def mapped_size(self):
        return sum(handle is not None for handle in self.handles) * self.page_size

    def map(self, address, size):
        """Put pages under `size` bytes from `address` on, which is where a page begins. How many bytes they
        are; 0 if the device has not enough."""
        begin = (address - self.address) // self.page_size
        end = -(-(address + size - self.address) // self.page_size)
        handles = []
        try:
            for _ in range(begin, end):
                handles.append(self.driver.mem_create(self.device, self.page_size))
        except MemoryAllocationError:
            for handle in handles:
                self.driver.mem_release(handle)
            return 0
        self.handles += [None] * (end - len(self.handles))
        for page, handle in zip(range(begin, end), handles):
            self.handles[page] = handle
            self.driver.mem_map(self.device, self._address(page), self.page_size, handle)
        return (end - begin) * self.page_size

    def unmap(self, address, size):
        """Unmap the pages that lie within the range: (address, bytes) of them, or None if there is no
        whole one."""
        begin = -(-(address - self.address) // self.page_size)
        end = (address + size - self.address) // self.page_size
        if begin >= end:
            return None
        # Unlike `free`, unmapping does not wait for the device by itself.
        self.driver.stream_synchronize(self.device, self.stream)
        for page in range(begin, end):
            self.driver.mem_unmap(self._address(page), self.page_size)
            self.driver.mem_release(self.handles[page])
            self.handles[page] = None
        while self.handles and self.handles[-1] is None:
            self.handles.pop()
        return self._address(begin), (end - begin) * self.page_size

    def release(self):
        """Give the addresses back."""
        self.driver.mem_address_free(self.address, self.size)

    def _address(self, page):
        return self.address + page * self.page_size

    def new_block(self, pool, address, size, counter):
        """A block of this segment, which has no neighbours yet."""
        block = Block(self.device, self.stream, size, pool, address, counter)
        block.segment = self
        return block
