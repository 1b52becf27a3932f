"""`mini.profiler`: who calls whom, as PyTorch's profiler says it; schedules; a file with the keys of PyTorch's."""

import json
import random
import warnings

import numpy as np
import pytest
import torch
from torch.autograd.profiler_util import EventList, FunctionEvent

from readtorch.mini import dispatcher
from readtorch.mini import profiler as mini
from readtorch.mini.dispatcher import Tensor, add, mul


def spans(draw, begin, end, depth=0):
    """(begin, end, name) of random events inside each other. No two times are equal."""
    while begin + 8 < end:
        first, last = sorted(draw.sample(range(begin, end), 2))
        if last - first > 2:
            yield first, last, draw.choice("abc")
            if depth < 4:
                yield from spans(draw, first + 1, last - 1, depth + 1)
        begin = last + 1


def theirs(program):
    """{begin: (name, begin of the parent, own time)} of PyTorch's events with these times."""
    made = [FunctionEvent(i, name, 0, begin, end) for i, (begin, end, name) in enumerate(program)]
    events = EventList(sorted(made, key=lambda e: (e.time_range.start, -e.time_range.end)))
    events._populate_cpu_children()
    parent = lambda e: e.cpu_parent and e.cpu_parent.time_range.start  # noqa: E731
    return {e.time_range.start: (e.name, parent(e), e.self_cpu_time_total) for e in events}


@pytest.mark.parametrize("seed", range(30))
def test_tree_and_own_times_are_pytorchs(seed):
    draw = random.Random(seed)
    program = list(spans(draw, 0, 400))
    draw.shuffle(program)
    events = list(mini.build_tree([mini.Event(*span) for span in program]))
    assert {e.begin: (e.name, e.parent and e.parent.begin, e.own) for e in events} == theirs(program)
    assert sum(e.own for e in events) == sum(e.total for e in events if e.parent is None)


@pytest.mark.parametrize("seed", range(20))
def test_schedules_are_pytorchs(seed):
    draw = random.Random(seed)
    settings = {"wait": draw.randint(0, 3), "warmup": draw.randint(0, 3), "active": draw.randint(1, 3)}
    settings["repeat"] = draw.randint(0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = torch.profiler.schedule(**settings)
    words = {"NONE": "none", "WARMUP": "warm up", "RECORD": "record", "RECORD_AND_SAVE": "record and save"}
    mine = mini.schedule(**settings)
    assert [mine(step) for step in range(40)] == [words[real(step).name] for step in range(40)]


def test_calls_and_blocks():
    a, b = Tensor.of([1.0, 2.0]), Tensor.of([3.0, 4.0])
    with mini.profile() as prof:
        with mini.RecordFunction("block"):
            made = add(mul(a, b), b)
    mul(a, b)
    assert np.array_equal(made.read(), [6, 12])
    assert [(e.name, e.parent and e.parent.name) for e in prof.events()] == [
        ("block", None),
        ("mul", "block"),
        ("add", "block"),
    ]
    assert {name: row[0] for name, row in prof.key_averages().items()} == {"block": 1, "mul": 1, "add": 1}


def test_a_call_that_fails_is_over():
    def fails(keys, *args):
        raise ValueError("no")

    bad = dispatcher.Operator("bad")
    bad.kernels[dispatcher.CPU] = fails
    with mini.profile() as prof:
        with pytest.raises(ValueError):
            bad(Tensor.of([1.0]))
        mul(Tensor.of([1.0]), Tensor.of([1.0]))
    assert [(e.name, e.parent) for e in prof.events()] == [("bad", None), ("mul", None)]


def test_it_costs_nothing_when_nobody_looks(monkeypatch):
    asked = []
    monkeypatch.setitem(dispatcher.fallbacks, mini.PROFILER, lambda *args: asked.append(args))
    a = Tensor.of([1.0])
    before = dispatcher.thread.included
    with mini.profile():
        pass
    mul(a, a)
    assert not asked and dispatcher.thread.included == before and not mini.callbacks


def test_the_file_has_keys_of_pytorchs(tmp_path):
    with mini.profile() as prof, mini.RecordFunction("block"):
        mul(Tensor.of([1.0]), Tensor.of([1.0]))
    prof.export_chrome_trace(tmp_path / "mine.json")
    with torch.profiler.profile() as real:
        torch.ones(1) * 2
    real.export_chrome_trace(str(tmp_path / "theirs.json"))
    mine, theirs = (json.loads((tmp_path / name).read_text())["traceEvents"] for name in ("mine.json", "theirs.json"))
    their_keys = {key for entry in theirs if entry["ph"] == "X" for key in entry}
    assert [entry["name"] for entry in mine] == ["block", "mul"]
    assert all(entry["ph"] == "X" and set(entry) <= their_keys for entry in mine)
