"""`Work`: one collective that this rank has begun, to be waited for.

In PyTorch: `torch/csrc/distributed/c10d/Work.hpp`.
"""

import threading
import time

from .exception import DistBackendError
from .future import Future


class Work:
    """The handle that `async_op=True` returns.

    what: how messages name the call ("all_reduce no. 3"); outputs: the tensors that it fills; timeout:
    seconds that `wait` allows, counted from the start of the call.
    """

    def __init__(self, what="a collective", outputs=(), timeout=float("inf"), source=None):
        self.what = what
        self.outputs = outputs
        self.timeout = timeout
        self.source = source  # of a receive: the rank that sent
        self.began = time.perf_counter()
        self.moving = None  # when the ranks had all arrived and data began to move, if the backend knows
        self.ended = None
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._error = None
        self._future = None
        self.grace = 0.0  # seconds beyond the timeout for the backend to say itself who is missing
        self.kind = None  # the collective's name
        self.entry = None  # in the flight recorder
        self.watched = None  # by the watchdog: until when, and how messages describe it
        self.copies = []  # of a receive: (tensor's array, buffer), copied when the buffer is filled
        self.on_late = None  # called when the time is over; returns the error that `wait` raises

    # ------------------------------------------------------------------------- for the backend

    def finish(self, error=None):
        """Mark it complete, once: with `error` or without. Later calls do nothing."""
        with self._lock:
            if self._done.is_set():
                return
            self._error, self.ended = error, time.perf_counter()
            self.on_late = (
                None  # it knows the collective, which knows this: tensors would wait for the garbage collector
            )
            self._done.set()
            future = self._future
        if self.entry is not None:
            self.entry.close(self)
        if future is not None:
            self._complete(future)

    def _complete(self, future):
        if self._error is None:
            future.set_result(self.outputs)
        else:
            future.set_exception(self._error)

    # ------------------------------------------------------------------------- for the caller

    def wait(self, timeout=None):
        """Block until the outputs are filled. Raises what went wrong, DistBackendError if it took too long.

        timeout: a timedelta; by default that of the process group.
        """
        allowed = self.timeout + self.grace if timeout is None else timeout.total_seconds()
        if not self._done.wait(max(0, self.began + allowed - time.perf_counter())):
            late = self.on_late or self._late
            self.finish(late(allowed))
        if self._error is not None:
            raise self._error
        return True

    synchronize = wait

    def _late(self, allowed):
        return DistBackendError(f"{self.what} timed out after {allowed * 1000:.0f} ms")

    def is_completed(self):
        """Whether it is over, with or without success."""
        return self._done.is_set()

    def is_success(self):
        """Whether it is over and nothing went wrong."""
        return self._done.is_set() and self._error is None

    def exception(self):
        """What went wrong, or None."""
        return self._error

    def result(self):
        """The tensors that it filled."""
        return self.outputs

    def get_future(self):
        """A Future of the list of tensors that it fills."""
        with self._lock:
            new = self._future is None
            if new:
                self._future = Future()
                self._future._source = self.wait  # so that its timeout holds for who waits for the future
            over = self._done.is_set()
        if new and over:  # else `finish` completes it
            self._complete(self._future)
        return self._future

    def get_future_result(self):
        """in PyTorch: for NCCL a Future of how it went."""
        raise RuntimeError("Work::getFutureResult not implemented.")

    def source_rank(self):
        """Of a receive: the rank that sent."""
        if self.source is None and self.kind != "recv":
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self.source

    def _source_rank(self):
        return self.source_rank()

    def block_current_stream(self):
        """Nothing to do on the CPU; in PyTorch: the stream waits, not the caller."""

    def _get_duration(self):
        raise RuntimeError("This Backend doesn't support getDuration.")


class CoalescedWork(Work):
    """Several that count as one."""

    def __init__(self, works):
        super().__init__("several collectives", [tensor for work in works for tensor in work.outputs])
        self.works = works

    def wait(self, timeout=None):
        for work in self.works:
            work.wait(timeout)
        return True

    synchronize = wait

    def is_completed(self):
        return all(work.is_completed() for work in self.works)

    def is_success(self):
        return all(work.is_success() for work in self.works)

    def exception(self):
        return next((work.exception() for work in self.works if work.exception() is not None), None)

    def get_future(self):
        """A Future of all tensors that they fill; of what went wrong first if something did."""
        together, left, lock = Future(), [len(self.works)], threading.Lock()
        together._source = self.wait

        def one_is_over(_=None):
            with lock:
                left[0] -= 1
            if left[0] == 0:
                error = self.exception()
                together.set_result(self.outputs) if error is None else together.set_exception(error)

        for work in self.works:
            work.get_future().add_done_callback(one_is_over)
        return together


for _class in (Work, CoalescedWork):
    _class.__module__ = "readtorch.distributed"
