"""What the rank timeline draws: made-up recordings, and a real one."""

import json

import pytest

import readtorch as rt
from readtorch import distributed as dist
from readtorch import nn, viz
from readtorch.viz.record_ranks import LANES, record_ranks

from . import rank_spans


def test_times_are_milliseconds_since_the_first_begin():
    recorded = record_ranks(rank_spans.two_runs())
    assert json.loads(json.dumps(recorded)) == recorded
    alone, both = recorded["runs"]
    assert (alone["label"], alone["total"], both["label"], both["total"]) == ("alone", 2.0, "two ranks", 18.0)
    assert [(s["rank"], s["name"], s["begin"]) for s in both["spans"][:4]] == [
        (0, "forward", 0.0),
        (1, "forward", 0.0),
        (0, "backward", 4.0),
        (0, "bucket 0", 6.0),
    ]
    first = both["spans"][3]
    assert (first["moving"], first["end"], first["bytes"], first["bucket"]) == (8.0, 12.0, 2048, 0)
    assert LANES[first["lane"]] == "communication" and first["parameters"] == ["1.bias", "1.weight"]
    assert both["gradients"][0] == [0, 5.0, 0, "1.bias"] and len(both["gradients"]) == 4


def test_numbers_of_the_ranks():
    """Data move for 8 ms, of which the last 2 are waited for."""
    alone, both = record_ranks(rank_spans.two_runs())["runs"]
    assert both["ranks"] == [
        {"rank": 0, "times": [16.0, 8.0, 2.0], "hidden": 0.75},
        {"rank": 1, "times": [14.0, 8.0, 2.0], "hidden": 0.75},
    ]
    assert alone["ranks"] == [{"rank": 0, "times": [2.0, 0, 0], "hidden": None}]


def test_a_training_step():
    def fn(rank):
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), bucket_cap_mb=5e-5)
        for _ in range(2):
            recording = dist.Timeline(rank)
            with dist.record_timeline(recording):
                model(rt.ones(2, 4)).sum().backward()
        return recording.export()

    (run,) = record_ranks(dist.run_threads(fn, 3))["runs"]
    assert [numbers["rank"] for numbers in run["ranks"]] == [0, 1, 2]
    for rank in range(3):
        own = [span for span in run["spans"] if span["rank"] == rank]
        buckets = [span for span in own if LANES[span["lane"]] == "communication"]
        assert [span["bucket"] for span in buckets] == [0, 1]
        assert set(buckets[0]["parameters"]) == {"1.weight", "1.bias"}
        assert all(0 <= span["begin"] <= span["moving"] <= span["end"] <= run["total"] for span in own)
        assert sum(gradient[0] == rank for gradient in run["gradients"]) == 4


def test_refuses():
    with pytest.raises(ValueError, match="9 runs; the rank timeline draws 1 to 8"):
        record_ranks({str(i): [rank_spans.alone()] for i in range(9)})
    with pytest.raises(ValueError, match="run 'empty': no rank has recorded anything"):
        viz.rank_timeline({"empty": [dist.Timeline(0).export()]})


def test_is_static():
    html = viz.rank_timeline(rank_spans.two_runs(), run=1).static_html()
    assert "Rank timeline: what each rank computes" in html and "1.weight" in html
