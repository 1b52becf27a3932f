"""The figure "The streams of a rank over a step" says when what runs, as fully_shard does on simulated devices."""

import pytest

import readtorch
from readtorch import cuda, nn
from readtorch import distributed as dist
from readtorch.aten.simulated_cost import CostModel
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.driver_api import DEFAULT_STREAM
from readtorch.distributed.fsdp import fully_shard
from readtorch.viz.figures import shard_time as figure

WIDTH, RANKS = 128, 2
KINDS = {"all_gather": "gather", "reduce_scatter": "reduce"}


def sharded(blocks, each, reshard, prefetch, own):
    layers = [[nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)] for _ in range(blocks)]
    parts = [nn.Sequential(*sum(layers[start : start + each], [])) for start in range(0, blocks, each)]
    net = nn.Sequential(*parts).to("cuda", readtorch.bfloat16)
    for part in net:
        fully_shard(part, reshard_after_forward=reshard)
        if not prefetch:
            part.set_modules_to_backward_prefetch([part])  # which is whole already: nothing is asked for
    fully_shard(net)
    if own:
        net.set_separate_reduce_scatter_group(True)
    return net


def measured(rows, costs, **options):
    """The timeline of the first rank's third step, from 0 on."""

    def run(rank):
        cuda.set_device(rank)
        net = sharded(**options)
        x = readtorch.ones(rows, WIDTH, device="cuda", dtype=readtorch.bfloat16)
        for step in range(3):
            net.zero_grad()
            cuda.synchronize()
            dist.barrier()
            cuda.synchronize()
            dist.barrier()
            if rank == 0 and step == 2:
                runtime.driver().streams.timeline = []
            dist.barrier()
            net(x).sum().backward()
        cuda.synchronize()

    cuda.simulate(RANKS, "1GiB", costs=costs)
    try:
        dist.run_threads(run, RANKS)
        timeline = [entry[1:] for entry in runtime.driver().streams.timeline if entry[0] == 0]
    finally:
        cuda.simulate(0)
    return [entry for entry in timeline if entry[1] != "barrier"]


def joined(timeline):
    """{lane: [(start, end)]}, where what follows without a gap is one interval."""
    lanes, names = {}, {DEFAULT_STREAM: "compute"}
    for stream, label, *_ in timeline:
        names[stream] = KINDS.get(label, names.get(stream, "copy_in"))
    for stream, _, start, end in timeline:
        put(lanes.setdefault(names[stream], []), start, end)
    return lanes


def put(found, start, end):
    if found and start - found[-1][1] < 1e-6:
        found[-1] = found[-1][0], end
    elif end > start:
        found.append((start, end))


CASES = [
    {"link": 40.0, "rows": 64, "blocks": 4, "each": 1, "reshard": True, "prefetch": True, "own": False},
    {"link": 5.0, "rows": 64, "blocks": 4, "each": 1, "reshard": True, "prefetch": True, "own": False},
    {"link": 40.0, "rows": 64, "blocks": 4, "each": 1, "reshard": True, "prefetch": False, "own": False},
    {"link": 40.0, "rows": 64, "blocks": 4, "each": 1, "reshard": True, "prefetch": False, "own": True},
    {"link": 20.0, "rows": 32, "blocks": 3, "each": 2, "reshard": False, "prefetch": True, "own": False},
    {"link": 20.0, "rows": 32, "blocks": 2, "each": 2, "reshard": True, "prefetch": True, "own": True},
]


@pytest.mark.parametrize("case", CASES)
def test_each_interval_is_what_devices_measure(case):
    inputs = figure.FIGURE.read({**case, "ranks": str(RANKS), "speed": 1.0, "latency": 2.0}) | {"width": WIDTH}
    costs = CostModel(shortest=0.0, memory=figure.MEMORY, arithmetic=1e6, peer=case["link"] * 1e3, message=2.0)
    options = {name: case[name] for name in ("blocks", "each", "reshard", "prefetch", "own")}
    found = joined(measured(case["rows"], costs, **options))
    began = min(start for lane in found.values() for start, _ in lane)
    step = figure.step_of(inputs)
    for lane, blocks in step.blocks.items():
        expected = []
        for start, end, kind, _ in blocks:
            if not kind.startswith("late"):
                put(expected, start, end)
        mine = [(start - began, end - began) for start, end in found[lane]]
        assert len(mine) == len(expected), (lane, mine, expected)
        for (start, end), (first, last) in zip(mine, expected):
            assert (start, end) == (pytest.approx(first, abs=1e-4), pytest.approx(last, abs=1e-4)), lane
