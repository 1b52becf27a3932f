"""Virtual time: how long copies and kernels keep a simulated device busy, and who waits for whom."""

import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda import runtime

COSTS = CostModel(shortest=1.0, memory=1000.0, arithmetic=1e6, host=10.0, peer=100.0)


@pytest.fixture
def timeline():
    cuda.simulate(2, "64MiB", costs=COSTS)
    runtime.driver().streams.timeline = entries = []
    yield entries
    cuda.simulate(0)


def test_copies_are_as_fast_as_what_lies_between(timeline):
    x = rt.ones(1000)  # 4000 bytes
    a = x.to("cuda:0")
    b = a.to("cuda:1")
    c = b.clone()
    a.copy_(b)
    a.copy_(x)
    c.double()
    durations = [(device, label, round(end - start, 3)) for device, _, label, start, end in timeline]
    assert durations == [
        (0, "_to_copy", 400.0),
        (1, "_to_copy", 40.0),
        (1, "clone", 8.0),
        (0, "copy_", 40.0),
        (0, "copy_", 400.0),
        (1, "_to_copy", 16.0),
    ]


def test_both_ends_of_a_copy_wait(timeline):
    a = rt.ones(1000).to("cuda:0")
    b = a.to("cuda:1")
    a.add_(1)
    b.add_(1)
    (_, _, _, _, there), (_, _, _, start, copied), (_, _, _, here, _), (_, _, _, other, _) = timeline
    assert start == there and here == other == copied


def test_products_take_the_time_of_their_arithmetic(timeline):
    a = rt.ones(100, 200, device="cuda")
    b = rt.ones(200, 50, device="cuda")
    timeline.clear()
    a @ b
    a + 1
    (_, _, mm, begin, end), (_, _, add, start, last) = timeline
    assert (mm, add) == ("mm", "add")
    moved = 4 * (100 * 200 + 200 * 50 + 100 * 50)
    assert end - begin == pytest.approx(max(moved / COSTS.memory, 2 * 100 * 200 * 50 / COSTS.arithmetic))
    assert last - start == pytest.approx(2 * a.nbytes / COSTS.memory, rel=1e-4)  # and the number, four bytes


@pytest.mark.usefixtures("timeline")  # which ends the simulation
def test_an_in_place_form_takes_the_time_of_its_two_kernels():
    """It is the functional form and a copy, which are launched; nothing else is."""
    cuda.simulate(1, "64MiB", kernels=True, costs=COSTS)
    runtime.driver().streams.timeline = timeline = []
    x = rt.ones(10, device="cuda")
    timeline.clear()
    x.cumsum_(0)
    assert [(label, end - start) for _, _, label, start, end in timeline] == [("cumsum", 1.0), ("copy_", 1.0)]
    assert x._version == 1


def test_memory_that_nobody_fills_takes_no_time(timeline):
    rt.empty(1000, device="cuda")
    a = rt.ones(1000, device="cuda")
    rt.empty_like(a)
    assert [label for _, _, label, start, end in timeline if end > start] == ["ones"]
