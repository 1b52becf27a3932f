"""Written in the chapter "CUDA kernels with numba": its cells are this file, put together by `tools/mini.py`."""

from collections import Counter, defaultdict, namedtuple

import numpy as np

WARP = 32
BARRIER, LEFT = "the barrier", "the end"
Shuffle = namedtuple("Shuffle", "mask value source")


def lanes_in(mask):
    return {lane for lane in range(WARP) if mask >> lane & 1}


def check_stop(thread):
    if thread.stop is BARRIER:
        return
    if not isinstance(thread.stop, Shuffle):
        raise TypeError(f"{thread} waits for {thread.stop!r}")
    for lane in (thread.lane, thread.stop.source):
        if lane not in lanes_in(thread.stop.mask):
            raise ValueError(f"{thread}: lane {lane} is not in"
                             f" its mask {thread.stop.mask:#x}")


class Thread:
    """One run of a kernel: a generator, stopped at a yield."""

    def __init__(self, block, index, width, shared):
        self.block, self.index, self.width = block, index, width
        self.shared = shared
        self.number = block * width + index  # in the grid
        self.warp, self.lane = divmod(index, WARP)
        self.stop = LEFT  # what it waits for

    def __repr__(self):
        return f"thread {self.index} of block {self.block}"

    def start(self, kernel, arguments):
        self.steps = kernel(self, *arguments)
        if self.steps is not None:  # else it ran without a stop
            self.go_on()

    def go_on(self, answer=None):
        try:
            self.stop = self.steps.send(answer)
        except StopIteration:
            self.stop = LEFT
        else:
            check_stop(self)


def all_at_the_barrier(threads):
    """Every thread of the block, if each stands there."""
    if all(thread.stop is BARRIER for thread in threads):
        return [(thread, None) for thread in threads]
    return []


def lanes_that_meet(threads):
    """The lanes of a complete shuffle, with what each reads."""
    for one in threads:
        if isinstance(one.stop, Shuffle):
            here = {t.lane: t for t in threads
                    if isinstance(t.stop, Shuffle)
                    and (t.warp, t.stop.mask)
                    == (one.warp, one.stop.mask)}
            if lanes_in(one.stop.mask) <= here.keys():
                return [(t, here[t.stop.source].stop.value)
                        for t in here.values()]
    return []


def who_waits(threads):
    """Of threads that cannot go on: how many, which, for what."""
    groups = defaultdict(list)
    for thread in threads:
        what = thread.stop
        if isinstance(what, Shuffle):
            what = f"a shuffle of {what.mask:#x}"
        groups[what].append(thread.index)
    return "; ".join(f"{len(who)} threads at {what} "
                     f"({who[0]} to {who[-1]})"
                     for what, who in groups.items())


def run_block(threads, watch):
    while any(thread.stop != LEFT for thread in threads):
        if ready := all_at_the_barrier(threads):
            watch.barrier(threads[0].block)
        elif not (ready := lanes_that_meet(threads)):
            raise RuntimeError("never meet: "
                               + who_waits(threads))
        for thread, answer in ready:
            watch.running = thread
            thread.go_on(answer)


Access = namedtuple("Access", "thread phase what")


class Watch:
    """What each thread did with each element, and who races."""

    def __init__(self):
        self.phase = Counter()  # barriers that a block has passed
        self.history = defaultdict(list)
        self.races = {}

    def barrier(self, block):
        self.phase[block] += 1

    def access(self, name, i, address, what):
        thread = self.running
        now = Access(thread, self.phase[thread.block], what)
        for before in self.history[address]:
            if ("writes" in (before.what, what)
                    and not self.in_order(before, now)):
                self.races.setdefault((name, i), (before, now))
        self.history[address].append(now)

    def in_order(self, before, now):
        if before.thread is now.thread:
            return True
        return (before.thread.block == now.thread.block
                and before.phase < now.phase)


class Watched:
    """An array that checks and reports each access."""

    def __init__(self, name, data, watch):
        self.name, self.data, self.watch = name, data, watch
        self.size = data.size

    def touch(self, i, what):
        if not 0 <= i < self.size:
            raise IndexError(f"{self.watch.running} {what} "
                             f"{self.name}[{i}] of {self.size}")
        address = self.data[i:].ctypes.data
        self.watch.access(self.name, i, address, what)

    def __getitem__(self, i):
        self.touch(i, "reads")
        return self.data[i]

    def __setitem__(self, i, value):
        self.touch(i, "writes")
        self.data[i] = value


def launch(kernel, grid, width, *arrays, shared=0):
    """Run a kernel; the Watch knows what it did."""
    watch = Watch()
    names = kernel.__code__.co_varnames[1:]  # `me` comes first
    given = [Watched(name, array, watch)
             for name, array in zip(names, arrays)]
    for block in range(grid):
        fresh = np.full(shared, np.nan, np.float32)
        memory = Watched(f"shared {block}", fresh, watch)
        threads = [Thread(block, index, width, memory)
                   for index in range(width)]
        for thread in threads:
            watch.running = thread
            thread.start(kernel, given)
        run_block(threads, watch)
    return watch
