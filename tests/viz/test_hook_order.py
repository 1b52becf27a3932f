"""The figure of hooks: its model against PyTorch, where the same hooks note what they get and return."""

import random
import warnings

import pytest
import torch
from torch.nn.modules import module as all_modules

from readtorch.viz.figures import hook_order
from readtorch.viz.figures.hook_order import EXAMPLES, KINDS, MODULES, W, read_hooks
from readtorch.viz.inputs import Refusal


class Times(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(float(W), dtype=torch.float64))

    def forward(self, x):
        return x * self.w


class Square(torch.nn.Module):
    def forward(self, x):
        return x * x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Times(), Square()

    def forward(self, x):
        return self.b(self.a(x))


class Failed(Exception): ...


def plain(value):
    return "None" if value is None else str(int(value))


def acted(value, action):
    if value is None or action == "look":
        return None
    return {"+1": lambda: value + 1, "*2": lambda: value * 2, "*0": lambda: value * 0}[action]()


def real_hook(hook, names, seen, handles):
    """The hook as a function for PyTorch, which writes to `seen` (kind, module, number, got, gave)."""

    def run(module, *values):
        if "once" in hook.options:
            handles[hook].remove()
        tuples = [v[0] if isinstance(v, tuple) else v for v in values]
        got = f"({plain(tuples[0])},)"
        if hook.kind == "forward":
            got += f" and {plain(tuples[1])}"
        if hook.kind == "full_backward":
            got += f" and ({plain(tuples[1])},)"
        event = [hook.kind, names[module], hook.number, got]
        if hook.action == "raise":
            seen.append((*event, "raises"))
            raise Failed(f"hook {hook.number}")
        new = acted(tuples[-1] if hook.kind == "forward" else tuples[0], hook.action)
        seen.append((*event, plain(new)))
        return (new,) if new is not None and "backward" in hook.kind else new

    return run


def in_pytorch(hooks, x, grad):
    net, seen, handles = Net(), [], {}
    names = {net: "net", net.a: "a", net.b: "b"}
    end = {"result": "", "x": "", "w": "", "error": ""}
    x = torch.tensor(float(x), dtype=torch.float64, requires_grad=grad)
    try:
        for hook in hooks:
            options = {"prepend": True} if "prepend" in hook.options else {}
            options |= {"always_call": True} if "always" in hook.options else {}
            if hook.where == "all":
                register = getattr(all_modules, f"register_module_{hook.kind}_hook")
            else:
                owner = {name: module for module, name in names.items()}[hook.where]
                register = getattr(owner, f"register_{hook.kind}_hook")
            handles[hook] = register(real_hook(hook, names, seen, handles), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = net(x)
            result.backward()
        end |= {"result": plain(result), "x": plain(x.grad), "w": plain(net.a.w.grad)}
    except (Failed, RuntimeError) as error:
        end["error"] = str(error)
    finally:
        for handle in handles.values():
            handle.remove()
    return seen, end


def assert_as_in_pytorch(inputs):
    ours = hook_order.model(inputs)
    seen, end = in_pytorch(read_hooks(inputs["hooks"]), inputs["x"], inputs["grad"])
    events = [(e["kind"], e["module"], e["hook"], e["got"], e["gave"]) for e in ours["events"] if e["hook"]]
    assert events == seen, inputs
    assert {key: ours[key] for key in end} == end, inputs


@pytest.mark.parametrize("hooks", EXAMPLES)
@pytest.mark.parametrize("grad", [True, False])
def test_the_examples(hooks, grad):
    assert_as_in_pytorch({"hooks": hooks, "x": -3, "grad": grad})


@pytest.mark.parametrize("seed", range(30))
def test_random_hooks(seed):
    numbers, compared = random.Random(seed), 0
    while compared < 40:
        inputs = {"x": numbers.randint(-9, 9), "grad": numbers.random() < 0.7, **hook_order.sample(numbers)}
        try:
            read_hooks(inputs["hooks"])
        except Refusal:
            continue
        assert_as_in_pytorch(inputs)
        compared += 1


@pytest.mark.parametrize(
    "hooks, why",
    [
        ("c.forward look", "Not known here: c.forward look"),
        ("a.forward look look", "Not known here"),
        ("a.forward +1 once once", "Not known here"),
        ("a.forward_pre look always", "Only a forward hook"),
        ("all.forward look prepend", "cannot be prepended"),
        ("; ".join(["a.forward look"] * 7), "At most 6"),
    ],
)
def test_what_is_refused(hooks, why):
    with pytest.raises(Refusal, match=why):
        hook_order.model({"hooks": hooks, "x": 1, "grad": True})


@pytest.mark.parametrize("last", ["", "; a.forward look"])
def test_a_hook_that_removes_itself_after_an_error(last):
    """Its loop runs over the dictionary itself, so the next entry is not found."""
    hooks = "a.forward raise; a.forward look once always" + last
    ours = hook_order.model({"hooks": hooks, "x": 1, "grad": True})
    assert ours["error"] == (hook_order.MUTATED if last else "hook 1")
    assert_as_in_pytorch({"hooks": hooks, "x": 1, "grad": True})


def test_all_kinds_and_modules_are_drawn():
    assert {hook.kind for hooks in EXAMPLES for hook in read_hooks(hooks)} == set(KINDS)
    assert {hook.where for hooks in EXAMPLES for hook in read_hooks(hooks)} == {*MODULES, "all"}
