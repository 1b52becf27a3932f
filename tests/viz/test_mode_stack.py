"""The figure of modes: its model against PyTorch, with modes that write down what they see."""

import contextlib
import random

import pytest
import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from readtorch.viz.figures import mode_stack
from readtorch.viz.figures.mode_stack import AUTOGRAD, FUNCTION, KINDS, MODES, PYTHON, SLOTS
from readtorch.viz.inputs import Refusal

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


def real_x(kind, seen):
    """The tensor x of this kind; its class, if it has one of its own, writes to `seen` what it sees."""

    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((FUNCTION, "class", resolve_name(func)))
            return super().__torch_function__(func, types, args, kwargs)

    class Wrapper(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, inside):
            return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

        def __init__(self, inside):
            self.inside = inside

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append((PYTHON, "class", str(func).removeprefix("aten.")))
            args, kwargs = tree_map_only(cls, lambda wrapper: wrapper.inside, (args, kwargs or {}))
            return tree_map_only(torch.Tensor, cls, func(*args, **kwargs))

    x = torch.randn(2, 2, requires_grad=kind == "grad")
    return Wrapper(x) if kind == "wrapper" else x.as_subclass(Named) if kind == "subclass" else x


def in_pytorch(inputs):
    """What the modes and the class of `inputs` see of its program."""
    seen, net = [], torch.nn.Linear(2, 2)
    x = real_x(inputs["x"], seen)
    with contextlib.ExitStack() as stack:
        stack.enter_context(AROUND[inputs["around"]]())
        for slot in SLOTS:
            if inputs[slot]:
                stack.enter_context(real_mode(slot, inputs[slot], seen))
        try:
            eval(inputs["program"], {"net": net, "x": x, "torch": torch})
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_each_mode_sees_what_it_sees_in_pytorch(seed, kind):
    source = random.Random(seed)
    for _ in range(60):
        inputs = {"x": kind, "around": source.choice(["", *AROUND])} | {
            slot: source.choice(list(MODES)) for slot in SLOTS
        }
        inputs |= mode_stack.sample(source)
        assert in_the_model(inputs) == in_pytorch(inputs), inputs


@pytest.mark.parametrize("kind, wrong", [("function swap", False), ("dispatch swap", True)])
def test_the_gradient_is_wrong_where_the_figure_says_so(kind, wrong):
    inputs = {
        "program": "net(x).relu().sum().backward()",
        "x": "",
        "around": "",
        "outer": kind,
        "middle": "",
        "inner": "",
    }
    assert mode_stack.model(inputs)["wrong"] is wrong
    v = torch.tensor([-1.0, 2.0], requires_grad=True)
    with real_mode("outer", kind, []):
        y = v.relu()
    y.sum().backward()
    w = v.detach().requires_grad_()
    gelu(w).sum().backward()
    assert torch.equal(y.detach(), gelu(w).detach())
    assert torch.equal(v.grad, w.grad) is not wrong


def graph(node, found):
    """The names of the nodes from `node` on, each once."""
    if node is not None and node not in found:
        found[node] = node.name().removeprefix("torch::autograd::")
        for one, _ in node.next_functions:
            graph(one, found)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_nodes_that_run_are_those_of_the_graph(kind):
    source = random.Random(5)
    for _ in range(60):
        program = mode_stack.sample(source)["program"].removesuffix(".backward()")
        inputs = {"x": kind, "program": f"({program}).sum().backward()", "around": ""} | dict.fromkeys(SLOTS, "")
        result = mode_stack.model(inputs)
        ran = [event["what"] for event, say in zip(result["events"], result["say"]) if say == f"{event['what']} runs."]
        names = {"net": torch.nn.Linear(2, 2), "x": real_x(kind, []), "torch": torch}
        made = graph(eval(f"({program}).sum()", names).grad_fn, {})
        assert sorted(ran) == sorted(made.values()), inputs


@pytest.mark.parametrize(
    "program, said",
    [
        ("net(x).softmax(5)", "Not known here: .softmax(5). Allowed: x, net(x), "),
        ("net(x).cos()", "Not known here: .cos(). Allowed: "),
        ("net(y)", "Not known here: net(y). Allowed: "),
        ("net(x) + x", "On the right of + stands a number, torch.ones(2) or torch.ones(2, 2)."),
        ("net(x) + 1 * 2", "A number stands on the right of a sign"),
        ("2 * net(x)", "On the right of * stands a number"),
        ("(net(x)", "A parenthesis is not closed."),
        ("net(x) +", "A tensor is missing at the end."),
        ("net(x))", "Not known here: ). "),
        ("x", "x alone calls nothing."),
        ("1 2", "Not known here: "),
        ("net(x).backward().relu()", "Nothing can be called on what backward() returns: it is None."),
        ("x" + ".relu()" * 9, "At most 8 calls, please."),
    ],
)
def test_a_refusal_says_what_is_allowed(program, said):
    with pytest.raises(Refusal) as refused:
        mode_stack.model({"program": program, "x": "", "around": ""} | dict.fromkeys(SLOTS, ""))
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    "spaced", [" net ( x ) . relu( ) +1", "net(x).relu()+  1 ", "(net(x).relu()) + 1", "net(x).relu().add( 1 )"]
)
def test_spaces_and_parentheses_change_nothing(spaced):
    rest = {"x": "", "around": ""} | dict.fromkeys(SLOTS, "")
    assert mode_stack.model(rest | {"program": spaced}) == mode_stack.model(rest | {"program": "net(x).relu() + 1"})
