"""What a caching allocator counts: nine quantities, each for all blocks, for small and for large ones, and a few
single numbers.

In PyTorch: `DeviceStats` in `c10/core/CachingDeviceAllocator.h`, `Stat` in `c10/core/Allocator.h`.
Explained in the chapter "The caching allocator".
"""

# COUNT of requests served; of segments; of blocks in use (by the program, or by a stream it has not
# finished with); of free blocks that are parts of segments. Then BYTES: in blocks that the program has, in
# segments, in blocks in use, in free parts of segments, and what the program asked for.
FAMILIES = (
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
)


class Stat:
    """A quantity that goes up and down: its value, its peak, and how much came and went in all.

    What came is not stored: it is what is there now and what went. `_offset` is what resetting takes away
    from it.
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

    def change(self, amount):
        """Increase, or decrease if the amount is negative."""
        if amount >= 0:
            self.increase(amount)
        else:
            self.current += amount
            self.freed -= amount

    @property
    def allocated(self):
        return self.current + self.freed + self._offset

    def reset_accumulated(self):
        self._offset = -self.current
        self.freed = 0

    def reset_peak(self):
        self.peak = self.current

    def as_dict(self):
        return {"current": self.current, "peak": self.peak, "allocated": self.allocated, "freed": self.freed}


class DurationStat:
    """How long calls took, in whole microseconds. In PyTorch: `c10/core/Allocator.h`."""

    def __init__(self):
        self.total = self.max = self.min = self.count = 0

    def increase(self, amount):
        self.total += amount
        self.count += 1
        self.max = max(self.max, amount)
        self.min = min(self.min, amount) if self.min else amount

    def reset_accumulated(self):
        self.total = self.count = 0

    def reset_peak(self):
        self.min = self.max = 0

    def as_dict(self):
        values = {name: getattr(self, name) for name in ("total", "max", "min", "count")}
        return values | {"avg": self.total // self.count if self.count else 0}


class KindStat(Stat):
    """A quantity of one kind of blocks: the small ones, or the large ones."""

    __slots__ = ("other", "all")

    def increase(self, amount):
        current = self.current = self.current + amount
        if current > self.peak:
            self.peak = current
        current += self.other.current
        if current > self.all.peak:
            self.all.peak = current


class AllStat:
    """The same quantity of all blocks: the sum of both kinds. Only its peak is not the sum of theirs."""

    __slots__ = ("small_pool", "large_pool", "peak")

    def __init__(self):
        small, large = self.small_pool, self.large_pool = KindStat(), KindStat()
        small.other, large.other = large, small
        small.all = large.all = self
        self.peak = 0

    @property
    def current(self):
        return self.small_pool.current + self.large_pool.current

    @property
    def freed(self):
        return self.small_pool.freed + self.large_pool.freed

    @property
    def allocated(self):
        return self.small_pool.allocated + self.large_pool.allocated

    def reset_accumulated(self):
        self.small_pool.reset_accumulated()
        self.large_pool.reset_accumulated()

    def reset_peak(self):
        self.small_pool.reset_peak()
        self.large_pool.reset_peak()
        self.peak = self.current

    def as_dict(self):
        everything = {name: getattr(self, name) for name in ("current", "peak", "allocated", "freed")}
        return {"all": everything, "small_pool": self.small_pool.as_dict(), "large_pool": self.large_pool.as_dict()}


class PoolStats:
    """The nine quantities of one kind of blocks, a KindStat each."""

    __slots__ = FAMILIES


class DeviceStats:
    """Everything that is counted on one device."""

    def __init__(self, max_split_size):
        self.small_pool, self.large_pool = PoolStats(), PoolStats()
        self.families = {}  # name -> AllStat
        for family in FAMILIES:
            of_all = self.families[family] = AllStat()
            setattr(self.small_pool, family, of_all.small_pool)
            setattr(self.large_pool, family, of_all.large_pool)
        self.reserved_bytes_by_private_pools = {}  # pool id -> AllStat; stays when the pool is gone
        self.oversize_allocations = Stat()  # blocks of max_split_size or more
        self.oversize_segments = Stat()
        self.num_alloc_retries = 0  # how often cached memory was given back and the driver asked once more
        self.num_ooms = 0
        self.num_sync_all_streams = 0
        self.num_device_alloc = 0  # calls that got memory from the driver, segments or pages
        self.num_device_free = 0
        self.num_oom_rejections = 0
        self.max_split_size = max_split_size if max_split_size < 1 << 63 else -1  # as it was at the start

    def of_private_pool(self, pool):
        """Where the segments of a private pool are counted besides."""
        stat = self.reserved_bytes_by_private_pools.setdefault(pool.id, AllStat())
        return stat.small_pool if pool.is_small else stat.large_pool

    def _every_stat(self):
        return [
            *self.families.values(),
            *self.reserved_bytes_by_private_pools.values(),
            self.oversize_allocations,
            self.oversize_segments,
        ]

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
        nested = {
            name: getattr(self, name)
            for name in (
                "num_alloc_retries",
                "num_ooms",
                "num_sync_all_streams",
                "num_device_alloc",
                "num_device_free",
                "num_oom_rejections",
                "max_split_size",
            )
        }
        nested |= {family: stat.as_dict() for family, stat in self.families.items()}
        nested["reserved_bytes_by_private_pools"] = {
            pool_id: stat.as_dict() for pool_id, stat in self.reserved_bytes_by_private_pools.items()
        }
        nested["oversize_allocations"] = self.oversize_allocations.as_dict()
        nested["oversize_segments"] = self.oversize_segments.as_dict()
        return nested
