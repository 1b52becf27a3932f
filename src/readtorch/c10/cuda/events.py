"""Giving a block back, at once or when other streams have finished with it.

Note [ Used on another stream ]
Streams run by themselves: when the program drops a tensor, the device may not even have begun the work that
reads it. For work on the stream that the block was asked for on this does not matter: whoever gets the
block next puts work on the same stream, behind the reader. For another stream nobody knows, so the program
has to say it (`record_stream`). A block that was used elsewhere is not reused when it is freed. An event is
put on each of those streams, and the block waits until they have all been passed. Every request begins with
a look at the events.

In PyTorch: `recordStream`, `free`, `insert_events`, `process_events` and `synchronize_and_free_events` in
`c10/cuda/CUDACachingAllocator.cpp`. Explained in the chapter "The caching allocator".
"""
from collections import deque

from .free_blocks import FreeBlocks
from .history import ALL


class Events(FreeBlocks):
    """The storey that knows what streams still do with freed blocks."""

    # The key by which streams are visited: their number. In PyTorch: in the order of a hash table.
    stream_order = None

    def record_stream(self, block, stream):
        """The block is used on that stream, too."""
        with self.lock:
            if stream == block.stream:
                return
            if not block.stream_uses:
                block.stream_uses = set()
            block.stream_uses.add(stream)
            if self.captures:
                self.deferred_blocks.setdefault(block, set()).add(stream)

    def free(self, block):
        """The program does not need the block any more.

        Note [ Freed by a finalizer ]
        Python's collector of cyclic garbage may run at any moment, also in the middle of `malloc`, and may
        find tensors. Their blocks come here while the books are open. The lock lets us in, since it is the
        same thread; `busy` says that we must not touch anything. Such a block is put aside, and whoever was
        interrupted frees it at the end. In PyTorch: no finalizer runs inside the allocator.
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
                if block.stream_uses:
                    self._free_later(block)
                else:
                    self.free_block(block, context)
            finally:
                self.busy = False
                if self.postponed:
                    self.free_postponed()

    def free_postponed(self):
        while self.postponed:
            self.free(self.postponed.pop())

    def _free_later(self, block):
        if self.captures:
            self.deferred_blocks.setdefault(block, set())
        else:
            self._insert_events(block)

    def _record_free_requested(self, block):
        """Returns the stack of who frees, if such stacks are kept."""
        context = self.gather(ALL)
        details = {"block_size": block.size, "pool": block.pool.kind,
                   "waits_for": sorted(block.stream_uses)}
        self.record("free_requested", block.address, block.requested_size, block.stream, block.pool,
                    block.context if context is None else context, details)
        return context

    # -------------------------------------------------------------------------------- waiting for streams

    def _insert_events(self, block):
        """Put an event behind what each of the streams that used the block has to do."""
        streams, block.stream_uses = block.stream_uses, frozenset()
        for stream in sorted(streams):
            event = self.spare_events.pop() if self.spare_events else self.driver.event_create(self.device)
            self.driver.event_record(event, self.device, stream)
            block.event_count += 1
            self.stream_events.setdefault(stream, deque()).append((event, block))

    def process_events(self, context):
        """Free the blocks whose last event has been passed. A stream's events are passed in order, so only
        the first that is not ends the look at it."""
        self._insert_deferred_events(context)
        for stream in sorted(self.stream_events, key=self.stream_order):
            events = self.stream_events[stream]
            while events and self.driver.event_query(events[0][0]):
                self._event_passed(*events.popleft(), context)
            if not events:
                del self.stream_events[stream]

    def synchronize_and_free_events(self, context, private_pool=None):
        """Wait for the streams, and free the blocks that waited for them (of one private pool, or all)."""
        self.stats.num_sync_all_streams += 1
        self._insert_deferred_events(context)
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

    def _event_passed(self, event, block, context):
        self.spare_events.append(event)
        block.event_count -= 1
        if block.event_count == 0:
            self.free_block(block, context, deferred=True)

    # ------------------------------------------------------------------------------------------ graph capture
    # While a graph is captured nothing runs, and events may not be asked about. Blocks with uses on other
    # streams wait for the end of the capture; uses recorded during it are over then.

    def mark_capture_begin(self):
        self.captures += 1

    def mark_capture_end(self):
        self.captures -= 1

    def _insert_deferred_events(self, context):
        if not self.deferred_blocks or self.captures:
            return
        deferred, self.deferred_blocks = self.deferred_blocks, {}
        for block, used_in_capture in deferred.items():
            if block.allocated:
                continue
            block.stream_uses = block.stream_uses - used_in_capture
            self._insert_events(block)
            if block.event_count == 0:
                self.free_block(block, context, deferred=True)
