"""Memory from the driver and back to it: segments, and what is done when there is no memory left.

In PyTorch: `alloc_block`, `release_block`, `release_cached_blocks`, `release_available_cached_blocks` and
`garbage_collect_cached_blocks` in `c10/cuda/CUDACachingAllocator.cpp`. Explained in the chapter "The
caching allocator".
"""
import logging
from bisect import bisect_left

from .block import NO_POOL, Block
from .errors import MemoryAllocationError, OutOfMemoryError
from .expandable_segments import ExpandableSegments
from .sizes import UNLIMITED, format_size, segment_size

log = logging.getLogger("readtorch.c10.cuda")


class Segments(ExpandableSegments):
    """The storey that talks to the driver about memory."""

    # ------------------------------------------------------------------------------------ from the driver

    def alloc_block(self, request):
        """Get memory for the request from the driver: True, and it is `request.block`; False if there is
        none."""
        size = segment_size(request.size, self.config)
        limit = self.allowed_memory
        request.stopped_by_limit = limit is not None and self.total_allocated + size > limit
        if request.stopped_by_limit:
            return False
        if self.config.throw_on_cudamalloc_oom:
            self._reject_early(request, size)
        if request.expandable:
            request.source = "pages"
            request.block = self.alloc_expandable_block(request)
        else:
            request.source = "segment"
            request.block = self._new_block(request, size)
        if request.block is None:
            self._warn(size, request.expandable)
            return False
        return True

    def _new_block(self, request, size):
        """A block that is a whole new segment; None if the driver has no memory."""
        try:
            address = self.driver.malloc(self.device, size)
        except MemoryAllocationError:
            return None
        pool = request.pool
        block = Block(self.device, request.stream, size, pool, address, next(self.count_segments))
        block.segment_context = request.context
        self.count_reserved(pool, size)
        pool.stats.segment.increase(1)
        if size >= self.config.max_split_size:
            self.stats.oversize_segments.increase(1)
        self.stats.num_device_alloc += 1
        if self.history is not None:
            details = {"segment_size": size, "rounded_size": request.size, "retries": request.retries,
                       "pool": pool.kind}
            self.record("segment_alloc", address, size, request.stream, pool, request.context, details)
        return block

    def _reject_early(self, request, size):
        """`throw_on_cudamalloc_oom`: rather fail here than let the driver fail, and give nothing back."""
        if self.total_allocated + size > self.total_memory * self.config.per_process_memory_fraction:
            self.stats.num_oom_rejections += 1
            raise OutOfMemoryError(
                "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
                f"per_process_memory_fraction limit. Requested size: {format_size(request.requested_size)}")

    def _warn(self, size, expandable):
        if not log.isEnabledFor(logging.WARNING):
            return
        free, total = self.driver.mem_get_info(self.device)
        what = "expandable_segments: memory mapping" if expandable else "memory allocation"
        log.warning("%s failed with OOM on device %d while trying to allocate %d bytes "
                    "(free: %d, total: %d).", what, self.device, size, free, total)

    # -------------------------------------------------------------------------------------- to the driver

    def release_block(self, block, context, trigger):
        """Give a segment back; its one block is in the pool."""
        pool, size = block.pool, block.size
        self.stats.num_device_free += 1
        if self.history is not None:
            details = {"trigger": trigger, "age": pool.age(block), "pool": pool.kind}
            self.record("segment_free", block.address, size, block.stream, pool,
                        block.segment_context if context is None else context, details)
        self.driver.free(self.device, block.address)
        self.count_reserved(pool, -size)
        pool.stats.segment.decrease(1)
        if size >= self.config.max_split_size:
            self.stats.oversize_segments.decrease(1)
        pool.remove(block)

    def release_blocks(self, pool, context, trigger):
        """Give back all segments of a pool that are free as a whole, and all free pages."""
        expandable = []
        for block in pool.blocks():
            if block.segment is not None:
                expandable.append(block)
            elif not block.is_split:
                self.release_block(block, context, trigger)
        for block in expandable:
            self.unmap_block(block, context, trigger)
            self.release_if_empty(block)

    def release_cached_blocks(self, context, trigger, pool_id=NO_POOL):
        """Give back everything that is not in use, after waiting for the streams; with a pool's id only
        what belongs to that private pool, if it has no user left."""
        if pool_id == NO_POOL and not self.captures:
            self.synchronize_and_free_events(context)
            self.release_blocks(self.large_blocks, context, trigger)
            self.release_blocks(self.small_blocks, context, trigger)
        for private in list(self.freeable_pools.values()):
            if pool_id != NO_POOL:
                if private.id != pool_id:
                    continue
                self.synchronize_and_free_events(context, private)
            self.release_blocks(private.small_blocks, context, trigger)
            self.release_blocks(private.large_blocks, context, trigger)
            if self._is_empty(private):
                self._forget_pool(private)

    def _is_empty(self, private):
        """Whether a private pool has no memory any more. In PyTorch: its segments are counted."""
        return not any(pool.blocks() for pool in private.pools) and not any(
            block.pool.owner is private for block in self.active_blocks.values())

    def _forget_pool(self, private):
        for pool in private.pools:
            for _, block in [entry for blocks in pool.unmapped.values() for entry in blocks]:
                self.release_if_empty(block)
        del self.private_pools[private.id], self.freeable_pools[private.id]

    def release_available_cached_blocks(self, request, context):
        """Give back just enough oversize blocks for the request: one that is large enough, or several, the
        largest first. Whether that was enough; without `max_split_size` no block is oversize.

        Note [ A split block is no segment ]
        Oversize blocks are never split, so each is a whole segment. That holds as long as `max_split_size`
        stays what it is. If it is lowered while the program runs, parts of segments become oversize by
        definition. PyTorch 2.13 takes them for segments here: it hands an address from the middle of a
        segment to cudaFree, or frees a segment in which somebody else's block lies. We look whether a block
        is split and pass over those that are.
        """
        limit = self.config.max_split_size
        if limit == UNLIMITED:
            return False
        wanted = max(request.size, limit)
        blocks = request.pool.free[request.stream]
        found = bisect_left(blocks, (wanted,))
        while found < len(blocks) and blocks[found][-1].segment is None and blocks[found][-1].is_split:
            found += 1
        if found < len(blocks) and _is_segment(blocks[found][-1]):
            self.release_block(blocks[found][-1], context, "oversize")
            return True
        released = 0
        for size, _, _, block in reversed(blocks[:found]):
            if released >= wanted or size < limit:
                break
            if _is_segment(block):
                released += size
                self.release_block(block, context, "oversize")
        return released >= wanted

    def garbage_collect_cached_blocks(self, context):
        """Give back large segments that have not been used for long, if more memory is held than the
        threshold allows.

        Age is counted in requests. Those as old as the average or older go first; if that was not enough,
        the average of the rest decides, and so on. In contrast to `release_cached_blocks` nobody waits for
        the device's streams.
        """
        pool = self.large_blocks
        too_much = self.total_allocated - int(self.config.garbage_collection_threshold * self.allowed_memory)
        if too_much <= 0:
            return
        candidates = [block for block in pool.blocks() if not block.is_split and block.segment is None]
        ages = sum(map(pool.age, candidates))
        while candidates and too_much > 0:
            average = ages / len(candidates)
            old = [block for block in candidates if pool.age(block) >= average]
            candidates = [block for block in candidates if pool.age(block) < average]
            for block in old:
                too_much -= block.size
                ages -= pool.age(block)
                self.release_block(block, context, "garbage_collection")


def _is_segment(block):
    """Whether the block is all of a segment that one call gave."""
    return block.segment is None and not block.is_split
