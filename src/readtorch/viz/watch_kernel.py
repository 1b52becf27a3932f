"""What the viewer wants to know of one run of a kernel on the simulator, beyond its accesses.

Note [ The order of a warp's accesses ]
The simulator runs thread after thread, from one barrier to the next; a GPU runs warps. So the accesses are
put together warp by warp (Note [ A warp's access ] in c10/cuda/simulator/recording.py), and between two
barriers warp 0 goes first, then warp 1: one of the orders that a GPU could have chosen, and the one in which
a missing barrier shows. Within a warp, an access comes when all of its lanes are there; where lanes take
different ways round a loop and wait for one another, the first lane's next access comes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from readtorch.c10.cuda.simulator import RaceDetector, Recording, SimulatorError
from readtorch.c10.cuda.simulator.launcher import Launch
from readtorch.c10.cuda.simulator.schedule import WARP


class EveryRace(RaceDetector):
    """Keeps a race for each element, where the detector keeps one for each pair of lines."""

    def __init__(self):
        super().__init__(stop=False)
        self.found = {}

    def report(self, race):
        self.found.setdefault((race.first.place, race.second.place, race.array, race.index), race)


@dataclass
class Barrier:
    """Threads that waited for one another: the place in the source, and where in the record of accesses."""

    scope: str  # block, warp or grid
    threads: list  # their numbers in the block
    place: object
    steps: dict  # of each thread: how many accesses it had made


class Watch(Recording):
    """Also writes down the barriers of one block."""

    def __init__(self, block):
        super().__init__()
        self.block = block
        self.barriers = []

    def synchronized(self, threads, scope):
        super().synchronized(threads, scope)
        own = [thread for thread in threads if tuple(thread.block.index) == self.block]
        if own:
            steps = {thread.linear: self.steps[thread] for thread in own}
            self.barriers.append(Barrier(scope, list(steps), own[0].waits.place, steps))


class WatchedLaunch(Launch):
    """Keeps the arrays that the kernel sees: {(space, name): (array, address of its beginning)}.

    Addresses in shared memory count from its beginning, as in a Recording.
    """

    def __init__(self, *arguments):
        self.arrays = {}
        super().__init__(*arguments)

    def wrap(self, data, name, space):
        array = super().wrap(data, name, space)
        if space in ("global", "shared"):
            begin = self.language.thread.block.shared.address if space == "shared" else 0
            self.arrays.setdefault((space, name), (array, array.address - begin))  # parts of it come later
        return array


@dataclass
class Run:
    """One launch that has been simulated."""

    kernel: object
    launch: WatchedLaunch
    watch: Watch
    races: list
    error: SimulatorError | None = None
    steps: list = field(default_factory=list)  # WarpAccess and Barrier, in the order in which they are shown


def simulate(kernel, grid, block, arguments, shared, shown) -> Run:
    """Run a kernel with everything watched; an error of the kernel ends the run and is kept."""
    detector, watch, error = EveryRace(), Watch(shown), None
    launch = WatchedLaunch(kernel, grid, block, arguments, shared, None, [detector, watch])
    if any(not 0 <= at < size for at, size in zip(shown, launch.grid_size)):
        raise ValueError(f"block {shown} is not in a grid of {tuple(launch.grid_size)}")
    try:
        launch.run()
    except SimulatorError as problem:
        error = problem
    run = Run(kernel, launch, watch, list(detector.found.values()), error)
    run.steps = list(in_order(watch, shown))
    return run


def in_order(watch, shown):
    """The steps of one block. Note [ The order of a warp's accesses ]"""
    warps = {}
    for access in watch.warp_accesses():
        if access.block == shown:
            warps.setdefault(access.warp, []).append(access)
    wide = [barrier for barrier in watch.barriers if barrier.scope != "warp"]
    queues = {warp: Queue(accesses, warp, watch.barriers) for warp, accesses in sorted(warps.items())}
    for barrier in [*wide, None]:
        for queue in queues.values():
            yield from queue.until(barrier)
        if barrier:
            yield barrier


class Queue:
    """What the lanes of one warp still have to do: accesses, and barriers of the warp among them."""

    def __init__(self, accesses, warp, barriers):
        self.lanes = {}
        for item in accesses:
            for access in item.accesses:
                self.lanes.setdefault(access.linear, []).append((access.step, item))
        for barrier in barriers:
            if barrier.scope == "warp" and barrier.threads[0] // WARP == warp:
                for lane in barrier.threads:
                    self.lanes.setdefault(lane, []).append((barrier.steps[lane] - 0.5, barrier))
        self.lanes = {
            lane: deque(sorted(items, key=lambda entry: entry[0])) for lane, items in sorted(self.lanes.items())
        }
        self.members = {}
        for lane, items in self.lanes.items():
            for _, item in items:
                self.members.setdefault(id(item), set()).add(lane)

    def until(self, barrier):
        """The items that come before a barrier of the block; all that are left if it is None."""
        while heads := self.heads(barrier):
            item = next(
                (item for item, lanes in heads.values() if lanes == self.members[id(item)]),
                next(iter(heads.values()))[0],
            )
            for lane in self.members[id(item)]:
                self.take(self.lanes[lane], item)
            yield item

    @staticmethod
    def take(items, item):
        """Remove the item, which is the first one but where lanes wait for one another."""
        at = next(i for i, (_, other) in enumerate(items) if other is item)
        del items[at]

    def heads(self, barrier):
        """What each lane does next: {id: (item, lanes)}."""
        found = {}
        for lane, items in self.lanes.items():
            limit = barrier.steps.get(lane, -1) if barrier else float("inf")
            if items and items[0][0] < limit:
                found.setdefault(id(items[0][1]), (items[0][1], set()))[1].add(lane)
        return found
