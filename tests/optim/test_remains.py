"""What the other files of this folder leave out: refused settings, settings that change a formula, functional forms."""

import math

import numpy as np
import pytest
import torch

from tests.programs import run, same

REFUSED = {
    "Adafactor": [
        {"lr": -1.0},
        {"eps": (None, -1.0)},
        {"eps": (-1.0, 1e-3)},
        {"weight_decay": -1.0},
        {"beta2_decay": 1.0},
        {"d": 0.5},
    ],
    "Muon": [
        {"lr": -1.0},
        {"momentum": -1.0},
        {"weight_decay": -1.0},
        {"adjust_lr_fn": "x"},
        {"ns_steps": 100},
        {"ns_coefficients": (1.0, 2.0)},
    ],
    "ASGD": [{"lr": -1.0}, {"weight_decay": -1.0}],
    "Rprop": [{"lr": -1.0}, {"etas": (1.0, 1.2)}, {"etas": (0.5, 1.0)}],
    "LBFGS": [{"lr": -1.0}, {"line_search_fn": "x"}],
    "SGD": [{"lr": -1.0}, {"momentum": -1.0}, {"weight_decay": -1.0}, {"nesterov": True}],
    "RMSprop": [{"alpha": -1.0}, {"momentum": -1.0}, {"eps": -1.0}],
    "Adagrad": [{"lr_decay": -1.0}, {"initial_accumulator_value": -1.0}, {"eps": -1.0}],
    "Adadelta": [{"rho": 2.0}, {"eps": -1.0}],
    "Adamax": [{"eps": -1.0}, {"betas": (1.0, 0.9)}, {"betas": (0.9, 1.0)}],
    "NAdam": [{"momentum_decay": -1.0}, {"eps": -1.0}],
    "RAdam": [{"eps": -1.0}, {"betas": (0.9, -0.1)}],
    "SparseAdam": [{"lr": 0.0}, {"eps": 0.0}],
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_are_refused(name):
    """When the optimizer is made, or by its first step."""

    def program(T, show):
        for settings in REFUSED[name]:

            def step():
                p = T.ones(2, 2, requires_grad=True)
                p.grad = T.ones(2, 2)
                getattr(T.optim, name)([p], **settings).step(lambda: p.sum())

            show.error(step)

    same(program)


def test_muon_by_its_function():
    def program(T, show):
        p, grad, buffer = T.ones(2, 3), T.arange(6.0).reshape(2, 3), T.zeros(2, 3)
        settings = dict(
            lr=0.1,
            weight_decay=0.1,
            momentum=0.9,
            nesterov=True,
            ns_coefficients=(3.4, -4.7, 2.0),
            ns_steps=2,
            eps=1e-7,
        )
        import importlib

        function = importlib.import_module(f"{T.__name__}.optim._muon")
        for adjust in (None, "original", "match_rms_adamw"):
            function.muon([p], [grad], [buffer], foreach=False, adjust_lr_fn=adjust, has_complex=False, **settings)
            show.numbers(p, buffer)
        show.error(
            lambda: function.muon([p], [grad], [buffer], foreach=True, adjust_lr_fn=None, has_complex=False, **settings)
        )
        show.error(lambda: function.muon([p], [grad], [buffer], adjust_lr_fn=None, has_complex=True, **settings))
        show.error(lambda: function.muon([p], [grad[0]], [buffer[0]], adjust_lr_fn=None, has_complex=False, **settings))
        orthogonal = function._zeropower_via_newtonschulz
        for arguments in ((grad[0], (1, 2, 3), 2, 0.1), (grad, (1, 2), 2, 0.1), (grad, (1, 2, 3), 100, 0.1)):
            show.error(lambda: orthogonal(*arguments))
        show.error(lambda: orthogonal(grad, (1.0, 0.5, 0.2), 99, 0.1))

    same(program, rtol=2e-2)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (6, 1)])
@pytest.mark.parametrize("adjust", [None, "original", "match_rms_adamw"])
def test_muon_s_learning_rate(adjust, shape):
    def program(T, show):
        p = T.zeros(shape, requires_grad=True)
        p.grad = T.arange(1.0, 7).reshape(shape)
        T.optim.Muon([p], lr=0.5, adjust_lr_fn=adjust, weight_decay=0.0).step()
        show.numbers(p)

    same(program, rtol=2e-2)


def test_averages_of_asgd():
    """From step t0 on, the average follows the parameter by 1 / (step - t0)."""

    def program(T, show):
        p = T.tensor([1.0, -2.0], requires_grad=True)
        optimizer = T.optim.ASGD([p], lr=0.1, t0=2, lambd=0.1, alpha=0.5)
        for k in range(6):
            p.grad = T.tensor([0.5, -1.0]) * (k - 1)
            optimizer.step()
            show.numbers(p, *[optimizer.state[p][name] for name in ("ax", "mu", "eta", "step")])

    same(program)


def test_adam_s_function_and_what_it_refuses():
    def program(T, show):
        from importlib import import_module

        adam = import_module(f"{T.__name__}.optim.adam").adam

        def call(step=0.0, requires_grad=False, beta2=0.9, **settings):
            p, grad, a, b = T.ones(2), T.tensor([0.5, 2.0]), T.zeros(2), T.ones(2)
            steps = [T.tensor(step, requires_grad=requires_grad)]
            adam(
                [p],
                [grad],
                [a],
                [b],
                [],
                steps,
                amsgrad=False,
                beta1=0.5,
                beta2=beta2,
                weight_decay=0.0,
                eps=1e-3,
                maximize=False,
                **{"lr": 0.1, "foreach": False} | settings,
            )
            show.numbers(p, a, b, steps[0])

        call()
        call(3.0)
        call(beta2=T.tensor(0.9))
        show.error(lambda: call(differentiable=True, requires_grad=True))
        p = T.ones(2, requires_grad=True)
        p.grad = T.ones(2)
        for changed in (
            {"lr": T.tensor(0.1), "foreach": True},
            {"lr": T.tensor(0.1), "foreach": False},
            {"lr": 0.1, "foreach": True},
        ):
            optimizer = T.optim.Adam([p])
            optimizer.param_groups[0].update(changed)
            show.error(optimizer.step)
        optimizer = T.optim.Adam([p], differentiable=True)
        show.error(optimizer.step)
        p.requires_grad_(False)
        optimizer.step()
        optimizer.state[p]["step"].requires_grad_()
        show.error(optimizer.step)

    same(program)


def test_functions_with_a_graph():
    """Outside of `step` nobody switches gradients off."""

    def program(T, show):
        from importlib import import_module

        adam, sgd = (import_module(f"{T.__name__}.optim.{name}") for name in ("adam", "sgd"))
        for size in (2, 3000):
            for lr in (0.1, T.tensor(0.1)):
                p, grad = T.ones(size, requires_grad=True), T.ones(size)
                settings = dict(weight_decay=0.0, lr=lr, maximize=False, foreach=False)
                show.error(
                    lambda: adam.adam(
                        [p],
                        [grad],
                        [T.zeros(size)],
                        [T.zeros(size)],
                        [],
                        [T.tensor(0.0)],
                        amsgrad=False,
                        beta1=0.9,
                        beta2=0.9,
                        eps=0.1,
                        **settings,
                    )
                )
                show.error(
                    lambda: sgd.sgd(
                        [p],
                        [grad],
                        [None],
                        momentum=0.0,
                        dampening=0.0,
                        nesterov=False,
                        has_sparse_grad=False,
                        **settings,
                    )
                )
                show.numbers(p)

    same(program)


def test_lbfgs_without_some_gradients():
    def program(T, show):
        p, q = T.tensor([1.0, 2.0], requires_grad=True), T.tensor([3.0], requires_grad=True)
        optimizer = T.optim.LBFGS([p, q], lr=0.5, max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        show(optimizer.step(closure))
        show.numbers(p, q)

    same(program)


FUNCTIONS = {
    "quartic": lambda x: (x**4).sum() - x.sum(),
    "steep": lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2,
    "wavy": lambda x: (x * x / 20 + (3 * x).sin()).sum(),
    "kink": lambda x: x.abs().sum() + 0.1 * (x * x).sum(),
    "flat": lambda x: (x * 1e-3).exp().sum(),
    "log": lambda x: (x - (x.abs() + 0.1).log()).sum(),
    "away": lambda x: -(x * x).sum() + (x**4).sum() / 50,
}


# Not (1.5, -0.7): from there the searches of "log" go so far that the gradient is 1, and its last bit says where they end.
STARTS = [(1.5, -0.3), (-2.0, 3.0), (0.1, 0.2)]


def search(T, show, name, lr, starts):
    for start in starts:
        x = T.tensor(start, dtype=T.float64, requires_grad=True)
        optimizer = T.optim.LBFGS([x], lr=lr, max_iter=6, history_size=3, line_search_fn="strong_wolfe")
        calls = []

        def closure():
            optimizer.zero_grad()
            loss = FUNCTIONS[name](x)
            loss.backward()
            calls.append(loss.item())
            return loss

        for _ in range(2):
            optimizer.step(closure)
        show(len(calls), optimizer.state[x]["func_evals"], optimizer.state[x]["n_iter"])
        show.numbers(x, T.tensor(calls, dtype=T.float64))


@pytest.mark.parametrize("lr", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_line_searches(name, lr):
    same(lambda T, show: search(T, show, name, lr, STARTS), rtol=1e-6)


@pytest.mark.parametrize("lr", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_line_search_hangs_on_the_last_bit(name, lr):
    """PyTorch goes the same way from beside the starts, else there would be nothing to compare."""
    expected = run(lambda T, show: search(T, show, name, lr, STARTS), torch)
    for eps in (-4.0e-16, 4.0e-16):
        for beside in ([(x * (1 + eps), y) for x, y in STARTS], [(x, y * (1 + eps)) for x, y in STARTS]):
            moved = run(lambda T, show: search(T, show, name, lr, beside), torch)
            assert moved.lines == expected.lines
            for there, here in zip(moved.arrays, expected.arrays):
                np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-9)


def test_a_state_that_is_loaded_keeps_its_step_s_type():
    def program(T, show):
        for settings in ({}, {"fused": True}, {"amsgrad": True}):
            p = T.ones(2, dtype=T.float64, requires_grad=True)
            p.grad = T.ones(2, dtype=T.float64)
            optimizer = T.optim.Adam([p], **settings)
            optimizer.step()
            q = T.ones(2, requires_grad=True)
            other = T.optim.Adam([q], **settings)
            other.load_state_dict(optimizer.state_dict())
            show({name: (value.dtype, value.tolist()) for name, value in other.state[q].items()})

    same(program)


@pytest.mark.parametrize(
    "settings",
    [{}, {"fused": True}, {"fused": False}, {"foreach": True}, {"capturable": True}, {"capturable": False}],
    ids=str,
)
def test_counts_that_are_loaded(settings):
    """A count keeps its type, unless the algorithm counts on the device: then it is float32."""

    def program(T, show):
        for dtype in (T.float32, T.float64, T.int64, T.float16):
            p = T.ones(2, dtype=T.float64, requires_grad=True)
            p.grad = T.ones(2, dtype=T.float64)
            made = T.optim.AdamW([p])
            made.step()
            saved = made.state_dict()
            saved["state"][0]["step"] = T.tensor(3, dtype=dtype)
            saved["state"][0]["exp_avg"] = T.ones(2, dtype=T.float32)
            saved["state"][0]["other"] = {"list": [T.ones(1, dtype=dtype), 3], "tuple": (T.zeros(1), None)}
            saved["param_groups"][0].update(settings)
            made.load_state_dict(saved)
            show(made.state[p])

    same(program)


def test_schedules_that_are_left_abstract():
    def program(T, show):
        optimizer = T.optim.SGD([T.ones(1, requires_grad=True)], lr=0.1)
        for make in (
            lambda: T.optim.lr_scheduler.LinearLR(optimizer, 0.0),
            lambda: T.optim.lr_scheduler.LinearLR(optimizer, 1.1),
            lambda: T.optim.lr_scheduler.LinearLR(optimizer, 1.0, end_factor=1.5),
            lambda: T.optim.lr_scheduler.LinearLR(optimizer, 1.0, end_factor=-0.1),
            lambda: T.optim.lr_scheduler.ConstantLR(optimizer, 1.5),
            lambda: T.optim.lr_scheduler.ConstantLR(optimizer, -0.5),
        ):
            show.error(make)
        show(
            T.optim.lr_scheduler.ConstantLR(optimizer, 1.0).get_last_lr(),
            T.optim.lr_scheduler.LinearLR(optimizer, 1.0, end_factor=0.0).get_last_lr(),
        )
        assert math.isfinite(optimizer.param_groups[0]["lr"])

    same(program)


def test_numbers_at_the_bounds_of_what_is_allowed():
    def program(T, show):
        def made(name, **settings):
            def make():
                p = T.tensor([1.0, 2.0], requires_grad=True)
                p.grad = T.tensor([0.5, -1.0])
                optimizer = getattr(T.optim, name)([p], **settings)
                optimizer.step()
                show(name, settings)
                show.numbers(p)

            show.error(make)

        for name in ("Adam", "AdamW"):
            for lr in (T.tensor(0.1), T.tensor([0.1]), T.tensor([0.1, 0.2]), T.tensor([[0.1]])):
                made(name, lr=lr)
                made(name, lr=lr, foreach=True)
            for betas in (
                (T.tensor(0.9), T.tensor(0.99)),
                (T.tensor([0.9]), T.tensor([0.99])),
                (T.tensor([0.9, 0.8]), T.tensor(0.9)),
                (T.tensor(0.9), T.tensor([0.9, 0.8])),
                (T.tensor(0.9), 0.9),
            ):
                made(name, betas=betas)
                made(name, betas=betas, foreach=True)
        for eps in ((0.0, 0.0), (0.0, 1e-3), (None, 0.0), (1e-9, 1.0), (None, -1e-9), (-1e-9, 1.0)):
            made("Adafactor", eps=eps)
        for settings in (
            {"d": 1.0},
            {"d": 0.999},
            {"beta2_decay": 0.0},
            {"beta2_decay": 1e-3},
            {"weight_decay": 0.0},
            {"lr": 0.0},
        ):
            made("Adafactor", **settings)
        for name in ("Adam", "Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"):
            for setting in (
                "lr",
                "eps",
                "weight_decay",
                "momentum",
                "alpha",
                "rho",
                "lr_decay",
                "initial_accumulator_value",
                "momentum_decay",
                "lambd",
            ):
                if setting in vars(getattr(T.optim, name)([T.ones(1, requires_grad=True)]))["defaults"]:
                    made(name, **{setting: 0.0 if setting != "eps" else 0})

    same(program)


def test_lbfgs_of_complex_numbers():
    """They count as pairs of real ones, in the flat gradient, in the update, in the memory; one has no gradient, two meet again."""

    def program(T, show):
        for search in (None, "strong_wolfe"):
            z = T.nn.Parameter(T.tensor([1.0 + 2.0j, -0.5 + 0.25j]))
            x, unused = T.nn.Parameter(T.tensor([[0.5], [3.0]])), T.nn.Parameter(T.ones(3, dtype=T.complex64))
            optimizer = T.optim.LBFGS([z, x, unused], 0.5, max_iter=5, history_size=2, line_search_fn=search)

            def closure():
                optimizer.zero_grad()
                loss = ((z - (1 - 1j)).abs() ** 2).sum() + ((x - 2) ** 4).sum() + (z.real * x.view(-1)).sum() ** 2
                loss.backward()
                return loss

            for _ in range(3):
                show.numbers(optimizer.step(closure))
            show(optimizer._numel())
            show.numbers(T.view_as_real(z), x, T.view_as_real(unused))

    same(program)


def test_lbfgs_on_hard_lines():
    """Steep valleys, rising and flat lines: the search brackets, moves away from the ends, gives up."""

    def program(T, show):
        losses = {
            "valley": lambda x: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
            "waves": lambda x: (x * 5).sin().sum() + (x**2).sum() / 10,
            "edges": lambda x: (x.abs() ** 1.5).sum() + x.exp().sum(),
            "poles": lambda x: (x**2 + 0.01).log().sum() + 0.1 * (x[0] - x[1]) ** 2,
        }
        for name, loss_of in losses.items():
            for start in ((-1.5, 2.0), (0.3, -0.7), (3.0, 3.0)):
                for settings in ({}, {"max_eval": 4}, {"tolerance_change": 0.01}, {"history_size": 1, "lr": 0.1}):
                    x = T.nn.Parameter(T.tensor(start, dtype=T.float64))
                    optimizer = T.optim.LBFGS([x], max_iter=15, line_search_fn="strong_wolfe", **settings)

                    def closure():
                        optimizer.zero_grad()
                        loss = loss_of(x)
                        loss.backward()
                        return loss

                    optimizer.step(closure)
                    show(name, optimizer.state[x]["func_evals"], optimizer.state[x]["n_iter"])
                    show.numbers(x)

    same(program, rtol=1e-4)


def test_gradients_of_graphs_are_emptied():
    def program(T, show):
        for holder in ("optimizer", "module"):
            model = T.nn.Linear(2, 1)
            optimizer = T.optim.SGD(model.parameters(), 0.1)
            (model(T.ones(3, 2)) ** 2).sum().backward(create_graph=True)
            before = model.weight.grad
            (optimizer if holder == "optimizer" else model).zero_grad(set_to_none=False)
            show(before is model.weight.grad, before.grad_fn, before.requires_grad, before)
            model.bias.grad = T.ones(1, requires_grad=True)
            (optimizer if holder == "optimizer" else model).zero_grad(set_to_none=False)
            show(model.bias.grad.requires_grad, model.bias.grad)

    same(program)


def test_steps_are_counted_in_the_default_dtype():
    def program(T, show):
        T.set_default_dtype(T.float64)
        try:
            for name in ("Adam", "Adagrad", "RAdam", "ASGD", "Rprop", "NAdam", "Adadelta", "RMSprop"):
                for fused in (None, True) if name in ("Adam", "Adagrad") else (None,):
                    w = T.nn.Parameter(T.ones(2, dtype=T.float32))
                    w.grad = T.ones(2, dtype=T.float32)
                    optimizer = getattr(T.optim, name)([w], **({"fused": fused} if fused else {}))
                    optimizer.step()
                    show(name, fused, {k: str(v.dtype) for k, v in optimizer.state[w].items() if hasattr(v, "dtype")})
                    show.numbers(w)
        finally:
            T.set_default_dtype(T.float32)

    same(program)


def test_adagrad_s_sums_in_shared_memory():
    def program(T, show):
        optimizer = T.optim.Adagrad([T.nn.Parameter(T.ones(2)), T.nn.Parameter(T.ones(3, 1))], lr=0.1)
        optimizer.share_memory()
        show([(s["sum"].is_shared(), s["sum"].shape) for s in optimizer.state.values()])

    same(program)


def test_settings_that_are_tensors():
    """Rates and moments as tensors, single tensor by single tensor, together with gradients through the step."""

    def program(T, show):
        for name in ("Adam", "AdamW"):
            for settings in ({"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True}, {"weight_decay": 0.0}):
                lr = T.tensor(0.1, requires_grad=True)
                betas = (T.tensor(0.8, requires_grad=True), T.tensor(0.9, requires_grad=True))
                w = T.tensor([1.0, -2.0], requires_grad=True).clone()
                optimizer = getattr(T.optim, name)(
                    [w], lr=lr, betas=betas, differentiable=True, capturable=False, foreach=False, **settings
                )
                for _ in range(2):
                    w.grad = T.tensor([0.5, 1.5])
                    show.error(optimizer.step)
                show.numbers(w)
                show.error(lambda: (w**2).sum().backward())
                if not settings.get("amsgrad"):  # refused, after some gradients were added
                    show.numbers(lr.grad, betas[0].grad, betas[1].grad)

    same(program)
