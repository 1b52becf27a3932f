"""The threads of a block and who of them may go on.

Note [ Threads as coroutines ] Every thread of a block is a coroutine (a greenlet): it runs undisturbed until
it has to wait, at a barrier, a shuffle or a vote, and is resumed when those that it waits for have come. So a
kernel costs little more than its own Python code, and the order of the threads is known: what happened can be
told. A greenlet runs one thread after another as long as none waits; only a thread that waits keeps its
greenlet. Greenlets outlive the launch, as the first step of a new one takes longer than many a thread's work.

The order among threads is one that a GPU could have chosen. Whether another one gives another result is the
race detector's question (races.py); `order` also lets a kernel run in another one.

A warp here has no common instruction counter. `activemask` asks for one: it answers with the lanes that stand
at the same instruction once no lane of the warp can go on.
"""

import itertools
import operator
import random
import threading
import typing

from readtorch.c10.extras import extra

with extra("simulator", "The simulator of CUDA kernels"):
    from greenlet import greenlet

from .errors import BarrierDivergence, InactiveLane, counted

WARP = 32
MOST_IDLE = 1024
BLOCK_BARRIERS = {"syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or"}


class Index(typing.NamedTuple):
    x: int
    y: int
    z: int


class Wait(typing.NamedTuple):
    """Why a thread waits: the operation, its place in the source, the lanes it names (None if it is not an operation
    of the warp), what it brings, and for an aligned operation the calls that led there.
    """

    kind: str
    place: object
    mask: int | None = None
    value: object = None
    path: tuple = ()

    @property
    def meets(self):
        """What the waits of lanes have in common that meet. See Note [ The lanes of a mask ]."""
        return self.kind, self.mask, self.path

    def __str__(self):
        named = "" if self.mask is None else f" with mask {self.mask:#010x}"
        return f"{self.kind}{named}, {self.place}"


class Thread:
    __slots__ = ("index", "linear", "lane", "block", "greenlet", "waits", "answer", "done")

    def __init__(self, index, linear, block):
        self.index, self.linear, self.lane, self.block = index, linear, linear % WARP, block
        self.waits, self.answer, self.done = None, None, False


class Worker(greenlet):
    """A greenlet that runs threads. See Note [ Threads as coroutines ]."""

    def run(self):
        while True:
            self.launch.serve(self)
            self.launch = None
            if len(workers.idle) < MOST_IDLE:
                workers.idle.append(self)
            self.parent.switch()


class Workers(threading.local):
    """The greenlets without work; a greenlet cannot leave the Python thread that made it."""

    def __init__(self):
        self.idle = []


workers = Workers()


class Block:
    """The threads of one block, from the start to the end or to a barrier of the whole grid."""

    def __init__(self, launch, index, shared):
        self.launch, self.index, self.shared = launch, index, shared
        size = launch.block_size
        self.threads = [
            Thread(Index(x, y, z), x + size.x * (y + size.y * z), self)
            for z, y, x in itertools.product(range(size.z), range(size.y), range(size.x))
        ]
        self.warps = [self.threads[i : i + WARP] for i in range(0, len(self.threads), WARP)]
        self.begun = False

    @property
    def alive(self):
        return [thread for thread in self.threads if not thread.done]

    def run(self):
        """Run until every thread is done, or all that are not wait for the grid."""
        if not self.begun:
            self.begun = True
            self.start()
        while (alive := self.alive) and not self.waits_for_grid(alive):
            self.resume(self.block_barrier(alive) or self.warp_operations() or self.convergence() or self.stuck(alive))

    def start(self):
        """Begin every thread: whenever one has to wait, another greenlet takes the next."""
        launch = self.launch
        launch.queue = iter(in_order(self.threads, launch.order))
        while operator.length_hint(launch.queue):
            worker = workers.idle.pop() if workers.idle else Worker()
            worker.launch, worker.parent, worker.gr_context = launch, launch.language.hub, launch.context
            worker.switch()

    def resume(self, threads):
        enter = self.launch.enter
        for thread in in_order(threads, self.launch.order):
            enter(thread)
            thread.greenlet.switch()

    # ---------------------------------------------------------------------------------- who may go on

    def waits_for_grid(self, alive):
        if alive[0].waits.kind != "grid" or any(thread.waits.kind != "grid" for thread in alive):
            return False
        if len(alive) < len(self.threads):
            raise BarrierDivergence(self.missing("grid sync", alive))
        return True

    def block_barrier(self, alive):
        """All threads, if they stand at one barrier of the block."""
        first = alive[0].waits
        elsewhere = [thread for thread in alive if thread.waits is not first]
        if not BLOCK_BARRIERS.issuperset([first.kind, *(thread.waits.kind for thread in elsewhere)]):
            return []
        others = any(thread.waits.place is not first.place for thread in elsewhere)
        if others or len(alive) < len(self.threads):
            raise BarrierDivergence(self.missing("syncthreads", alive))
        if first.kind != "syncthreads":
            self.count_votes(first.kind, alive)
        self.launch.synchronized(alive, "block")
        return alive

    @staticmethod
    def count_votes(kind, threads):
        answer = vote(kind, [thread.waits.value for thread in threads])
        for thread in threads:
            thread.answer = answer

    def warp_operations(self):
        """The lanes whose partners have all come, each with its answer."""
        ready = []
        for lanes in self.warps:
            groups = {}
            for lane in lanes:
                if not lane.done and lane.waits.mask is not None:
                    groups.setdefault(lane.waits.meets, []).append(lane)
            for (kind, mask, _), group in groups.items():
                if self.complete(lanes, group, mask):
                    self.launch.warp_answers(kind, group, lanes)
                    ready += group
        return ready

    @staticmethod
    def complete(lanes, group, mask):
        """Has every lane of the mask come? See Note [ The lanes of a mask ]."""
        for lane in group:
            if not mask >> lane.lane & 1:
                raise InactiveLane(
                    f"{lane.waits.kind} with a mask ({mask:#010x}) that leaves out the lane "
                    f"itself, {lane.lane}. {whereabouts(lane)}"
                )
        missing = named_but_absent(lanes, group, mask)
        if missing and all(lane.done for lane in missing):
            raise never_met(group[0], missing[0])
        return not missing

    def convergence(self):
        """Nobody else can go on: those may who only wanted the others to come this far."""
        groups = {}
        for thread in self.alive:
            if thread.waits.kind in ("activemask", "pause"):
                groups.setdefault((thread.linear // WARP, thread.waits.place), []).append(thread)
        for group in groups.values():
            mask = sum(1 << thread.lane for thread in group)
            for thread in group:
                thread.answer = mask
        return [thread for group in groups.values() for thread in group]

    def stuck(self, alive):
        """Nobody can go on. Where a mask names a lane that stands elsewhere, that is the mistake."""
        for lane in alive:
            if lane.waits.mask is not None:
                lanes = self.warps[lane.linear // WARP]
                group = [other for other in lanes if not other.done and other.waits.meets == lane.waits.meets]
                raise never_met(lane, named_but_absent(lanes, group, lane.waits.mask)[0])
        raise BarrierDivergence(self.missing(alive[0].waits.kind, alive))

    # --------------------------------------------------------------------------------------- telling of it

    def missing(self, kind, alive):
        """Who waits where, and who has left."""
        places = {}
        for thread in alive:
            places.setdefault((thread.waits.kind, thread.waits.place), []).append(thread)
        lines = [
            f"  {counted(len(group), 'threads')} ({named(group)}) at {kind}, {place}"
            for (kind, place), group in places.items()
        ]
        gone = [thread for thread in self.threads if thread.done]
        if gone:
            lines.append(f"  {counted(len(gone), 'threads')} ({named(gone)}) left the kernel")
        return "\n".join(
            [f"the threads of block {tuple(self.index)} do not meet: {kind} waits for threads that do not come", *lines]
        )


def named_but_absent(lanes, group, mask):
    """The lanes of a warp that the mask names and that have not come."""
    here = {lane.lane for lane in group}
    return [lane for lane in lanes if mask >> lane.lane & 1 and lane.lane not in here]


def never_met(lane, absent):
    """The error of a lane whose mask names one that does not come."""
    wait = lane.waits
    where = "left the kernel without it" if absent.done else f"waits at {absent.waits}"
    return InactiveLane(
        f"{wait.kind} with a mask ({wait.mask:#010x}) that names lane {absent.lane}, which {where}. {whereabouts(lane)}"
    )


def in_order(threads, order):
    """The threads as they are, "reversed", or shuffled by a seed."""
    if order is None:
        return threads
    if order == "reversed":
        return threads[::-1]
    return random.Random(order).sample(threads, len(threads))


def vote(kind, values):
    """What a barrier answers that also counts."""
    votes = sum(map(bool, values))
    return {"syncthreads_count": votes, "syncthreads_and": int(votes == len(values)), "syncthreads_or": int(votes > 0)}[
        kind
    ]


def named(threads):
    """The first few threads of a group."""
    names = [str(tuple(thread.index)) for thread in threads[:3]]
    return ", ".join(names) + (", …" if len(threads) > 3 else "")


def whereabouts(thread, place=None):
    place = place or thread.waits.place
    return f"Thread {tuple(thread.index)} of block {tuple(thread.block.index)}, {place}"
