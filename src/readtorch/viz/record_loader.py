"""One pass over a DataLoader, written down for the worker timeline: who did what with which batch, and when.

The loader's own record (`readtorch.utils.data._utils.record`) says what happened; here it is sorted by
batches and turned into times since the pass began, in milliseconds.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import asdict, dataclass, field

MOST_BATCHES = 120
MOST_RUNS = 6

# what the loader calls it -> the field of Task
MOMENTS = {
    "send": "sent",
    "fetch begin": "begun",
    "fetch end": "fetched",
    "put": "put",
    "pin begin": "pin_begun",
    "pin end": "pinned",
    "receive": "received",
    "yield": "yielded",
}


@dataclass
class Task:
    """A batch on its way. What has not happened to it is None."""

    number: int
    worker: int | None = None  # None: the main process fetches
    samples: list = field(default_factory=list)  # what the sampler gave; None for each sample of a stream
    sent: float | None = None
    begun: float | None = None
    fetched: float | None = None
    put: float | None = None
    pin_begun: float | None = None
    pinned: float | None = None
    received: float | None = None
    yielded: float | None = None


def record_loader(loaders, work=None, batches=None) -> dict:
    """Go through each loader once and do `work(batch)` with every batch -> JSON.

    loaders: a DataLoader of readtorch, a dict or pairs of label and DataLoader. batches: stop after so many.
    ValueError for more loaders or batches than can be drawn, TypeError for what is no DataLoader.
    """
    pairs = labelled(loaders)
    if not 1 <= len(pairs) <= MOST_RUNS:
        raise ValueError(f"{len(pairs)} loaders; the worker timeline draws 1 to {MOST_RUNS}")
    if batches is not None and not 1 <= batches <= MOST_BATCHES:
        raise ValueError(f"{batches} batches; the worker timeline draws 1 to {MOST_BATCHES}")
    return {"runs": [run(label, loader, work or (lambda batch: None), batches) for label, loader in pairs]}


def labelled(loaders) -> list:
    from readtorch.utils.data import DataLoader

    pairs = [("", loaders)] if isinstance(loaders, DataLoader) else loaders
    pairs = list(pairs.items() if hasattr(pairs, "items") else pairs)
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], DataLoader)):
            raise TypeError("expected a DataLoader of readtorch, a dict {label: DataLoader} or a list of pairs")
    return pairs


def run(label, loader, work, batches) -> dict:
    from readtorch.utils.data._utils.record import recording

    error = None
    with recording() as events:
        start = time.monotonic()
        try:
            consume(loader, work, batches)
        except Exception as e:
            error = f"{type(e).__name__}: {e}".splitlines()[0]
        end = time.monotonic()
    return {"label": label, "workers": loader.num_workers, "error": error, **timeline(events, start, end)}


def consume(loader, work, batches):
    """In a function of its own: when it returns, the iterator is gone, and its workers with it."""
    left = MOST_BATCHES if batches is None else batches
    for batch in itertools.islice(loader, left):
        work(batch)


def timeline(events, start, end) -> dict:
    """Events of one pass, in any order -> what happened to each batch, and what the consumer did."""
    events = [event for event in sorted(events, key=lambda event: event.time) if event.time <= end]
    since = lambda moment: round((moment - start) * 1000, 3)
    tasks, starts, waits = {}, {}, []
    for event in events:
        now = since(event.time)
        if event.what in MOMENTS and isinstance(event.task, int):
            task = tasks.setdefault(event.task, Task(event.task))
            setattr(task, MOMENTS[event.what], now)
            note(task, event, waits)
        elif event.what == "start":
            starts[event.who] = now
        elif event.what == "wait begin":
            waits.append([now, now, None])
        elif event.what == "wait end" and waits:
            waits[-1][1] = now
    tasks = [tasks[number] for number in sorted(tasks)]
    return {
        "total": since(end),
        "tasks": [asdict(task) for task in tasks],
        "waits": waits,
        "starts": sorted(map(list, starts.items())),
        "ready": ready(tasks),
    }


def note(task, event, waits):
    """What an event says beside its time."""
    if event.worker is not None:
        task.worker = event.worker
    if event.index is not None:
        task.samples = (
            [plain(key) for key in event.index] if isinstance(event.index, (list, tuple)) else [plain(event.index)]
        )
    if event.what == "yield" and waits:
        waits[-1][2] = task.number


def plain(key):
    return key if key is None or isinstance(key, (int, str)) else str(key)


def ready(tasks) -> list:
    """[moment, how many fetched batches lie ready from then on], for tasks of workers."""
    changes = []
    for task in tasks:
        if task.put is not None:
            # a worker notes `put` after it, when the other end may have taken the batch already
            changes.append((min(task.put, task.received or task.put), 1))
            if task.yielded is not None:
                changes.append((task.yielded, -1))
    depths = itertools.accumulate((change for _, change in sorted(changes)))
    return [[moment, depth] for (moment, _), depth in zip(sorted(changes), depths)]
