"""Written in the chapter "CUDA kernels with numba": its cells are this file, put together by `tools/mini.py`."""

from collections import Counter, defaultdict, namedtuple

import numpy as np

WARP = 32
BARRIER = "the barrier"
Shuffle = namedtuple("Shuffle", "mask value source")


class Thread:
    """One run of a kernel: a generator, stopped at a yield."""

    def __init__(self, block, index, width, shared):
        self.block, self.index, self.width = block, index, width
        self.shared = shared
        self.number = block * width + index  # in the grid
        self.warp, self.lane = divmod(index, WARP)
        self.stop = None  # what it waits for

    def start(self, kernel, arguments):
        self.steps = kernel(self, *arguments)
        if self.steps is not None:  # else it ran without a stop
            self.go_on()

    def go_on(self, answer=None):
        try:
            self.stop = self.steps.send(answer)
        except StopIteration:
            self.stop = None  # it has left the kernel


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
            named = [lane for lane in range(WARP)
                     if one.stop.mask >> lane & 1]
            if all(lane in here for lane in named):
                return [(t, here[t.stop.source].stop.value)
                        for t in here.values()]
    return []


def run_block(threads, watch):
    while any(thread.stop for thread in threads):
        if ready := all_at_the_barrier(threads):
            watch.barrier(threads[0].block)
        elif not (ready := lanes_that_meet(threads)):
            stops = Counter(t.stop or "the end" for t in threads)
            raise RuntimeError(f"they never meet: {dict(stops)}")
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

    def access(self, name, i, what):
        thread = self.running
        now = Access(thread, self.phase[thread.block], what)
        for before in self.history[name, i]:
            if "writes" in (before.what, what):
                if not self.in_order(before, now):
                    race = before, now
                    self.races.setdefault((name, i), race)
        self.history[name, i].append(now)

    def in_order(self, before, now):
        if before.thread is now.thread:
            return True
        return (before.thread.block == now.thread.block
                and before.phase < now.phase)


class Watched:
    """An array that reports each access."""

    def __init__(self, name, data, watch):
        self.name, self.data, self.watch = name, data, watch
        self.size = data.size

    def __getitem__(self, i):
        self.watch.access(self.name, i, "reads")
        return self.data[i]

    def __setitem__(self, i, value):
        self.watch.access(self.name, i, "writes")
        self.data[i] = value


def launch(kernel, grid, width, *arrays, shared=0):
    """Run a kernel; the Watch knows what it did."""
    watch = Watch()
    given = [Watched(f"array {k}", array, watch)
             for k, array in enumerate(arrays)]
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
