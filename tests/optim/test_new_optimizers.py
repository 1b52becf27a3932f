"""Every optimizer and every schedule, made with its defaults and with one argument changed: the same attributes, the same refusals."""

import pytest
import torch

import readtorch.optim
from tests.new_objects import arguments_of, new, subclassed, variations

KNOWN = {
    "lr_lambda": abs,
    "step_size": 2,
    "milestones": [2, 3],
    "schedulers": [],
    "gamma": 0.5,
    "base_lr": 0.1,
    "max_lr": 0.5,
    "total_iters": 3,
    "T_max": 5,
    "T_0": 3,
    "swa_lr": 0.25,
}
OPTIMIZERS = [name for name, cls in sorted(vars(torch.optim).items()) if isinstance(cls, type) and name != "Optimizer"]
SCHEDULES = [
    name
    for name, cls in sorted((vars(torch.optim.lr_scheduler) | vars(torch.optim.swa_utils)).items())
    if isinstance(cls, type) and issubclass(cls, torch.optim.lr_scheduler.LRScheduler) and name != "LRScheduler"
]


def weights(T):
    return [T.nn.Parameter(T.ones(2, 3)), T.nn.Parameter(T.ones(3, 2))]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_new_optimizer(name):
    for changed in variations(getattr(torch.optim, name)):
        expected, ours = (new(lambda T=T: getattr(T.optim, name)(weights(T), **changed)) for T in (torch, readtorch))
        assert ours == expected, changed


def schedule(T, name, changed):
    optimizer = T.optim.SGD(weights(T), 0.1, momentum=0.9)
    cls = getattr(T.optim.swa_utils if name == "SWALR" else T.optim.lr_scheduler, name)
    theirs = getattr(torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler, name)
    given = arguments_of(theirs, KNOWN) | {"optimizer": optimizer}
    if name == "SequentialLR":
        given["milestones"] = [2]
    if name in ("SequentialLR", "ChainedScheduler"):
        given["schedulers"] = [T.optim.lr_scheduler.ExponentialLR(optimizer, 0.5) for _ in range(2)]
    return cls(**given | changed)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_new_schedule(name):
    theirs = getattr(torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler, name)
    for changed in variations(theirs):
        expected, ours = (new(lambda T=T: schedule(T, name, changed)) for T in (torch, readtorch))
        assert ours == expected, changed


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_new_class(name):
    assert subclassed(getattr(readtorch.optim, name)) == subclassed(getattr(torch.optim, name))
