"""What the viewer of threads and accesses draws: recorded runs of kernels, as steps of warps."""

import json

import numpy as np
import pytest

from readtorch import viz
from readtorch.aten.native.cuda import copy as copies
from readtorch.viz.record_kernel import progressions, record_kernel

from . import kernels
from .kernels import aligned


@pytest.fixture(scope="module")
def recorded():
    return {run["label"]: run for run in record_kernel(kernels.runs())["runs"]}


def lanes(step):
    return {lane + k: cell + k * stride for lane, count, cell, stride in step[4] for k in range(count)}


def costs(run, kind, array):
    return [step[5:] for step in run["steps"] if step[0] == kind and run["arrays"][step[3]]["name"] == array]


def test_json_and_sizes(recorded):
    assert json.loads(json.dumps(recorded)) == recorded
    run = recorded["pitch 33"]
    assert (run["grid"], run["block"], run["shown"]) == ([1, 1, 1], [32, 8, 1], [0, 0, 0])
    assert run["error"] is None and run["races"] == []
    assert [a["name"] for a in run["arrays"]] == ["x", "out", "tile"]
    assert run["arrays"][2]["shape"] == [32, 33] and run["arrays"][2]["space"] == "shared"
    assert run["totals"] == [
        ["global", "read", 4096, 16, 16],
        ["global", "write", 4096, 16, 16],
        ["shared", "read", 4096, 16, 16],
        ["shared", "write", 4096, 16, 16],
    ]


def test_sectors_and_banks(recorded):
    assert costs(recorded["naive"], "read", "x") == [[4, 4]] * 32
    assert costs(recorded["naive"], "write", "out") == [[32, 4]] * 32
    assert costs(recorded["pitch 32"], "read", "tile") == [[32, 1]] * 32
    assert costs(recorded["pitch 33"], "read", "tile") == [[1, 1]] * 32
    line = next(row for row in recorded["pitch 32"]["lines"] if row[1:4] == ["tile", "read", "shared"])
    assert line[4:] == [32, 4096, 1024, 32]


def test_steps_say_who_touches_what(recorded):
    run = recorded["pitch 33"]
    first, second = run["steps"][:2]
    assert first[:2] == ["read", 0] and lanes(first) == {i: i for i in range(32)}
    barriers = [i for i, step in enumerate(run["steps"]) if len(step) == 3]
    assert barriers == [64] and run["steps"][64][:2] == ["block", -1]
    after = run["steps"][65]
    assert lanes(after) == {i: 33 * i for i in range(32)}
    assert [step[1] for step in run["steps"] if len(step) > 3] == [
        warp for _ in range(2) for warp in range(8) for _ in range(8)
    ]
    text, line = run["places"][after[2]]
    source = run["sources"][text]
    assert source["lines"][line - source["first"]].strip() == "out[i, tx] = tile[tx, i]"


def test_a_missing_barrier_is_a_race(recorded):
    run = recorded["no barrier"]
    [race] = run["races"]
    assert run["arrays"][race["array"]]["name"] == "tile"
    assert len(race["cells"]) == 992  # but the diagonal, which each thread reads back itself
    assert {end["kind"] for end in race["ends"]} == {"read", "write"}
    lines = [run["places"][end["place"]] for end in race["ends"]]
    text = run["sources"][0]
    assert {text["lines"][line - text["first"]].strip() for _, line in lines} == {
        "tile[i, tx] = x[i, tx]",
        "out[i, tx] = tile[tx, i]",
    }
    for end in race["ends"]:
        step = run["steps"][end["step"]]
        x, y, _ = end["thread"]
        assert step[0] == end["kind"] and step[1] == y and lanes(step)[x] in race["cells"]
    assert race["ends"][0]["step"] < race["ends"][1]["step"]


def test_an_error_is_kept_with_what_came_before(recorded):
    run = recorded["past the end"]
    assert run["error"].startswith("OutOfBounds: x[100] is out of bounds")
    assert len(run["steps"]) == 4 and run["totals"][0] == ["global", "read", 400, 0, 4]


def test_lanes_apart_a_warp_barrier_and_atomics():
    x, out = aligned(np.arange(32, dtype=np.float32)), aligned(np.zeros(32, np.float32))
    [run] = record_kernel({"": (kernels.half_the_lanes, 1, 32, x, out)})["runs"]
    kinds = [step[0] for step in run["steps"]]
    assert kinds == ["read", "write", "warp", "read", "atomic"]
    assert sorted(lanes(run["steps"][0])) == list(range(0, 32, 2))
    assert run["steps"][2][1] == 0 and run["races"] == []
    assert run["totals"][0] == ["global", "atomic", 128, 4, 4]


def test_a_race_between_blocks():
    launch = kernels.blocks_write_one, 2, 1, aligned(np.zeros(1, np.int32))
    [run] = record_kernel([("", launch)], (1,))["runs"]
    assert run["shown"] == [1, 0, 0]
    [race] = run["races"]
    assert [(end["block"], end["step"]) for end in race["ends"]] == [([1, 0, 0], 0), ([0, 0, 0], None)]


def test_our_kernels_by_their_launchers():
    x = aligned(np.random.default_rng(0).standard_normal((40, 36)).astype(np.float32))
    out = aligned(np.zeros((36, 40), np.float32))
    figure = viz.kernel_accesses({"transpose": lambda: copies.transpose(x, out)}, step=-1)
    np.testing.assert_array_equal(out, x.T)
    run = figure.data["runs"][0]
    assert run["grid"] == [2, 2, 1] and run["races"] == [] and figure.step == len(run["steps"])
    assert "transpose" in figure.static_html()


def test_large_arrays_are_drawn_where_they_are_used():
    x, out = aligned(np.zeros(1 << 14, np.float32)), aligned(np.zeros(1 << 14, np.float32))
    [run] = record_kernel({"": (kernels.copy, 256, 64, x, out)}, (100, 0, 0))["runs"]
    assert [(a["low"], a["high"]) for a in run["arrays"]] == [(6400, 6464)] * 2
    assert len(run["steps"]) == 4


def test_progressions():
    assert progressions([(0, 5), (1, 6), (2, 7), (4, 1), (5, 1)]) == [[0, 3, 5, 1], [4, 2, 1, 0]]
    assert progressions([(3, 9)]) == [[3, 1, 9, 0]]


def test_what_is_refused():
    x = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match="0 runs"):
        record_kernel({})
    with pytest.raises(ValueError, match="0 kernels were launched"):
        record_kernel({"": lambda: None})
    with pytest.raises(ValueError, match="not in a grid"):
        record_kernel({"": (kernels.copy, 1, 64, x, x)}, (1, 0, 0))
    with pytest.raises(ValueError, match="steps; the viewer shows at most"):
        record_kernel({"": (stay_long, 1, 1, x)})


def stay_long(x):
    for i in range(3000):
        x[0] += 1
