"""Records as a DataLoader writes them, made up: one number a batch, times in seconds."""

import collections

Event = collections.namedtuple("Event", "time who what task worker index", defaults=(None, None, None))


def samples(task):
    return [2 * task, 2 * task + 1]


def alone(batches, fetch=0.012, work=0.008):
    """No workers: fetch, work, fetch, work."""
    for task in range(batches):
        now = task * (fetch + work)
        yield from (
            Event(now, "main", "wait begin"),
            Event(now, "main", "fetch begin", task, None, samples(task)),
            Event(now + fetch, "main", "fetch end", task),
            Event(now + fetch, "main", "yield", task),
            Event(now + fetch, "main", "wait end"),
        )


def one_worker(batches, fetch=0.010):
    """Worker 0 fetches one after another; the loop is faster and waits."""
    yield Event(0.010, 0, "start")
    for task in range(batches):
        begun = 0.010 + task * (fetch + 0.0005)
        there = begun + fetch + 0.001
        yield from (
            Event(0.001, "main", "send", task, 0, samples(task)),
            Event(there - 0.007, "main", "wait begin"),
            Event(there, "main", "receive", task, 0),
            Event(there, "main", "yield", task),
            Event(there, "main", "wait end"),
            Event(begun, 0, "fetch begin", task),
            Event(begun + fetch, 0, "fetch end", task),
            Event(begun + fetch + 0.0005, 0, "put", task),
        )
