"""`mini.optim`: parameters after every step are PyTorch's, and so are checkpoints."""

import numpy as np
import pytest
import torch

from readtorch.mini.autograd import Tensor
from readtorch.mini.optim import SGD, AdamW

DRAW = np.random.default_rng(0)
STARTS = [DRAW.normal(size=shape).astype(np.float32) for shape in ((3, 2), (4,))]
CASES = [
    (AdamW, {}),
    (AdamW, {"lr": 0.1, "betas": (0.5, 0.9)}),
    (AdamW, {"weight_decay": 0.3, "eps": 1e-3}),
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.2}),
]


def twins():
    mine = [Tensor.of(values).requires_grad_() for values in STARTS]
    return mine, [torch.tensor(values, requires_grad=True) for values in STARTS]


def train(mine, theirs, optimizers, steps=20):
    for _ in range(steps):
        weights = [DRAW.normal(size=values.shape).astype(np.float32) for values in STARTS]
        for p, q, w in zip(mine, theirs, weights, strict=True):
            (p * Tensor.of(w)).backward()
            (q * torch.tensor(w)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        for p, q in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(p.read(), q.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("algorithm, settings", CASES)
def test_steps_are_pytorchs(algorithm, settings):
    mine, theirs = twins()
    train(mine, theirs, [algorithm(mine, **settings), getattr(torch.optim, algorithm.__name__)(theirs, **settings)])


@pytest.mark.parametrize("algorithm, settings", CASES)
def test_a_training_goes_on_from_pytorchs_checkpoint_and_from_its_own(algorithm, settings):
    mine, theirs = twins()
    make = getattr(torch.optim, algorithm.__name__)
    groups = lambda params: [{"params": params[1:], "lr": 0.05}, {"params": params[:1]}]  # noqa: E731
    optimizers = [algorithm(groups(mine), **settings), make(groups(theirs), **settings)]
    train(mine, theirs, optimizers, steps=5)
    for whose in (1, 0):
        fresh = algorithm(groups(mine))
        fresh.load_state_dict(optimizers[whose].state_dict())
        assert [group["lr"] for group in fresh.param_groups] == [0.05, optimizers[0].param_groups[1]["lr"]]
        train(mine, theirs, [fresh, optimizers[1]], steps=5)
        optimizers[0] = fresh


def test_a_parameter_without_gradient_stays():
    p, q = (Tensor.of([1.0]).requires_grad_() for _ in range(2))
    (p * p).backward()
    AdamW([p, q], lr=0.1).step()
    assert p.read() != 1 and q.read() == 1


def test_what_a_group_may_hold():
    p, q = (Tensor.of([1.0]).requires_grad_() for _ in range(2))
    for params, said in (
        ([], "empty parameter list"),
        ([p * p], "non-leaf"),
        ([{"params": [p]}, {"params": [p]}], "more than one parameter group"),
    ):
        with pytest.raises(ValueError, match=said):
            SGD(params)
    optimizer = SGD([p], lr=0.5)
    optimizer.add_param_group({"params": [q], "momentum": 0.9})
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0.9]
    with pytest.raises(ValueError, match="other sizes"):
        optimizer.load_state_dict(SGD([p, q]).state_dict())


def test_a_hook_runs_before_the_step():
    p = Tensor.of([1.0]).requires_grad_()
    optimizer, seen = SGD([p], lr=0.5), []
    optimizer.step_pre_hooks.append(lambda optimizer: seen.append(p.tolist()))
    (p * p).backward()
    optimizer.step()
    assert seen == [[1.0]] and p.tolist() == [0.0]
