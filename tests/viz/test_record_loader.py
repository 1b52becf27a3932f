"""What the worker timeline draws: a record of the loader, sorted by batches."""

import json

import pytest

from readtorch import viz
from readtorch.utils.data import DataLoader, IterableDataset
from readtorch.viz.record_loader import record_loader, timeline

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
        1.0,
        6.0,
        16.0,
        20.5,
        20.0,
        21.0,
    ]
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
    events = [
        Event(1.0, "main", "send", 0, 0, [None, None]),
        Event(1.1, "main", "send", 1, 0, 7),
        Event(1.2, "main", "send", 2, 0, [("a", 1), "b"]),
    ]
    assert [task["samples"] for task in timeline(events, 1.0, 2.0)["tasks"]] == [[None, None], [7], ["('a', 1)", "b"]]


@pytest.mark.parametrize("waits", [[], [Event(1.5, "main", "wait begin")]])
def test_nothing_happened(waits):
    recorded = timeline(waits, 1.0, 2.0)
    assert recorded["tasks"] == [] and len(recorded["waits"]) == len(waits)


# Loaders that really run


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


def in_time(task, names):
    moments = [task[name] for name in names]
    return None not in moments and moments == sorted(moments)


def test_a_loader_without_workers():
    (run,) = record_loader(DataLoader(range(7), batch_size=3))["runs"]
    assert (run["workers"], run["error"], run["starts"], run["ready"]) == (0, None, [], [])
    assert [task["samples"] for task in run["tasks"]] == [[0, 1, 2], [3, 4, 5], [6]]
    assert all(in_time(task, ["begun", "fetched", "yielded"]) for task in run["tasks"])
    assert [task for _, _, task in run["waits"]] == [0, 1, 2, None]
    assert run["tasks"][-1]["yielded"] <= run["total"]


def test_a_loader_with_workers():
    seen = []
    loader = DataLoader(range(10), 2, num_workers=2)
    recorded = record_loader({"two": loader}, work=lambda batch: seen.append(batch.tolist()))
    (run,) = recorded["runs"]
    assert seen == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert [task["worker"] for task in run["tasks"]] == [0, 1, 0, 1, 0]
    assert all(in_time(task, ["sent", "begun", "fetched", "put"]) for task in run["tasks"])
    assert all(in_time(task, ["sent", "received", "yielded"]) for task in run["tasks"])
    assert [worker for worker, _ in run["starts"]] == [0, 1]
    depths = [depth for _, depth in run["ready"]]
    # four are under way; the loader asks for one more before it hands over what it has received
    assert min(depths) == depths[-1] == 0 and max(depths) <= 5
    assert json.loads(json.dumps(recorded)) == recorded


def test_streams_stop_early_and_so_can_we():
    (run,) = record_loader([("stream", DataLoader(Stream(), 2, num_workers=1))])["runs"]
    assert [task["samples"] for task in run["tasks"]][:2] == [[None, None]] * 2
    assert [task["number"] for task in run["tasks"] if task["yielded"] is not None] == [0, 1]
    (run,) = record_loader(DataLoader(range(10), num_workers=1), batches=3)["runs"]
    assert sum(task["yielded"] is not None for task in run["tasks"]) == 3


def test_an_error_is_told():
    (run,) = record_loader(DataLoader([1, None, 3], num_workers=1))["runs"]
    assert run["error"] == "TypeError: Caught TypeError in DataLoader worker process 0."
    assert run["tasks"][0]["yielded"] is not None


def test_what_is_refused():
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match="7 loaders"):
        record_loader({str(i): loader for i in range(7)})
    with pytest.raises(ValueError, match="0 batches"):
        record_loader(loader, batches=0)
    for bad in ({"a": range(3)}, [loader]):
        with pytest.raises(TypeError, match="expected a DataLoader"):
            record_loader(bad)


def test_the_figure_carries_the_runs():
    figure = viz.worker_timeline({"none": DataLoader(range(4)), "again": DataLoader(range(2))}, run=1)
    assert [len(run["tasks"]) for run in figure.data["runs"]] == [4, 2]
    assert (figure.run, figure.step) == (1, 0)
    assert "again" in figure.static_html()
