"""The lowest storey of a device's allocator: what it knows, who is counted where, and how an event is
written down.

In PyTorch: the members of `DeviceCachingAllocator` in `c10/cuda/CUDACachingAllocator.cpp`; it is one class
of 2,500 lines, of which each of our storeys is a part. Explained in the chapter "The caching allocator".
"""
import threading

from .block import BlockPool
from .sizes import SMALL_SIZE
from .statistics import DeviceStats


class DeviceState:
    """What the allocator of one device keeps in mind."""

    def __init__(self, device, driver, config, count_segments):
        self.device = device
        self.driver = driver
        self.config = config
        self.count_segments = count_segments  # an iterator: the next segment's number, shared by all devices
        self.total_memory = driver.get_device_properties(device).total_memory
        self.allowed_memory = None  # at most so many bytes; None: no limit but the device's
        self.total_allocated = 0  # bytes held now, in segments and pages
        self.stats = DeviceStats(config.max_split_size)
        self.history = None  # a History while events are recorded

        # Blocks are either free, in one of the pools, or active.
        self.small_blocks = BlockPool(True, self.stats)
        self.large_blocks = BlockPool(False, self.stats)
        self.active_blocks = {}  # address -> block that the program has, or that a stream still uses

        # private_pools.py
        self.private_pools = {}  # id -> PrivatePool
        self.freeable_pools = {}  # those without users
        self.redirections = []  # (pool id, predicate of streams): whose requests go to a private pool
        self.use_on_oom_pools = []  # ids of private pools that help out
        self.no_split_pools = set()

        # events.py
        self.stream_events = {}  # stream -> deque of (event, block): the streams that freed blocks wait for
        self.spare_events = []
        self.captures = 0  # how many graph captures are underway
        self.deferred_blocks = {}  # blocks freed during a capture

        self.expandable_segments = []
        self.free_memory_callbacks = []  # asked for memory before the driver is; true: some was freed
        self.out_of_memory_observers = []  # called with (device, size, total, free)

        # Note [ Freed by a finalizer ]
        self.lock = threading.RLock()
        self.busy = False
        self.postponed = []

    def get_pool(self, size, stream):
        """The pool that a request belongs to; the private pool announced last comes first."""
        pools = self._redirected(stream) if self.redirections else self
        return pools.small_blocks if size <= SMALL_SIZE else pools.large_blocks

    def _redirected(self, stream):
        for pool_id, wants in reversed(self.redirections):
            if wants(stream):
                return self.private_pools[pool_id]
        return self

    def count_reserved(self, pool, nbytes):
        """Memory came from the driver (went back to it, if negative): the books of a pool's reserved
        bytes."""
        self.total_allocated += nbytes
        stats = [pool.stats.reserved_bytes]
        if pool.owner is not None:
            stats.append(self.stats.of_private_pool(pool))
        for stat in stats:
            stat.increase(nbytes) if nbytes >= 0 else stat.decrease(-nbytes)

    def record(self, action, address, size, stream, pool, context, details):
        """Write an event down. Call it only if there is a history."""
        self.history.add(action, self.device, address, size, stream, pool.id, context, details)

    def gather(self, level):
        """The caller's stack, if there is a history that keeps it."""
        return None if self.history is None else self.history.gather(level)
