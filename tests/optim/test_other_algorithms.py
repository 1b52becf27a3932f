"""What optim_db does not list: complex and differentiable parameters, hyperparameters that are tensors, errors
of a step, functional forms, old checkpoints, and an optimizer that works on other parameters for a while.
"""

import copy
import importlib
import inspect

import pytest

from tests.programs import same

FIRST_ORDER = {
    "Adadelta": {"weight_decay": 0.1},
    "Adagrad": {"lr_decay": 0.1, "initial_accumulator_value": 0.2},
    "Adamax": {"weight_decay": 0.1},
    "NAdam": {"weight_decay": 0.1},
    "RAdam": {"weight_decay": 0.1, "betas": (0.9, 0.8)},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Rprop": {},
    "ASGD": {"t0": 1, "weight_decay": 0.1},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "SGD": {"momentum": 0.9, "nesterov": True},
}
# Their second step writes over what the first one saved for backward, in PyTorch too.
DIFFERENTIABLE_ONCE = {"Adamax", "NAdam", "RMSprop", "Rprop", "Adam"}
# Settings that the first releases did not have.
LATER = ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay", "centered")
FILES = {"Adafactor": "_adafactor", "Muon": "_muon"}


def train(T, name, p, grads, **settings):
    optimizer = getattr(T.optim, name)([p], **settings)
    for grad in grads:
        p.grad = T.tensor(grad, dtype=p.dtype)
        optimizer.step()
    return optimizer


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_complex_parameters(name):
    def program(T, show):
        p = T.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        settings = {k: v for k, v in FIRST_ORDER[name].items() if k != "nesterov"}
        o = train(T, name, p, [[0.5 - 1j, 1j], [0.1 + 1j, -1j], [1, 2]], lr=0.1, **settings)
        show.numbers(T.view_as_real(p))
        for key, value in o.state[p].items():
            show(key)
            show.numbers(T.view_as_real(value) if value.is_complex() else value)

    same(program)


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_differentiable(name):
    """The derivative of the trained parameter by where it started, and by its gradients."""

    def program(T, show):
        start = T.tensor([1.0, -2.0, 0.5], dtype=T.float64, requires_grad=True)
        scale = T.tensor(1.5, dtype=T.float64, requires_grad=True)
        p = start.clone()
        o = getattr(T.optim, name)([p], differentiable=True, **FIRST_ORDER[name])
        for k in [1] if name in DIFFERENTIABLE_ONCE else [1, 2, 3]:
            p.grad = scale * T.tensor([0.3, 0.5, -1.0], dtype=T.float64) * k
            o.step()
        p.square().sum().backward()
        show.numbers(p, start.grad, scale.grad)

    same(program)


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_tensor_lr_and_foreach(name):
    def program(T, show):
        for settings in ({"lr": T.tensor(0.1)}, {"lr": T.tensor([0.1])}, {"foreach": True}, {"foreach": False}):
            p = T.tensor([1.0, -2.0], requires_grad=True)
            train(T, name, p, [[0.5, 1.0], [0.1, -1.0]], **settings, **FIRST_ORDER[name])
            show.numbers(p)

    same(program)


@pytest.mark.parametrize("name", [name for name in FIRST_ORDER if name != "SGD"])
def test_errors_of_a_step(name):
    def program(T, show):
        settings = [{"foreach": True, "differentiable": True}]
        if name != "Adagrad":
            settings.append({"capturable": True})
        for given in settings:
            p = T.tensor([1.0, -2.0], requires_grad=True)
            show.error(lambda: train(T, name, p, [[0.5, 1.0]], **given))
        show.error(lambda: getattr(T.optim, name)([T.ones(2)], lr=-1.0))
        function = getattr(importlib.import_module(f"{T.__name__}.optim.{name.lower()}"), name.lower())
        lists = {
            k: [3] if k == "state_steps" else []
            for k, v in inspect.signature(function).parameters.items()
            if v.default is inspect.Parameter.empty and v.kind == v.POSITIONAL_OR_KEYWORD
        }
        numbers = {k: 0.5 for k, v in inspect.signature(function).parameters.items() if v.kind == v.KEYWORD_ONLY}
        if name != "ASGD":
            show.error(lambda: function(**lists, **numbers))

    same(program)


@pytest.mark.parametrize("name", [*FIRST_ORDER, "Adafactor", "Muon"])
def test_functional_forms_take_the_same_arguments(name):
    def program(T, show):
        module = importlib.import_module(f"{T.__name__}.optim.{FILES.get(name, name.lower())}")
        function = getattr(module, name.lower())
        show([(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()])
        show(module.__all__, getattr(T.optim, name).__module__)

    same(program)


@pytest.mark.parametrize("name", [name for name in FIRST_ORDER if name != "SGD"])
def test_old_checkpoints(name):
    """Steps were Python numbers once, and settings that came later are missing."""

    def program(T, show):
        p = T.tensor([1.0, -2.0], requires_grad=True)
        o = train(T, name, p, [[0.5, 1.0]], **FIRST_ORDER[name])
        old = copy.deepcopy(o.state_dict())
        for key, value in old["state"][0].items():
            if value.dim() == 0:
                old["state"][0][key] = value.item()
        for key in LATER:
            old["param_groups"][0].pop(key, None)
        fresh = getattr(T.optim, name)([p])
        fresh.load_state_dict(old)
        show(sorted(fresh.state_dict()["param_groups"][0].items(), key=str), fresh.state_dict()["state"])

    same(program)


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_old_pickles(name):
    """A pickle holds the defaults, too, and they lack what came later as the groups do."""

    def program(T, show):
        p = T.tensor([1.0, -2.0], requires_grad=True)
        settings = {key: value for key, value in FIRST_ORDER[name].items() if key not in LATER}
        o = train(T, name, p, [[0.5, 1.0]], **settings)
        state = copy.deepcopy(o.__getstate__())
        for old in (state["defaults"], *state["param_groups"]):
            for key in LATER:
                old.pop(key, None)
        restored = type(o).__new__(type(o))
        restored.__setstate__(state)
        [copied] = restored.param_groups[0]["params"]
        copied.grad = T.tensor([2.0, -1.0])
        restored.step()
        show.numbers(copied)

    same(program)


def test_adafactor_and_muon_refuse_complex_parameters_and_lbfgs_groups():
    def program(T, show):
        for name in ("Adafactor", "Muon"):
            p = T.ones(2, 2, dtype=T.complex64, requires_grad=True)
            show.error(lambda: train(T, name, p, [[[1j, 1], [2, 3]]]))
        a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
        show.error(lambda: T.optim.LBFGS([{"params": [a]}, {"params": [b]}]))
        o = T.optim.LBFGS([a], line_search_fn="golden")

        def closure():
            o.zero_grad()
            loss = a.square().sum()
            loss.backward()
            return loss

        show.error(lambda: o.step(closure))

    same(program)


def test_swapped_in():
    def program(T, show):
        swap = T.optim.swap_in_optimizer_params_and_state
        a, b = T.ones(2, requires_grad=True), T.zeros(1, requires_grad=True)
        o = T.optim.Adam([a, b], lr=0.1)

        def use(parameters, state):
            with swap(o, parameters, state):
                for p in o.param_groups[0]["params"]:
                    p.grad = T.ones_like(p)
                o.step()

        show.error(lambda: use({}, {}))
        for p in (a, b):
            p.grad = T.ones_like(p)
        o.step()
        state = copy.deepcopy(o.state_dict())
        state["param_groups"][0]["lr"] = 1.0
        others = {"a": T.full((2,), 5.0), "b": T.full((1,), 7.0)}
        use(others, state)
        show(others, state, o.state_dict(), a, b)
        for bad in (
            3,
            {},
            {"state": {a: {}}, "param_groups": []},
            {"state": {0: 3}, "param_groups": []},
            {"state": {}, "param_groups": {}},
            {"state": {}, "param_groups": []},
            {"state": {}, "param_groups": [3]},
            {"state": {}, "param_groups": [{"params": [a]}]},
            {"state": {}, "param_groups": [{"params": [0]}]},
            {"state": {}, "param_groups": [{"params": [0, 1], "extra": 1}]},
            {**state, "state": {9: {}}},
        ):
            show.error(lambda: use(others, bad))
        show.error(lambda: use({"a": a}, state))

    same(program)
