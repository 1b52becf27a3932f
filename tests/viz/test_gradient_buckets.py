"""The figure "One step of DDP, computed" divides as PyTorch's reducer does and charges what the algorithms cost."""

import random

import pytest
import torch
from torch.distributed import _compute_bucket_assignment_by_size as assigned

from readtorch.csrc.distributed import algorithms
from readtorch.viz.figures import gradient_buckets as figure

SEEDS = pytest.mark.parametrize("seed", range(30))
CASES = pytest.mark.parametrize(
    "options", [{}, {"bucket_cap_mb": 1}, {"bucket_cap_mb": 3}, {"find_unused_parameters": True}]
)


@SEEDS
def test_buckets_are_those_of_pytorch(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    sizes = [figure.KIB * size for size in inputs["layers"]]
    first = figure.MIB if inputs["cap"] == 25 else int(inputs["cap"] * figure.MIB)
    limits = [first, int(inputs["cap"] * figure.MIB)]
    tensors = [torch.empty(size // 4, device="meta") for size in sizes]
    backwards = list(range(len(sizes)))[::-1]
    later, _ = assigned(tensors[::-1], limits, [], backwards)
    assert figure.buckets_of(sizes, figure.LATER, inputs["cap"]) == later
    unused, _ = assigned(tensors, limits)
    assert figure.buckets_of(sizes, figure.UNUSED, inputs["cap"]) == unused[::-1]
    assert figure.buckets_of(sizes, figure.FIRST, inputs["cap"]) == [backwards]


@CASES
def test_a_model_of_pytorch_has_these_buckets(options):
    """Twelve layers of 1 MiB, without bias, in a group of one."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        layers = [torch.nn.Linear(512, 512, bias=False) for _ in range(12)]
        net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), **options)
        for _ in range(3):
            net(torch.ones(1, 512)).sum().backward()
        logged = net._get_ddp_logging_data()
    finally:
        torch.distributed.destroy_process_group()
    step = figure.UNUSED if options.get("find_unused_parameters") else figure.LATER
    given = {"layers": [1024] * 12, "cap": options.get("bucket_cap_mb", 25)}
    sizes = ", ".join(map(str, figure.FIGURE.result(iteration=step, **given)["bytes"]))
    if step == figure.UNUSED:
        assert (logged["bucket_sizes"], logged.get("rebuilt_bucket_sizes")) == (sizes, None)
    else:
        whole = figure.FIGURE.result(iteration=figure.FIRST, **given)["bytes"]
        assert (logged["bucket_sizes"], logged["rebuilt_bucket_sizes"]) == (str(*whole), sizes)


@SEEDS
def test_an_all_reduce_costs_what_the_cheapest_algorithm_costs(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed)) | {"ranks": random.Random(seed).randint(2, 1024)}
    size = random.Random(seed).randint(1, 10**8)
    given = inputs["ranks"], size, inputs["latency"] * 1e-6, 1e-9 / inputs["bandwidth"]
    cheapest = min(cost(*given) for cost in algorithms.COST.values())
    assert figure.milliseconds(size, inputs) == pytest.approx(1000 * cheapest)


@SEEDS
def test_a_sum_begins_when_its_gradients_are_there_on_the_last_rank_and_the_line_is_free(seed):
    inputs = figure.FIGURE.random_inputs(random.Random(seed))
    result, one, n = figure.model(inputs), inputs["backward"], len(inputs["layers"])
    late = result["computes"][-1][0]
    free = 0.0
    for i, (bucket, (begin, end)) in enumerate(zip(result["buckets"], result["sums"], strict=True)):
        there = late + result["forward"] + (n - min(bucket)) * one
        assert begin == pytest.approx(max(free, there)) and end >= begin
        assert all(waits[i][0] <= waits[i][1] == begin for waits in result["waits"])
        free = end
    assert sorted(sum(result["buckets"], [])) == list(range(n))
    assert result["end"] == max(free, result["computes"][-1][1])
    assert 0 <= result["hidden"] <= 1


def test_what_the_chapter_says():
    result = figure.FIGURE.result()
    assert len(result["buckets"]) == 8 and 0.87 < result["hidden"] < 0.88
    assert result["end"] < figure.FIGURE.result(iteration=figure.FIRST)["end"] == result["whole"]
    assert figure.FIGURE.result(iteration=figure.FIRST)["hidden"] == 0
    slow = figure.FIGURE.result(latency=3000, cap=0.001), figure.FIGURE.result(latency=3000, cap=0.5)
    assert slow[0]["end"] > slow[1]["end"]
    late = figure.FIGURE.result(late=30)
    assert late["waits"][0][0] == [40, 70] and late["waits"][1][0] == [70, 70]
    small_last = figure.FIGURE.result(layers=[1024] * 8, cap=25, iteration=figure.UNUSED)["bytes"]
    assert small_last[-1] == figure.MIB < small_last[0]
    assert [round(figure.FIGURE.result(ranks=ranks)["end"]) for ranks in (4, 1024, 1000)] == [101, 114, 156]
