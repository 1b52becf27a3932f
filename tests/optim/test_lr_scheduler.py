"""Schedulers next to the reference: rates, momenta and state dicts, through checkpoints; warnings, errors, resuming."""

import copy
import gc
import inspect
import pickle
import warnings
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from tests.programs import same

# Some programs here do what the warnings are about; show.warnings and catch_warnings see them all the same.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Decay:
    """A callable object: a checkpoint keeps its attributes."""

    def __init__(self, rate):
        self.rate = rate

    def __call__(self, epoch):
        self.last = epoch
        return self.rate**epoch


def schedulers(T):
    """name: a function from an optimizer with two groups to a scheduler"""
    L = T.optim.lr_scheduler
    return {
        "LambdaLR": lambda o: L.LambdaLR(o, [lambda t: 1 / (t + 1), Decay(0.97)]),
        "MultiplicativeLR": lambda o: L.MultiplicativeLR(o, lambda t: 0.95 + 0.04 * (t % 2)),
        "MultiplicativeLR of an object": lambda o: L.MultiplicativeLR(o, Decay(0.999)),
        "StepLR": lambda o: L.StepLR(o, 30, 0.5),
        "MultiStepLR": lambda o: L.MultiStepLR(o, [120, 20, 50, 50], gamma=0.3),
        "ConstantLR": lambda o: L.ConstantLR(o, 0.25, 110),
        "LinearLR": lambda o: L.LinearLR(o, 0.3, 0.9, 130),
        "LinearLR, default": lambda o: L.LinearLR(o),
        "ExponentialLR": lambda o: L.ExponentialLR(o, 0.97),
        "PolynomialLR": lambda o: L.PolynomialLR(o, 150, 2.5),
        "CosineAnnealingLR": lambda o: L.CosineAnnealingLR(o, 40, 0.001),
        "CosineAnnealingLR to 0": lambda o: L.CosineAnnealingLR(o, 7),
        "CosineAnnealingWarmRestarts": lambda o: L.CosineAnnealingWarmRestarts(o, 11, 2, 0.001),
        "CosineAnnealingWarmRestarts, equal": lambda o: L.CosineAnnealingWarmRestarts(o, 9),
        "CyclicLR": lambda o: L.CyclicLR(o, [0.01, 0.02], 0.2, step_size_up=13, step_size_down=7),
        "CyclicLR triangular2": lambda o: L.CyclicLR(o, 0.01, 0.2, 10, mode="triangular2", max_momentum=[0.9, 0.95]),
        "CyclicLR exp_range": lambda o: L.CyclicLR(o, 0.01, 0.2, 10, mode="exp_range", gamma=0.99),
        "CyclicLR of a function": lambda o: L.CyclicLR(o, 0.01, 0.2, 9, scale_fn=Decay(0.9), cycle_momentum=False),
        "CyclicLR of steps": lambda o: L.CyclicLR(
            o, 0.01, 0.2, 9, scale_fn=lambda t: 1 / t if t else 1.0, scale_mode="iterations"
        ),
        "OneCycleLR": lambda o: L.OneCycleLR(o, [0.5, 0.3], total_steps=250),
        "OneCycleLR linear": lambda o: L.OneCycleLR(o, 0.5, epochs=20, steps_per_epoch=11, anneal_strategy="linear"),
        "OneCycleLR three phases": lambda o: L.OneCycleLR(o, 0.5, 220, three_phase=True, base_momentum=0.8),
        "OneCycleLR, momentum kept": lambda o: L.OneCycleLR(o, 0.5, 200, cycle_momentum=False),
        "SequentialLR": lambda o: L.SequentialLR(
            o, [L.LinearLR(o, 0.1, 1.0, 10), L.ExponentialLR(o, 0.98), L.CosineAnnealingLR(o, 60)], [15, 90]
        ),
        "SequentialLR of combined": lambda o: L.SequentialLR(
            o, [L.ChainedScheduler([L.ConstantLR(o, 0.5, 9), L.ExponentialLR(o, 0.99)]), L.StepLR(o, 25)], [200]
        ),
        "SequentialLR within": lambda o: L.SequentialLR(
            o, [L.LinearLR(o), L.SequentialLR(o, [L.StepLR(o, 25), L.ExponentialLR(o, 0.9)], [30])], [300]
        ),
        "ChainedScheduler": lambda o: L.ChainedScheduler(
            [L.ConstantLR(o, 0.5, 50), L.ExponentialLR(o, 0.99), L.MultiStepLR(o, [30, 130])]
        ),
        "ReduceLROnPlateau": lambda o: L.ReduceLROnPlateau(o, factor=0.7, patience=3, cooldown=2, min_lr=[0.001, 0.01]),
        "ReduceLROnPlateau max": lambda o: L.ReduceLROnPlateau(o, "max", 0.7, 5, 0.1, threshold_mode="abs", eps=1e-3),
        "SWALR": lambda o: T.optim.swa_utils.SWALR(o, [0.02, 0.2], anneal_epochs=120),
        "SWALR linear": lambda o: T.optim.swa_utils.SWALR(o, 0.05, 33, "linear"),
        "SWALR at once": lambda o: T.optim.swa_utils.SWALR(o, 0.05, 0),
    }


NAMES = list(schedulers(torch))


def new_optimizer(T, algorithm="SGD", tensor_lr=False):
    first, second = (T.nn.Parameter(T.ones(2)) for _ in range(2))
    number = (lambda x: T.tensor(x, dtype=T.float64)) if tensor_lr else float
    momentum = {"betas": (0.9, 0.99)} if algorithm == "Adam" else {"momentum": 0.9}
    groups = [{"params": [first]}, {"params": [second], "lr": number(0.025)}]
    return getattr(T.optim, algorithm)(groups, lr=number(0.1), **momentum)


def advance(optimizer, scheduler, epochs):
    """The rates and momenta of each group before every one of these epochs."""
    seen = []
    for t in epochs:
        groups = optimizer.param_groups
        seen.append([[float(g["lr"]), g["momentum"] if "momentum" in g else g["betas"][0]] for g in groups])
        optimizer.step()
        if type(scheduler).__name__ == "ReduceLROnPlateau":
            scheduler.step(1 / (1 + t % 40))
        else:
            scheduler.step()
    return seen


def with_checkpoint(T, name, algorithm, tensor_lr=False):
    """200 epochs; after 97 of them optimizer and scheduler are made anew and load the state of the old ones."""
    optimizer = new_optimizer(T, algorithm, tensor_lr)
    scheduler = schedulers(T)[name](optimizer)
    seen = advance(optimizer, scheduler, range(97))
    saved = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    optimizer = new_optimizer(T, algorithm, tensor_lr)
    scheduler = schedulers(T)[name](optimizer)
    optimizer.load_state_dict(saved[0])
    scheduler.load_state_dict(saved[1])
    return seen + advance(optimizer, scheduler, range(97, 200)), scheduler.state_dict(), scheduler.get_last_lr()


def assert_equal_state(ours, theirs, path="state"):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), path
        for name, value in theirs.items():
            assert_equal_state(ours[name], value, f"{path}.{name}")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs) and type(ours) is type(theirs), path
        for i, pair in enumerate(zip(ours, theirs)):
            assert_equal_state(*pair, f"{path}[{i}]")
    elif isinstance(theirs, float):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0, err_msg=path)
    elif isinstance(theirs, torch.Tensor):
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1], path
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-12, atol=0, err_msg=path)
    else:
        assert ours == theirs and type(ours) is type(theirs), path


@pytest.mark.parametrize("algorithm", ["SGD", "Adam"])
@pytest.mark.parametrize("name", NAMES)
def test_two_hundred_epochs(name, algorithm):
    ours, our_state, our_last = with_checkpoint(readtorch, name, algorithm)
    theirs, their_state, their_last = with_checkpoint(torch, name, algorithm)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0)
    assert_equal_state(our_state, their_state)
    assert_equal_state(our_last, their_last)


@pytest.mark.parametrize("name", NAMES)
def test_rates_that_are_tensors(name):
    ours, our_state, our_last = with_checkpoint(readtorch, name, "SGD", tensor_lr=True)
    theirs, their_state, their_last = with_checkpoint(torch, name, "SGD", tensor_lr=True)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0)
    assert_equal_state(our_state, their_state)
    assert_equal_state(our_last, their_last)


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_is_changed_in_place_and_not_handed_out(name):
    optimizer = new_optimizer(readtorch, tensor_lr=True)
    rates = [group["lr"] for group in optimizer.param_groups]
    scheduler = schedulers(readtorch)[name](optimizer)
    advance(optimizer, scheduler, range(3))
    for before, group, last in zip(rates, optimizer.param_groups, scheduler.get_last_lr()):
        assert group["lr"] is before
        assert last is not before and last.item() == before.item()


@pytest.mark.parametrize("name", NAMES)
def test_jumps(name):
    def program(T, show):
        optimizer = new_optimizer(T)
        scheduler = schedulers(T)[name](optimizer)
        optimizer.step()
        arguments = (0.5,) if name.startswith("ReduceLR") else ()
        for epoch in (0, 4, 4, 90, 31, 12):
            show.error(lambda: show.warnings(lambda: scheduler.step(*arguments, epoch)))
            show(epoch, [g["lr"] for g in optimizer.param_groups], getattr(scheduler, "last_epoch", None))

    same(program)


def test_parts_of_an_epoch():
    def program(T, show):
        for factor in (1, 2):
            optimizer = new_optimizer(T)
            scheduler = T.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, factor)
            for i in range(60):
                scheduler.step(i / 4)
                show(scheduler.T_cur, scheduler.T_i, scheduler.last_epoch, scheduler.get_last_lr())
            show.error(lambda: scheduler.step(-1))

    same(program)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_both_forms_give_the_same(data):
    length, factor = data.draw(st.integers(1, 30)), data.draw(st.floats(0.1, 1))
    milestones = data.draw(st.lists(st.integers(0, 40), max_size=4))
    chosen = {
        "StepLR": (length, factor),
        "MultiStepLR": ([m + 1 for m in milestones], factor),
        "ConstantLR": (factor, length),
        "LinearLR": (factor, 0.8, length),
        "ExponentialLR": (factor,),
        "PolynomialLR": (length, 2 * factor),
        "CosineAnnealingLR": (length, 0.01),
    }
    name = data.draw(st.sampled_from(list(chosen)))
    lrs, closed = {}, {}
    for T in (readtorch, torch):
        optimizer = new_optimizer(T)
        scheduler = getattr(T.optim.lr_scheduler, name)(optimizer, *chosen[name])
        lrs[T], closed[T] = [], []
        for _ in range(50):
            lrs[T].append(scheduler.get_last_lr())
            closed[T].append(scheduler._get_closed_form_lr())
            optimizer.step()
            scheduler.step()
    np.testing.assert_allclose(lrs[readtorch], lrs[torch], rtol=1e-12, atol=0)
    np.testing.assert_allclose(closed[readtorch], closed[torch], rtol=1e-12, atol=0)
    np.testing.assert_allclose(lrs[readtorch], closed[readtorch], rtol=1e-9, atol=1e-12)


def test_who_has_stepped_first():
    def program(T, show):
        StepLR = T.optim.lr_scheduler.StepLR
        optimizer = new_optimizer(T)
        scheduler = StepLR(optimizer, 3)
        show.warnings(scheduler.step)
        show.warnings(scheduler.step)
        optimizer = new_optimizer(T)
        scheduler, other = StepLR(optimizer, 3), T.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        show(hasattr(optimizer.step, "_wrapped_by_lr_sched"), hasattr(optimizer, "_opt_called"))
        show(optimizer.step(lambda: 3), optimizer._opt_called, optimizer.step.__name__)
        show.warnings(scheduler.step)
        show.warnings(other.step)
        optimizer = new_optimizer(T)
        scheduler = StepLR(optimizer, 3)
        optimizer.step = lambda: None
        show.warnings(scheduler.step)
        show.error(lambda: StepLR(optimizer, 3))
        optimizer = new_optimizer(T)
        show.warnings(lambda: [T.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3).step() for _ in range(3)])

    same(program)


def test_hooks_run_once_and_class_is_left_alone():
    def program(T, show):
        optimizer = new_optimizer(T)
        before = T.optim.SGD.step  # which the process's first optimizer wraps
        for _ in range(2):
            T.optim.lr_scheduler.StepLR(optimizer, 3)
        optimizer.register_step_pre_hook(lambda o, args, kwargs: show("before", o is optimizer))
        optimizer.register_step_post_hook(lambda o, args, kwargs: show("after", kwargs))
        optimizer.step(closure=lambda: show("closure"))
        show(T.optim.SGD.step is before, "step" in vars(optimizer))

    same(program)


def test_warnings_point_at_the_caller():
    optimizer = new_optimizer(readtorch)
    scheduler = readtorch.optim.lr_scheduler.StepLR(optimizer, 3)
    plateau = readtorch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler.step()
        scheduler.step(4)
        plateau.step(1.0, 3)
    assert [w.filename for w in caught] == [__file__] * 3
    assert {w.category for w in caught} == {UserWarning}


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("Chained", "Sequential", "Reduce"))])
def test_asked_from_outside(name):
    def program(T, show):
        optimizer = new_optimizer(T)
        scheduler = schedulers(T)[name](optimizer)
        show.warnings(lambda: show([f"{lr:.12g}" for lr in scheduler.get_lr()]))

    same(program)


def resumable(T):
    every = schedulers(T)
    L = T.optim.lr_scheduler
    return {
        "LambdaLR": lambda o, t: L.LambdaLR(o, lambda t: 0.9**t, t),
        "MultiplicativeLR": lambda o, t: L.MultiplicativeLR(o, lambda t: 0.9, t),
        "StepLR": lambda o, t: L.StepLR(o, 4, 0.5, t),
        "MultiStepLR": lambda o, t: L.MultiStepLR(o, [4, 6], 0.5, t),
        "ConstantLR": lambda o, t: L.ConstantLR(o, 0.5, 6, t),
        "LinearLR": lambda o, t: L.LinearLR(o, 0.5, 1.0, 9, t),
        "ExponentialLR": lambda o, t: L.ExponentialLR(o, 0.9, t),
        "PolynomialLR": lambda o, t: L.PolynomialLR(o, 9, 2.0, t),
        "CosineAnnealingLR": lambda o, t: L.CosineAnnealingLR(o, 7, 0.01, t),
        "CosineAnnealingWarmRestarts": lambda o, t: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01, t),
        "CyclicLR": lambda o, t: L.CyclicLR(o, 0.01, 0.1, 4, last_epoch=t),
        "OneCycleLR": lambda o, t: L.OneCycleLR(o, 0.5, 20, last_epoch=t),
        "SWALR": lambda o, t: T.optim.swa_utils.SWALR(o, 0.5, 20, last_epoch=t),
        "SequentialLR": lambda o, t: L.SequentialLR(o, [L.StepLR(o, 2), L.ExponentialLR(o, 0.9)], [9], t),
        "ChainedScheduler": lambda o, t: every["ChainedScheduler"](o),
    }


@pytest.mark.parametrize("name", resumable(torch))
def test_resuming_with_last_epoch(name):
    def program(T, show):
        make = resumable(T)[name]
        optimizer = new_optimizer(T)
        show.error(lambda: make(new_optimizer(T), 3))
        scheduler = make(optimizer, -1)
        advance(optimizer, scheduler, range(5))
        state = optimizer.state_dict()
        optimizer = new_optimizer(T)
        optimizer.load_state_dict(state)
        scheduler = make(optimizer, 4)
        if hasattr(scheduler, "base_lrs"):
            show.warnings(lambda: show("next", scheduler.get_lr()))
        for row in advance(optimizer, scheduler, range(9)):
            show([[f"{x:.12g}" for x in pair] for pair in row])
        show(scheduler.state_dict())

    same(program)


def test_a_second_scheduler_keeps_the_first_rate():
    def program(T, show):
        optimizer = new_optimizer(T)
        T.optim.lr_scheduler.ConstantLR(optimizer, 0.5)
        scheduler = T.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        show(scheduler.base_lrs, scheduler.get_last_lr(), optimizer.param_groups[0]["initial_lr"])
        optimizer.add_param_group({"params": [T.nn.Parameter(T.ones(1))], "lr": 1.0})
        optimizer.step()
        scheduler.step()
        show(scheduler.get_last_lr())
        show.error(lambda: scheduler.step(3))
        show.error(lambda: T.optim.lr_scheduler.LambdaLR(optimizer, [len]))

    same(program)


def test_errors():
    def program(T, show):
        L, swa = T.optim.lr_scheduler, T.optim.swa_utils
        o, other = new_optimizer(T), new_optimizer(T)
        show.error(lambda: L.LRScheduler(o))
        for cls, arguments in (
            ("LambdaLR", (len,)),
            ("StepLR", (3,)),
            ("ReduceLROnPlateau", ()),
            ("CyclicLR", (0.1, 0.2)),
            ("OneCycleLR", (0.1, 3)),
            ("ExponentialLR", (0.9,)),
        ):
            show.error(lambda: getattr(L, cls)(3, *arguments))
            show.error(lambda: getattr(L, cls)(T.nn.Linear(1, 1), *arguments))
        for make in (
            lambda: L.LambdaLR(o, [len]),
            lambda: L.LambdaLR(o, (len, len, len)),
            lambda: L.MultiplicativeLR(o, [len]),
            lambda: L.MultiplicativeLR(o, 0.9),
            lambda: L.MultiplicativeLR(o, [len, "f"]),
            lambda: L.ConstantLR(o, 1.5),
            lambda: L.ConstantLR(o, -0.5),
            lambda: L.LinearLR(o, 0),
            lambda: L.LinearLR(o, 1.1),
            lambda: L.LinearLR(o, 0.5, 1.1),
            lambda: L.LinearLR(o, 0.5, -0.1),
            lambda: L.CosineAnnealingWarmRestarts(o, 0),
            lambda: L.CosineAnnealingWarmRestarts(o, 1.5),
            lambda: L.CosineAnnealingWarmRestarts(o, 2, 0),
            lambda: L.CosineAnnealingWarmRestarts(o, 2, 1.5),
            lambda: L.CosineAnnealingWarmRestarts(o, 2, 1, "0"),
            lambda: L.CyclicLR(o, [0.1], 0.2),
            lambda: L.CyclicLR(o, 0.1, (0.2, 0.3, 0.4)),
            lambda: L.CyclicLR(o, 0.1, 0.2, mode="square"),
            lambda: L.CyclicLR(o, 0.1, 0.2, base_momentum=[1]),
            lambda: L.CyclicLR(o, 0.1, 0.2, max_momentum=[1]),
            lambda: L.OneCycleLR(o, 0.1),
            lambda: L.OneCycleLR(o, 0.1, epochs=3),
            lambda: L.OneCycleLR(o, 0.1, 0),
            lambda: L.OneCycleLR(o, 0.1, 3.5),
            lambda: L.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3),
            lambda: L.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=-1),
            lambda: L.OneCycleLR(o, 0.1, 9, pct_start=2.0),
            lambda: L.OneCycleLR(o, 0.1, 9, pct_start=1),
            lambda: L.OneCycleLR(o, 0.1, 9, pct_start=-0.5),
            lambda: L.OneCycleLR(o, 0.1, 10, pct_start=0.1),
            lambda: L.OneCycleLR(o, [0.1], 9),
            lambda: L.OneCycleLR(o, 0.1, 9, anneal_strategy="steep"),
            lambda: L.OneCycleLR(o, 0.1, 9, max_momentum=[1]),
            lambda: L.SequentialLR(o, [], []),
            lambda: L.SequentialLR(o, [L.StepLR(o, 3)], [3]),
            lambda: L.SequentialLR(o, [L.StepLR(other, 3)], []),
            lambda: L.SequentialLR(o, [L.StepLR(o, 3), 3], [3]),
            lambda: L.SequentialLR(o, [L.StepLR(o, 3), L.ReduceLROnPlateau(o)], [3]),
            lambda: L.ChainedScheduler([]),
            lambda: L.ChainedScheduler([L.StepLR(o, 3), "text"]),
            lambda: L.ChainedScheduler([L.StepLR(o, 3), L.StepLR(other, 3)]),
            lambda: L.ChainedScheduler([3], o),
            lambda: L.ChainedScheduler([L.StepLR(o, 3)], other),
            lambda: L.ChainedScheduler([L.ReduceLROnPlateau(o)]),
            lambda: L.ReduceLROnPlateau(o, "middle"),
            lambda: L.ReduceLROnPlateau(o, threshold_mode="of"),
            lambda: L.ReduceLROnPlateau(o, factor=1.0),
            lambda: L.ReduceLROnPlateau(o, min_lr=[0.1]),
            lambda: L.ReduceLROnPlateau(o).step("bad"),
            lambda: L.ReduceLROnPlateau(o).get_lr(),
            lambda: L.OneCycleLR(o, 0.1, 9).load_state_dict(3),
            lambda: swa.SWALR(o, 0.1, anneal_strategy="steep"),
            lambda: swa.SWALR(o, 0.1, -1),
            lambda: swa.SWALR(o, [1]),
            lambda: swa.SWALR(o, 0.1, 1.5),
        ):
            show.error(make)
        plain = T.optim.Optimizer([T.nn.Parameter(T.ones(1))], {"lr": 0.1})
        show.error(lambda: L.CyclicLR(plain, 0.1, 0.2))
        show.error(lambda: L.OneCycleLR(plain, 0.1, 9))
        one_cycle = L.OneCycleLR(o, 0.1, total_steps=4)
        for _ in range(5):
            o.step()
            show.error(one_cycle.step)

    same(program)


def test_plateau_step_by_step():
    def program(T, show):
        losses = [1.0, 0.5, 0.49999, 0.6, 0.4, T.tensor(0.41), 0.42, 0.43, 0.44, 0.45, 0.46, float("nan"), 0.1, 0.2]
        for mode in ("min", "max"):
            for threshold_mode in ("rel", "abs"):
                optimizer = new_optimizer(T)
                scheduler = T.optim.lr_scheduler.ReduceLROnPlateau(
                    optimizer, mode, 0.5, 1, 0.01, threshold_mode, cooldown=1, min_lr=0.02
                )
                show(scheduler.get_last_lr(), scheduler.state_dict())
                for loss in losses:
                    scheduler.step(loss)
                    show(scheduler.get_last_lr(), scheduler.best, scheduler.num_bad_epochs, scheduler.in_cooldown)
                scheduler._reset()
                show(scheduler.best)

    same(program)


def test_plateau_and_a_group_added_later():
    def program(T, show):
        for min_lr in (0.01, [0.01, 0.02]):
            optimizer = new_optimizer(T)
            scheduler = T.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=min_lr)
            optimizer.add_param_group({"params": [T.nn.Parameter(T.ones(1))], "lr": 0.5})
            scheduler.step(1.0)
            show.error(lambda: scheduler.step(2.0))
            show(scheduler.min_lrs, [g["lr"] for g in optimizer.param_groups])

    same(program)


def test_what_a_checkpoint_keeps_of_functions():
    def program(T, show):
        L = T.optim.lr_scheduler
        for make in (
            lambda o, f: L.LambdaLR(o, [f, lambda t: 0.5]),
            lambda o, f: L.MultiplicativeLR(o, f),
            lambda o, f: L.CyclicLR(o, 0.1, 0.2, scale_fn=f),
        ):
            old, new = Decay(0.5), Decay(0.9)
            state = copy.deepcopy(make(new_optimizer(T), old).state_dict())
            show(state)
            scheduler = make(new_optimizer(T), new)
            scheduler.load_state_dict(state)
            show(vars(new), scheduler.last_epoch)
        show.error(lambda: L.LambdaLR(new_optimizer(T), abs).state_dict())

    same(program)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_keeps_the_optimizer_alive(name):
    def is_freed(T):
        optimizer = new_optimizer(T)
        scheduler = schedulers(T)[name](optimizer)
        advance(optimizer, scheduler, range(3))
        alive = weakref.ref(optimizer), weakref.ref(scheduler)
        del optimizer, scheduler
        return [reference() is None for reference in alive]

    is_freed(torch)  # the first one of a process stays until the collector comes
    gc.collect()
    gc.disable()
    try:
        assert is_freed(readtorch) == is_freed(torch) == [True, True]
    finally:
        gc.enable()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["deepcopy", "pickle"])
def test_copies(copied):
    def program(T, show):
        L = T.optim.lr_scheduler
        optimizer = new_optimizer(T)
        scheduler = L.SequentialLR(optimizer, [L.CyclicLR(optimizer, 0.01, 0.1, 4), L.StepLR(optimizer, 2)], [3])
        advance(optimizer, scheduler, range(2))
        twin = copied(scheduler)
        show(twin.state_dict(), twin.optimizer is not optimizer, hasattr(twin.optimizer.step, "_wrapped_by_lr_sched"))
        advance(twin.optimizer, twin, range(3))
        show(twin.get_last_lr(), scheduler.get_last_lr())

    same(program)


def test_a_scheduler_of_ones_own():
    def program(T, show):
        class Halving(T.optim.lr_scheduler._LRScheduler):
            def get_lr(self):
                show("epoch", self.last_epoch, self._get_lr_called_within_step, self._is_initial)
                return [lr / 2**self.last_epoch for lr in self.base_lrs]

        optimizer = new_optimizer(T)
        scheduler = Halving(optimizer)
        advance(optimizer, scheduler, range(2))
        show(scheduler.get_last_lr(), scheduler.state_dict(), T.optim.lr_scheduler._LRScheduler.__name__)
        with T.optim.lr_scheduler._enable_get_lr_call(scheduler):
            show.warnings(scheduler.get_lr)

    same(program)


def test_public_names_and_signatures():
    def program(T, show):
        L, swa = T.optim.lr_scheduler, T.optim.swa_utils
        show(L.__all__, swa.__all__)
        for name in [*L.__all__, "_LRScheduler", "SWALR"]:
            cls = getattr(swa if name == "SWALR" else L, name)
            show(name, issubclass(cls, L.LRScheduler))
            for function in (cls.__init__, cls.step, cls.state_dict, cls.load_state_dict, cls.get_lr, cls.get_last_lr):
                show([(p.name, p.default, p.kind) for p in inspect.signature(function).parameters.values()])

    same(program)
