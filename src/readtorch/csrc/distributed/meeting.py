"""Each collective, carried out by whoever has the arrays of all ranks in hand: what it means, in a line or
two.

`calls[i]` is the part of rank i. The backend `threads` runs these.
"""
from .collective import offsets
from .types import combine, finish


def all_reduce(calls):
    total = _reduced(calls)
    for call in calls:
        call.target[...] = total


def reduce(calls):
    calls[calls[0].root].target[...] = _reduced(calls)


def broadcast(calls):
    root = calls[calls[0].root]
    for call in calls:
        if call is not root:
            call.target[...] = root.source


def all_gather(calls):
    for call in calls:
        _stack(call.target, calls)


def gather(calls):
    _stack(calls[calls[0].root].target, calls)


def scatter(calls):
    parts = calls[calls[0].root].source
    for call, part in zip(calls, parts):
        call.target[...] = part


def reduce_scatter(calls):
    for call, part in zip(calls, _reduced(calls)):
        call.target[...] = part


def all_to_all(calls):
    sent = [offsets(call.source_counts) for call in calls]
    for j, receiver in enumerate(calls):
        position = 0
        for i, sender in enumerate(calls):
            part = sender.source[sent[i][j]:sent[i][j + 1]]
            receiver.target[position:position + part.size] = part
            position += part.size


def barrier(calls):
    pass


def _reduced(calls):
    """From rank 0 to the last: the same sum on every rank and in every run."""
    total = calls[0].source.copy()
    for call in calls[1:]:
        combine(call.op, total, call.source)
    finish(calls[0].op, total, len(calls))
    return total


def _stack(target, calls):
    for row, call in zip(target, calls):
        row[...] = call.source


PERFORM = {f.__name__: f for f in (all_reduce, reduce, broadcast, all_gather, gather, scatter, reduce_scatter,
                                   all_to_all, barrier)}
