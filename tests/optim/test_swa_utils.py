"""Averaged models and update_bn next to the reference."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from readtorch.optim import swa_utils
from tests.programs import same


def network(T):
    T.manual_seed(3)
    return T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Linear(4, 1, dtype=T.float32))


def train(T, model, averages, steps=4):
    optimizer = T.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(T.randn(8, 3)).pow(2).mean().backward()
        optimizer.step()
        for average in averages:
            average.update_parameters(model)


FUNCTIONS = {
    "none": lambda swa: {},
    "swa": lambda swa: {"avg_fn": swa.get_swa_avg_fn()},
    "ema": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.9)},
    "swa multi": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    "ema multi": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    "own": lambda swa: {"avg_fn": lambda average, new, n: average * 0.5 + new / (n + 2)},
}


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_averages(kind, use_buffers):
    def program(T, show):
        model = network(T)
        averaged = T.optim.swa_utils.AveragedModel(model, **FUNCTIONS[kind](T.optim.swa_utils), use_buffers=use_buffers)
        if (kind, use_buffers) == ("swa multi", True):  # refuses BatchNorm's counter, which is an integer
            show.error(lambda: train(T, model, [averaged]))
            return
        train(T, model, [averaged])
        show(averaged.n_averaged, list(averaged.state_dict()))
        show.numbers(*averaged.state_dict().values())
        show.numbers(averaged.eval()(T.ones(2, 3)))

    same(program, rtol=2e-6)


def test_the_model_and_its_average():
    def program(T, show):
        model = network(T)
        averaged = T.optim.swa_utils.AveragedModel(model)
        show(averaged)
        show(averaged.n_averaged, averaged.n_averaged.dtype, [n for n, _ in averaged.named_parameters()])
        show(averaged.module is model, averaged.avg_fn, averaged.multi_avg_fn, averaged.use_buffers)
        before = [p for p in averaged.parameters()]
        train(T, model, [averaged], steps=1)
        show([bool((a == b).all()) for a, b in zip(averaged.parameters(), model.parameters())])
        show([a is b for a, b in zip(averaged.parameters(), before)], [p.requires_grad for p in before])
        show.error(lambda: T.optim.swa_utils.AveragedModel(model, avg_fn=len, multi_avg_fn=len))
        show(T.optim.swa_utils.AveragedModel(model, device="cpu", use_buffers=True).n_averaged)
        train(T, model, [averaged])
        state = averaged.state_dict()
        fresh = T.optim.swa_utils.AveragedModel(network(T))
        show(fresh.load_state_dict(state), fresh.n_averaged)
        train(T, model, [fresh, averaged])
        show([bool((a == b).all()) for a, b in zip(averaged.parameters(), fresh.parameters())])
        twin = copy.deepcopy(averaged)
        show(twin.n_averaged, pickle.loads(pickle.dumps(twin)).n_averaged)

    same(program)


def test_a_function_for_many_gets_one_kind_at_a_time():
    calls = []

    def average(averages, currents, n):
        calls.append(({p.dtype for p in averages + currents}, len(averages), len(currents), n.item()))

    model = readtorch.nn.Sequential(
        readtorch.nn.Linear(1, 2), readtorch.nn.Linear(2, 2, dtype=readtorch.float64), readtorch.nn.Linear(2, 1)
    )
    averaged = swa_utils.AveragedModel(model, multi_avg_fn=average)
    for _ in range(2):
        averaged.update_parameters(model)
    assert calls == [({readtorch.float32}, 4, 4, 1), ({readtorch.float64}, 2, 2, 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64", "float16"])
@pytest.mark.parametrize("n", [1, 3, "a tensor"])
def test_functions_themselves(dtype, n):
    def program(T, show):
        swa = T.optim.swa_utils
        count = T.tensor(3) if n == "a tensor" else n
        old = [T.tensor([1, 5, -3]).to(getattr(T, dtype)), T.tensor([[10], [4]]).to(getattr(T, dtype))]
        new = [2 * old[0] - 1, old[1] + 3]
        for function in (swa.get_swa_avg_fn(), swa.get_ema_avg_fn(), swa.get_ema_avg_fn(0.25)):
            show(function(old[0], new[0], count))
        for function in (swa.get_swa_multi_avg_fn(), swa.get_ema_multi_avg_fn(), swa.get_ema_multi_avg_fn(0.25)):
            averages = [t.clone() for t in old]
            show.error(lambda: function(averages, new, count))
            show(averages)

    same(program)


def test_decay_out_of_range():
    def program(T, show):
        for decay in (-0.1, 1.1, 0, 1):
            show.error(lambda: T.optim.swa_utils.get_ema_avg_fn(decay))
            show.error(lambda: T.optim.swa_utils.get_ema_multi_avg_fn(decay))

    same(program)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_the_default_is_the_mean(weights):
    model = readtorch.nn.Linear(1, 1, bias=False, dtype=readtorch.float64)
    averaged = swa_utils.AveragedModel(model)
    for weight in weights:
        with readtorch.no_grad():
            model.weight.fill_(weight)
        averaged.update_parameters(model)
    assert averaged.n_averaged.item() == len(weights)
    np.testing.assert_allclose(averaged.module.weight.item(), np.mean(weights), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["tensors", "pairs", "a generator"])
def test_update_bn(kind):
    def program(T, show):
        model = network(T).eval()
        model[1].momentum = 0.3
        data = [T.randn(5, 3) for _ in range(3)]
        loader = {"tensors": data, "pairs": [(x, 0) for x in data], "a generator": ([x] for x in data)}[kind]
        T.optim.swa_utils.update_bn(loader, model, device="cpu" if kind == "pairs" else None)
        show(model.training, model[1].training, model[1].momentum)
        show.numbers(model[1].running_mean, model[1].running_var, model[1].num_batches_tracked)
        show([p.grad for p in model.parameters()])

    same(program)


def test_update_bn_without_batch_norm_reads_nothing():
    def never():
        raise AssertionError("read")
        yield

    model = readtorch.nn.Linear(1, 1)
    swa_utils.update_bn(never(), model)
    with pytest.raises(AssertionError, match="read"):
        swa_utils.update_bn(never(), readtorch.nn.BatchNorm1d(1))


def test_swalr_takes_over_from_another_scheduler():
    def program(T, show):
        for strategy in ("cos", "linear"):
            optimizer = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.5)
            scheduler = T.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
            swa = T.optim.swa_utils.SWALR(optimizer, 0.05, 5, strategy)
            for i in range(12):
                optimizer.step()
                (scheduler if i < 4 else swa).step()
                show(optimizer.param_groups[0]["lr"], swa.get_last_lr())
            show(swa.state_dict())
            show.warnings(swa.get_lr)
            other = T.optim.swa_utils.SWALR(optimizer, 0.1)
            other.load_state_dict(swa.state_dict())
            show(other.anneal_func.__name__, other.anneal_epochs)

    same(program)
