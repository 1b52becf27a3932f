"""Optimizers and sparse gradients: SparseAdam, the sparse steps of SGD and Adagrad, the refusals of the others."""

import time

import pytest

import readtorch
from tests.programs import same
from tests.reference import both

NAMES = "Adadelta Adafactor Adam AdamW Adamax ASGD Muon NAdam RAdam RMSprop Rprop".split()


def train(T, cls, rounds=6, width=3, **settings):
    """A few steps for a table of which each step uses some rows, one of them twice; a checkpoint in the middle."""
    table = T.nn.Embedding(7, width, sparse=True, _weight=T.arange(7.0 * width).reshape(7, width) / 10)
    optimizer = getattr(T.optim, cls)(table.parameters(), **settings)
    seen = []
    for i in range(rounds):
        optimizer.zero_grad()
        loss = (table(T.tensor([i % 7, 5, (3 * i) % 7, 5])) * (i - 1.5)).pow(2).sum()
        loss.backward()
        optimizer.step()
        seen.append(table.weight.detach().clone())
        if i == rounds // 2:
            state = optimizer.state_dict()
            optimizer = getattr(T.optim, cls)(table.parameters(), **settings)
            optimizer.load_state_dict(state)
    return seen, optimizer.state_dict()["state"]


@pytest.mark.parametrize("settings", [{}, {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}, {"maximize": True}], ids=str)
def test_sparse_adam(settings):
    both(lambda T: train(T, "SparseAdam", **settings))
    both(lambda T: train(T, "SparseAdam", lr=T.tensor(0.02)))


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": 0.01},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.5, "dampening": 0.3},
        {"maximize": True},
        {"foreach": True},
        {"weight_decay": 0.1},
        {"fused": True},
    ],
    ids=str,
)
def test_sgd(settings):
    both(lambda T: train(T, "SGD", **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lr_decay": 0.1, "initial_accumulator_value": 0.1},
        {"maximize": True},
        {"foreach": True},
        {"eps": 0.1},
        {"weight_decay": 0.1},
        {"fused": True},
    ],
    ids=str,
)
def test_adagrad(settings):
    both(lambda T: train(T, "Adagrad", **settings))


@pytest.mark.parametrize("name", NAMES)
def test_the_others_refuse(name):
    both(lambda T: train(T, name))


def test_lbfgs_makes_them_dense():
    def program(T):
        table = T.nn.Embedding(4, 2, sparse=True, _weight=T.arange(8.0).reshape(4, 2) / 10)
        optimizer = T.optim.LBFGS(table.parameters(), lr=0.1, max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = table(T.tensor([3, 3, 0])).sub(1).pow(2).sum()
            loss.backward()
            return loss

        return optimizer.step(closure), table.weight.detach()

    both(program)


def test_what_sparse_adam_refuses():
    def program(T, show):
        SparseAdam, p = T.optim.SparseAdam, T.nn.Parameter(T.ones(3))
        for settings in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)}, {"betas": (0.9, -0.1)}, {"lr": T.ones(2)}):
            show.error(lambda: SparseAdam([p], **settings))
        complex_, sparse = T.ones(2, dtype=T.complex64), T.ones(2).to_sparse()
        show.error(lambda: SparseAdam([p, complex_]))
        show.error(lambda: SparseAdam([{"params": [p]}, {"params": [T.ones(1), sparse, sparse.clone()]}]))
        p.grad = T.ones(3)
        show.error(SparseAdam([p]).step)
        show(SparseAdam([p], maximize=True))

    same(program)


def test_a_gradient_without_elements_counts_as_a_step_but_changes_nothing():
    def program(T, show):
        p = T.nn.Parameter(T.ones(3, 2))
        p.grad = T.sparse_coo_tensor(T.zeros(1, 0).long(), T.zeros(0, 2), (3, 2))
        optimizer = T.optim.SparseAdam([p])
        optimizer.step()
        show(p, optimizer.state_dict()["state"])

    same(program)


def test_rows_that_are_not_used_stand_still():
    table = readtorch.nn.Embedding(5, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer = readtorch.optim.SparseAdam(table.parameters())
    for row in (1, 3, 3):
        optimizer.zero_grad()
        table(readtorch.tensor([row])).sum().backward()
        optimizer.step()
    moved = (table.weight != before).any(1)
    assert moved.tolist() == [False, True, False, True, False]
    (state,) = optimizer.state.values()
    assert (state["exp_avg"] != 0).any(1).tolist() == moved.tolist()


def test_a_step_costs_what_the_rows_cost_not_what_the_table_costs():
    def seconds(rows):
        table = readtorch.nn.Embedding(rows, 16, sparse=True)
        optimizer = readtorch.optim.SparseAdam(table.parameters())
        numbers, best = readtorch.arange(64), float("inf")
        for _ in range(12):
            optimizer.zero_grad()
            table(numbers).sum().backward()
            start = time.thread_time()
            optimizer.step()
            best = min(best, time.thread_time() - start)
        return best

    assert seconds(300_000) < 10 * seconds(300)  # a thousand times as many rows
