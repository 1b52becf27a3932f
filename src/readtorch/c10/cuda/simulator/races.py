"""A watcher that finds races: two threads use one address, one writes, and nothing puts the two in order.

Note [ What counts as a race ]
The question is not what happened in this run, whose order of threads is one of many, but what could
happen. Every access carries a stamp: its thread, how many barriers its grid and its
block had passed, and the thread's own clock. Of two accesses the earlier one is known to have happened before
the later one if

- one thread made both,
- a barrier of the whole grid, or of the block that both belong to, lay between, or
- both lanes belong to one warp, and a chain of `syncwarp` calls leads from the one to the other. For this
  each lane keeps a vector of clocks: what it knows of the clocks of the 32 lanes. At a `syncwarp` the lanes
  of the mask share what they know. (Shuffles, votes and mma exchange values but order no memory.)

That the lanes of a warp stand at one instruction is no order: since Volta nothing promises that they do. So two
lanes race as any two threads do, also where older chips, on which a warp had one instruction counter, gave the
expected result.

Atomic operations never race with one another; an atomic operation and a plain one may. Order that comes about
by an atomic operation (a lock, "the last block to finish") is not known here: such a kernel is reported.
"""

import typing

from .errors import DataRace
from .schedule import WARP


class Stamp(typing.NamedTuple):
    """One access and when it was."""

    kind: str
    thread: object
    grid: int
    barriers: int
    clock: int
    place: object

    def __str__(self):
        block = tuple(self.thread.block.index)
        return f"a {self.kind} by thread {tuple(self.thread.index)} of block {block}, {self.place}"


class Race(typing.NamedTuple):
    """Two accesses that nothing puts in order."""

    array: str
    index: tuple
    space: str
    first: Stamp
    second: Stamp

    def __str__(self):
        spot = ", ".join(map(str, self.index))
        return (
            f"a race on {self.array}[{spot}] ({self.space} memory): no barrier lies between\n"
            f"  {self.first}\n  {self.second}"
        )


class History:
    """The accesses of one address that a later one could race with: of each thread the last of a kind.

    A write forgets what is known to have happened before it: who races with that races with the write too.
    """

    __slots__ = ("read", "write", "atomic")

    def __init__(self):
        self.read, self.write, self.atomic = {}, {}, {}


OPPONENTS = {"read": ("write", "atomic"), "write": ("write", "atomic", "read"), "atomic": ("write", "read")}


class Clocks(dict):
    """What each thread knows of the clocks of its warp. Its own starts at 1; the others know nothing of that."""

    def __missing__(self, thread):
        self[thread] = [int(lane == thread.lane) for lane in range(WARP)]
        return self[thread]

    def share(self, lanes):
        known = [max(clocks) for clocks in zip(*(self[lane] for lane in lanes))]
        for lane in lanes:
            self[lane] = list(known)
            self[lane][lane.lane] += 1


class RaceDetector:
    """Collects the races of a launch, one for each pair of places; with `stop` it raises the first."""

    def __init__(self, stop=True):
        self.stop = stop
        self.races = []
        self.seen = set()
        self.grid = 0  # barriers of the whole grid so far
        self.barriers = {}  # of each block
        self.clocks = Clocks()
        self.histories = {}

    def block_begins(self, block):
        self.barriers[block] = 0

    def synchronized(self, threads, scope):
        if scope == "grid":
            self.grid += 1
        elif scope == "block":
            self.barriers[threads[0].block] += 1
        else:
            self.clocks.share(threads)

    def access(self, kind, thread, array, index, address, place):
        now = Stamp(kind, thread, self.grid, self.barriers[thread.block], self.clocks[thread][thread.lane], place)
        key = (thread.block, address) if array.space == "shared" else address
        history = self.histories.get(key) or self.histories.setdefault(key, History())
        for opponent in OPPONENTS[kind]:
            for earlier in getattr(history, opponent).values():
                if not self.before(earlier, now):
                    self.report(Race(array.name, index, array.space, earlier, now))
        if kind == "write":
            self.forget(history, now)
        getattr(history, kind)[thread] = now

    def before(self, earlier, now):
        """Is it known that `earlier` happened first?"""
        if earlier.thread is now.thread or earlier.grid < now.grid:
            return True
        if earlier.thread.block is not now.thread.block:
            return False
        if earlier.barriers < now.barriers:
            return True
        same_warp = earlier.thread.linear // WARP == now.thread.linear // WARP
        return same_warp and earlier.clock <= self.clocks[now.thread][earlier.thread.lane]

    def forget(self, history, now):
        for stamps in (history.read, history.write, history.atomic):
            for thread in [t for t, earlier in stamps.items() if self.before(earlier, now)]:
                del stamps[thread]

    def report(self, race):
        places = (race.first.place, race.second.place)
        if places in self.seen:
            return
        self.seen.add(places)
        self.races.append(race)
        if self.stop:
            raise DataRace(str(race))
