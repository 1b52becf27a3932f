"""`mini.schedule`: the rates that PyTorch's schedulers write, alone, multiplied, in sequence and after a break."""

import copy
import random
import warnings

import pytest
import torch

from readtorch.mini import schedule as mini

real = torch.optim.lr_scheduler


def random_schedule(draw):
    """A function (module, optimizer) -> scheduler."""
    name = draw.choice(["ExponentialLR", "LinearLR", "CosineAnnealingLR"])
    settings = {
        "ExponentialLR": [draw.uniform(0.5, 1)],
        "LinearLR": [draw.uniform(0.1, 1), draw.uniform(0.1, 1), draw.randint(1, 9)],
        "CosineAnnealingLR": [draw.randint(2, 12)],
    }[name]
    return lambda module, optimizer: getattr(module, name)(optimizer, *settings)


def new_optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.8)


def rates(optimizer, schedulers, count=15):
    used = []
    for _ in range(count):
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    return used


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("how", ["alone", "sequence"])
def test_rates(how, seed):
    draw = random.Random(seed)
    makes = [random_schedule(draw) for _ in range(1 if how == "alone" else draw.randint(2, 4))]
    milestones = sorted(draw.sample(range(1, 12), len(makes) - 1))

    def run(module):
        optimizer = new_optimizer()
        made = [make(module, optimizer) for make in makes]
        if how == "sequence":
            made = [module.SequentialLR(optimizer, made, milestones)]
        return rates(optimizer, made)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(mini) == pytest.approx(run(real), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_two_at_once_multiply(seed):
    """Until one arrives at 0: from nothing PyTorch's cosine and the ratio of factors go on in different ways."""
    draw = random.Random(seed)
    ramp, decay = (draw.uniform(0.1, 1), 1.0, draw.randint(1, 9)), draw.uniform(0.5, 1)

    def run(module):
        optimizer = new_optimizer()
        return rates(optimizer, [module.LinearLR(optimizer, *ramp), module.ExponentialLR(optimizer, decay)])

    assert run(mini) == pytest.approx(run(real), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_break(seed):
    make = random_schedule(random.Random(seed))
    optimizer = new_optimizer()
    scheduler = make(mini, optimizer)
    rates(optimizer, [scheduler], 4)
    saved = copy.deepcopy([optimizer.state_dict(), scheduler.state_dict()])
    wanted = rates(optimizer, [scheduler])
    optimizer = new_optimizer()
    scheduler = make(mini, optimizer)
    optimizer.load_state_dict(saved[0])
    scheduler.load_state_dict(saved[1])
    assert rates(optimizer, [scheduler]) == wanted
