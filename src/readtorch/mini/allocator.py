"""Written in the chapter "The caching allocator": its cells are this file, put together by `tools/mini.py`."""

import bisect
from collections import defaultdict, deque

MIB = 1 << 20


class Device:
    """Memory, and streams that work when they are run."""

    def __init__(self, memory):
        self.left, self.next = memory, 0x700000000000
        self.sizes, self.queues = {}, defaultdict(deque)

    def malloc(self, size):
        if size > self.left:
            return None
        address = self.next
        self.next, self.left = address + size, self.left - size
        self.sizes[address] = size
        return address

    def free(self, address):
        self.left += self.sizes.pop(address)

    def launch(self, stream, work):
        self.queues[stream].append(work)

    def record(self, stream):
        event = []  # empty until the stream comes to it
        self.launch(stream, lambda: event.append("passed"))
        return event

    def run(self, stream):
        while self.queues[stream]:
            self.queues[stream].popleft()()


def round_size(size):
    return -(-size // 512) * 512


def segment_size(size):
    if size <= MIB:
        return 2 * MIB
    if size < 10 * MIB:
        return 20 * MIB
    return -(-size // (2 * MIB)) * 2 * MIB


class Block:
    before = after = None  # neighbors in the segment
    allocated = False
    events = 0  # how many it waits for

    def __init__(self, stream, pool, address, size):
        self.stream, self.pool = stream, pool
        self.address, self.size = address, size
        self.uses = set()  # other streams


class Pool(list):
    """Free blocks, by stream, then size, then address."""

    def __init__(self, least_rest):
        self.least_rest = least_rest

    @staticmethod
    def key(block):
        return block.stream, block.size, block.address

    def put(self, block):
        bisect.insort(self, block, key=self.key)

    def best_fit(self, stream, size):
        i = bisect.bisect_left(self, (stream, size), key=self.key)
        if i < len(self) and self[i].stream == stream:
            return self.pop(i)


class Allocator:
    def __init__(self, device):
        self.device = device
        self.small, self.large = Pool(512), Pool(MIB + 1)
        self.waiting = []  # (event, block)

    def malloc(self, size, stream=0):
        size = round_size(size)
        pool = self.small if size <= MIB else self.large
        block = self.find(pool, size, stream)
        if block.size - size >= pool.least_rest:
            self.split(block, size)
        block.allocated = True
        return block

    def find(self, pool, size, stream):
        self.process_events()
        block = (pool.best_fit(stream, size)
                 or self.new_segment(pool, size, stream)
                 or self.release_cached()
                 or self.new_segment(pool, size, stream))
        if block is None:
            raise MemoryError(f"no room for {size} bytes")
        return block

    def new_segment(self, pool, size, stream):
        size = segment_size(size)
        address = self.device.malloc(size)
        return address and Block(stream, pool, address, size)

    def split(self, block, size):
        rest = Block(block.stream, block.pool,
                     block.address + size, block.size - size)
        block.size = size
        self.join(rest, block.after)
        self.join(block, rest)
        block.pool.put(rest)

    @staticmethod
    def join(left, right):
        if left:
            left.after = right
        if right:
            right.before = left

    def free(self, block):
        block.allocated = False
        for stream in block.uses:
            event = self.device.record(stream)
            self.waiting.append((event, block))
        block.events, block.uses = len(block.uses), set()
        if not block.events:
            self.free_block(block)

    def free_block(self, block):
        self.merge(block, block.before)
        self.merge(block, block.after)
        block.pool.put(block)

    def merge(self, block, other):
        if not other or other.allocated or other.events:
            return
        other.pool.remove(other)
        if other is block.before:
            block.address = other.address
            self.join(other.before, block)
        else:
            self.join(block, other.after)
        block.size += other.size

    def record_stream(self, block, stream):
        block.uses |= {stream} - {block.stream}

    def process_events(self):
        passed = [block for event, block in self.waiting if event]
        self.waiting = [one for one in self.waiting if not one[0]]
        for block in passed:
            block.events -= 1
            if not block.events:
                self.free_block(block)

    def release_cached(self):
        """Wait; then whole segments go back."""
        for stream in list(self.device.queues):
            self.device.run(stream)
        self.process_events()
        for pool in (self.small, self.large):
            for block in list(pool):
                if not (block.before or block.after):
                    pool.remove(block)
                    self.device.free(block.address)
