"""One run of one kernel: its blocks one after another, or side by side where they wait for the whole grid."""

import contextvars
import inspect

import numpy as np

from . import warp
from .errors import BarrierDivergence, SimulatorError, counted, kernel_frame, place_of
from .language import Language
from .memory import KINDS, LARGEST_SHARED, Array, SharedMemory, WatchedArray
from .rebuild import Rebuilder, plain
from .schedule import Block, Index, whereabouts

MOST_THREADS = 1024  # of a block


class Launch:
    """`watchers` are told of every access and of everything that orders accesses (races.py, recording.py)."""

    def __init__(self, kernel, grid, block, arguments, shared=0, order=None, watchers=()):
        self.grid_size, self.block_size = sizes(grid), sizes(block)
        if np.prod(self.block_size) > MOST_THREADS:
            raise ValueError(f"{np.prod(self.block_size)} threads in a block: a GPU allows {MOST_THREADS}")
        if shared > LARGEST_SHARED:
            raise ValueError(f"{shared} bytes of shared memory: a block may have {LARGEST_SHARED}")
        self.shared, self.order, self.watchers = shared, order, watchers
        self.queue = iter(())  # threads of a block that have not begun
        self.language = Language(self)
        self.enter = self.language.enter
        self.kernel = Rebuilder(self.language, self.wrap).function(plain(kernel))
        given = inspect.signature(self.kernel).bind(*arguments)
        given.apply_defaults()
        # As defaults: a call without arguments is the interpreter's shortest, with least stack to put away.
        self.kernel.__defaults__ = tuple(self.argument(value, name) for name, value in given.arguments.items())

    def run(self):
        with np.errstate(all="ignore"):
            self.context = contextvars.copy_context()  # every thread computes with these settings
            waiting = [block for block in self.blocks() if self.begin(block)]
            while waiting:
                self.grid_barrier(waiting)
                waiting = [block for block in waiting if self.advance(block)]

    def serve(self, worker):
        """What a greenlet does: it begins threads as long as there are any."""
        for thread in self.queue:
            thread.greenlet = worker
            self.enter(thread)
            self.run_thread(thread)

    def run_thread(self, thread):
        try:
            self.kernel()
        except Exception as error:
            if not isinstance(error, SimulatorError):  # those say where
                error.add_note(f"in thread {tuple(thread.index)} of block {tuple(thread.block.index)}")
            raise
        thread.done = True

    def blocks(self):
        for z in range(self.grid_size.z):
            for y in range(self.grid_size.y):
                for x in range(self.grid_size.x):
                    yield Block(self, Index(x, y, z), SharedMemory(self.shared))

    def begin(self, block):
        for watcher in self.watchers:
            watcher.block_begins(block)
        return self.advance(block)

    @staticmethod
    def advance(block):
        """Whether the block has stopped to wait for the grid."""
        block.run()
        return bool(block.alive)

    def grid_barrier(self, waiting):
        if len(waiting) < np.prod(self.grid_size):
            came = counted(len(waiting), "blocks")
            raise BarrierDivergence(f"grid sync waits for every block: only {came} came")
        threads = [thread for block in waiting for thread in block.threads]
        self.synchronized(threads, "grid")
        for block in waiting:
            block.resume(block.threads)

    # ---------------------------------------------------------------------------------------------- memory

    def argument(self, value, name):
        """A kernel's argument: arrays are wrapped, and a Python float is a float64, as for numba."""
        if isinstance(value, tuple):
            return tuple(self.argument(item, f"{name}[{i}]") for i, item in enumerate(value))
        if hasattr(value, "__array_interface__") and not isinstance(value, np.generic):
            return self.wrap(np.asarray(value), name, "global")
        return np.float64(value) if type(value) is float else value

    def wrap(self, data, name, space):
        if self.watchers and space in ("global", "shared"):
            return WatchedArray(data, name, space, self)
        return KINDS.get(data.ndim, Array)(data, name, space, self)

    # ---------------------------------------------------------------------------------- telling the watchers

    def watched(self, kind, array, index, address, place):
        for watcher in self.watchers:
            watcher.access(kind, self.language.thread, array, index, address, place)

    def synchronized(self, threads, scope):
        for watcher in self.watchers:
            watcher.synchronized(threads, scope)

    def warp_answers(self, kind, group, lanes):
        warp.answer(kind, group)
        if kind == "syncwarp":
            self.synchronized(group, "warp")

    def whereabouts(self):
        """For error messages: the thread that runs, and the line that it is at."""
        return whereabouts(self.language.thread, place_of(kernel_frame()))


def sizes(extent):
    """A grid's or block's size in three dimensions, from a number or up to three of them."""
    extent = extent if isinstance(extent, tuple | list) else (extent,)
    if not all(n >= 1 for n in extent) or len(extent) > 3:
        raise ValueError(f"a grid or block of {tuple(extent)}: sizes are 1 or more, in up to 3 dimensions")
    return Index(*map(int, extent), *[1] * (3 - len(extent)))
