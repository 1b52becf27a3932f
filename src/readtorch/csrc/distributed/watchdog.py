"""Whoever begins a collective and does not wait for it learns all the same that it is stuck.

In PyTorch: `ncclCommWatchdog` in `torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp`, a thread for each group that looks at all Works
every 100 ms; the messages are its own. Here one thread for all groups of the process, which sleeps until the first time limit is over.
A caller that waits gets its error from `Work.wait`, a little earlier.

Note [ What the watchdog does ]
It says which collective is late, keeps what the flight recorder knows (in the file that TORCH_FR_DUMP_TEMP_FILE begins, with
the rank behind it), and fails the Work, so that the group and its other ranks are told, as when the caller had waited. in PyTorch:
after that it ends the process, because what GPUs computed meanwhile may be wrong (TORCH_NCCL_ASYNC_ERROR_HANDLING).

Note [ The watchdog holds no tensor ]
A Work knows the tensors that it fills, and the thread sleeps for a minute or for an hour. If it slept with a Work among its variables,
the one that was under way when it looked last, those tensors would live as long: a rank would hold a buffer more, through
a whole run. So it looks at deadlines and events, and takes the Work itself only once that is late.
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
        self.watched = {}  # id of a Work -> (until when, the event of its end, a weak reference to it)
        self.changed = threading.Condition()
        self.thread = None
        self.wakes_at = None  # of time.perf_counter

    def watch(self, work, group, collective):
        """From its beginning to its end."""
        deadline = work.began + work.timeout + work.grace + PATIENCE
        counts = [0 if array is None else array.size for array in (collective.source, collective.target)]
        work.watched = deadline, group, group.sequence, collective.name, counts
        with self.changed:
            self._remember(work, deadline)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self.thread.start()
            if self.wakes_at is None or deadline < self.wakes_at:
                self.changed.notify()

    def _remember(self, work, deadline):
        """Until it is gone: see Note [ The watchdog holds no tensor ]."""
        watched, key = self.watched, id(work)
        watched[key] = deadline, work._done, weakref.ref(work, lambda _: watched.pop(key, None))

    def _run(self):
        while True:
            for reference in self._late():
                self._give_up(reference())

    def _late(self):
        """Weak references to the Works whose time is over, as soon as there are some."""
        with self.changed:
            while True:
                now, waiting = time.perf_counter(), [w for w in list(self.watched.values()) if not w[1].is_set()]
                late = [reference for deadline, _, reference in waiting if deadline <= now]
                if late:
                    return late
                first = min((deadline for deadline, _, _ in waiting), default=None)
                self.wakes_at = first
                self.changed.wait(None if first is None else first - now)

    def _give_up(self, work):
        if work is None or work.is_completed():  # a moment ago it was not
            return
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
