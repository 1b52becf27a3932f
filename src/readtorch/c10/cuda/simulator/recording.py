"""A watcher that writes every access down, and what the memory system would have made of it.

Note [ A warp's access ]
The lanes of a warp execute one instruction together, and the memory system sees all their addresses at once.
Here each thread runs by itself; so the accesses of one warp are put together again: those of the same
instruction that are the k-th of this instruction in their threads. Where lanes take different ways around a
loop this is how a warp could have run.

Global memory moves in sectors of 32 bytes: an access of the warp costs as many sectors as its addresses
touch. Shared memory has 32 banks, each gives one word of 4 bytes at a time: an access takes as many turns as
the fullest bank has different words to give. Accesses of 8 or 16 bytes are served 128 bytes at a time, in two
or four parts of the warp: so they take two or four turns where nothing conflicts.
"""

import typing
from collections import Counter, defaultdict

from .schedule import WARP

SECTOR, BANKS, WORD = 32, 32, 4


class Access(typing.NamedTuple):
    """One thread uses one element.

    `step` counts the accesses of the thread, `phase` the barriers that its block has passed, `occurrence` how
    often the thread has come by this instruction before.
    """

    block: tuple
    thread: tuple
    linear: int
    phase: int
    step: int
    place: object
    occurrence: int
    array: str
    space: str
    index: tuple
    address: int  # in global memory as on this machine, in shared memory from its beginning
    size: int
    kind: str  # read, write or atomic

    def units(self, size):
        """The numbers of the pieces of memory of this size that the element lies in."""
        return range(self.address // size, (self.address + self.size - 1) // size + 1)


class WarpAccess(typing.NamedTuple):
    """What one warp asks of memory with one instruction."""

    block: tuple
    warp: int
    phase: int
    place: object
    array: str
    space: str
    kind: str
    accesses: list

    @property
    def sectors(self):
        """How many sectors of 32 bytes the addresses touch."""
        return len({sector for access in self.accesses for sector in access.units(SECTOR)})

    @property
    def fewest_sectors(self):
        """How many would do for so many different bytes."""
        different = len({a.address for a in self.accesses})
        return -(-different * self.accesses[0].size // SECTOR)

    @property
    def turns(self):
        """How often shared memory has to be asked: `fewest_turns` without a bank conflict."""
        return sum(fullest_bank(part) for part in self.parts)

    @property
    def fewest_turns(self):
        """A turn for each part of the warp that is served by itself: 1, where elements have up to 4 bytes."""
        return len(self.parts)

    @property
    def parts(self):
        together = max(1, BANKS * WORD // max(self.accesses[0].size, WORD))
        parts = defaultdict(list)
        for access in self.accesses:
            parts[access.linear % WARP // together].append(access)
        return list(parts.values())


def fullest_bank(accesses):
    words = {word for access in accesses for word in access.units(WORD)}
    return max(Counter(word % BANKS for word in words).values())


class Recording:
    """The accesses of a launch, in the order in which they were simulated."""

    def __init__(self):
        self.accesses = []
        self.phases = Counter()
        self.steps = Counter()
        self.occurrences = Counter()

    def block_begins(self, block):
        pass

    def synchronized(self, threads, scope):
        if scope != "warp":
            self.phases.update({thread.block for thread in threads})

    def access(self, kind, thread, array, index, address, place):
        if array.space == "shared":
            address -= thread.block.shared.address
        self.accesses.append(
            Access(
                tuple(thread.block.index),
                tuple(thread.index),
                thread.linear,
                self.phases[thread.block],
                self.steps[thread],
                place,
                self.occurrences[thread, place, kind],
                array.name,
                array.space,
                index,
                address,
                array.itemsize,
                kind,
            )
        )
        self.steps[thread] += 1
        self.occurrences[thread, place, kind] += 1

    def warp_accesses(self, space=None):
        """The accesses warp by warp: see Note [ A warp's access ]."""
        together = defaultdict(list)
        for a in self.accesses:
            if space in (None, a.space):
                key = (a.block, a.linear // WARP, a.place, a.occurrence, a.array, a.space, a.kind)
                together[key].append(a)
        return [
            WarpAccess(block, warp, lanes[0].phase, place, array, where, kind, lanes)
            for (block, warp, place, _, array, where, kind), lanes in together.items()
        ]

    def coalescing(self):
        """For each line and array of global memory: (sectors moved, fewest that would have done)."""
        return self._by_line("global", lambda access: (access.sectors, access.fewest_sectors))

    def bank_conflicts(self):
        """For each line and shared array: (turns taken, fewest that would have done); equal: nothing conflicts."""
        return self._by_line("shared", lambda access: (access.turns, access.fewest_turns))

    def _by_line(self, space, cost):
        totals = {}
        for access in self.warp_accesses(space):
            key = (access.place.line, access.array, access.kind)
            totals[key] = tuple(map(sum, zip(totals.get(key, (0, 0)), cost(access))))
        return totals

    def traffic(self):
        """For each thread (block, thread): bytes by (space, kind)."""
        totals = defaultdict(Counter)
        for a in self.accesses:
            totals[a.block, a.thread][a.space, a.kind] += a.size
        return dict(totals)
