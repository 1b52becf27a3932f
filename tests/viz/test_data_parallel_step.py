"""The figure "One training step, in virtual time" orders its work as PyTorch does, and agrees with the simulated devices."""

import random

import pytest

import readtorch as rt
from readtorch import cuda, nn
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.simulated_streams import Latencies
from readtorch.viz.figures import data_parallel_step as figure

SEEDS = pytest.mark.parametrize("seed", range(30))


@SEEDS
def test_nothing_overlaps_in_a_lane(seed):
    result = figure.model(figure.FIGURE.random_inputs(random.Random(seed)))
    for lane in [result["host"], result["rings"], *result["lanes"]]:
        assert all(one[1] <= other[0] for one, other in zip(lane, lane[1:]))
        assert all(0 <= start < end for start, end, _ in lane)
    assert max(end for lane in result["lanes"] for _, end, _ in lane) == result["total"]
    assert all(0 <= share <= 1 + 1e-12 for share in result["busy"])


@SEEDS
def test_sums_of_one_process_follow_all_backward_and_rings_do_not(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed)) | {
        "devices": 4,
        "samples": 64,
        "layers": 40,
        "width": 1000,
    }
    ends = lambda result, phase: [end for lane in result["lanes"] for _, end, name in lane if name == phase]  # noqa: E731
    together = figure.model(inputs | {"strategy": figure.ONE_PROCESS})
    sums = [start for lane in together["lanes"] for start, _, phase in lane if phase == "sum"]
    assert min(sums) >= max(ends(together, "backward"))
    apart = figure.model(inputs | {"strategy": figure.MANY_PROCESSES})
    assert apart["rings"][0][0] < max(ends(apart, "backward")) <= apart["rings"][-1][1]


def test_the_rows_are_those_of_chunk():
    for samples in range(1, 30):
        for devices in range(1, 9):
            inputs = figure.FIGURE.read({"samples": samples, "devices": devices})
            parts = [len(part) for part in rt.zeros(samples).chunk(devices)]
            assert figure.OneProcess(inputs).rows == parts


def test_what_the_chapter_says():
    said = lambda **inputs: figure.FIGURE.result(**inputs)["say"]  # noqa: E731
    assert "1.5 times as fast" in said() and "0.9 times as fast" in said(devices=8)
    assert "0.2 times as fast" in said(samples=256)
    assert "5.6 times as fast" in said(devices=8, strategy=figure.MANY_PROCESSES)
    narrow = figure.FIGURE.result(devices=8, layers=24, width=128)
    assert sum(end - start for start, end, _ in narrow["host"]) > 0.5 * narrow["total"]


def virtual_time(function):
    streams = runtime.driver().streams
    for _ in range(2):
        start = streams.now
        function()
        for device in range(4):
            cuda.synchronize(device)
    return streams.now - start


@pytest.fixture
def devices():
    cuda.simulate(4, "1GiB", costs=CostModel(), latencies=Latencies(launch=10))
    yield
    cuda.simulate(0)


def test_it_agrees_with_the_simulated_devices(devices):
    """Whether four devices are faster than one, by the number of samples: the clock of the simulated devices, and the figure."""
    net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(3)]).cuda()

    def step(model, batch):
        model(batch).square().mean().backward()

    for samples, faster in ((64, False), (65536, True)):
        batch = rt.randn(samples, 256)
        ratio = virtual_time(lambda: step(lambda x: net(x.cuda()), batch)) / virtual_time(
            lambda: step(nn.DataParallel(net), batch)
        )  # noqa: B023
        inputs = figure.FIGURE.read({"samples": samples, "layers": 3, "width": 256})
        assert (ratio > 1) == (figure.faster(inputs) > 1) == faster
