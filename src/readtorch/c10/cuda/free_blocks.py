"""Taking a block out of its pool, cut to size, and putting it back, merged with its neighbours.

In PyTorch: `get_free_block`, `should_split`, `alloc_found_block`, `free_block` and `try_merge_blocks` in
`c10/cuda/CUDACachingAllocator.cpp`. Explained in the chapter "The caching allocator".
"""
from bisect import bisect_left

from .block import Block
from .device_state import DeviceState
from .sizes import MIN_BLOCK, SMALL_SIZE, UNLIMITED


class Request:
    """Somebody wants memory: what is wanted, and what has come of it so far. In PyTorch: `AllocParams`."""

    block = None  # what was found
    candidates = 0  # how many free blocks were large enough
    source = "pool"  # where the block came from: "pool", "segment", "pages" or "private pool"
    retries = 0  # how often memory was given back for its sake
    stopped_by_limit = False  # the memory fraction, not the device, said no

    def __init__(self, size, requested_size, stream, pool, expandable, context):
        self.size = size  # rounded
        self.requested_size = requested_size
        self.stream = stream
        self.pool = pool
        self.expandable = expandable  # whether new memory comes as pages of an expandable segment
        self.context = context


class FreeBlocks(DeviceState):
    """The storey that knows free blocks."""

    # -------------------------------------------------------------------------------------------- finding

    def get_free_block(self, request):
        """Take the best fit out of the request's pool: True, and it is `request.block`; False if nothing
        fits."""
        pool, size, config = request.pool, request.size, self.config
        if config.garbage_collection_threshold and self.allowed_memory is not None:
            pool.requests += 1
        blocks = pool.free[request.stream]
        found = bisect_left(blocks, (size,))
        request.candidates = len(blocks) - found
        if not request.candidates:
            return False
        if blocks[found][-1].segment is not None:
            choose = self._best_expandable if request.expandable else self._not_expandable
            found = choose(blocks, found)
            if found == len(blocks):
                return False
        if size < config.max_split_size:
            if blocks[found][0] >= config.max_split_size:  # oversize blocks are kept for oversize requests …
                return False
        elif blocks[found][0] >= size + config.max_non_split_rounding_size:  # … that do not waste too much
            return False
        request.block = blocks.pop(found)[-1]
        return True

    @staticmethod
    def _best_expandable(blocks, found):
        """A block at the end of an expandable segment counts as large as it can become: it may be passed
        over for a larger one that cannot grow as much."""
        def can_become(block):
            grows = block.next is not None and not block.next.mapped
            return block.size + (block.next.size if grows else 0)

        while (blocks[found][-1].segment is not None and found + 1 < len(blocks)
               and can_become(blocks[found + 1][-1]) < can_become(blocks[found][-1])):
            found += 1
        return found

    @staticmethod
    def _not_expandable(blocks, found):
        """Expandable segments were switched off: no new block is cut from them."""
        while found < len(blocks) and blocks[found][-1].segment is not None:
            found += 1
        return found

    # ------------------------------------------------------------------------------------------ splitting

    def least_remainder(self, request):
        """A block is split if at least this many bytes of it would be left. In PyTorch: `should_split`.

        In the small pool, what is left becomes a block whatever its size: somebody will need it. In the large
        pool pieces of up to 1 MiB would help nobody, since such requests go to the small pool.
        """
        pool = request.pool
        if self.no_split_pools and pool.id in self.no_split_pools:
            return UNLIMITED
        if pool.is_small or request.expandable:
            return MIN_BLOCK
        return SMALL_SIZE + 1 if request.size < self.config.max_split_size else UNLIMITED

    def alloc_found_block(self, request, split):
        """Hand out the block that was found, or its first part."""
        block, pool = request.block, request.pool
        found_size = block.size
        if split:
            block = self._cut(block, request)
        elif (block.prev is not None or block.next is not None) and block.segment is None:
            pool.stats.inactive_split_bytes.decrease(found_size)  # a free part of a segment is in use again
            pool.stats.inactive_split.decrease(1)

        block.is_free, block.allocated = False, True
        block.requested_size = request.requested_size
        block.context = request.context
        self.active_blocks[block.address] = block
        if self.history is not None:
            self._record_alloc(block, request, found_size, split)
        stats, size = pool.stats, block.size
        stats.allocation.increase(1)
        stats.allocated_bytes.increase(size)
        stats.active.increase(1)
        stats.active_bytes.increase(size)
        stats.requested_bytes.increase(request.requested_size)
        if size >= self.config.max_split_size:
            self.stats.oversize_allocations.increase(1)
        return block

    @staticmethod
    def _cut(remainder, request):
        """A block of the wanted size from the beginning of `remainder`, which goes back into the pool."""
        pool, size = request.pool, request.size
        block = Block(remainder.device, remainder.stream, size, pool, remainder.address, remainder.counter)
        block.segment = remainder.segment
        # In PyTorch: the stack of the segment's allocation stays with the remainder.
        block.segment_context, remainder.segment_context = remainder.segment_context, None
        if block.segment is None:
            if remainder.prev is not None or remainder.next is not None:  # a free part becomes smaller
                pool.stats.inactive_split_bytes.decrease(size)
            else:  # a whole segment is cut
                pool.stats.inactive_split_bytes.increase(remainder.size - size)
                pool.stats.inactive_split.increase(1)
        block.prev, block.next = remainder.prev, remainder
        if block.prev is not None:
            block.prev.next = block
        remainder.prev = block
        remainder.address += size
        remainder.size -= size
        pool.insert(remainder)
        return block

    # -------------------------------------------------------------------------------------------- merging

    def free_block(self, block, context, deferred=False):
        """Put a block that nobody uses any more into its pool, as one with its free neighbours."""
        pool, size = block.pool, block.size
        record = None
        if self.history is not None:
            record = self._record_free_completed(block, context, deferred)
        del self.active_blocks[block.address]
        block.is_free, block.context = True, None

        # What changes in the books of free parts: each neighbour that is merged is one part less, …
        before = 0 if block.prev is None else self.merge(block, block.prev, pool)
        after = 0 if block.next is None else self.merge(block, block.next, pool)
        parts = -(before > 0) - (after > 0)
        nbytes = -before - after
        if block.prev is not None or block.next is not None:
            parts += 1  # … and what comes of it is one more, unless it is a whole segment.
            nbytes += block.size
        pool.insert(block)
        if record is not None:
            self._record_merge(record, block, before, after)
        self._count_free(pool.stats, size, block, parts, nbytes)

    def merge(self, block, neighbour, pool):
        """Make `block` and a free neighbour of the same kind one block; the neighbour's size, 0 if it
        cannot be."""
        if not neighbour.is_free or neighbour.mapped != block.mapped:
            return 0
        if neighbour.mapped:
            pool.remove(neighbour)
        else:
            pool.remove_unmapped(neighbour)
        if block.prev is neighbour:
            block.address = neighbour.address
            block.segment_context = neighbour.segment_context
            block.prev = neighbour.prev
            if block.prev is not None:
                block.prev.next = block
        else:
            block.next = neighbour.next
            if block.next is not None:
                block.next.prev = block
        block.size += neighbour.size
        return neighbour.size

    @staticmethod
    def _count_free(stats, size, block, parts, nbytes):
        if block.segment is None:  # free parts of expandable segments can be given back: they are not counted
            if parts > 0:
                stats.inactive_split.increase(parts)
            elif parts < 0:
                stats.inactive_split.decrease(-parts)
            if nbytes > 0:
                stats.inactive_split_bytes.increase(nbytes)
            elif nbytes < 0:
                stats.inactive_split_bytes.decrease(-nbytes)
        stats.active.decrease(1)
        stats.active_bytes.decrease(size)
        stats.requested_bytes.decrease(block.requested_size)

    # ----------------------------------------------------------------------------------------- writing down

    def _record_alloc(self, block, request, found_size, split):
        pool, least = request.pool, self.least_remainder(request)
        details = {
            "block_size": block.size, "rounded_size": request.size, "pool": pool.kind,
            "source": request.source, "candidates": request.candidates, "retries": request.retries,
            "new_segment": request.source == "segment", "split": split,
            "chosen": {"address": block.address, "size": found_size}, "remainder": found_size - request.size}
        if least == UNLIMITED:
            details["unsplit_because"] = "pool" if pool.id in self.no_split_pools else "oversize"
        else:  # "at least 512 bytes", but "more than 1 MiB"
            details["limit"], details["limit_is_enough"] = min(least, SMALL_SIZE), least == MIN_BLOCK
        if pool.owner is not None:
            details["pool_id"] = pool.id
        self.record("alloc", block.address, request.requested_size, block.stream, pool, block.context,
                    details)

    def _record_free_completed(self, block, context, deferred):
        """Returns the entry's details, to be completed when it is known what was merged."""
        details = {"block_size": block.size, "deferred": deferred, "pool": block.pool.kind, "merged": []}
        self.record("free_completed", block.address, block.requested_size, block.stream, block.pool,
                    context if context is not None else block.context, details)
        return details

    @staticmethod
    def _record_merge(details, block, before, after):
        details["merged"] = ["previous"] * (before > 0) + ["next"] * (after > 0)
        details["merged_into"] = {"address": block.address, "size": block.size}
