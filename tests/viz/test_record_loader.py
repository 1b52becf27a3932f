"""What the worker timeline draws: a record of the loader, sorted by batches."""

import json

import pytest

from readtorch.viz.record_loader import timeline

from .loader_events import Event


def two_batches():
    """One worker, two batches; worker events come late, as their data brings them."""
    return [
        Event(10.001, "main", "send", 0, 0, [4, 1]),
        Event(10.002, "main", "send", 1, 0, [3, 2]),
        Event(10.003, "main", "wait begin"),
        Event(10.020, "main", "receive", 0, 0),
        Event(10.021, "main", "yield", 0),
        Event(10.021, "main", "wait end"),
        Event(10.030, "main", "wait begin"),
        Event(10.030, "main", "receive", 1, 0),
        Event(10.031, "main", "yield", 1),
        Event(10.031, "main", "wait end"),
        Event(10.005, 0, "start"),
        Event(10.006, 0, "fetch begin", 0),
        Event(10.016, 0, "fetch end", 0),
        Event(10.0205, 0, "put", 0),
        Event(10.0205, 0, "fetch begin", 1),
        Event(10.025, 0, "fetch end", 1),
        Event(10.026, 0, "put", 1),
    ]


def test_batches_and_their_moments():
    recorded = timeline(two_batches(), 10.0, 10.04)
    assert json.loads(json.dumps(recorded)) == recorded
    assert recorded["starts"] == [[0, 5.0]]
    first, second = recorded["tasks"]
    assert (first["number"], first["worker"], first["samples"]) == (0, 0, [4, 1])
    assert [first[name] for name in ("sent", "begun", "fetched", "put", "received", "yielded")] == [
        1.0, 6.0, 16.0, 20.5, 20.0, 21.0]
    assert second["samples"] == [3, 2] and second["pinned"] is None
    assert recorded["waits"] == [[3.0, 21.0, 0], [30.0, 31.0, 1]] and recorded["total"] == 40.0


def test_depth_of_the_queue():
    """A batch that is taken before its worker has noted that it is there counts from its arrival."""
    assert timeline(two_batches(), 10.0, 10.04)["ready"] == [[20.0, 1], [21.0, 0], [26.0, 1], [31.0, 0]]


def test_what_comes_after_the_end_and_what_never_came():
    events = [*two_batches()[:6], Event(10.5, 0, "fetch begin", 1)]
    recorded = timeline(events, 10.0, 10.04)
    assert recorded["tasks"][1]["begun"] is None and recorded["tasks"][1]["sent"] == 2.0
    assert recorded["starts"] == []


def test_streams_and_single_samples():
    events = [Event(1.0, "main", "send", 0, 0, [None, None]), Event(1.1, "main", "send", 1, 0, 7),
              Event(1.2, "main", "send", 2, 0, [("a", 1), "b"])]
    assert [task["samples"] for task in timeline(events, 1.0, 2.0)["tasks"]] == [
        [None, None], [7], ["('a', 1)", "b"]]


@pytest.mark.parametrize("waits", [[], [Event(1.5, "main", "wait begin")]])
def test_nothing_happened(waits):
    recorded = timeline(waits, 1.0, 2.0)
    assert recorded["tasks"] == [] and len(recorded["waits"]) == len(waits)
