"""The figure of nested transforms: its model against torch.func, kernel by kernel, and against readtorch's."""

import random
import re

import numpy
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

import readtorch
from readtorch import viz
from readtorch.viz.figures import transform_levels
from readtorch.viz.figures.transform_levels import FIGURE, SLOTS
from readtorch.viz.inputs import Refusal

KERNELS = ("sin", "cos", "exp", "neg", "mul", "add", "sub", "sum", "dot", "bmm", "ones_like", "zeros_like")
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?")


class Kernels(TorchDispatchMode):
    """What arrives below all levels, without views."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in KERNELS and func.namespace == "aten":
            self.seen.append((name, out.detach().clone()))
        return out


def numbers_of(text):
    return [float(number) for number in NUMBER.findall(text)]


def same(one, other):
    """Two printed tensors, up to the last digit, and up to the width to which numbers are filled."""
    frame = lambda text: re.sub(r"\s+", "", NUMBER.sub("#", text))
    numbers = numbers_of(one), numbers_of(other)
    return frame(one) == frame(other) and numpy.allclose(*numbers, rtol=1e-3, atol=1.1e-4)


def transforms(T, v):
    """The three transforms of a library, each from function to function."""

    def jvp(function):
        return lambda x: T.func.jvp(function, (x,), (tangent(x),))[1]

    def tangent(x):
        count = x.shape.numel()
        with _disable_current_modes():
            return T.tensor(v * (count // len(v))).reshape(x.shape)

    return {"grad": T.func.grad, "vmap": T.func.vmap, "jvp": jvp}


def kind_of(interpreter):
    """grad, jvp or vmap"""
    if hasattr(interpreter, "key"):
        return str(interpreter.key()).rpartition(".")[2].lower()
    return type(interpreter).__name__.removesuffix("Interpreter").lower()


def run(T, inputs, look=lambda x: None):
    """(the result, the error), where `look` sees the x that arrives in f"""

    def f(x):
        look(x)
        return eval(inputs["function"], {"torch": T, "x": x})

    function = f
    made = transforms(T, [float(number) for number in inputs["v"].strip("[]").split(",")])
    for slot in reversed(SLOTS):
        function = made[inputs[slot]](function) if inputs[slot] else function
    try:
        return function(T.tensor(eval(inputs["x"]), dtype=T.float32)), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def check_f_sees(T, inputs, mine):
    """What arrives in f: its x as it is printed, and the interpreters that are on the stack, the outermost first."""
    seen = []
    run(T, inputs, lambda x: seen.append((repr(x), [*map(kind_of, T._C._functorch.get_interpreter_stack() or [])])))
    entered = [event["value"] for event in mine["events"] if event["type"] == "begin"]
    for printed, stack in seen:
        assert stack == mine["kinds"], inputs
        assert not entered or same(entered[-1], printed), inputs


def drawn(seed, count):
    source = random.Random(seed)
    while count:
        inputs = FIGURE.read(transform_levels.sample(source))
        try:
            yield inputs, transform_levels.model(inputs)
        except Refusal:
            continue
        count -= 1


@pytest.mark.parametrize("seed", range(6))
def test_kernels_values_and_errors_are_those_of_torch_func(seed):
    for inputs, mine in drawn(seed, 50):
        with Kernels() as kernels:
            result, error = run(torch, inputs)
        assert mine["error"] == error, inputs
        ran = [event for event in mine["events"] if not event["level"] and event["result"]]
        assert [event["what"].partition("(")[0] for event in ran] == [name for name, _ in kernels.seen], inputs
        for event, (_, value) in zip(ran, kernels.seen):
            assert same(event["value"], str(value)), inputs
        assert error or same(mine["result"], str(result)), inputs
        check_f_sees(torch, inputs, mine)


@pytest.mark.parametrize("seed", range(3))
def test_every_result_prints_as_in_torch(seed):
    """The wrappers around what each operator of f gives."""
    one_by_one = ("x.sin()", "x * x", "(x * 2).exp()", "x.sum() * x", "x + x.exp().sum()")
    source = random.Random(seed)
    for function in one_by_one:
        inputs = FIGURE.read({"function": function, "x": "[[1, 2], [3, -1]]", "v": "1, 0.5"})
        kinds = source.sample(["vmap", "jvp", "jvp"], 3)
        inputs |= dict(zip(SLOTS, kinds))
        mine, seen = transform_levels.model(inputs), []
        watch = {"function": f"seen({function})"}
        made = transforms(torch, [1.0, 0.5])
        inner = lambda x: eval(watch["function"], {"x": x, "seen": lambda y: (seen.append(repr(y)), y)[1]})
        for kind in reversed(kinds):
            inner = made[kind](inner)
        inner(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        top = [e for e in mine["events"] if e["type"] == "call" and e["level"] == len(kinds) and not e["indent"]]
        assert same(top[-1]["value"], seen[0]), inputs


@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_readtorch(seed):
    for inputs, mine in drawn(seed + 100, 40):
        if not hasattr(readtorch.func, "jvp") and "jvp" in mine["kinds"]:
            continue
        result, error = run(readtorch, inputs)
        assert mine["error"] == error, inputs
        assert error or same(mine["result"], str(result)), inputs
        check_f_sees(readtorch, inputs, mine)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"function": "x.tanh()"}, "Not known here: .tanh()."),
        ({"function": "torch.tanh(x)"}, "Not known here: torch.tanh(x)."),
        ({"function": "x ** 2"}, "Not known here: **."),
        ({"function": "(x * 99).sin()"}, "A sine or cosine of more than 100 depends on digits"),
        ({"function": "2 - x"}, "A number minus a tensor is an operator of its own, rsub"),
        ({"function": "x +"}, "Something is missing at the end."),
        ({"function": "(x.sum()"}, "Something is missing at the end."),
        ({"function": "2 * 3"}, "An operator takes a tensor"),
        ({"function": "x.sum().sum()"}, "A sum of a single number is the number"),
        ({"function": "torch.dot(x, 2)"}, "torch.dot takes two tensors."),
        ({"x": "[1, [2]]"}, "x is a list of numbers, or of lists of one length"),
        ({"x": "[[1, 2], [3]]"}, "x is a list of numbers"),
        ({"v": "one"}, "v is numbers with commas between"),
        ({"outer": "jvp", "middle": "", "v": "1, 2, 3"}, "v needs 2 numbers here, as many as a row of x."),
        ({"function": "x.exp().exp().exp()"}, "A number grows beyond 1,000,000,000"),
    ],
)
def test_a_refusal_says_what_is_allowed(change, said):
    with pytest.raises(Refusal) as refused:
        FIGURE.result(**change)
    assert str(refused.value).startswith(said)


@pytest.mark.browser
@pytest.mark.slow
def test_levels_are_chosen_and_stepped_by_keyboard(visit, page_with):
    with visit(page_with(viz.figure("transform_levels"))) as seen:
        page = seen.page
        figure = page.locator(".rt-fig")
        say = lambda: figure.locator(".rt-now").inner_text()
        assert say() == "The call: vmap(grad(f))(x)."
        figure.locator("[data-focus='input-inner']").select_option("jvp")
        assert "v needs" not in say() and "RuntimeError" not in figure.inner_text()
        figure.locator("[data-focus='input-inner']").select_option("")
        figure.get_by_role("button", name="Forward one step").focus()
        for _ in range(4):
            page.keyboard.press(".")
        assert say() == "Level 1, vmap, has sin: batching rule, the same on the whole batch."
        assert figure.locator(".rt-stack").inner_text().split() == ["stack:", "2", "grad", "1", "vmap"]
        assert figure.locator(".rt-printed pre").first.inner_text().startswith("BatchedTensor(lvl=1, bdim=0, value=")
        figure.locator("[data-focus='event-2']").focus()
        page.keyboard.press("Enter")
        assert say().startswith("Level 2, grad, has sin: the kernel of Autograd makes a SinBackward0")
        assert page.evaluate("document.activeElement.dataset.focus") == "event-2"
        page.keyboard.press("Control+z")
        assert say().startswith("Level ") or say().startswith("The ")
        assert seen.problems == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 1280, 390])
def test_calls_and_printed_values_do_not_cover_each_other(visit, page_with, width):
    with visit(page_with(viz.figure("transform_levels", inner="jvp")), width=width) as seen:
        figure = seen.page.locator(".rt-fig")
        figure.get_by_role("button", name="Forward one step").click()
        edges = "all => all.map(e => e.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])"
        [printed] = figure.locator(".rt-printed").evaluate_all(edges)
        for left, top, right, bottom in figure.locator(".rt-event:visible").evaluate_all(edges):
            assert right <= printed[0] or bottom <= printed[1], (width, printed)
