"""The figure of modes: its model against PyTorch, with modes that write down what they see."""

import contextlib
import random

import pytest
import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from readtorch.viz.figures import mode_stack
from readtorch.viz.figures.mode_stack import AUTOGRAD, FUNCTION, MODES, PYTHON, SLOTS

aten, gelu = torch.ops.aten, torch.nn.functional.gelu
AROUND = {"": contextlib.nullcontext, "no_grad": torch.no_grad, "inference_mode": torch.inference_mode}


def real_mode(slot, kind, seen):
    """A mode of PyTorch's of this kind, which writes to `seen` what it sees."""

    class OfFunctions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((FUNCTION, slot, resolve_name(func)))
            if kind == "function swap" and func is torch.Tensor.relu:
                func = gelu
            return func(*args, **(kwargs or {}))

    class OfOperators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((PYTHON, slot, str(func).removeprefix("aten.")))
            if kind == "dispatch swap" and func is aten.relu.default:
                func = aten.gelu.default
            result = func(*args, **(kwargs or {}))
            return result + 0 if kind == "dispatch zero" else result

    return OfFunctions() if kind.startswith("function") else OfOperators()


def in_pytorch(inputs):
    """What the modes of `inputs` see of its program."""
    seen, net, x = [], torch.nn.Linear(2, 2), torch.randn(2, 2)
    with contextlib.ExitStack() as stack:
        stack.enter_context(AROUND[inputs["around"]]())
        for slot in SLOTS:
            if inputs[slot]:
                stack.enter_context(real_mode(slot, inputs[slot], seen))
        try:
            eval(inputs["program"], {"net": net, "x": x})
        except RuntimeError as error:
            seen.append((AUTOGRAD, "", str(error)))
    return seen


def in_the_model(inputs):
    result = mode_stack.model(inputs)
    seen = []
    for event, say in zip(result["events"], result["say"]):
        if event["place"] in (FUNCTION, PYTHON):
            seen.append((event["place"], event["who"], event["what"]))
        elif event["what"] == "RuntimeError":
            seen.append((AUTOGRAD, "", say.removeprefix("RuntimeError: ").removesuffix(".")))
    return seen


@pytest.mark.parametrize("seed", range(4))
def test_each_mode_sees_what_it_sees_in_pytorch(seed):
    source = random.Random(seed)
    for _ in range(60):
        inputs = {"around": source.choice(["", *AROUND])} | {slot: source.choice(list(MODES)) for slot in SLOTS}
        inputs |= mode_stack.sample(source)
        assert in_the_model(inputs) == in_pytorch(inputs), inputs


@pytest.mark.parametrize("kind, wrong", [("function swap", False), ("dispatch swap", True)])
def test_the_gradient_is_wrong_where_the_figure_says_so(kind, wrong):
    inputs = {"program": "net(x).relu().sum().backward()", "around": "", "outer": kind, "middle": "", "inner": ""}
    assert mode_stack.model(inputs)["wrong"] is wrong
    v = torch.tensor([-1.0, 2.0], requires_grad=True)
    with real_mode("outer", kind, []):
        y = v.relu()
    y.sum().backward()
    w = v.detach().requires_grad_()
    gelu(w).sum().backward()
    assert torch.equal(y.detach(), gelu(w).detach())
    assert torch.equal(v.grad, w.grad) is not wrong
