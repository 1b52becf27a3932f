"""The figure "One training step, in virtual time" orders its work as PyTorch does, and agrees with the simulated devices."""

import random

import pytest

import readtorch as rt
from readtorch import cuda, nn
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.simulated_streams import Latencies
from readtorch.nn.parallel import comm
from readtorch.viz.figures import data_parallel_step as figure

SEEDS = pytest.mark.parametrize("seed", range(30))


@SEEDS
def test_nothing_overlaps_in_a_lane(seed):
    result = figure.model(figure.FIGURE.random_inputs(random.Random(seed)))
    for lane in [result["host"], result["rings"], *result["lanes"]]:
        assert all(one[1] <= other[0] for one, other in zip(lane, lane[1:]))
        assert all(0 <= start < end for start, end, _ in lane)
    assert max(end for lane in result["lanes"] for _, end, _ in lane) == result["total"]
    assert all(0 <= share <= 1 + 1e-12 for share in result["computes"])


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


@pytest.mark.parametrize(("layers", "width"), [(1, 1), (3, 700), (24, 128), (6, 2048), (5, 1619), (40, 300)])
def test_the_buffers_are_those_of_broadcast_coalesced(layers, width):
    tensors = [
        t for _ in range(layers) for t in (rt.empty(width, width, device="meta"), rt.empty(width, device="meta"))
    ]
    cut = comm.buckets(tensors, comm.BUFFER_BYTES)
    step = figure.OneProcess(figure.FIGURE.read({"layers": layers, "width": width}))
    assert step.buffers() == [sum(tensors[i].nbytes for i in indices) for indices in cut]


@SEEDS
def test_nccl_s_bytes_do_not_wait_for_each_other(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed)) | {"strategy": figure.ONE_PROCESS, "launch": 0}
    inputs |= {"samples": 1000, "devices": random.Random(seed).randint(3, 8)}
    ring, loop = (figure.model(inputs | {"nccl": nccl})["total"] for nccl in (True, False))
    assert ring < loop
    pair, pair_by_loop = (figure.model(inputs | {"nccl": nccl, "devices": 2}) for nccl in (True, False))
    assert pair["total"] <= pair_by_loop["total"] + 1e-6


def test_what_the_chapter_says():
    said = lambda **inputs: figure.FIGURE.result(**inputs)["say"]  # noqa: E731
    narrow = {"devices": 8, "layers": 24, "width": 128}
    for times, inputs in (
        ("2.5", {}),
        ("3.4", {"devices": 8}),
        ("1.5", {"nccl": False}),
        ("0.95", {"devices": 8, "nccl": False}),
        ("0.45", {"samples": 256}),
        ("0.28", narrow),
        ("5.6", {"devices": 8, "strategy": figure.MANY_PROCESSES}),
        ("0.64", {"samples": 256, "strategy": figure.MANY_PROCESSES}),
    ):
        assert f"{times} times as fast. Device" in said(**inputs)
    assert "links that cost nothing: 0.28 times" in said(**narrow)
    assert "launches that cost nothing: 1.6 times" in said(**narrow)
    result = figure.FIGURE.result(**narrow)
    assert sum(end - start for start, end, _ in result["host"]) > 0.8 * result["total"]
    assert round(figure.FIGURE.result()["bytes"] / 1e6, 1) == 100.7


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
        inputs = figure.FIGURE.read({"samples": samples, "layers": 3, "width": 256, "nccl": False})
        assert (ratio > 1) == (figure.faster(inputs) > 1) == faster
