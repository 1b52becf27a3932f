"""The allocator of one device: every decision about its memory, from the first look into a pool to the error.

In PyTorch: `DeviceCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`, here in the order of that file: what
others call (`malloc` and `free` first), then what that is made of. Explained in the chapter "The caching allocator".
"""

import logging
import threading
from bisect import bisect_left
from collections import deque

from readtorch.c10.caching_device_allocator import DeviceStats
from readtorch.c10.cuda.cuda_exception import MemoryAllocationError, OutOfMemoryError
from readtorch.c10.cuda.sizes import (
    MIN_BLOCK,
    SMALL_SEGMENT,
    SMALL_SIZE,
    UNLIMITED,
    format_size,
    round_size,
    segment_size,
)

from .block import NO_POOL, Block, BlockPool, PrivatePool
from .expandable_segment import ExpandableSegment
from .history import ALL, STATE, History
from .reasons import alloc_details, merge_details, oom_details, out_of_memory_message

log = logging.getLogger("readtorch.c10.cuda")


class AllocParams:
    """A request for memory: what is wanted, and what has come of it so far."""

    block = None  # what was found
    candidates = 0  # how many free blocks were large enough
    source = "pool"  # where the block came from: "pool", "segment", "pages" or "private pool"
    retries = 0  # how often memory was given back for its sake
    stopped_by_limit = False  # the memory fraction, not the device, refused it

    def __init__(self, size, requested_size, stream, pool, expandable, context):
        self.size = size  # rounded
        self.requested_size = requested_size
        self.stream = stream
        self.pool = pool
        self.expandable = expandable  # whether new memory comes as pages of an expandable segment
        self.context = context


class EventPool:
    """Events of one device that may be used again, so that few have to be made."""

    def __init__(self, device, driver):
        self.device = device
        self.driver = driver
        self.unused = []

    def get(self):
        return self.unused.pop() if self.unused else self.driver.event_create(self.device)

    def put(self, event):
        self.unused.append(event)


class DeviceCachingAllocator:
    """Blocks of one device's memory, for work on its streams. Freed ones are kept for the next request."""

    def __init__(self, device, driver, config, count_segments):
        self.device = device
        self.driver = driver
        self.config = config
        self.count_segments = count_segments  # an iterator: the next segment's number, shared by all devices
        self.stats = DeviceStats(config.max_split_size)

        # A block is either free, and in one of these pools, or active.
        self.small_blocks = BlockPool(True, self.stats)
        self.large_blocks = BlockPool(False, self.stats)
        self.active_blocks = {}  # address -> block that the program has, or that a stream still uses
        self.expandable_segments = []

        # How much memory may be held, and how much is.
        self.total_memory = driver.get_device_properties(device).total_memory
        self.total_allocated = 0  # bytes held now, in segments and pages
        self.allowed_memory = None  # at most so many bytes; None: no limit but the device's
        self.free_memory_callbacks = []  # called before the driver is asked; true: some memory was freed
        self.out_of_memory_observers = []  # called with (device, size, total, free)

        # Note [ Used on another stream ]
        self.event_pool = EventPool(device, driver)
        self.stream_events = {}  # stream -> deque of (event, block): the streams that freed blocks wait for
        self.stream_order = None  # the key by which streams are visited: their number. In PyTorch: a hash table's order

        # Note [ Private pools ]
        self.private_pools = {}  # id -> PrivatePool
        self.freeable_pools = {}  # those without users
        self.redirections = []  # (pool id, predicate of streams): whose requests go to a private pool
        self.use_on_oom_pools = []  # ids of private pools that serve requests which nothing else can serve
        self.no_split_pools = set()  # ids of private pools whose segments are handed out whole
        self.captures = 0  # how many graph captures are underway
        self.deferred_blocks = {}  # block freed during a capture -> the streams that used it in the capture

        # Note [ Freed by a finalizer ]
        self.lock = threading.RLock()
        self.busy = False
        self.postponed = []

        self.history = None  # a History while events are recorded
        self.set_memory_fraction(config.per_process_memory_fraction)

    # ------------------------------------------------------------------------------------- asking for memory

    def malloc(self, requested_size, stream):
        """A block of at least `requested_size` bytes (more than 0) for work on `stream`. OutOfMemoryError."""
        context = None if self.history is None else self._gather(STATE)
        with self.lock:
            if self.busy:
                raise RuntimeError(
                    "memory was asked for by a finalizer that interrupted the allocator: Note [ Freed by a finalizer ]"
                )
            self.busy = True
            try:
                if (self.stream_events or self.deferred_blocks) and not self.captures:
                    self.process_events(context)
                size = round_size(requested_size, self.config)
                params = AllocParams(
                    size, requested_size, stream, self.get_pool(size, stream), self.config.expandable_segments, context
                )
                if not self.get_free_block(params):
                    with self.driver.stream_capture_mode_guard():
                        found = self._find_memory(params)
                    if not found:
                        self._raise_out_of_memory(params)
                remainder = params.block.size - size
                return self.alloc_found_block(params, split=remainder >= self.min_remainder(params))
            finally:
                self.busy = False
                if self.postponed:
                    self._free_postponed()

    def _find_memory(self, params):
        """No free block fits: whether anything else helps, the cheapest first."""
        context = params.context
        if self.trigger_free_memory_callbacks() and self.get_free_block(params):
            return True
        if self.config.garbage_collection_threshold and self.allowed_memory is not None:
            self.garbage_collect_cached_blocks(context)
        if self.alloc_block(params) or self.get_block_from_private_pool(params):
            return True
        if self.release_available_cached_blocks(params, context):
            params.retries += 1
            if self.alloc_block(params):
                return True
        if self.captures:
            return False
        self.release_cached_blocks(context, "out_of_memory")
        params.retries += 1
        self.stats.num_alloc_retries += 1
        return self.alloc_block(params)

    def _raise_out_of_memory(self, params):
        free, total = self.driver.mem_get_info(self.device)
        if self.history is not None:
            self.record_trace(
                "oom", free, params.size, params.stream, params.pool, params.context, oom_details(self, params, free)
            )
        self.stats.num_ooms += 1
        size = segment_size(params.size, self.config)
        self.busy = False  # nothing more is changed: observers may do what they want
        for observer in self.out_of_memory_observers:
            observer(self.device, size, total if self.allowed_memory is None else self.allowed_memory, free)
        raise OutOfMemoryError(out_of_memory_message(self, size, free, total))

    def alloc_found_block(self, params, split):
        """Hand out the block that was found, or its first part."""
        block, pool = params.block, params.pool
        found_size = block.size
        if split:
            block = self._split(block, params)
        elif (block.prev is not None or block.next is not None) and block.segment is None:
            pool.stats.inactive_split_bytes.decrease(found_size)  # a free part of a segment is in use again
            pool.stats.inactive_split.decrease(1)

        block.is_free, block.allocated = False, True
        block.requested_size = params.requested_size
        block.context = params.context
        self.active_blocks[block.address] = block
        if self.history is not None:
            details = alloc_details(self, params, block, found_size, split)
            self.record_trace("alloc", block.address, params.requested_size, block.stream, pool, block.context, details)
        stats, size = pool.stats, block.size
        stats.allocation.increase(1)
        stats.allocated_bytes.increase(size)
        stats.active.increase(1)
        stats.active_bytes.increase(size)
        stats.requested_bytes.increase(params.requested_size)
        if size >= self.config.max_split_size:
            self.stats.oversize_allocations.increase(1)
        return block

    @staticmethod
    def _split(remainder, params):
        """A block of the wanted size from the beginning of `remainder`, which goes back into the pool."""
        pool, size = params.pool, params.size
        block = Block(remainder.device, remainder.stream, size, pool, remainder.address, remainder.counter)
        block.segment = remainder.segment
        # In PyTorch: the stack of the segment's allocation stays with the remainder.
        block.segment_context, remainder.segment_context = remainder.segment_context, None
        if block.segment is None:
            if remainder.prev is not None or remainder.next is not None:  # a free part becomes smaller
                pool.stats.inactive_split_bytes.decrease(size)
            else:  # a whole segment is split
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

    # ------------------------------------------------------------------------------------- giving memory back

    def free(self, block):
        """The program does not need the block any more.

        Note [ Freed by a finalizer ]
        Python's collector of cyclic garbage may run at any moment, also in the middle of `malloc`, and may find
        tensors. Then `free` is called while pools and neighbours are half changed. The lock does not help, since
        it is the same thread; `busy` says that nothing may be touched. Such a block is postponed, and the call that
        was interrupted frees it at its end. In PyTorch: no finalizer runs inside the allocator.
        """
        with self.lock:
            if self.busy:
                self.postponed.append(block)
                return
            self.busy = True
            try:
                pool, size = block.pool, block.size
                block.allocated = False
                pool.stats.allocation.decrease(1)
                pool.stats.allocated_bytes.decrease(size)
                context = None if self.history is None else self._record_free_requested(block)
                if size >= self.config.max_split_size:
                    self.stats.oversize_allocations.decrease(1)
                if not block.stream_uses:
                    self.free_block(block, context)
                elif self.captures:
                    self.deferred_blocks.setdefault(block, set())
                else:
                    self.insert_events(block)
            finally:
                self.busy = False
                if self.postponed:
                    self._free_postponed()

    def _record_free_requested(self, block):
        """Returns the stack of who frees, if such stacks are kept."""
        context = self._gather(ALL)
        details = {"block_size": block.size, "pool": block.pool.kind, "waits_for": sorted(block.stream_uses)}
        self.record_trace(
            "free_requested",
            block.address,
            block.requested_size,
            block.stream,
            block.pool,
            block.context if context is None else context,
            details,
        )
        return context

    def _free_postponed(self):
        while self.postponed:
            self.free(self.postponed.pop())

    def record_stream(self, block, stream):
        """The block is used on that stream, too.

        Note [ Used on another stream ]
        Streams run by themselves: when the program drops a tensor, the device may not even have begun the work
        that reads it. For work on the stream that the block was requested for this does not matter: the next
        owner of the block puts work on the same stream, behind the reader. The allocator cannot know about other
        streams, so the program has to report them (`record_stream`). A block that was used elsewhere is not reused
        when it is freed. An event is put on each of those streams, and the block waits until all of them have
        been passed. Every request first looks whether some have.
        """
        with self.lock:
            if stream == block.stream:
                return
            if not block.stream_uses:
                block.stream_uses = set()
            block.stream_uses.add(stream)
            if self.captures:
                self.deferred_blocks.setdefault(block, set()).add(stream)

    # --------------------------------------------------------------------------- limits, statistics, history

    def set_memory_fraction(self, fraction):
        """Hold at most that part of the device's memory; 1.0: no limit. RuntimeError unless 0 <= fraction <= 1."""
        if not 0 <= fraction <= 1:
            raise RuntimeError(f"invalid fraction:{fraction:g}. Please set within [0, 1].")
        with self.lock:
            self.allowed_memory = None if fraction == 1 else int(fraction * self.total_memory + 0.5)

    def get_memory_fraction(self):
        return 1.0 if self.allowed_memory is None else self.allowed_memory / self.total_memory

    def empty_cache(self, pool_id=NO_POOL):
        """Give back all that is not in use."""
        context = self._gather(ALL)
        with self.lock:
            if self.busy:  # Note [ Freed by a finalizer ]: a MemPool's, here; the cache can wait
                return
            self.busy = True
            try:
                self.release_cached_blocks(context, "empty_cache", pool_id)
            finally:
                self.busy = False
                if self.postponed:
                    self._free_postponed()

    def reset_accumulated_stats(self):
        with self.lock:
            self.stats.reset_accumulated()

    def reset_peak_stats(self):
        with self.lock:
            self.stats.reset_peak()

    def record_history(self, enabled, context, max_entries, all_stacks=False, clear=False, skip_actions=()):
        """Begin or end to write events down; what was written is kept unless `clear`, and dropped at the end."""
        with self.lock:
            if not enabled:
                self.history = None
                return
            history = History(context, max_entries, all_stacks, skip_actions)
            if self.history is not None and not clear:
                history.entries.extend(self.history.entries)
            self.history = history

    # -------------------------------------------------------------------------------------------- private pools
    # Note [ Private pools ]
    # A captured graph remembers addresses and uses them whenever it is replayed, so that memory may not be reused;
    # other programs want some of their memory in segments of its own. Both announce a pool: from then on requests (of
    # the streams that they name) are served from it, and blocks go back to where they came from. Users of a pool are
    # counted. While there is one, its free segments are kept whatever happens; when the last has gone they are given
    # back with the rest of the cache, and the pool disappears with its last segment. A pool's id is a pair of ints.

    def create_or_incref_pool(self, pool_id):
        """One more user of the pool; the first one makes it."""
        with self.lock:
            pool = self.private_pools.get(pool_id)
            if pool is None:
                self.private_pools[pool_id] = PrivatePool(pool_id, self.stats)
            elif pool.use_count == 0:
                raise RuntimeError("a private pool that its users have left cannot be used again")
            else:
                pool.use_count += 1

    def set_use_on_oom(self, pool_id, use):
        """Whether the pool's free blocks may serve requests that nothing else can serve."""
        with self.lock:
            if use and pool_id not in self.use_on_oom_pools:
                self.use_on_oom_pools.append(pool_id)
            elif not use and pool_id in self.use_on_oom_pools:
                self.use_on_oom_pools.remove(pool_id)

    def set_no_split(self, pool_id):
        """The pool's segments are handed out whole."""
        with self.lock:
            self.no_split_pools.add(pool_id)

    def begin_allocate_to_pool(self, pool_id, wants):
        """From now on, requests on streams for which `wants(stream)` is true go to the pool, which gets a user."""
        with self.lock:
            self.create_or_incref_pool(pool_id)
            if any(redirected == pool_id for redirected, _ in self.redirections):
                raise RuntimeError("beginAllocateToPool: already recording to mempool_id")
            self.redirections.append((pool_id, wants))

    def end_allocate_to_pool(self, pool_id):
        """Requests go to the common pools again. `release_pool` has to be called as well: the user still counts."""
        with self.lock:
            for i, (redirected, _) in enumerate(self.redirections):
                if redirected == pool_id:
                    del self.redirections[i]
                    return
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")

    def release_pool(self, pool_id):
        """One user less."""
        with self.lock:
            pool = self._private_pool(pool_id)
            if pool.use_count == 0:
                raise RuntimeError("a private pool was released more often than it was used")
            pool.use_count -= 1
            if pool.use_count == 0:
                self.freeable_pools[pool_id] = pool

    def pool_use_count(self, pool_id):
        with self.lock:
            return self._private_pool(pool_id).use_count

    def _private_pool(self, pool_id):
        try:
            return self.private_pools[pool_id]
        except KeyError:
            raise RuntimeError(f"there is no private pool {pool_id}") from None

    # While a graph is captured nothing runs, and events may not be queried. Blocks with uses on other streams wait for
    # the end of the capture; uses recorded during it are over then.

    def mark_capture_begin(self):
        self.captures += 1

    def mark_capture_end(self):
        self.captures -= 1

    # --------------------------------------------------------------------------- blocks of expandable segments
    # They are neighbours like others, some of them unmapped: addresses without memory.

    def find_expandable_block(self, params):
        """The first of neighbouring free and unmapped blocks with room enough, at the lowest address there is."""
        for _, block in params.pool.unmapped[params.stream]:
            if block.prev is not None and block.prev.is_free:
                block = block.prev
            if self._has_room(block, params.size):
                return block
        return self._new_expandable_segment(params)

    @staticmethod
    def _has_room(block, size):
        while size > 0 and block is not None and block.is_free:
            size -= block.size
            block = block.next
        return size <= 0

    def _new_expandable_segment(self, params):
        pool = params.pool
        page_size = SMALL_SEGMENT if pool.is_small else self.config.large_segment_size
        segment = ExpandableSegment(self.device, params.stream, page_size, self.total_memory, self.driver)
        self.expandable_segments.append(segment)
        block = segment.new_block(pool, segment.address, segment.size, next(self.count_segments))
        block.mapped = False
        pool.insert_unmapped(block)
        return block

    def map_block(self, block, size, params):
        """Map `size` bytes (rounded up to pages) at the beginning of an unmapped block and merge them with free
        neighbours. False if the device has not enough memory."""
        segment, pool, address = block.segment, block.pool, block.address
        mapped = segment.map(address, size)
        if mapped == 0:
            return False
        pool.remove_unmapped(block)
        block.mapped = True
        if mapped < block.size:
            rest = segment.new_block(pool, address + mapped, block.size - mapped, block.counter)
            rest.mapped = False
            rest.insert_between(block, block.next)
            pool.insert_unmapped(rest)
            block.size = mapped
        self._merge_neighbours(block, pool)
        pool.insert(block)
        self._count_reserved(pool, mapped)
        self.stats.num_device_alloc += 1
        if self.history is not None:
            details = {
                "pages": mapped // segment.page_size,
                "page_size": segment.page_size,
                "rounded_size": params.size,
                "retries": params.retries,
                "pool": pool.kind,
            }
            self.record_trace("segment_map", address, mapped, block.stream, pool, params.context, details)
        if block.prev is None and block.segment_context is None:
            block.segment_context = params.context
        return True

    def try_allocate_expandable_block(self, params):
        """Find room for the request and map what is missing. None if the device has not enough memory."""
        block = self.find_expandable_block(params)
        if not block.mapped and not self.map_block(block, min(block.size, params.size), params):
            return None
        while block.size < params.size:  # a free block, an unmapped one behind it: they become one
            following = block.next
            if not self.map_block(following, min(params.size - block.size, following.size), params):
                return None
            block = following
        params.pool.remove(block)
        return block

    # -------------------------------------------------------------------------------------- freeing and merging

    def free_block(self, block, context, deferred=False):
        """Put a block that is not used any more into its pool, as one with its free neighbours."""
        pool, size = block.pool, block.size
        details = None
        if self.history is not None:
            details = {"block_size": size, "deferred": deferred, "pool": pool.kind}
            self.record_trace(
                "free_completed",
                block.address,
                block.requested_size,
                block.stream,
                pool,
                context if context is not None else block.context,
                details,
            )
        del self.active_blocks[block.address]
        block.is_free, block.context = True, None

        # How the free parts of segments change: each neighbour that is merged is one part less, …
        before = 0 if block.prev is None else self.try_merge_blocks(block, block.prev, pool)
        after = 0 if block.next is None else self.try_merge_blocks(block, block.next, pool)
        parts = -(before > 0) - (after > 0)
        nbytes = -before - after
        if block.prev is not None or block.next is not None:
            parts += 1  # … and what comes of it is one more, unless it is a whole segment.
            nbytes += block.size
        pool.insert(block)
        if details is not None:
            details |= merge_details(block, before, after)
        stats = pool.stats
        if block.segment is None:  # free parts of expandable segments can be given back: they are not counted
            if parts:
                stats.inactive_split.change(parts)
            if nbytes:
                stats.inactive_split_bytes.change(nbytes)
        stats.active.decrease(1)
        stats.active_bytes.decrease(size)
        stats.requested_bytes.decrease(block.requested_size)

    @staticmethod
    def try_merge_blocks(block, neighbour, pool):
        """Make `block` and a free neighbour of the same kind one block; the neighbour's size, 0 if they are not."""
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

    def _merge_neighbours(self, block, pool):
        for neighbour in block.prev, block.next:
            if neighbour is not None:
                self.try_merge_blocks(block, neighbour, pool)

    # --------------------------------------------------------------------------------------- finding a free block

    def get_pool(self, size, stream):
        """The pool that a request belongs to; the private pool announced last comes first."""
        pools = self._redirected(stream) if self.redirections else self
        return pools.small_blocks if size <= SMALL_SIZE else pools.large_blocks

    def _redirected(self, stream):
        for pool_id, wants in reversed(self.redirections):
            if wants(stream):
                return self.private_pools[pool_id]
        return self

    def min_remainder(self, params):
        """A block is split if at least this many bytes of it would be left. In PyTorch: `should_split`.

        In the small pool, what is left becomes a block whatever its size: it fits some request. In the large
        pool pieces of up to 1 MiB would be useless, since such requests go to the small pool.
        """
        pool = params.pool
        if self.no_split_pools and pool.id in self.no_split_pools:
            return UNLIMITED
        if pool.is_small or params.expandable:
            return MIN_BLOCK
        return SMALL_SIZE + 1 if params.size < self.config.max_split_size else UNLIMITED

    def get_free_block(self, params):
        """Take the best fit out of the request's pool: True, and it is `params.block`; False if nothing fits."""
        pool, size, config = params.pool, params.size, self.config
        if config.garbage_collection_threshold and self.allowed_memory is not None:
            pool.requests += 1
        blocks = pool.free[params.stream]
        found = bisect_left(blocks, (size,))
        params.candidates = len(blocks) - found
        if not params.candidates:
            return False
        if blocks[found][-1].segment is not None:
            choose = self._best_expandable if params.expandable else self._not_expandable
            found = choose(blocks, found)
            if found == len(blocks):
                return False
        if size < config.max_split_size:
            if blocks[found][0] >= config.max_split_size:  # oversize blocks are kept for oversize requests …
                return False
        elif blocks[found][0] >= size + config.max_non_split_rounding_size:  # … that do not waste too much
            return False
        params.block = blocks.pop(found)[-1]
        return True

    @staticmethod
    def _best_expandable(blocks, found):
        """A block at the end of an expandable segment counts as large as it can become: it may be passed over for a
        larger one that cannot grow as much."""

        def can_become(block):
            grows = block.next is not None and not block.next.mapped
            return block.size + (block.next.size if grows else 0)

        while (
            blocks[found][-1].segment is not None
            and found + 1 < len(blocks)
            and can_become(blocks[found + 1][-1]) < can_become(blocks[found][-1])
        ):
            found += 1
        return found

    @staticmethod
    def _not_expandable(blocks, found):
        """Expandable segments were switched off: no new block is split off theirs."""
        while found < len(blocks) and blocks[found][-1].segment is not None:
            found += 1
        return found

    def get_block_from_private_pool(self, params):
        """Serve a request from a private pool that allows it (`set_use_on_oom`), if one has a block that fits."""
        if params.pool.owner is not None:
            return False
        for pool_id in self.use_on_oom_pools:
            private = self.private_pools.get(pool_id)
            if private is None:
                continue
            common, expandable = params.pool, params.expandable
            params.pool = private.small_blocks if common.is_small else private.large_blocks
            params.expandable = False
            if self.get_free_block(params):
                params.source = "private pool"
                return True
            params.pool, params.expandable = common, expandable
        return False

    def trigger_free_memory_callbacks(self):
        """Whether one of the callbacks freed memory."""
        if not self.free_memory_callbacks:
            return False
        self.busy = False  # nothing is half changed, so callbacks may free and even ask for memory
        try:
            return any([callback() for callback in self.free_memory_callbacks])
        finally:
            self.busy = True

    def garbage_collect_cached_blocks(self, context):
        """Give back large segments that have not been used for long, if more memory is held than the threshold
        allows.

        Age is counted in requests. Those as old as the average or older go first; if that was not enough, the
        average of the rest decides, and so on. In contrast to `release_cached_blocks` it does not wait for the
        device's streams.
        """
        pool = self.large_blocks
        too_much = self.total_allocated - int(self.config.garbage_collection_threshold * self.allowed_memory)
        if too_much <= 0:
            return
        candidates = [block for block in pool.blocks() if block.is_segment]
        ages = sum(map(pool.age, candidates))
        while candidates and too_much > 0:
            average = ages / len(candidates)
            old = [block for block in candidates if pool.age(block) >= average]
            candidates = [block for block in candidates if pool.age(block) < average]
            for block in old:
                too_much -= block.size
                ages -= pool.age(block)
                self.release_block(block, context, "garbage_collection")

    # ------------------------------------------------------------------------------------ memory from the driver

    def alloc_block(self, params):
        """Get memory for the request from the driver: True, and it is `params.block`; False if there is none."""
        size = segment_size(params.size, self.config)
        limit = self.allowed_memory
        params.stopped_by_limit = limit is not None and self.total_allocated + size > limit
        if params.stopped_by_limit:
            return False
        if self.config.throw_on_cudamalloc_oom:
            self._reject_early(params, size)
        if params.expandable:
            params.source, params.block = "pages", self.try_allocate_expandable_block(params)
        else:
            params.source, params.block = "segment", self._new_segment(params, size)
        if params.block is None:
            self._warn(size, params.expandable)
            return False
        return True

    def _new_segment(self, params, size):
        """A block that is a whole new segment; None if the driver has no memory."""
        try:
            address = self.driver.malloc(self.device, size)
        except MemoryAllocationError:
            return None
        pool = params.pool
        block = Block(self.device, params.stream, size, pool, address, next(self.count_segments))
        block.segment_context = params.context
        self._count_reserved(pool, size)
        pool.stats.segment.increase(1)
        if size >= self.config.max_split_size:
            self.stats.oversize_segments.increase(1)
        self.stats.num_device_alloc += 1
        if self.history is not None:
            details = {"segment_size": size, "rounded_size": params.size, "retries": params.retries, "pool": pool.kind}
            self.record_trace("segment_alloc", address, size, params.stream, pool, params.context, details)
        return block

    def _reject_early(self, params, size):
        """`throw_on_cudamalloc_oom`: rather fail here than let the driver fail, and give nothing back."""
        if self.total_allocated + size > self.total_memory * self.config.per_process_memory_fraction:
            self.stats.num_oom_rejections += 1
            raise OutOfMemoryError(
                "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
                f"per_process_memory_fraction limit. Requested size: {format_size(params.requested_size)}"
            )

    def _warn(self, size, expandable):
        if not log.isEnabledFor(logging.WARNING):
            return
        free, total = self.driver.mem_get_info(self.device)
        what = "expandable_segments: memory mapping" if expandable else "memory allocation"
        log.warning(
            "%s failed with OOM on device %d while trying to allocate %d bytes (free: %d, total: %d).",
            what,
            self.device,
            size,
            free,
            total,
        )

    def _count_reserved(self, pool, nbytes):
        """Count memory that came from the driver, or went back to it if `nbytes` is negative, for a pool."""
        self.total_allocated += nbytes
        pool.stats.reserved_bytes.change(nbytes)
        if pool.owner is not None:
            self.stats.of_private_pool(pool).change(nbytes)

    # -------------------------------------------------------------------------------------- memory to the driver

    def release_available_cached_blocks(self, params, context):
        """Give back just enough oversize blocks for the request: one that is large enough, or several, the largest
        first. Whether that was enough; without `max_split_size` no block is oversize.

        Note [ A split block is no segment ]
        Oversize blocks are never split, so each is a whole segment. That holds as long as `max_split_size` stays
        what it is. If it is lowered while the program runs, parts of segments become oversize by definition.
        PyTorch 2.13 takes them for segments here: it hands an address from the middle of a segment to cudaFree, or
        frees a segment in which another block is in use. We look whether a block is split and pass over those
        that are.
        """
        limit = self.config.max_split_size
        if limit == UNLIMITED:
            return False
        wanted = max(params.size, limit)
        blocks = params.pool.free[params.stream]
        found = bisect_left(blocks, (wanted,))
        while found < len(blocks) and blocks[found][-1].segment is None and blocks[found][-1].is_split:
            found += 1
        if found < len(blocks) and blocks[found][-1].is_segment:
            self.release_block(blocks[found][-1], context, "oversize")
            return True
        released = 0
        for size, _, _, block in reversed(blocks[:found]):
            if released >= wanted or size < limit:
                break
            if block.is_segment:
                released += size
                self.release_block(block, context, "oversize")
        return released >= wanted

    def release_cached_blocks(self, context, trigger, pool_id=NO_POOL):
        """Give back everything that is not in use, after waiting for the streams; with a pool's id only what belongs
        to that private pool, if it has no user left."""
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
                self._remove_private_pool(private)

    def _is_empty(self, private):
        """Whether a private pool has no memory any more. In PyTorch: its segments are counted."""
        return not any(pool.blocks() for pool in private.pools) and not any(
            block.pool.owner is private for block in self.active_blocks.values()
        )

    def _remove_private_pool(self, private):
        for pool in private.pools:
            for _, block in [entry for blocks in pool.unmapped.values() for entry in blocks]:
                self.release_expandable_segment(block)
        del self.private_pools[private.id], self.freeable_pools[private.id]

    def release_expandable_segment(self, block):
        """Give an expandable segment's addresses back if nothing of it is mapped: then it is one unmapped block."""
        segment, pool = block.segment, block.pool
        if block.mapped or block.size != segment.size:
            return
        pool.remove_unmapped(block)
        self.expandable_segments.remove(segment)
        segment.release()

    def release_block(self, block, context, trigger):
        """Give a segment back; its one block is in the pool."""
        pool, size = block.pool, block.size
        self.stats.num_device_free += 1
        if self.history is not None:
            details = {"trigger": trigger, "age": pool.age(block), "pool": pool.kind}
            self.record_trace(
                "segment_free",
                block.address,
                size,
                block.stream,
                pool,
                block.segment_context if context is None else context,
                details,
            )
        self.driver.free(self.device, block.address)
        self._count_reserved(pool, -size)
        pool.stats.segment.decrease(1)
        if size >= self.config.max_split_size:
            self.stats.oversize_segments.decrease(1)
        pool.remove(block)

    def unmap_block(self, block, context, trigger):
        """Give back the pages that lie within a free block; what is left of it before and behind stays free."""
        pool, segment = block.pool, block.segment
        unmapped = segment.unmap(block.address, block.size)
        if unmapped is None:
            return
        address, size = unmapped
        pool.remove(block)
        before = address - block.address
        after = block.size - before - size
        if before > 0:
            rest = segment.new_block(pool, block.address, before, block.counter)
            rest.insert_between(block.prev, block)
            pool.insert(rest)
        if after > 0:
            rest = segment.new_block(pool, address + size, after, block.counter)
            rest.insert_between(block, block.next)
            pool.insert(rest)
        block.address, block.size, block.mapped = address, size, False
        self._merge_neighbours(block, pool)
        pool.insert_unmapped(block)
        self._count_reserved(pool, -size)
        self.stats.num_device_free += 1
        if self.history is not None:
            self.record_trace(
                "segment_unmap",
                address,
                size,
                block.stream,
                pool,
                block.segment_context if context is None else context,
                {"trigger": trigger},
            )

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
            self.release_expandable_segment(block)

    # --------------------------------------------------------------------------------------- waiting for streams

    def synchronize_and_free_events(self, context, private_pool=None):
        """Wait for the streams, and free the blocks that waited for them (of one private pool, or all)."""
        self.stats.num_sync_all_streams += 1
        self.insert_events_deferred_until_no_capture(context)
        for stream in sorted(self.stream_events, key=self.stream_order):
            events = self.stream_events.pop(stream)
            others = deque()
            for event, block in events:
                if private_pool is not None and block.pool.owner is not private_pool:
                    others.append((event, block))
                    continue
                self.driver.event_synchronize(event)
                self._event_passed(event, block, context)
            if others:
                self.stream_events[stream] = others

    def insert_events(self, block):
        """Put an event on each of the streams that used the block, behind what they have to do."""
        streams, block.stream_uses = block.stream_uses, frozenset()
        for stream in sorted(streams):
            event = self.event_pool.get()
            self.driver.event_record(event, self.device, stream)
            block.event_count += 1
            self.stream_events.setdefault(stream, deque()).append((event, block))

    def insert_events_deferred_until_no_capture(self, context):
        if not self.deferred_blocks or self.captures:
            return
        deferred, self.deferred_blocks = self.deferred_blocks, {}
        for block, used_in_capture in deferred.items():
            if block.allocated:
                continue
            block.stream_uses = block.stream_uses - used_in_capture
            self.insert_events(block)
            if block.event_count == 0:
                self.free_block(block, context, deferred=True)

    def process_events(self, context):
        """Free the blocks whose last event has been passed. A stream's events are passed in order: behind the first
        that is not, none is."""
        self.insert_events_deferred_until_no_capture(context)
        for stream in sorted(self.stream_events, key=self.stream_order):
            events = self.stream_events[stream]
            while events and self.driver.event_query(events[0][0]):
                self._event_passed(*events.popleft(), context)
            if not events:
                del self.stream_events[stream]

    def _event_passed(self, event, block, context):
        self.event_pool.put(event)
        block.event_count -= 1
        if block.event_count == 0:
            self.free_block(block, context, deferred=True)

    # ---------------------------------------------------------------------------------------------------- history

    def record_trace(self, action, address, size, stream, pool, context, details):
        """Write an event down. Call it only if there is a history."""
        self.history.add(action, self.device, address, size, stream, pool.id, context, details)

    def _gather(self, level):
        """The caller's stack, if there is a history that keeps it."""
        return None if self.history is None else self.history.gather(level)
