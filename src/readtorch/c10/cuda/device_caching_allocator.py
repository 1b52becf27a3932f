"""The uppermost storey of a device's allocator: a request for memory, from the first look into the pool to
the error.

In PyTorch: `DeviceCachingAllocator::malloc` in `c10/cuda/CUDACachingAllocator.cpp`. Explained in the
chapter "The caching allocator".
"""
import os

from .block import NO_POOL
from .errors import OutOfMemoryError
from .free_blocks import Request
from .history import ALL, STATE, History
from .private_pools import PrivatePools
from .sizes import format_size, round_size, segment_size


class DeviceCachingAllocator(PrivatePools):
    """The allocator of one device."""

    def __init__(self, device, driver, config, count_segments):
        super().__init__(device, driver, config, count_segments)
        self.set_memory_fraction(config.per_process_memory_fraction)

    def malloc(self, requested_size, stream):
        """A block of at least `requested_size` bytes (more than 0) for work on `stream`. OutOfMemoryError."""
        context = None if self.history is None else self.gather(STATE)
        with self.lock:
            if self.busy:
                raise RuntimeError("memory was asked for by a finalizer that interrupted the allocator: "
                                   "Note [ Freed by a finalizer ]")
            self.busy = True
            try:
                if (self.stream_events or self.deferred_blocks) and not self.captures:
                    self.process_events(context)
                size = round_size(requested_size, self.config)
                request = Request(size, requested_size, stream, self.get_pool(size, stream),
                                  self.config.expandable_segments, context)
                if not self.get_free_block(request) and not self._find_memory(request):
                    self._out_of_memory(request)
                remainder = request.block.size - size
                return self.alloc_found_block(request, split=remainder >= self.least_remainder(request))
            finally:
                self.busy = False
                if self.postponed:
                    self.free_postponed()

    def _find_memory(self, request):
        """No free block fits: whether anything else helps, the cheapest first."""
        context = request.context
        if self._callbacks_freed_memory() and self.get_free_block(request):
            return True
        if self.config.garbage_collection_threshold and self.allowed_memory is not None:
            self.garbage_collect_cached_blocks(context)
        if self.alloc_block(request) or self.get_block_from_helping_pool(request):
            return True
        if self.release_available_cached_blocks(request, context):
            request.retries += 1
            if self.alloc_block(request):
                return True
        if self.captures:
            return False
        self.release_cached_blocks(context, "out_of_memory")
        request.retries += 1
        self.stats.num_alloc_retries += 1
        return self.alloc_block(request)

    def _callbacks_freed_memory(self):
        if not self.free_memory_callbacks:
            return False
        self.busy = False  # the books are in order, so that callbacks may give back and even ask
        try:
            return any([callback() for callback in self.free_memory_callbacks])
        finally:
            self.busy = True

    # ------------------------------------------------------------------------------------------ out of memory

    def _out_of_memory(self, request):
        free, total = self.driver.mem_get_info(self.device)
        if self.history is not None:
            self.record("oom", free, request.size, request.stream, request.pool, request.context,
                        self._why_nothing_serves(request, free))
        self.stats.num_ooms += 1
        size = segment_size(request.size, self.config)
        self.busy = False  # nothing more is changed: observers may do what they want
        for observer in self.out_of_memory_observers:
            observer(self.device, size, total if self.allowed_memory is None else self.allowed_memory, free)
        raise OutOfMemoryError(self._out_of_memory_message(size, free, total))

    def _why_nothing_serves(self, request, device_free):
        """What there is instead of memory for the request: holes that are too small, and the driver's rest."""
        holes = [size for size, *_ in request.pool.free[request.stream]]
        pools = [self.small_blocks, self.large_blocks,
                 *(pool for private in self.private_pools.values() for pool in private.pools)]
        free = sum(block.size for pool in pools for block in pool.blocks())
        return {"limit": self.allowed_memory if request.stopped_by_limit else None,
                "retries": request.retries, "requested_size": request.requested_size, "rounded_size": request.size,
                "segment_size": segment_size(request.size, self.config), "expandable": request.expandable,
                "pool": request.pool.kind, "free_blocks": len(holes), "largest_free": max(holes, default=0),
                "free": sum(holes), "free_elsewhere": free - sum(holes), "device_free": device_free,
                "gave_back": not self.captures}

    def _out_of_memory_message(self, size, free, total):
        allocated = self.stats.families["allocated_bytes"].current
        reserved = self.stats.families["reserved_bytes"].current
        private = sum(block.size for pool in self.private_pools.values()
                      for block in pool.large_blocks.blocks() + pool.small_blocks.blocks())
        allowed = "" if self.allowed_memory is None else f"{format_size(self.allowed_memory)} allowed; "
        in_private_pools = f"with {format_size(private)} allocated in private pools (e.g., CUDA Graphs), "
        return (
            f"CUDA out of memory. Tried to allocate {format_size(size)}. GPU {self.device} has a total "
            f"capacity of {format_size(total)} of which {format_size(free)} is free. "
            f"{self._processes()}{allowed}"
            f"Of the allocated memory {format_size(allocated + private)} is allocated by PyTorch, "
            f"{in_private_pools if private else ''}and {format_size(reserved - allocated - private)} is "
            "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
            "See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
            "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)")

    def _processes(self):
        """Who holds the device's memory, one sentence a process."""
        sentences = ""
        for pid, used in self.driver.processes(self.device):
            who = "Including non-PyTorch memory, this process" if pid == os.getpid() else f"Process {pid}"
            sentences += f"{who} has {format_size(used)} memory in use. "
        return sentences

    # -------------------------------------------------------------------------------- limits and requests

    def set_memory_fraction(self, fraction):
        """Hold at most that part of the device's memory; 1.0: no limit. RuntimeError unless 0 <= fraction
        <= 1."""
        if not 0 <= fraction <= 1:
            raise RuntimeError(f"invalid fraction:{fraction:g}. Please set within [0, 1].")
        with self.lock:
            self.allowed_memory = None if fraction == 1 else int(fraction * self.total_memory + 0.5)

    def get_memory_fraction(self):
        return 1.0 if self.allowed_memory is None else self.allowed_memory / self.total_memory

    def empty_cache(self, pool_id=NO_POOL):
        """Give back all that is not in use."""
        context = self.gather(ALL)
        with self.lock:
            if self.busy:  # Note [ Freed by a finalizer ]: a MemPool's, here; the cache can wait
                return
            self.busy = True
            try:
                self.release_cached_blocks(context, "empty_cache", pool_id)
            finally:
                self.busy = False
                if self.postponed:
                    self.free_postponed()

    def record_history(self, enabled, context, max_entries, all_stacks=False, clear=False, skip_actions=()):
        """Begin or end to write events down; what was written is kept unless `clear`, and dropped at the
        end."""
        with self.lock:
            if not enabled:
                self.history = None
                return
            history = History(context, max_entries, all_stacks, skip_actions)
            if self.history is not None and not clear:
                history.entries.extend(self.history.entries)
            self.history = history

    def reset_accumulated_stats(self):
        with self.lock:
            self.stats.reset_accumulated()

    def reset_peak_stats(self):
        with self.lock:
            self.stats.reset_peak()
