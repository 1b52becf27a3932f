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

    def __init__(self, what, outputs, timeout, source=None):
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

    def source_rank(self):
        """Of a receive: the rank that sent."""
        return self.source

    _source_rank = source_rank


Work.__module__ = "readtorch.distributed"
