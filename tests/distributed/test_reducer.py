"""Buckets, and what the reducer says when something is wrong."""

import random

import pytest
import torch
import torch.distributed as reference

import readtorch
from readtorch import distributed as dist
from readtorch import nn
from readtorch.csrc.distributed.reducer import compute_bucket_assignment_by_size
from readtorch.nn.parallel import DistributedDataParallel as DDP


@pytest.mark.parametrize("seed", range(40))
def test_bucket_assignment(seed):
    """As PyTorch's, over random sizes, types, limits and orders."""
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 400) for _ in range(rng.randrange(1, 30))]
    names = [rng.choice(["float32", "float32", "float64", "float16"]) for _ in sizes]
    limits = rng.choice([[400], [400, 2000], [1, 500, 3000], [2**62]])
    order = rng.sample(range(len(sizes)), len(sizes)) if rng.random() < 0.5 else []
    ours, theirs = (
        [api.empty(n, dtype=getattr(api, name)) for n, name in zip(sizes, names)] for api in (readtorch, torch)
    )
    expected, expected_limits = reference._compute_bucket_assignment_by_size(
        theirs, limits, [False] * len(sizes), order
    )
    indices, used = compute_bucket_assignment_by_size(ours, limits, (), order)
    key = (
        (lambda pair: min(pair[0])) if order else None
    )  # buckets that never filled come in the order of a hash table there
    pairs, expected_pairs = zip(indices, used), zip(expected, expected_limits)
    assert sorted(pairs, key=key) == sorted(expected_pairs, key=key) if key else list(pairs) == list(expected_pairs)


class Branches(nn.Module):
    """Two layers, of which a call may leave the second out."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, both):
        return self.second(self.first(x)) if both else self.first(x)


def ones(*shape):
    return readtorch.ones(*shape)


def test_a_parameter_without_gradient():
    """Noticed when the next iteration begins, as in PyTorch."""

    def fn(rank):
        model = DDP(Branches())
        model(ones(1, 2), False).sum().backward()
        with pytest.raises(
            RuntimeError,
            match="(?s)Expected to have finished reduction in the prior iteration.*"
            "find_unused_parameters=True.*second.weight, second.bias\n.*rank 0: 2 3",
        ):
            model(ones(1, 2), False)

    dist.run_threads(fn, 1)


def test_unused_parameters():
    """Their gradients count as zero if some rank uses them, and stay what they were if none does."""

    def fn(rank):
        model = DDP(Branches(), find_unused_parameters=True)
        before = []
        for both in ([rank == 0], [False], [True]):
            model.zero_grad()
            model(ones(1, 2), *both).sum().backward()
            before.append(None if model.module.second.bias.grad is None else model.module.second.bias.grad.tolist())
        return before

    assert dist.run_threads(fn, 2) == [[[0.5, 0.5], None, [1.0, 1.0]]] * 2


def test_outputs_that_the_loss_does_not_use():
    class Two(Branches):
        def forward(self, x):
            return {"used": self.first(x), "other": [self.second(x)]}

    def fn(rank):
        model = DDP(Two(), find_unused_parameters=True)
        for _ in range(2):
            model(ones(1, 2))["used"].sum().backward()
        return model.module.second.weight.grad is None, model.module.first.bias.grad.tolist()

    assert dist.run_threads(fn, 2) == [(True, [2.0, 2.0])] * 2


def test_buckets_are_made_anew_in_the_order_of_arrival():
    class Backwards(nn.Module):
        """Uses its layers in the order opposite to that of their definition."""

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(64, 64, bias=False) for _ in range(4)])

        def forward(self, x):
            for layer in reversed(self.layers):
                x = layer(x)
            return x

    def fn(rank):
        model = DDP(Backwards(), bucket_cap_mb=64 * 64 * 4 / 2**20)
        orders = []
        for _ in range(3):
            model(ones(1, 64)).sum().backward()
            orders.append([bucket.indices for bucket in model.reducer.buckets])
        return orders

    assert dist.run_threads(fn, 2)[1] == [[[0, 1, 2, 3]], [[0], [1], [2], [3]], [[0], [1], [2], [3]]]


def test_a_graph_that_was_said_to_stay_the_same():
    def fn(rank):
        model = DDP(Branches(), static_graph=True)
        model(ones(1, 2), False).sum().backward()
        assert model.module.second.weight.grad is None
        model(ones(1, 2), False).sum().backward()
        with pytest.raises(RuntimeError, match="Your training graph has changed in this iteration"):
            model(ones(1, 2), True).sum().backward()

    dist.run_threads(fn, 2)


def test_parameters_used_in_several_backwards_need_a_static_graph():
    """A checkpoint calls backward inside backward, so a hook may run twice."""
    from readtorch.utils.checkpoint import checkpoint

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            for _ in range(2):
                x = checkpoint(self.layer, x, use_reentrant=True)
            return x

    def static(rank):
        model = DDP(Twice(), static_graph=True)
        for _ in range(2):
            model.zero_grad()
            model(ones(1, 2).requires_grad_()).sum().backward()
        return model.module.layer.bias.grad

    def dynamic(rank):
        model = DDP(nn.Sequential(nn.Linear(2, 2), Twice()))
        with pytest.raises(
            RuntimeError, match="(?s)Expected to mark a variable ready only once.*with name 1.layer.bias"
        ):
            model(ones(1, 2)).sum().backward()

    readtorch.manual_seed(0)
    first, second = dist.run_threads(static, 2)
    assert (first == second).all()
    dist.run_threads(dynamic, 1)


@pytest.mark.parametrize(
    "make, words",
    [
        (
            lambda rank: nn.Linear(2, 2 + rank),
            "params.0. in this process with sizes .3, 2. appears not to match sizes of the same",
        ),
        (lambda rank: nn.Linear(2, 2, bias=rank == 0), "Rank 1 has 1 params, while rank 0 has inconsistent 2 params"),
    ],
)
def test_ranks_with_different_models(make, words):
    """All ranks get an error; rank 1's says what differs."""

    def fn(rank):
        with pytest.raises(RuntimeError, match=words if rank == 1 else "param"):
            DDP(make(rank))

    dist.run_threads(fn, 2)


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: DDP(nn.ReLU()), RuntimeError, "doesn't have any parameter that requires a gradient"),
        (lambda: DDP(nn.LazyLinear(2)), RuntimeError, "Modules with uninitialized parameters"),
        (
            lambda: DDP(nn.Linear(1, 1), device_ids=[0, 1]),
            ValueError,
            "device_ids can only be None or contain a single element",
        ),
        (
            lambda: DDP(nn.Linear(1, 1), device_ids=[0]),
            ValueError,
            "device_ids and output_device arguments only work with",
        ),
        (lambda: DDP(nn.Linear(1, 1)).register_comm_hook(None, 3), TypeError, "Communication hook must be callable."),
    ],
)
def test_refusals(make, error, words):
    def fn(rank):
        with pytest.raises(error, match=words):
            make()

    dist.run_threads(fn, 1)


def test_hooks_go_with_the_wrapper():
    """The module can be wrapped again, or trained alone."""

    def fn(rank):
        module, counts = nn.Linear(1, 1), []
        for _ in range(3):
            model = DDP(module)
            model(ones(1, 1)).sum().backward()
            counts.append([len(node._hooks.post) for node in model.reducer.accumulators])
            del model
        before = dist.group.WORLD.sequence
        module(ones(1, 1)).sum().backward()
        return counts, dist.group.WORLD.sequence - before

    assert dist.run_threads(fn, 2) == [([[1, 1]] * 3, 0)] * 2
