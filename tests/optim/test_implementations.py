"""Every implementation of every algorithm of optim_db: the loop, `foreach`, `fused`, `differentiable`, `capturable`.

The same implementation of the reference must give the same numbers: to 1e-12 of a tensor's largest element in float64, although
counts of steps, and what is computed from them, are float32 (capturable steps keep even that in tensors, whose square root MKL
rounds in the last bit as the processor lets it: 1e-8). PyTorch's capturable steps need an accelerator; here they run on
simulated devices, and the reference's on its CPU, which is made to pass for one.
"""

import importlib
import inspect
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from readtorch.utils._foreach_utils import _group_tensors_by_device_and_dtype, _has_foreach_support
from tests.conformance import catalog
from tests.programs import same
from tests.reference import to_readtorch, to_torch

INFOS = {name: info for name, info in catalog.optimizer_infos().items() if name not in ("LBFGS", "SparseAdam")}
IMPLEMENTATIONS = {
    "loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "differentiable": {"differentiable": True},
    "capturable": {"capturable": True, "foreach": False},
    "capturable foreach": {"capturable": True, "foreach": True},
}
BOUND = {torch.float64: 1e-12, torch.float32: 1e-5, torch.complex128: 1e-12}
CAPTURABLE = {torch.float64: 1e-8, torch.float32: 1e-5, torch.complex128: 1e-8}
DTYPES = ("float64", "float32", "float64", "complex128")
SHAPES = [(3, 4), (5,), (2, 3), (2, 2)]


def implementations(name):
    known = inspect.signature(getattr(torch.optim, name)).parameters
    return [words for words, given in IMPLEMENTATIONS.items() if known.keys() >= given.keys()]


@pytest.fixture
def accelerators(monkeypatch):
    """Simulated devices; the reference takes its CPU for one."""
    from torch.optim import optimizer

    for name in ("adadelta", "adam", "adamax", "asgd", "nadam", "radam", "rmsprop", "rprop"):
        module = importlib.import_module(f"torch.optim.{name}")
        monkeypatch.setattr(module, "_get_capturable_supported_devices", lambda supports_xla=True: ["cpu"])
    monkeypatch.setattr(optimizer, "_get_foreach_kernels_supported_devices", lambda: ["cpu"])
    readtorch.cuda.simulate(devices=2)
    yield
    readtorch.cuda.simulate(0)


def trained(T, name, given, device=None, dtypes=DTYPES, steps=3):
    """[(place, tensor)]: parameters, gradients and state after some steps with the same random gradients."""
    chance = np.random.default_rng(0)

    def tensor(shape, dtype):
        numbers = chance.standard_normal((2, *shape))
        numbers = numbers[0] + 1j * numbers[1] if dtype.startswith("complex") else numbers[0]
        return T.tensor(numbers, dtype=getattr(T, dtype), device=device)

    params = [tensor(shape, dtype).requires_grad_() for shape, dtype in zip(SHAPES, dtypes)]
    if given.get("differentiable"):
        params = [p.clone() for p in params]
    optimizer = getattr(T.optim, name)(params, **(to_readtorch(given) if T is readtorch else given))
    for _ in range(steps):
        for p in params:
            p.grad = tensor(p.shape, str(p.dtype).partition(".")[2])
        optimizer.step()
    found = []
    for i, p in enumerate(params):
        found += [(f"parameter {i}", p), (f"gradient {i}", p.grad)]
        found += [(f"state {i} {key}", value) for key, value in optimizer.state[p].items() if value is not None]
    return found


def agree(ours, theirs, bounds=BOUND):
    assert [place for place, _ in ours] == [place for place, _ in theirs]
    for (place, mine), (_, reference) in zip(ours, theirs):
        mine, reference = to_torch(mine.detach().cpu()), reference.detach()
        assert mine.dtype == reference.dtype and mine.shape == reference.shape, place
        difference = (mine - reference).abs().max().item()
        assert difference <= bounds[reference.dtype] * reference.abs().max().item(), f"{place}: {difference}"


def dtypes_for(name, implementation):
    if name in ("Adafactor", "Muon") or implementation == "fused":
        return "float64", "float32", "float64"
    return DTYPES


@pytest.mark.parametrize("name, implementation", [(name, words) for name in INFOS for words in implementations(name)])
def test_all_settings(name, implementation, accelerators):
    extra = IMPLEMENTATIONS[implementation]
    device = "cuda" if "capturable" in extra else None
    for sample in INFOS[name].optim_inputs_func("cpu" if device is None else device, torch.float64):
        given = sample.kwargs | extra
        shapes = dtypes_for(name, implementation)
        bounds = CAPTURABLE if "capturable" in extra else BOUND
        agree(trained(readtorch, name, given, device, shapes), trained(torch, name, given, None, shapes), bounds)


@pytest.mark.parametrize("name", [name for name in INFOS if "capturable" in implementations(name)])
def test_capturable_steps_are_the_plain_steps(name, accelerators):
    """Beside the reference's loop, whose numbers are Python's: equal within float32."""
    ours = trained(readtorch, name, {"capturable": True}, "cuda")
    for (_, mine), (place, reference) in zip(ours, trained(torch, name, {"foreach": False})):
        assert mine.device.type == "cuda", place
        torch.testing.assert_close(to_torch(mine.detach().cpu()), reference.detach(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in INFOS if name not in ("Muon", "Adafactor")])
def test_what_is_chosen_by_default(name, accelerators):
    """On an accelerator all parameters at once, unless the step shall be differentiated."""
    for named in ({}, {"lr": torch.tensor(0.01)}, {"differentiable": True}, {"fused": False}):
        if name == "SGD":  # in place, so that the gradients show which it was
            named |= {"momentum": 0.9, "nesterov": True}
        if named.keys() <= inspect.signature(getattr(torch.optim, name)).parameters.keys():
            agree(trained(readtorch, name, named, "cuda"), trained(torch, name, named))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop"])
@pytest.mark.parametrize("foreach", [None, True, False])
def test_parameters_on_two_devices(name, foreach, accelerators):
    def trained_on(devices):
        params = [readtorch.full((3,), i + 1.0, device=device, requires_grad=True) for i, device in enumerate(devices)]
        optimizer = getattr(readtorch.optim, name)(params, lr=0.1, foreach=foreach)
        for _ in range(2):
            for p in params:
                p.grad = readtorch.ones_like(p)
            optimizer.step()
        return [p.tolist() for p in params], [str(p.device) for p in params]

    places = ["cuda:0", "cuda:1", "cpu", "cuda:1"]
    assert trained_on(places) == (trained_on(["cpu"] * 4)[0], places)


@pytest.mark.parametrize(
    "name, given",
    [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {"amsgrad": True}), ("Adagrad", {})],
)
def test_a_fused_step_on_several_devices(name, given, accelerators):
    """A call for each device, to which scale and found_inf are brought; a parameter that comes later, too."""

    def trained_on(places):
        make = lambda i: readtorch.full((3,), i + 1.0, device=places[i], requires_grad=True)
        params = [make(i) for i in range(len(places) - 1)]
        optimizer = getattr(readtorch.optim, name)(params, lr=0.1, fused=True, **given)
        for scale, found_inf in ((None, None), (4.0, 0.0), (2.0, 1.0), (8.0, 0.0)):
            if scale == 4.0:
                params = [*params, make(len(places) - 1)]
                optimizer.add_param_group({"params": params[-1:]})
            for i, p in enumerate(params):
                p.grad = readtorch.full_like(p, i - 1.5)
            if scale is not None:
                optimizer.grad_scale = readtorch.tensor(scale, device=places[0])
                optimizer.found_inf = readtorch.tensor(found_inf, device=places[0])
            optimizer.step()
        state = [[(key, t.tolist()) for key, t in optimizer.state[p].items() if t is not None] for p in params]
        return [p.tolist() for p in params], state

    places = ["cuda:0", "cuda:1", "cpu", "cuda:1", "cpu"]
    assert trained_on(places) == trained_on(["cpu"] * 5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
@pytest.mark.parametrize("found_inf", [0.0, 1.0])
def test_a_fused_step_unscales(name, found_inf):
    """grad_scale and found_inf, as a GradScaler leaves them on the optimizer."""

    def program(T, show):
        p, q = T.tensor([1.0, -2.0, 3.0], requires_grad=True), T.ones(2, 2, requires_grad=True)
        optimizer = getattr(T.optim, name)([p, q], lr=0.1, fused=True)
        show(optimizer._step_supports_amp_scaling)
        for scale in (None, 4.0, 8.0):
            p.grad, q.grad = T.tensor([0.5, 1.0, -1.0]), T.full((2, 2), 0.25)
            if scale is not None:
                optimizer.grad_scale, optimizer.found_inf = T.tensor(scale), T.tensor(found_inf)
            optimizer.step()
            for t in (p, q):
                show.numbers(t, t.grad, *optimizer.state[t].values())
        show.error(getattr(T.optim, name)([p], fused=False).step)
        unfused = getattr(T.optim, name)([p], foreach=True)
        unfused.grad_scale = unfused.found_inf = T.ones(())
        show.error(unfused.step)

    same(program)


def test_where_counts_lie(accelerators):
    """Beside the parameter if a graph or a kernel changes them, else on the host."""
    for name in INFOS:
        known = inspect.signature(getattr(torch.optim, name)).parameters
        for flag in ("capturable", "fused", None):
            if name == "Muon" or flag not in (*known, None):
                continue
            p = readtorch.ones(2, 2, device="cuda", requires_grad=True)
            p.grad = readtorch.ones(2, 2, device="cuda")
            optimizer = getattr(readtorch.optim, name)([p], **{flag: True} if flag else {})
            optimizer.step()
            expected = "cuda" if flag or name == "ASGD" else "cpu"  # ASGD's always lie beside the parameter
            if "step" in optimizer.state[p]:
                assert optimizer.state[p]["step"].device.type == expected, (name, flag)


def test_errors():
    def program(T, show):
        def step_of(name, **given):
            p = T.tensor([1.0, -2.0], requires_grad=True)
            p.grad = T.ones(2)
            getattr(T.optim, name)([p], **given).step()

        names = ("Adadelta", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
        for name, foreach in itertools.product(names, (True, False, None)):
            show.error(lambda: step_of(name, capturable=True, foreach=foreach))
            show.error(lambda: step_of(name, differentiable=True, foreach=foreach))
        for name, foreach in itertools.product(("Adam", "AdamW"), (True, False)):
            for named in ({"lr": T.tensor(0.1)}, {"betas": (T.tensor(0.9), T.tensor(0.9))}):
                show.error(lambda: step_of(name, foreach=foreach, **named))
        for name in ("Adam", "AdamW", "SGD", "Adagrad"):
            show.error(lambda: step_of(name, fused=True, foreach=True))
            show.error(lambda: step_of(name, fused=True, differentiable=True))

    same(program)


# Groups


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["float32", "float64", "float16"]), min_size=1, max_size=8), st.booleans())
def test_groups_of_a_dtype(dtypes, with_indices):
    first = [torch.full((i,), i, dtype=getattr(torch, dtype)) for i, dtype in enumerate(dtypes)]
    others = [t + 1 if i % 2 else None for i, t in enumerate(first)]
    steps = [torch.tensor(float(i)) for i in range(len(first))]
    lists = [first, others, [], steps]
    ours = _group_tensors_by_device_and_dtype(to_readtorch(lists), with_indices)
    theirs = torch.utils._foreach_utils._group_tensors_by_device_and_dtype(lists, with_indices)

    def plain(groups):
        return {
            (str(device), str(dtype).partition(".")[2]): (
                [[None if t is None else t.tolist() for t in tensors] for tensors in chosen],
                indices,
            )
            for (device, dtype), (chosen, indices) in groups.items()
        }

    assert plain(ours) == plain(theirs)


def test_what_does_not_belong_together():
    def program(T, show):
        group = importlib.import_module(f"{T.__name__}.utils._foreach_utils")._group_tensors_by_device_and_dtype
        a = [T.ones(2), T.ones(2, dtype=T.float64)]
        for other in (T.float16, T.bfloat16, T.float64, T.int64):
            show.error(lambda: group([a, [t.to(other) for t in a]]))

    same(program)
    with pytest.raises(RuntimeError):
        _group_tensors_by_device_and_dtype([])
    with pytest.raises(RuntimeError):
        _group_tensors_by_device_and_dtype([[readtorch.ones(1)], [readtorch.ones(1)] * 2])


def test_what_lists_may_hold():
    def program(T, show):
        supports = importlib.import_module(f"{T.__name__}.utils._foreach_utils")._has_foreach_support
        for device in ("cpu", "cuda", "meta"):
            for tensors in ([T.ones(1), None], [T.nn.Parameter(T.ones(1))], []):
                show(device, supports(tensors, T.device(device)))

    same(program)
    assert _has_foreach_support([readtorch.ones(1)], readtorch.device("cpu"))


# Long lists: one compiled loop


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "NAdam"])
def test_many_parameters(name):
    """A hundred small ones of two dtypes, some of which do not lie in one piece."""

    def trained_many(T, fused=False, **given):
        chance = np.random.default_rng(0)
        params = []
        for i in range(100):
            p = T.tensor(chance.standard_normal((4, 6)), dtype=(T.float32, T.float64)[i % 7 == 0])
            if not fused:  # PyTorch's fused kernels take the gradient to lie as the parameter
                p = p.t() if i % 11 == 0 else p[:, ::2] if i % 13 == 0 else p
            params.append(p.detach().requires_grad_())
        named = given | ({"fused": True} if fused else {})
        optimizer = getattr(T.optim, name)(params, lr=0.1, weight_decay=0.1, **named)
        for _ in range(3):
            for p in params:
                p.grad = T.tensor(chance.standard_normal(tuple(p.shape)), dtype=p.dtype)
            optimizer.step()
        return [(f"parameter {i}", p) for i, p in enumerate(params)]

    for named in ({"foreach": True}, {"foreach": False}, {"fused": True}):
        if named.keys() <= inspect.signature(getattr(torch.optim, name)).parameters.keys():
            ours, theirs = trained_many(readtorch, **named), trained_many(torch, **named)
            agree(ours, theirs)
            assert "fused" in named or [p._version for _, p in ours] == [p._version for _, p in theirs]


def test_a_fused_step_reads_no_foreign_memory():
    """Of state that fits another shape, or of a shorter list, nothing is read behind the end: it is refused."""
    p = readtorch.ones(100, requires_grad=True)
    p.grad = readtorch.ones(100)
    optimizer = readtorch.optim.Adam([p], fused=True)
    optimizer.step()
    optimizer.state[p]["exp_avg"] = readtorch.ones(10)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()
    settings = dict(weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False)
    with pytest.raises((RuntimeError, ValueError)):
        readtorch._fused_sgd_([p.detach()] * 2, [p.grad], [], **settings, is_first_step=False)


# Steps during backward


def test_a_step_in_backward():
    """Each parameter has an optimizer of its own, which steps as soon as the gradient is there and frees it."""

    def program(T, show):
        net = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 2), T.nn.Linear(2, 2, bias=False))
        with T.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(T.linspace(-1, 1, p.numel()).reshape(p.shape) / (i + 1))
        optimizers = {p: T.optim.Adam([p], lr=0.1, foreach=False) for p in net.parameters()}
        names = {p: name for name, p in net.named_parameters()}

        def step(p):
            others = [names[q] for q in names if q.grad is not None and q is not p]
            show(names[p], "steps, and gradients of", others)
            optimizers[p].step()
            optimizers[p].zero_grad()

        handles = [p.register_post_accumulate_grad_hook(step) for p in net.parameters()]
        for _ in range(3):
            net(T.linspace(0, 1, 6).reshape(2, 3)).square().sum().backward()
            show([p.grad for p in net.parameters()])
        show.numbers(*net.parameters())
        for handle in handles:
            handle.remove()
        net(T.ones(1, 3)).sum().backward()
        show([p.grad is None for p in net.parameters()])

    same(program)
