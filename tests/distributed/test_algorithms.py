"""Ring, tree and recursive doubling: the right sum, the same bits everywhere, and as many messages as the model says."""

import math
import time

import numpy as np
import pytest

import readtorch
from readtorch import distributed as dist
from readtorch.csrc.distributed import algorithms
from readtorch.csrc.distributed.types import RedOpType


def run(name, ranks, values, op=RedOpType.SUM):
    """(array, messages, bytes) of each rank."""

    def fn(rank):
        links = algorithms.GroupLinks(dist.group.WORLD)
        array = values[rank].copy()
        algorithms.ALL_REDUCE[name](links, array, op)
        return array, links.messages, links.bytes

    return dist.run_threads(fn, ranks)


@pytest.mark.parametrize("name", algorithms.ALL_REDUCE)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 8])
def test_sum(name, ranks):
    values = [np.random.default_rng(r).standard_normal(29) for r in range(ranks)]
    results = run(name, ranks, values)
    np.testing.assert_allclose(results[0][0], sum(values), rtol=1e-12)
    assert all((array == results[0][0]).all() for array, _, _ in results)


@pytest.mark.parametrize("name", algorithms.ALL_REDUCE)
def test_maximum_of_few_elements(name):
    """Fewer elements than ranks: some parts of the ring are empty."""
    values = [np.array([r, -r], np.int64) for r in range(5)]
    assert [array.tolist() for array, _, _ in run(name, 5, values, RedOpType.MAX)] == [[4, 0]] * 5


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_messages_and_bytes(ranks):
    """What Note [ What a message costs ] says, with α = 1 and β = 0 or the other way round."""
    values = [np.zeros(ranks * 8) for _ in range(ranks)]
    size, log = values[0].nbytes, int(math.log2(ranks))
    ring = run("ring", ranks, values)
    assert {(m, b) for _, m, b in ring} == {(2 * (ranks - 1), 2 * (ranks - 1) * size // ranks)}
    doubling = run("recursive doubling", ranks, values)
    assert {(m, b) for _, m, b in doubling} == {(log, log * size)}
    tree = run("tree", ranks, values)
    assert sum(m for _, m, _ in tree) == 2 * (ranks - 1) and max(m for _, m, _ in tree) == log
    assert algorithms.ring_cost(ranks, size, 1, 0) == 2 * (ranks - 1)
    assert algorithms.recursive_doubling_cost(ranks, size, 0, 1) == log * size
    assert algorithms.tree_cost(ranks, size, 1, 0) == 2 * log


def test_which_is_cheapest():
    """Few bytes: doubling; many: the ring, or, where the ranks are a power of two, its bytes in fewer messages."""

    def cheapest(ranks, bytes_):
        return min(algorithms.COST, key=lambda name: algorithms.COST[name](ranks, bytes_, 20e-6, 1e-9))

    assert cheapest(8, 100) == "recursive doubling"
    assert cheapest(8, 10**8) == "halving and doubling"
    assert cheapest(6, 10**8) == "ring"


@pytest.mark.alone
def test_simulated_network_takes_its_time():
    """A collective is over when its bytes would have arrived, and the next one waits for the line."""
    network = dist.Network(latency=0.0, bandwidth=1e6)

    def fn(rank):
        tensors = [readtorch.ones(25_000) for _ in range(2)]  # 100 kB: 0.1 s over the ring of two ranks
        works = [dist.all_reduce(t, async_op=True) for t in tensors]
        for work in works:
            work.wait()
        return [work.ended - works[0].began for work in works]

    for first, second in dist.run_threads(fn, 2, network=network):
        assert 0.09 < first < 0.18 and 0.19 < second < 0.35


@pytest.mark.alone
@pytest.mark.parametrize("name", algorithms.ALL_REDUCE)
def test_measured_and_modelled(name):
    """Over a slow simulated network each algorithm takes as long as its cost model says."""
    network, size = dist.Network(latency=0.01, bandwidth=2e6), 80_000

    def fn(rank):
        links, array = algorithms.GroupLinks(dist.group.WORLD), np.ones(size // 8)
        dist.barrier()
        began = time.perf_counter()
        algorithms.ALL_REDUCE[name](links, array)
        return time.perf_counter() - began

    measured = min(max(dist.run_threads(fn, 4, network=network)) for _ in range(3))
    modelled = algorithms.COST[name](4, size, network.latency, 1 / network.bandwidth)
    assert modelled * 0.95 < measured < modelled * 1.3 + 0.05


def test_messages_arrive_in_order():
    def fn(rank):
        tensors = [readtorch.tensor([float(i)]) for i in range(50)]
        if rank == 0:
            return [dist.isend(t, 1) for t in tensors][-1].wait()
        for t in tensors:
            t.zero_()
            dist.recv(t, 0)
        return [int(t) for t in tensors]

    assert dist.run_threads(fn, 2, network=dist.Network(latency=1e-3, bandwidth=1e6))[1] == list(range(50))
