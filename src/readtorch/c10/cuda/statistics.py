"""What the allocator counts: nine quantities, each for all blocks, for small and for large ones, and some numbers more.

In PyTorch: `Stat` in `c10/core/Allocator.h`, `DeviceStats` in `c10/core/CachingDeviceAllocator.h`. Explained in the
chapter "The caching allocator".
"""

# COUNT of requests served; of segments; of blocks in use (by the program, or by a stream it has not finished with); of
# free blocks that are parts of segments. Then BYTES: in blocks that the program has, in segments, in blocks in use, in
# free parts of segments, and what the program asked for.
FAMILIES = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
            "inactive_split_bytes", "requested_bytes")
KINDS = ("all", "small_pool", "large_pool")


class Stat:
    """A quantity that goes up and down: its value, its peak, and how much came and went in all.

    What came is not stored: it is what is there now and what went. `_offset` is what resetting takes away from it.
    """

    __slots__ = ("current", "peak", "freed", "_offset")

    def __init__(self):
        self.current = self.peak = self.freed = self._offset = 0

    def increase(self, amount):
        current = self.current = self.current + amount
        if current > self.peak:
            self.peak = current

    def decrease(self, amount):
        self.current -= amount
        self.freed += amount

    @property
    def allocated(self):
        return self.current + self.freed + self._offset

    def reset_accumulated(self):
        self.freed = 0
        self._offset = -self.current

    def reset_peak(self):
        self.peak = self.current

    def as_dict(self):
        return {"current": self.current, "peak": self.peak, "allocated": self.allocated, "freed": self.freed}


class PoolStats:
    """The nine quantities of one kind of blocks."""

    __slots__ = FAMILIES

    def __init__(self):
        for family in FAMILIES:
            setattr(self, family, Stat())

    def stats(self):
        return [getattr(self, family) for family in FAMILIES]


class DeviceStats:
    """Everything that is counted on one device."""

    def __init__(self, max_split_size):
        self.all, self.small_pool, self.large_pool = PoolStats(), PoolStats(), PoolStats()
        self.reserved_bytes_by_private_pools = {}  # pool id -> {kind: Stat}; stays when the pool is gone
        self.oversize_allocations = Stat()  # blocks of max_split_size or more
        self.oversize_segments = Stat()
        self.num_alloc_retries = 0  # how often cached memory was given back and the driver asked once more
        self.num_ooms = 0
        self.num_sync_all_streams = 0
        self.num_device_alloc = 0  # calls that got memory from the driver, segments or pages
        self.num_device_free = 0
        self.num_oom_rejections = 0
        self.max_split_size = max_split_size if max_split_size < 1 << 63 else -1  # as it was at the start

    def of_pool(self, pool_is_small):
        """Where a block of that kind of pool is counted."""
        return (self.all, self.small_pool if pool_is_small else self.large_pool)

    def of_private_pool(self, pool_id, is_small):
        """Where the segments of a private pool are counted besides."""
        stats = self.reserved_bytes_by_private_pools.get(pool_id)
        if stats is None:
            stats = self.reserved_bytes_by_private_pools[pool_id] = {kind: Stat() for kind in KINDS}
        return stats["all"], stats["small_pool" if is_small else "large_pool"]

    def _every_stat(self):
        for kind in KINDS:
            yield from getattr(self, kind).stats()
        for stats in self.reserved_bytes_by_private_pools.values():
            yield from stats.values()
        yield self.oversize_allocations
        yield self.oversize_segments

    def reset_accumulated(self):
        for stat in self._every_stat():
            stat.reset_accumulated()
        self.num_alloc_retries = self.num_ooms = self.num_sync_all_streams = 0
        self.num_device_alloc = self.num_device_free = self.num_oom_rejections = 0

    def reset_peak(self):
        for stat in self._every_stat():
            stat.reset_peak()

    def as_nested_dict(self):
        """As `torch.cuda.memory_stats_as_nested_dict()` gives them."""
        nested = {name: getattr(self, name) for name in (
            "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
            "num_oom_rejections", "max_split_size")}
        for family in FAMILIES:
            nested[family] = {kind: getattr(getattr(self, kind), family).as_dict() for kind in KINDS}
        nested["reserved_bytes_by_private_pools"] = {
            f"{first}_{second}": {kind: stat.as_dict() for kind, stat in stats.items()}
            for (first, second), stats in self.reserved_bytes_by_private_pools.items()}
        nested["oversize_allocations"] = self.oversize_allocations.as_dict()
        nested["oversize_segments"] = self.oversize_segments.as_dict()
        return nested
