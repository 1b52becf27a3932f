"""Whoever begins a collective and does not wait for it learns all the same that it is stuck.

In PyTorch: `ncclCommWatchdog` in `torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp`, a thread for each group that looks at all Works
every 100 ms; the messages are its own. Here one thread for all groups of the process, which sleeps until the first time limit is over.
A caller that waits gets its error from `Work.wait`, a little earlier.

Note [ What the watchdog does ]
It says which collective is late, keeps what the flight recorder knows (in the file that TORCH_FR_DUMP_TEMP_FILE begins, with
the rank behind it), and fails the Work, so that the group and its other ranks are told, as when the caller had waited. in PyTorch:
after that it ends the process, because what GPUs computed meanwhile may be wrong (TORCH_NCCL_ASYNC_ERROR_HANDLING).
"""

import logging
import os
import threading
import time
import weakref

PATIENCE = 0.3  # seconds beyond the time limit for those who wait to find out by themselves

log = logging.getLogger(__name__)


class Watchdog:
    """Knows every Work that is not over."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.reset()

    def reset(self):
        """In a forked process, too: it has neither the thread nor the ranks' connections."""
        self.works = weakref.WeakSet()
        self.changed = threading.Condition()
        self.thread = None
        self.wakes_at = None  # of time.perf_counter

    def watch(self, work, group, collective):
        """From its beginning to its end."""
        deadline = work.began + work.timeout + work.grace + PATIENCE
        counts = [0 if array is None else array.size for array in (collective.source, collective.target)]
        work.watched = deadline, group, group.sequence, collective.name, counts
        with self.changed:
            self.works.add(work)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self.thread.start()
            if self.wakes_at is None or deadline < self.wakes_at:
                self.changed.notify()

    def _run(self):
        while True:
            for work in self._late():
                self._give_up(work)

    def _late(self):
        """The Works whose time is over, as soon as there are some."""
        with self.changed:
            while True:
                now, works = time.perf_counter(), [work for work in self.works if not work.is_completed()]
                late = [work for work in works if work.watched[0] <= now]
                if late:
                    return late
                first = min((work.watched[0] for work in works), default=None)
                self.wakes_at = first
                self.changed.wait(None if first is None else first - now)

    def _give_up(self, work):
        _, group, number, name, (ours, wanted) = work.watched
        elapsed = (time.perf_counter() - work.began) * 1000
        message = (
            f"[Rank {group.ranks[group.rank()]}] Watchdog caught collective operation timeout: Work(SeqNum={number}, "
            f"OpType={name.replace('_', '').upper()}, NumelIn={ours}, NumelOut={wanted}, "
            f"Timeout(ms)={work.timeout * 1000:.0f}) ran for {elapsed:.0f} milliseconds before timing out."
        )
        log.error(message)
        self._dump(group)
        error = (work.on_late or work._late)(work.timeout + work.grace)
        error.add_note(message)
        work.finish(error)

    def _dump(self, group):
        """What the flight recorder knows, into the file that the environment names."""
        beginning = os.environ.get("TORCH_FR_DUMP_TEMP_FILE") or os.environ.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
        if beginning:
            with open(f"{beginning}{group.ranks[group.rank()]}", "wb") as file:
                file.write(self.recorder.dump_json())
