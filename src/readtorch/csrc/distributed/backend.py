"""Backends whose ranks are processes: a thread carries out a group's collectives, one after the other.

In PyTorch: `torch/csrc/distributed/c10d/Backend.hpp` is the base class of all backends; the queue and its thread are in
`torch/csrc/distributed/c10d/ProcessGroupMPI.cpp` (`runLoop`) and once more in `ProcessGroupGloo.cpp`. The caller's thread
goes on computing meanwhile: that is what lets DistributedDataParallel hide communication behind backward. The order is that
of the calls, so it is the same on all ranks if their programs agree.
"""

import contextlib
import queue
import threading
import time

from readtorch.c10.cpu_allocator import share_kept_memory

from .exception import DistBackendError
from .process_group import ProcessGroup
from .process_group_wrapper import GRACE, agree, announce_failure


class QueuedProcessGroup(ProcessGroup):
    """A group with a queue of collectives and a thread that runs them."""

    def __init__(self, rank, ranks, name, timeout, store=None, desc="undefined"):
        super().__init__(rank, ranks, name, timeout, store, desc)
        self.failure = None  # why the group cannot be used any more
        self.mailbox = None  # for the round of checks; a backend sets it
        self._queue = queue.SimpleQueue()
        self._thread = None

    def perform(self, collective, deadline):
        """Carry out a collective in which all ranks have arrived. A backend defines it."""
        raise NotImplementedError

    def start(self, collective, work):
        work.grace = 2 * GRACE
        work.on_late = lambda allowed: self._late(work, allowed)
        if self._thread is None:
            # a large all-reduce needs large buffers: half of its time went into their pages
            share_kept_memory()
            self._thread = threading.Thread(target=self._serve, name=f"group {self.group_desc}", daemon=True)
            self._thread.start()
        self._queue.put((collective, work))

    def _serve(self):
        while self._serve_one():
            pass

    def _serve_one(self):
        """Whether it was not the last. A function of its own: while it waits for the next it holds no tensors of this one."""
        item = self._queue.get()
        if item is None:
            return False
        collective, work = item
        work.finish(self._error_of(collective, work))
        return True

    def _error_of(self, collective, work):
        """Carry out one collective; what went wrong, or None."""
        if self.failure is not None:
            return self.broken(self.failure)
        try:
            deadline = work.began + work.timeout
            mismatch = agree(self, self.mailbox, collective.finger, deadline)
            if mismatch is not None:
                return DistBackendError(f"{work.what}: {mismatch}")
            work.moving = time.perf_counter()
            self.perform(collective, deadline)
            collective.deliver()
        except Exception as error:
            return self.fail(work, error)
        return None

    def fail(self, work, error):
        """The group is over; what `work` raises."""
        if not isinstance(error, DistBackendError):
            error = DistBackendError(f"{work.what} failed: {error}")
        if self.failure is None:
            self.failure = str(error)
            self.notify_others(f"it failed: {error}")  # with the cause, which may be a third rank
        return error

    def _late(self, work, allowed):
        """The thread is stuck in a collective: some rank stopped in the middle of it."""
        return self.fail(
            work,
            DistBackendError(
                f"{work.what} timed out after {(allowed - work.grace) * 1000:.0f} ms, in the middle of its data"
            ),
        )

    def notify_others(self, reason):
        """Let the other ranks know that this one will come to no further collective."""
        with contextlib.suppress(Exception):  # they may have gone: then nobody is left to notify
            announce_failure(self, self.mailbox, reason)

    def give_up(self, reason):
        """This rank's program has failed."""
        if self.failure is None:
            self.failure = reason
            self.notify_others(reason)

    def shutdown(self):
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(GRACE)
            self._thread = None
