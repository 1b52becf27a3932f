"""ZeroRedundancyOptimizer: a step of all ranks is one of the whole optimizer, and each rank keeps its share."""

import copy

import pytest
import torch
import torch.distributed as reference
from torch.distributed.optim import ZeroRedundancyOptimizer as Reference
from torch.testing._internal.distributed.fake_pg import FakeStore

import readtorch
from readtorch import distributed as dist
from readtorch.distributed.algorithms.join import Join
from readtorch.distributed.optim import ZeroRedundancyOptimizer

RANKS = 3


def model(lib):
    lib.manual_seed(0)
    return lib.nn.Sequential(lib.nn.Linear(3, 8), lib.nn.Tanh(), lib.nn.Linear(8, 5), lib.nn.Linear(5, 2)).double()


def groups(net):
    return [{"params": list(net[0].parameters())}, {"params": [*net[2].parameters(), *net[3].parameters()], "lr": 0.02}]


def train(lib, net, optimizer, steps, scheduler=None):
    x = lib.arange(12, dtype=lib.float64).view(4, 3) / 10
    for _ in range(steps):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    return [p.tolist() for p in net.parameters()]


def pytorchs(steps):
    net = model(torch)
    optimizer = torch.optim.AdamW(groups(net), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    return train(torch, net, optimizer, steps, scheduler), optimizer.state_dict()


@pytest.mark.parametrize("buckets", [False, True])
def test_steps_are_those_of_the_whole_optimizer(buckets):
    def run(rank):
        net = model(readtorch)
        zero = ZeroRedundancyOptimizer(groups(net), readtorch.optim.AdamW, parameters_as_bucket_view=buckets, lr=0.1)
        scheduler = readtorch.optim.lr_scheduler.ExponentialLR(zero, 0.9)
        weights = train(readtorch, net, zero, 5, scheduler)
        zero.consolidate_state_dict(to=1)
        if rank != 1:
            with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
                zero.state_dict()
        state = zero.state_dict() if rank == 1 else None
        return weights, state, len(zero.optim.state)

    weights, expected = pytorchs(5)
    results = dist.run_threads(run, RANKS)
    for ours, _, _ in results:
        torch.testing.assert_close(ours, weights, rtol=1e-12, atol=1e-14)
    assert sum(count for _, _, count in results) == 6
    state = results[1][1]
    assert [g["params"] for g in state["param_groups"]] == [g["params"] for g in expected["param_groups"]]
    assert [g["lr"] for g in state["param_groups"]] == [g["lr"] for g in expected["param_groups"]]
    for index, entry in expected["state"].items():
        for name, value in entry.items():
            torch.testing.assert_close(state["state"][index][name].tolist(), value.tolist(), rtol=1e-10, atol=1e-13)


def test_whose_parameters_are_whose_is_pytorchs():
    net = model(torch)
    reference.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    try:
        theirs = Reference(groups(net), torch.optim.SGD, lr=0.1)
        names = {id(p): name for name, p in net.named_parameters()}
        expected = [[[names[id(p)] for p in g["params"]] for g in part] for part in theirs._partition_parameters()]
    finally:
        reference.destroy_process_group()

    def run(rank):
        ours = model(readtorch)
        names = {id(p): name for name, p in ours.named_parameters()}
        zero = ZeroRedundancyOptimizer(groups(ours), readtorch.optim.SGD, lr=0.1)
        return [[[names[id(p)] for p in g["params"]] for g in part] for part in zero._partition_parameters()]

    assert dist.run_threads(run, RANKS) == [expected] * RANKS


def test_go_on_from_a_checkpoint():
    """Also one of the whole optimizer, with another number of ranks."""
    whole = model(readtorch)
    optimizer = readtorch.optim.AdamW(groups(whole), lr=0.1)
    train(readtorch, whole, optimizer, 3)
    copies = [copy.deepcopy((whole.state_dict(), optimizer.state_dict())) for _ in range(2)]

    def run(rank):
        net = model(readtorch)
        weights, state = copies[rank]
        net.load_state_dict(weights)
        zero = ZeroRedundancyOptimizer(groups(net), readtorch.optim.AdamW, lr=9.0)
        zero.load_state_dict(state)
        return train(readtorch, net, zero, 2)

    results = dist.run_threads(run, 2)
    expected = train(readtorch, whole, optimizer, 2)
    for ours in results:
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-14)


def test_a_group_that_is_added():
    def run(rank):
        net = model(readtorch)
        first, second = groups(net)
        zero = ZeroRedundancyOptimizer([first], readtorch.optim.SGD, lr=0.1)
        zero.add_param_group(second)
        return train(readtorch, net, zero, 2)

    net = model(torch)
    expected = train(torch, net, torch.optim.SGD(groups(net), lr=0.1), 2)
    for ours in dist.run_threads(run, RANKS):
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-14)


def test_ranks_without_inputs():
    """Beside DistributedDataParallel, which comes first and sets the gradients."""

    def run(rank):
        net = readtorch.nn.parallel.DistributedDataParallel(model(readtorch))
        zero = ZeroRedundancyOptimizer(net.parameters(), readtorch.optim.SGD, lr=0.1)
        with Join([net, zero]):
            for _ in range(1 + rank):
                net(readtorch.ones(1, 3, dtype=readtorch.float64)).sum().backward()
                zero.step()
                zero.zero_grad()
        return [p.tolist() for p in net.parameters()]

    first, second = dist.run_threads(run, 2)
    assert first == second


@pytest.mark.parametrize(
    "params", [lambda t: t.ones(2), lambda t: 3, lambda t: [], lambda t: [t.ones(1), {}], lambda t: [{"lr": 1}]]
)
def test_errors(params):
    def message(lib, cls):
        with pytest.raises((TypeError, ValueError)) as caught:
            cls(params(lib), lib.optim.SGD, lr=0.1)
        return type(caught.value), str(caught.value).replace("readtorch.", "torch.")

    ours = dist.run_threads(lambda rank: message(readtorch, ZeroRedundancyOptimizer), 1)[0]
    assert ours == message(torch, Reference)
