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

In PyTorch: `ExpandableSegment`, `try_allocate_expandable_block`, `map_block` and `unmap_block` in
`c10/cuda/CUDACachingAllocator.cpp`. Explained in the chapter "The caching allocator".
"""
from .block import Block
from .errors import MemoryAllocationError
from .events import Events
from .sizes import SMALL_SEGMENT


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
        """Take away the pages that lie within the range: (address, bytes) of them, or None if there is no
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


class ExpandableSegments(Events):
    """The storey that gets memory page by page.

    Blocks of an expandable segment are neighbours like others, some of them unmapped: addresses without
    memory.
    """

    # -------------------------------------------------------------------------------------------- growing

    def alloc_expandable_block(self, request):
        """Find place for the request and map what is missing. None if the device has not enough memory."""
        block = self._find_place(request)
        if not block.mapped and not self._map_block(block, min(block.size, request.size), request):
            return None
        while block.size < request.size:  # a free block, an unmapped one behind it: they become one
            following = block.next
            if not self._map_block(following, min(request.size - block.size, following.size), request):
                return None
            block = following
        request.pool.remove(block)
        return block

    def _find_place(self, request):
        """The first of neighbouring free and unmapped blocks with room enough, at the lowest address there
        is."""
        pool, stream = request.pool, request.stream
        for _, block in pool.unmapped[stream]:
            if block.prev is not None and block.prev.is_free:
                block = block.prev
            if self._has_room(block, request.size):
                return block
        return self._new_segment(request)

    @staticmethod
    def _has_room(block, size):
        while size > 0 and block is not None and block.is_free:
            size -= block.size
            block = block.next
        return size <= 0

    def _new_segment(self, request):
        pool = request.pool
        page_size = SMALL_SEGMENT if pool.is_small else self.config.large_segment_size
        segment = ExpandableSegment(self.device, request.stream, page_size, self.total_memory, self.driver)
        self.expandable_segments.append(segment)
        number = next(self.count_segments)
        block = self._expandable_block(segment, pool, segment.address, segment.size, number)
        block.mapped = False
        pool.insert_unmapped(block)
        return block

    def _map_block(self, block, size, request):
        """Map `size` bytes (rounded up to pages) at the beginning of an unmapped block and merge them with
        free neighbours. False if the device has not enough memory."""
        segment, pool, address = block.segment, block.pool, block.address
        mapped = segment.map(address, size)
        if mapped == 0:
            return False
        pool.remove_unmapped(block)
        block.mapped = True
        if mapped < block.size:
            rest = self._expandable_block(segment, pool, address + mapped, block.size - mapped, block.counter)
            rest.mapped = False
            rest.insert_between(block, block.next)
            pool.insert_unmapped(rest)
            block.size = mapped
        self._merge_neighbours(block, pool)
        pool.insert(block)
        self.count_reserved(pool, mapped)
        self.stats.num_device_alloc += 1
        if self.history is not None:
            details = {"pages": mapped // segment.page_size, "page_size": segment.page_size,
                       "rounded_size": request.size, "retries": request.retries,
                       "pool": pool.kind}
            self.record("segment_map", address, mapped, block.stream, pool, request.context, details)
        if block.prev is None and block.segment_context is None:
            block.segment_context = request.context
        return True

    def _merge_neighbours(self, block, pool):
        for neighbour in block.prev, block.next:
            if neighbour is not None:
                self.merge(block, neighbour, pool)

    @staticmethod
    def _expandable_block(segment, pool, address, size, counter):
        block = Block(segment.device, segment.stream, size, pool, address, counter)
        block.segment = segment
        return block

    # ------------------------------------------------------------------------------------------- shrinking

    def unmap_block(self, block, context, trigger):
        """Give back the pages that lie within a free block; what is left of it before and behind stays
        free."""
        pool, segment = block.pool, block.segment
        unmapped = segment.unmap(block.address, block.size)
        if unmapped is None:
            return
        address, size = unmapped
        pool.remove(block)
        before = address - block.address
        after = block.size - before - size
        if before > 0:
            rest = self._expandable_block(segment, pool, block.address, before, block.counter)
            rest.insert_between(block.prev, block)
            pool.insert(rest)
        if after > 0:
            rest = self._expandable_block(segment, pool, address + size, after, block.counter)
            rest.insert_between(block, block.next)
            pool.insert(rest)
        block.address, block.size, block.mapped = address, size, False
        self._merge_neighbours(block, pool)
        pool.insert_unmapped(block)
        self.count_reserved(pool, -size)
        self.stats.num_device_free += 1
        if self.history is not None:
            self.record("segment_unmap", address, size, block.stream, pool,
                        block.segment_context if context is None else context, {"trigger": trigger})

    def release_if_empty(self, block):
        """Give an expandable segment's addresses back if nothing of it is mapped: then it is one unmapped
        block."""
        segment, pool = block.segment, block.pool
        if block.mapped or block.size != segment.size:
            return
        pool.remove_unmapped(block)
        self.expandable_segments.remove(segment)
        segment.release()
