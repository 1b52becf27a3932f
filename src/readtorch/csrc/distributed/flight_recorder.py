"""What this process's ranks did last, for the question why they stand still.

In PyTorch: `torch/csrc/distributed/c10d/FlightRecorder.hpp`. Each collective and each message leaves an entry in a ring: who called it
from where, with which shapes, and how far it came. `dump_json` is what PyTorch's `_dump_fr_trace_json` gives, `text` the same to be
read: `print(RECORDER.text())`, with RECORDER from `process_group.py`.

An entry keeps no tensor alive: it holds numbers, and its Work only as long as others hold that.
"""

import itertools
import json
import os
import sys
import threading
import time
import weakref
from collections import deque

from readtorch.c10 import scalar_type

VERSION = "2.10"  # of the format, as PyTorch 2.13 writes it
FRAMES = 12  # of the caller, at most
ENTRIES = 2000  # unless TORCH_FR_BUFFER_SIZE says another number; 0: none


class Entry:
    """One collective, or one end of a message."""

    __slots__ = ("number", "group", "name", "sequence", "p2p", "inputs", "outputs", "created", "timeout", "frames",
                 "thread", "work", "began", "moving", "ended", "error")  # fmt: skip

    def __init__(self, number, group, name, sequence, p2p, inputs, outputs, work):
        self.number = number
        self.group = group.group_name, group.group_desc, group.name(), group.ranks, group.rank()
        self.name = name
        self.sequence = sequence
        self.p2p = p2p
        self.inputs = inputs
        self.outputs = outputs
        self.created = time.time_ns()
        self.timeout = work.timeout
        self.frames = callers()
        self.thread = threading.current_thread()
        self.work = weakref.ref(work)
        self.began, self.moving, self.ended, self.error = work.began, None, None, None

    def close(self, work):
        """The end; from here on the entry knows all by itself."""
        self.moving, self.ended, self.error = work.moving, work.ended, work._error
        self.work = None

    def started(self):
        """When its data began to move, of perf_counter; None if nobody knows."""
        work = self.work and self.work()
        return self.moving if work is None else work.moving

    def state(self):
        if self.ended is not None:
            return "completed" if self.error is None else "failed"
        return "scheduled" if self.started() is None else "started"

    def nanoseconds(self, at):
        """A time of perf_counter as one of the clock on the wall."""
        return None if at is None else self.created + int((at - self.began) * 1e9)


def callers():
    """Where in the program it was called: (code, line), the innermost first. Our own calls are left out."""
    frame, found = sys._getframe(3), []
    while frame is not None and len(found) < FRAMES:
        if "readtorch/csrc/" not in frame.f_code.co_filename:
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


class FlightRecorder:
    """The ring. Groups write into it, each entry before its collective begins."""

    def __init__(self):
        size = os.environ.get("TORCH_FR_BUFFER_SIZE", os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE", ENTRIES))
        self.entries = deque(maxlen=int(size))
        self.count = itertools.count().__next__

    def record(self, group, work, collective):
        """A collective begins."""
        self._add(group, work, collective.name, group.sequence, False, collective.source, collective.target)

    def record_message(self, group, work, name, array, peer):
        """A send or a receive begins."""
        there = group.ranks[peer] if peer is not None else "any"
        name = f"{name} {group.rank()}->{there}" if name == "send" else f"{name} {group.rank()}<-{there}"
        self._add(group, work, name, group.sequence, True, array, array)

    def _add(self, group, work, name, sequence, p2p, source, target):
        if self.entries.maxlen == 0:
            return
        shapes = [[] if array is None else [(array.shape, array.dtype)] for array in (source, target)]
        work.entry = Entry(self.count(), group, name, sequence, p2p, *shapes, work)
        self.entries.append(work.entry)

    def dump(self, only_active=False):
        """All of it, as numbers and words."""
        entries = [entry for entry in list(self.entries) if not (only_active and entry.ended is not None)]
        groups = {entry.group[0]: entry.group for entry in entries}
        return {
            "version": VERSION,
            "comm_lib_version": "",
            "pg_config": {
                name: {"name": name, "desc": desc, "ranks": json.dumps(ranks)}
                for name, (_, desc, _, ranks, _) in groups.items()
            },
            "pg_status": {name: _status(entries, name) for name in groups},
            "entries": [_as_dict(entry) for entry in entries],
            "rank": next((group[3][group[4]] for group in groups.values()), -1),
        }

    def dump_json(self, includeCollectives=True, onlyActive=False):
        """The same as JSON, in bytes."""
        dumped = self.dump(onlyActive)
        if includeCollectives is False:
            dumped["entries"] = []
        return json.dumps(dumped).encode()

    def text(self, last=20):
        """The last entries as a table, and for those that are not over the line that called them."""
        lines = [f"{'no.':>6} {'group':12} {'seq':>5}  {'what':24} {'state':10} {'ms':>10}  shapes"]
        for entry in list(self.entries)[-last:]:
            lines.append(_line(entry))
            if entry.ended is None and entry.frames:
                code, number = entry.frames[0]
                lines.append(f"{'':8}called by {code.co_qualname}, {code.co_filename}:{number}")
        return "\n".join(lines)

    def clear(self):
        self.entries.clear()


def _status(entries, name):
    """How far a group came: the numbers of its last collectives. -1: none."""
    of_group = [entry for entry in entries if entry.group[0] == name and not entry.p2p]
    started = [entry.sequence for entry in of_group if entry.state() != "scheduled"]
    return {
        "last_enqueued_collective": max((entry.sequence for entry in of_group), default=-1),
        "last_started_collective": max(started, default=-1),
        "last_completed_collective": max((e.sequence for e in of_group if e.state() == "completed"), default=-1),
    }


def _as_dict(entry):
    return {
        "record_id": entry.number,
        "pg_id": int(entry.group[0]) if entry.group[0].isdigit() else 0,
        "process_group": list(entry.group[:2]),
        "collective_seq_id": 0 if entry.p2p else entry.sequence,
        "p2p_seq_id": entry.sequence if entry.p2p else 0,
        "op_id": entry.number + 1,
        "profiling_name": f"{entry.group[2]}:{entry.name}",
        "time_created_ns": entry.created,
        "time_discovered_started_ns": entry.nanoseconds(entry.started()),
        "time_discovered_completed_ns": entry.nanoseconds(entry.ended),
        "input_sizes": [list(shape) for shape, _ in entry.inputs],
        "input_dtypes": [_dtype_name(dtype) for _, dtype in entry.inputs],
        "output_sizes": [list(shape) for shape, _ in entry.outputs],
        "output_dtypes": [_dtype_name(dtype) for _, dtype in entry.outputs],
        "state": entry.state(),
        "retired": entry.ended is not None,
        "is_p2p": entry.p2p,
        "timeout_ms": int(entry.timeout * 1000) if entry.timeout != float("inf") else 0,
        "thread_name": entry.thread.name,
        "thread_id": str(entry.thread.ident),
        "frames": [{"name": c.co_qualname, "filename": c.co_filename, "line": line} for c, line in entry.frames],
    }


def _dtype_name(dtype):
    return scalar_type.SCALAR_TYPE_NAMES[scalar_type.by_numpy[dtype]]


def _line(entry):
    shapes = ", ".join(str(list(shape)) for shape, _ in entry.inputs)
    over = ((entry.ended or time.perf_counter()) - entry.began) * 1000
    row = (
        f"{entry.number:6} {entry.group[1][:12]:12} {entry.sequence:5}  {entry.name:24} {entry.state():10} {over:10.1f}"
    )
    return f"{row}  {shapes}"
