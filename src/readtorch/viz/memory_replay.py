"""The life of every block in a history: the model behind the allocator explorer.

A *row* is a segment from the driver; of an expandable one, its whole stretch of addresses. Blocks tile what
memory a row has. When a block changes its size or state, its life ends and another begins, so the state after
n events is the lives with born <= n < died: nothing is stored twice, and the lives tell every moment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from .memory_history import PENDING, History, Kinds, Rules, Segment
from .memory_reasons import explain, oom_details

FREE, ACTIVE, WAITING = range(3)
STATES = {"inactive": FREE, "active_allocated": ACTIVE, PENDING: WAITING}
NOBODY = -1


@dataclass
class Block:
    row: Row
    address: int
    size: int
    state: int
    owner: int  # number of the allocation, or NOBODY
    born: int

    @property
    def end(self):
        return self.address + self.size


@dataclass
class Row:
    number: int
    address: int
    size: int
    stream: int
    kind: str
    pool: tuple
    expandable: bool
    starts: list = field(default_factory=list)  # of its blocks, ascending
    blocks: dict = field(default_factory=dict)  # start -> Block

    @property
    def end(self):
        return self.address + self.size

    @property
    def shelf(self):
        """Free blocks are looked for among those of the same stream and pool only."""
        return self.stream, self.pool, self.kind


@dataclass
class Allocation:
    """What somebody asked for, once."""

    requested: int
    born: int  # number of its event; 0: before the history
    frames: list


class Replay:
    def __init__(self, history: History):
        self.history = history
        self.rules = Rules(history.settings)
        self.kinds = Kinds(history)
        self.now = 0
        self.rows, self.lives, self.allocations, self.reasons = [], [], [], []
        self.mapped = []  # rows that have memory, by address
        self.free_sizes = defaultdict(list)  # shelf -> sizes of its free blocks, ascending
        self.free_bytes = Counter()  # shelf -> their sum
        self.all_free_bytes = 0  # the sum over all shelves
        self.out_of_memory = {}  # number of an event -> what there was instead of memory
        self.surprises = 0  # events that the rules did not foresee
        self._begin()
        for self.now, event in enumerate(history.events, 1):
            recorded = event.get("reason")
            reason_after = explain(self, event) if recorded is None else None  # looks at what is there before it
            done = self.EVENTS.get(event["action"], Replay._nothing)(self, event)
            self.reasons.append(reason_after(done) if reason_after else recorded)
        self._end()

    # -- what the rows hold

    def row_at(self, address):
        """The row that has this address, or None."""
        i = bisect_right(self.mapped, address, key=lambda row: row.address) - 1
        return self.mapped[i] if i >= 0 and address < self.mapped[i].end else None

    def block_at(self, address):
        """The block in whose bytes the address lies, or None."""
        row = self.row_at(address)
        i = bisect_right(row.starts, address) - 1 if row else -1
        block = row.blocks[row.starts[i]] if i >= 0 else None
        return block if block and address < block.end else None

    def neighbours(self, block):
        """The free blocks that touch this one: before, after."""
        row, i = block.row, bisect_left(block.row.starts, block.address)
        before = row.blocks[row.starts[i - 1]] if i else None
        after = row.blocks[row.starts[i + 1]] if i + 1 < len(row.starts) else None
        return (
            before if before and before.state == FREE and before.end == block.address else None,
            after if after and after.state == FREE and after.address == block.end else None,
        )

    def put(self, row, address, size, state, owner=NOBODY):
        block = Block(row, address, size, state, owner, self.now)
        insort(row.starts, address)
        row.blocks[address] = block
        if state == FREE:
            insort(self.free_sizes[row.shelf], size)
            self._count_free(row.shelf, size)
        return block

    def take(self, block):
        """The block as it was is no more."""
        row = block.row
        del row.blocks[block.address], row.starts[bisect_left(row.starts, block.address)]
        if block.state == FREE:
            sizes = self.free_sizes[row.shelf]
            del sizes[bisect_left(sizes, block.size)]
            self._count_free(row.shelf, -block.size)
        if block.born < self.now or self.now == 0:
            self.lives.append(
                (row.number, block.address - row.address, block.size, block.state, block.owner, block.born, self.now)
            )

    def _count_free(self, shelf, size):
        self.free_bytes[shelf] += size
        self.all_free_bytes += size

    def become(self, block, state, owner):
        self.take(block)
        return self.put(block.row, block.address, block.size, state, owner)

    def put_free(self, row, address, size):
        """A free block, made one with the free blocks that touch it; and which of them there were."""
        block = self.put(row, address, size, FREE)
        before, after = self.neighbours(block)
        parts = [part for part in (before, block, after) if part]
        if len(parts) > 1:
            for part in parts:
                self.take(part)
            block = self.put(row, parts[0].address, parts[-1].end - parts[0].address, FREE)
        return block, ["previous"] * bool(before) + ["next"] * bool(after)

    # -- rows come and go

    def row_for(self, segment: Segment):
        extent = self.kinds.extent_of(segment.address) if segment.expandable else None
        start, end = extent[:2] if extent else (segment.address, segment.end)
        row = self.row_at(start) if extent else None
        if row is None:
            row = Row(
                len(self.rows), start, end - start, segment.stream, segment.kind, segment.pool, segment.expandable
            )
            self.rows.append(row)
            self.mapped.insert(bisect_left(self.mapped, start, key=lambda row: row.address), row)
        return row

    def _begin(self):
        for segment in self.history.segments:
            self.put(self.row_for(segment), segment.address, segment.size, FREE)
        for address, used in sorted(self.history.used.items()):
            self.allocations.append(Allocation(used.requested, 0, used.frames))
            self.carve(address, used.size, WAITING if used.pending else ACTIVE)

    def _end(self):
        self.now += 1
        for row in self.rows:
            for block in list(row.blocks.values()):
                self.take(block)

    def carve(self, address, size, state):
        """Cut the newest allocation's block out of whatever is there."""
        owner = len(self.allocations) - 1
        there = self.block_at(address)
        if there is None:
            self.surprises += 1
            return None
        size = min(size, there.end - address)
        self.take(there)
        if address > there.address:
            self.put(there.row, there.address, address - there.address, there.state, there.owner)
        if address + size < there.end:
            self.put(there.row, address + size, there.end - address - size, FREE)
        return self.put(there.row, address, size, state, owner)

    # -- the events

    def _alloc(self, event):
        self.allocations.append(Allocation(event["size"], self.now, event.get("frames", [])))
        there = self.block_at(event["addr"])
        if there is None or there.state != FREE or there.address != event["addr"]:
            self.surprises += 1
            return self.carve(event["addr"], self.rules.block_size(event), ACTIVE)
        return self.carve(event["addr"], self.size_from(there, event), ACTIVE)

    def size_from(self, free, event):
        """The size of the block that a request gets from a free one: a part of it or the whole."""
        size = self.rules.block_size(event)
        return size if self.rules.splits(size, free.size - size, free.row) else free.size

    def _free_requested(self, event):
        block = self.block_at(event["addr"])
        return self.become(block, WAITING, block.owner) if block else None

    def _free_completed(self, event):
        block = self.block_at(event["addr"])
        if block is None or block.state == FREE:
            return None
        self.take(block)
        return self.put_free(block.row, block.address, block.size)

    def _segment_alloc(self, event):
        segment = self.kinds.segment_of(event)
        return self.put_free(self.row_for(segment), segment.address, segment.size)

    def _segment_free(self, event):
        row = self.row_at(event["addr"])
        for block in list(row.blocks.values()) if row else []:
            self.take(block)
        if row:
            self.mapped.remove(row)

    def _segment_unmap(self, event):
        start, end = event["addr"], event["addr"] + event["size"]
        block = self.block_at(start)
        if block is None:
            return
        self.take(block)
        for a, b in ((block.address, start), (end, block.end)):
            if a < b:
                self.put(block.row, a, b - a, FREE)

    def _oom(self, event):
        """No memory changes hands. Numbers that were written down are believed rather than those worked out."""
        written = event.get("details", {})
        self.out_of_memory[self.now] = {
            name: written[name] if type(written.get(name)) is int else value
            for name, value in oom_details(self, event).items()
        }

    def _nothing(self, event):
        """snapshot, and what later versions may add: no memory changes hands."""

    EVENTS = {
        "alloc": _alloc,
        "free_requested": _free_requested,
        "free_completed": _free_completed,
        "free": _free_completed,  # what histories of PyTorch 1.x call it
        "segment_alloc": _segment_alloc,
        "segment_map": _segment_alloc,
        "segment_free": _segment_free,
        "segment_unmap": _segment_unmap,
        "oom": _oom,
    }

    # -- is it the truth?

    def segments_that_differ(self):
        """How many of the snapshot's segments the replay ends with otherwise; call it after the replay."""
        end = defaultdict(dict)
        for row, offset, size, state, _, _, died in self.lives:
            if died == self.now:
                end[self.rows[row].address + offset] = (size, state)
        return sum(
            any(end.get(block["address"]) != (block["size"], STATES[block["state"]]) for block in segment["blocks"])
            for segment in self.history.final
        )
