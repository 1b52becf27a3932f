"""What each rank did when: spans of computing, of communication and of waiting.

`with record(timeline):` this thread's DistributedDataParallel writes into it. Explained in the chapter
"Process groups, DDP and SyncBatchNorm", where the rank timeline widget draws it. PyTorch has no such file;
`torch/csrc/distributed/c10d/logger.cpp` keeps averages of the same times.
"""

import contextlib
import threading
import time

LANES = ("compute", "communication", "wait")


class Timeline:
    """Events of one rank, in seconds of a clock that all processes of a machine share (`time.perf_counter`).

    spans: dicts with lane, name, begin, end and more by kind. instants: dicts with name, at and more.
    """

    def __init__(self, rank):
        self.rank = rank
        self.spans = []
        self.instants = []
        self._works = []

    @contextlib.contextmanager
    def span(self, name, lane="compute", **more):
        """Note how long the block takes."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add_span(lane, name, begin, time.perf_counter(), **more)

    def add_span(self, lane, name, begin, end, **more):
        self.spans.append({"lane": lane, "name": name, "begin": begin, "end": end, **more})

    def instant(self, name, **more):
        """Note that something happened now."""
        self.instants.append({"name": name, "at": time.perf_counter(), **more})

    def follow(self, name, work, **more):
        """Note a collective from its call to its end."""
        self._works.append((name, work, more))

    def export(self):
        """All of it as a dict that JSON can hold. Spans of collectives that are not over are left out."""
        over = [(name, work, more) for name, work, more in self._works if work.ended is not None]
        followed = [
            {
                "lane": "communication",
                "name": name,
                "begin": work.began,
                "moving": work.moving or work.began,
                "end": work.ended,
                **more,
            }
            for name, work, more in over
        ]
        spans = sorted(self.spans + followed, key=lambda s: s["begin"])
        return {"rank": self.rank, "spans": spans, "instants": self.instants}


class _Current(threading.local):
    timeline = None


current = _Current()


@contextlib.contextmanager
def record(timeline):
    """Let what this thread does be noted in `timeline`."""
    previous, current.timeline = current.timeline, timeline
    try:
        yield timeline
    finally:
        current.timeline = previous


def hidden_share(exported):
    """How much of the communication went on while this rank computed: 1 when it never waited, 0 when all was
    waiting.

    exported: what `Timeline.export` gave. Only the time in which data moved counts as communication.
    """
    moving = [(s["moving"], s["end"]) for s in exported["spans"] if s["lane"] == "communication"]
    waits = [(s["begin"], s["end"]) for s in exported["spans"] if s["lane"] == "wait"]
    total = _length(_union(moving))
    exposed = sum(max(0.0, min(e, we) - max(b, wb)) for b, e in _union(moving) for wb, we in _union(waits))
    return 1.0 if total == 0 else 1 - exposed / total


def _union(spans):
    """The same stretches of time, none of them overlapping."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _length(spans):
    return sum(end - begin for begin, end in spans)
