"""What happened when, in the main process and in the workers. Off unless somebody asks for it.

In PyTorch: only `torch.profiler`, which sees `__next__` as one range. The worker timeline of the chapter
"Dataset, Sampler, DataLoader" is drawn from it.
"""
import contextlib
import time
from typing import NamedTuple


class Event(NamedTuple):
    """One thing that happened.

    what: in the order of a task's life "send", "fetch begin", "fetch end", "put", "receive", "pin begin",
    "pin end", "yield"; of the consumer, "wait begin" and "wait end" of a call of `__next__`; of a worker,
    "start".
    """

    time: float  # seconds, the same clock in all processes
    who: str | int  # "main", "pin" or the number of a worker
    what: str
    task: int | None = None  # which batch of this pass, in the order in which indices were sent
    worker: int | None = None  # of "send" and "receive": which
    index: object = None  # of "send", and of "fetch begin" without workers: what the sampler gave


events = None  # where events of this process go; None: nowhere


def note(who, what, task=None, worker=None, index=None):
    """Call only if `events` is not None: then a loader that is not recorded pays for one comparison."""
    events.append(Event(time.monotonic(), who, what, task, worker, index))


@contextlib.contextmanager
def recording():
    """`with recording() as events:` a list of Events of all loaders whose iterators are made and used
    inside."""
    global events
    previous, events = events, []
    try:
        yield events
    finally:
        events = previous


def in_worker(wanted):
    """A worker has a list of its own, if its events are wanted: what is in it goes along with each batch."""
    global events
    events = [] if wanted else None


def take():
    """The events so far, which are then forgotten here."""
    taken = events[:]
    events.clear()
    return taken
