"""`Optimizer` next to the reference: groups, errors word for word, repr, checkpoints, hooks."""

import copy
import inspect
import pickle
from importlib import import_module

import pytest

import readtorch
from tests.programs import same


def params(T, *sizes):
    return [T.nn.Parameter(T.ones(n)) for n in sizes]


def trained(T, optimizer_class="SGD", **kwargs):
    ps = params(T, 2, 3)
    optimizer = getattr(T.optim, optimizer_class)(ps, **kwargs)
    for _ in range(2):
        optimizer.zero_grad()
        sum((p * p).sum() for p in ps).backward()
        optimizer.step()
    return optimizer


def test_groups():
    def program(T, show):
        a, b, c = params(T, 1, 2, 3)
        o = T.optim.SGD([{"params": a}, {"params": [b], "lr": 0.25, "extra": "kept"}], lr=0.5, momentum=0.9)
        show(o)
        o.add_param_group({"params": (p for p in [c]), "weight_decay": 1.0})
        show(o, [len(g["params"]) for g in o.param_groups], list(o.param_groups[1]), o.defaults)
        named = T.optim.Adam([("a", a), ("b", b)])
        show(named, named.param_groups[0]["param_names"], list(named.state_dict()["param_groups"][0]))
        show.error(lambda: named.add_param_group({"params": [c]}))
        named.add_param_group({"params": [("c", c)]})
        show(named.param_groups[1]["param_names"])

    same(program)


def test_errors():
    def program(T, show):
        a, b = params(T, 1, 2)
        new = T.optim.SGD
        for bad in (
            a,
            [],
            3,
            [3],
            ["text"],
            [a * 2],
            [{"params": {a}}],
            [{"params": [a]}, {"params": [a]}],
            [{"params": [a], "lr": 1}, {"params": [a, b]}],
            [{"lr": 3}],
            [("n", a), b],
            [{"params": a}, b],
            [{"params": [("n", a)]}, {"params": [b]}],
            [{"params": a}, 3],
            [T.nn.Linear],
        ):
            show.error(lambda: new(bad))
        show.warnings(lambda: new([a, a]))
        show.error(lambda: new([a]).add_param_group([b]))
        module = import_module(T.__name__ + ".optim.optimizer")
        show.error(lambda: module.Optimizer([a], {"lr": module.required}))
        show(module.required, module.Optimizer([a], {}))
        show.error(lambda: module.Optimizer([a], {}).step())
        leaf_view = a * 2
        leaf_view.retain_grad()
        show.error(lambda: new([leaf_view]))
        for kwargs in (
            {"lr": -1.0},
            {"momentum": -1.0},
            {"weight_decay": -1.0},
            {"nesterov": True},
            {"nesterov": True, "momentum": 0.9, "dampening": 0.1},
            {"lr": T.ones(2)},
            {"fused": True, "differentiable": True},
            {"fused": True, "foreach": True},
        ):
            show.error(lambda: T.optim.SGD([a], **kwargs))
        for kwargs in (
            {"lr": -1.0},
            {"eps": -1.0},
            {"betas": (1.0, 0.9)},
            {"betas": (0.9, -0.1)},
            {"betas": (0, 0.9)},
            {"weight_decay": -1.0},
            {"lr": T.ones(2)},
            {"lr": T.ones(1), "foreach": True},
            {"betas": (T.tensor(0.9), 0.9)},
            {"betas": (T.tensor(0.9), T.tensor(0.9)), "foreach": True},
            {"betas": (T.tensor([0.9, 0.8]), T.tensor(0.9))},
            {"fused": True, "differentiable": True},
            {"fused": True, "foreach": True},
        ):
            show.error(lambda: T.optim.Adam([a], **kwargs))
            show.error(lambda: T.optim.AdamW([a], **kwargs))
        capturable = T.optim.Adam([a], capturable=True)
        a.sum().backward()
        show.error(capturable.step)

    same(program)


@pytest.mark.parametrize(
    "cls, kwargs",
    [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {"lr": 0.1}), ("Adam", {"amsgrad": True}), ("AdamW", {})],
)
def test_checkpoints(cls, kwargs):
    def program(T, show):
        o = trained(T, cls, **kwargs)
        state = o.state_dict()
        show(state)
        fresh = getattr(T.optim, cls)(params(T, 2, 3), **kwargs)
        fresh.param_groups[0]["lr"] = 99
        fresh.load_state_dict(state)
        show(fresh.state_dict(), fresh)
        show(fresh.param_groups[0]["params"][0] is not o.param_groups[0]["params"][0])
        wide = getattr(T.optim, cls)([p.double().detach().requires_grad_() for p in params(T, 2, 3)], **kwargs)
        wide.load_state_dict(state)
        show(wide.state_dict())
        other = getattr(T.optim, cls)(params(T, 2), **kwargs)
        show.error(lambda: other.load_state_dict(state))
        other.add_param_group({"params": params(T, 3)})
        show.error(lambda: other.load_state_dict(state))
        copied = copy.deepcopy(o)
        show(copied.state_dict(), copied.param_groups[0]["params"][0] is not o.param_groups[0]["params"][0])
        restored = pickle.loads(pickle.dumps(o))
        show(restored.state_dict(), restored, type(restored.state).__name__)

    same(program)


def test_fused_wants_floating_point():
    p = readtorch.zeros(2, dtype=readtorch.int64)
    p.grad = readtorch.ones(2, dtype=readtorch.int64)
    for cls in (readtorch.optim.SGD, readtorch.optim.Adam):
        with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors of"):
            cls([p], fused=True).step()


def test_checkpoints_of_named_params_and_other_state():
    def program(T, show):
        named = T.optim.SGD([("a", params(T, 1)[0])])
        plain = T.optim.SGD(params(T, 1))
        plain.state["global"] = {"count": 3}
        show(plain.state_dict())
        named.load_state_dict(plain.state_dict())
        show(named.state_dict())
        plain.load_state_dict(named.state_dict())
        show(plain.state_dict())
        fused = T.optim.Adam(params(T, 1), fused=True)
        adam = trained(T, "Adam")
        fused.add_param_group({"params": params(T, 1)})
        show([v["step"].dtype for v in adam.state.values()])

    same(program)


def test_state_dict_hooks():
    def program(T, show):
        o = trained(T)
        for prepend in (False, True):
            o.register_state_dict_pre_hook(lambda opt, p=prepend: show("pre", p), prepend=prepend)
            o.register_state_dict_post_hook(lambda opt, sd, p=prepend: show("post", p, list(sd)), prepend=prepend)
            o.register_load_state_dict_pre_hook(lambda opt, sd, p=prepend: show("load", p, list(sd)), prepend=prepend)
            o.register_load_state_dict_post_hook(lambda opt, p=prepend: show("loaded", p), prepend=prepend)
        o.load_state_dict(o.state_dict())
        handle = o.register_state_dict_post_hook(lambda opt, sd: {"replaced": True})
        show(o.state_dict())
        handle.remove()
        state = o.state_dict()
        o.register_load_state_dict_pre_hook(lambda opt, sd: {**sd, "state": {}})
        o.load_state_dict(state)
        show(o.state_dict()["state"])

    same(program)


def test_step_hooks():
    def program(T, show):
        module = import_module(T.__name__ + ".optim.optimizer")

        class Mine(T.optim.Optimizer):
            def __init__(self, ps):
                super().__init__(ps, {"lr": 1.0})

            def step(self, closure=None, scale=1):
                """Step."""
                show("step", scale)
                return "result"

        class Derived(Mine):
            def step(self, closure=None, scale=1):
                return super().step(closure, scale=scale * 2)

        handles = [
            module.register_optimizer_step_pre_hook(lambda o, a, k: show("global pre", len(a), k)),
            module.register_optimizer_step_post_hook(lambda o, a, k: show("global post", len(a), k)),
        ]
        try:
            for cls in (Derived, Mine):
                o = cls(params(T, 1))
                o.register_step_pre_hook(lambda o, a, k: show("pre", k))
                o.register_step_pre_hook(lambda o, a, k: (a, {"scale": 5}))
                o.register_step_post_hook(lambda o, a, k: show("post", k))
                show(o.step(), o.step.__doc__, o.step.hooked)
                o.register_step_pre_hook(lambda o, a, k: 3)
                show.error(lambda: o.step())
        finally:
            for handle in handles:
                handle.remove()

    same(program)


def test_zero_grad():
    def program(T, show):
        for kwargs in ({}, {"foreach": True}):
            o = trained(T, **kwargs)
            p = o.param_groups[0]["params"][0]
            grad = p.grad
            o.zero_grad(set_to_none=False)
            show(p.grad is grad, p.grad)
            o.zero_grad()
            show(p.grad)

    same(program)


def test_closure_runs_with_gradients():
    def program(T, show):
        (p,) = params(T, 2)
        o = T.optim.SGD([p], lr=0.1)

        def closure():
            show(T.is_grad_enabled())
            o.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        show(o.step(closure), p)
        with T.no_grad():
            show.error(lambda: o.step(lambda: T.is_grad_enabled()))
        show(T.is_grad_enabled(), o.step())

    same(program)


def test_a_wrapper_that_does_not_call_init():
    """As accelerate, the Trainer of transformers and opacus wrap optimizers: there are no hooks, and `step` works."""

    def program(T, show):
        class Wrapper(T.optim.Optimizer):
            def __init__(self, optimizer):
                self.optimizer = optimizer

            param_groups = property(lambda self: self.optimizer.param_groups)
            state = property(lambda self: self.optimizer.state)
            defaults = property(lambda self: self.optimizer.defaults)

            def step(self, closure=None):
                return self.optimizer.step(closure)

            def zero_grad(self, set_to_none=True):
                self.optimizer.zero_grad(set_to_none)

        p = T.nn.Parameter(T.ones(2))
        inner = T.optim.SGD([p], lr=0.5)
        inner.register_step_post_hook(lambda *_: show("after the step"))
        outer = Wrapper(inner)
        schedule = T.optim.lr_scheduler.StepLR(outer, 1)
        for _ in range(2):
            outer.zero_grad()
            p.square().sum().backward()
            outer.step()
            schedule.step()
            show(p, outer.param_groups[0]["lr"])

    same(program)


def test_a_wrapper_that_passes_on_what_it_is_asked_for():
    """The hooks that it seems to have are the other's, which runs them."""

    def program(T, show):
        class Wrapper(T.optim.Optimizer):
            def __init__(self, optimizer):
                self.optimizer = optimizer

            def __getattr__(self, name):
                return getattr(self.optimizer, name)

            def step(self, closure=None):
                return self.optimizer.step(closure)

        p = T.nn.Parameter(T.ones(2))
        outer = Wrapper(T.optim.SGD([p], lr=0.5))
        outer.register_step_pre_hook(lambda *_: show("before the step"))
        outer.register_step_post_hook(lambda *_: show("after the step"))
        p.grad = T.ones(2)
        outer.step()
        show(p)

    same(program)


FUNCTIONAL = {  # module of the algorithm -> its class
    "sgd": "SGD",
    "adam": "Adam",
    "adadelta": "Adadelta",
    "adagrad": "Adagrad",
    "adamax": "Adamax",
    "asgd": "ASGD",
    "nadam": "NAdam",
    "radam": "RAdam",
    "rmsprop": "RMSprop",
    "rprop": "Rprop",
    "_adafactor": "Adafactor",
    "_muon": "Muon",
}
NOT_IN_THE_FORMULA = {"sgd": {"differentiable"}, "adagrad": {"initial_accumulator_value"}, "rprop": {"lr"}}


@pytest.mark.parametrize("module", FUNCTIONAL)
def test_every_setting_reaches_the_functional_form(module):
    """A step passes the settings that the function's signature names: one that it does not name would be lost silently."""
    function = getattr(import_module(f"readtorch.optim.{module}"), module.strip("_"))
    optimizer = getattr(readtorch.optim, FUNCTIONAL[module])([readtorch.nn.Parameter(readtorch.ones(2, 2))])
    passed = optimizer._settings(function, optimizer.param_groups[0])
    assert passed.keys() <= inspect.signature(function).parameters.keys()
    lost = optimizer.defaults.keys() - passed.keys() - optimizer._pairs.keys()
    assert lost == NOT_IN_THE_FORMULA.get(module, set())


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_a_step_after_the_model_was_cast(name):
    """The state stays as it was: Adam's is refused by `lerp_`, SGD's goes on in its own dtype, until it is loaded anew."""

    def program(T, show):
        net = T.nn.Linear(2, 1)
        net.requires_grad_().load_state_dict({"weight": T.ones(1, 2), "bias": T.ones(1)})
        o = getattr(T.optim, name)(net.parameters(), lr=0.5, **({"momentum": 0.9} if name == "SGD" else {}))
        net(T.ones(1, 2)).sum().backward()
        o.step()
        net.double()
        show(o.param_groups[0]["params"][0] is net.weight)
        (show.error if name != "SGD" else lambda step: step())(o.step)
        show([kept.dtype for kept in o.state[net.weight].values() if kept is not None])
        o.load_state_dict(o.state_dict())
        o.step()
        show([kept.dtype for kept in o.state[net.weight].values() if kept is not None], net.weight.detach())

    same(program)


@pytest.mark.parametrize("grown", ["parameter", "gradient", "second average"])
@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_a_step_after_a_parameter_grew(name, grown):
    """State of the old shape: an error, and not a kernel that writes behind its end."""

    def program(T, show):
        p, q = T.nn.Parameter(T.ones(200, 200)), T.nn.Parameter(T.ones(2))
        o = getattr(T.optim, name)([q, p], lr=0.5, **({"momentum": 0.9} if name == "SGD" else {}))
        p.grad, q.grad = T.ones(200, 200), T.ones(2)
        o.step()
        if grown == "parameter":
            p.grad, p.data = None, T.ones(300, 200)
            p.grad = T.ones(300, 200)
        elif grown == "gradient":
            p.data = T.ones(100, 200)
        elif name != "SGD":
            o.state[p]["exp_avg_sq"] = T.ones(100, 200)
        (show if name == "SGD" and grown == "second average" else show.error)(o.step)
        show(q.detach(), o.state[q])

    same(program)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_a_fused_step_refuses_state_of_another_shape(name):
    """PyTorch's kernel checks nothing and writes behind the end."""
    p = readtorch.nn.Parameter(readtorch.ones(2, 3))
    o = getattr(readtorch.optim, name)([p], lr=0.5, fused=True, **({"momentum": 0.9} if name == "SGD" else {}))
    p.grad = readtorch.ones(2, 3)
    o.step()
    p.grad, p.data = None, readtorch.ones(3, 3)
    p.grad = readtorch.ones(3, 3)
    with pytest.raises(
        RuntimeError, match=r"a fused step needs tensors of the parameter's shape \[3, 3\], got \[2, 3\]"
    ):
        o.step()
    assert p.eq(1).all()


@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("bfloat16", "float32"), ("float32", "bfloat16")])
@pytest.mark.parametrize("name", ["Adagrad", "Adam", "AdamW", "SGD"])
def test_a_fused_step_refuses_state_of_another_dtype(name, dtypes):
    def program(T, show):
        dtype, other = (getattr(T, each) for each in dtypes)
        p = T.nn.Parameter(T.ones(2, dtype=dtype))
        more = {"momentum": 0.9} if name == "SGD" else {}
        o = getattr(T.optim, name)([p], fused=True, **more)
        p.grad = T.ones(2, dtype=dtype)
        o.step()
        for key, value in o.state[p].items():
            if key != "step":
                o.state[p][key] = value.to(other)
        show.error(o.step)
        show(p.detach())

    same(program)
