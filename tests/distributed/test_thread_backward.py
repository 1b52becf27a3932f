"""Ranks that are threads run forward and backward at the same time: nothing of one is seen by another."""

import numpy as np

import readtorch
from readtorch import distributed as dist
from readtorch.autograd import graph

RANKS, ROUNDS = 6, 30


def test_independent_graphs():
    """Gradients, grad mode, hooks on saved tensors and nested backwards, in all threads at once."""

    def alone(rank):
        rng, seen = np.random.default_rng(rank), []
        for i in range(ROUNDS):
            x = readtorch.tensor(rng.standard_normal(20), requires_grad=True)
            packed = []
            with graph.saved_tensors_hooks(lambda t: packed.append(rank) or t, lambda t: t):
                y = (x.exp() * x).sin()
            y.sum().backward(create_graph=i % 2 == 0)
            with readtorch.no_grad():
                silent = x * 2
            assert not silent.requires_grad and (x * 2).requires_grad and set(packed) == {rank}
            (second,) = readtorch.autograd.grad((x**3).sum(), x, create_graph=True)
            second.sum().backward()
            seen.append(x.grad.detach().numpy().copy())
        return seen

    together = dist.run_threads(alone, RANKS)
    for rank in range(RANKS):
        for a, b in zip(together[rank], alone(rank), strict=True):
            assert (a == b).all()


def test_one_leaf_of_all():
    """Threads that share a leaf add up in it without losing anything."""
    weight = readtorch.zeros(1000, requires_grad=True)

    def fn(rank):
        for _ in range(ROUNDS):
            (weight * (rank + 1)).sum().backward()

    dist.run_threads(fn, RANKS)
    assert (weight.grad == ROUNDS * sum(range(1, RANKS + 1))).all()


def test_callbacks_belong_to_the_backward_of_their_thread():
    def fn(rank):
        order = []
        x = readtorch.ones(3, requires_grad=True)
        queue = readtorch.autograd.Variable._execution_engine.queue_callback
        x.register_hook(lambda g: queue(lambda: order.append(rank)))
        for _ in range(ROUNDS):
            x.mul(2).sum().backward()
            dist.barrier()
        return order

    assert dist.run_threads(fn, RANKS) == [[rank] * ROUNDS for rank in range(RANKS)]
