"""Blocks, and the pools that free ones wait in.

In PyTorch: `Block`, `BlockPool` and `PrivatePool` in `c10/cuda/CUDACachingAllocator.cpp`.
Explained in the chapter "The caching allocator".
"""

from bisect import bisect_left, insort
from collections import defaultdict

NO_POOL = (0, 0)  # the id of the two pools that everybody uses


class Block:
    """A piece of a segment, next to its neighbours there. Who has one has `size` bytes from `address` on.

    Everything below is what a fresh block starts with; an instance keeps what differs.
    """

    requested_size = 0  # what the program requested
    is_free = True  # whether it may be handed out
    allocated = False  # whether the program has it; if it is neither, it waits for streams
    stream_uses = frozenset()  # other streams that use it: Note [ Used on another stream ]
    event_count = 0  # how many of them have not passed its last use yet
    prev = next = None  # the neighbours in the segment
    mapped = True  # False: a range of addresses without memory, in an expandable segment
    segment = None  # the ExpandableSegment it lies in, if it does
    free_since = 0  # how many requests its pool had seen when it was put there: for garbage collection
    context = None  # stack of the call that requested it …
    segment_context = None  # … and, in a segment's first block, for the segment: kept if history is recorded

    def __init__(self, device, stream, size, pool, address, counter):
        self.device = device
        self.stream = stream  # memory is only reused on the stream that it was requested for
        self.size = size
        self.pool = pool
        self.address = address
        self.counter = counter  # its segment's number in order of creation, over all devices

    @property
    def is_split(self):
        """Whether it is less than its whole segment."""
        return self.prev is not None or self.next is not None

    @property
    def is_segment(self):
        """Whether it is all of a segment that one call of the driver gave."""
        return self.segment is None and self.prev is None and self.next is None

    def insert_between(self, before, after):
        """Become the neighbour of these two, either of which may be None."""
        self.prev, self.next = before, after
        if before is not None:
            before.next = self
        if after is not None:
            after.prev = self

    def __repr__(self):
        state = "allocated" if self.allocated else "free" if self.is_free else "pending"
        return f"<Block {self.address:#x} +{self.size} {state} on cuda:{self.device}, stream {self.stream}>"


class BlockPool:
    """Free blocks, by stream: each stream has a list, ordered by size.

    Note [ Order of free blocks ]
    Among blocks of one size the oldest segment's comes first, then the lowest address. So the first block
    in the list that is large enough is the best fit, a tie goes to the memory that has been there longest,
    and young segments are the ones that become free as a whole. A list holds (size, counter, address,
    block); no two have the same address, so blocks themselves are never compared. In PyTorch: one std::set
    a pool, ordered by the stream first.
    """

    def __init__(self, is_small, stats, owner=None):
        self.is_small = is_small
        self.owner = owner  # the PrivatePool it belongs to, if it does
        self.stats = stats.small_pool if is_small else stats.large_pool  # where its blocks are counted
        self.free = defaultdict(list)  # stream -> [(size, counter, address, block)], ascending
        self.unmapped = defaultdict(list)  # stream -> [(address, block)] of expandable segments, ascending
        self.requests = 0  # counted for garbage collection: the age of a free block

    @property
    def kind(self):
        return "small" if self.is_small else "large"

    @property
    def id(self):
        return NO_POOL if self.owner is None else self.owner.id

    def insert(self, block):
        block.free_since = self.requests
        insort(self.free[block.stream], (block.size, block.counter, block.address, block))

    def remove(self, block):
        blocks = self.free[block.stream]
        del blocks[bisect_left(blocks, (block.size, block.counter, block.address))]

    def insert_unmapped(self, block):
        insort(self.unmapped[block.stream], (block.address, block))

    def remove_unmapped(self, block):
        blocks = self.unmapped[block.stream]
        del blocks[bisect_left(blocks, (block.address,))]

    def blocks(self):
        """All free blocks in order: of the lowest stream first."""
        return [entry[-1] for stream in sorted(self.free) for entry in self.free[stream]]

    def age(self, block):
        """How many requests the pool has seen since the block was freed."""
        return self.requests - block.free_since


class PrivatePool:
    """Two pools of a MemPool's or a captured graph's own: see Note [ Private pools ]."""

    def __init__(self, id, stats):
        self.id = id
        self.use_count = 1  # how many users it has; without any, its free segments may be given back
        self.small_blocks = BlockPool(True, stats, self)
        self.large_blocks = BlockPool(False, stats, self)

    @property
    def pools(self):
        return self.small_blocks, self.large_blocks
