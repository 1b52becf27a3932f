"""A network that is not there: ranks that are threads get their messages as late as if they had travelled.

With it a notebook on one machine shows what latency and bandwidth do: Note [ What a message costs ]. The
times are real ones, of the clock on the wall, and no processor is busy meanwhile. Below a millisecond the
threads' own delays count. PyTorch has no such file: its messages travel.
"""

import heapq
import itertools
import math
import threading
import time

from .algorithms import COST


class Network:
    """latency: seconds a message; bandwidth: bytes a second that a rank can send.

    A rank sends one message after the other, and a group runs one collective after the other.
    """

    def __init__(self, latency=20e-6, bandwidth=1e9):
        self.latency = latency
        self.bandwidth = bandwidth
        self.free_at = {}  # (group, rank or None for its collectives) -> when that line is free
        self.timer = Timer()

    def seconds(self, name, bytes_, ranks):
        """How long the collective `name` of `bytes_` a rank takes with the cheapest algorithm."""
        if ranks == 1:
            return 0.0
        if name == "all_reduce":
            return min(cost(ranks, bytes_, self.latency, 1 / self.bandwidth) for cost in COST.values())
        one = self.latency + bytes_ / self.bandwidth
        return one * (ranks - 1 if name in _TO_ALL else math.ceil(math.log2(ranks)))

    def deliver_later(self, group, call, works):
        """Complete `works` when the collective would be over."""
        array = call.target if call.source is None else call.source
        seconds = self.seconds(call.name, 0 if array is None else array.nbytes, len(group.ranks))
        begin, end = self._occupy((group, None), seconds)

        def over():
            for work in works:
                work.moving = begin
                work.finish()

        self.timer.at(end, over)

    def send(self, group, rank, bytes_, arrive):
        """Call `arrive()` when a message that `rank` sends now would be there."""
        _, sent = self._occupy((group, rank), bytes_ / self.bandwidth)
        self.timer.at(sent + self.latency, arrive)

    def _occupy(self, line, seconds):
        """(begin, end) of the next `seconds` of a line."""
        begin = max(time.perf_counter(), self.free_at.get(line, 0.0))
        self.free_at[line] = begin + seconds
        return begin, begin + seconds


_TO_ALL = ("all_gather", "reduce_scatter", "all_to_all")


class Timer:
    """A thread that calls functions at given times. It ends when there has been nothing to do for a while."""

    IDLE = 1.0  # seconds

    def __init__(self):
        self.waiting = []  # heap of (time, number, function)
        self.number = itertools.count().__next__
        self.changed = threading.Condition()
        self.thread = None

    def at(self, when, function):
        """Call `function()` at `when`, of time.perf_counter; what was given first comes first."""
        with self.changed:
            heapq.heappush(self.waiting, (when, self.number(), function))
            self.changed.notify()
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="timer", daemon=True)
                self.thread.start()

    def _run(self):
        while (function := self._next()) is not None:
            function()

    def _next(self):
        """The next function, when it is time; None if there was none for a while."""
        with self.changed:
            while True:
                left = self.waiting[0][0] - time.perf_counter() if self.waiting else self.IDLE
                if left <= 0:
                    return heapq.heappop(self.waiting)[2]
                if not self.changed.wait(left) and not self.waiting:
                    self.thread = None
                    return None
