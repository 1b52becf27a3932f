"""The figure of a weight and who notices: its programs are PyTorch's, line by line."""

import copy
import random
import re

import pytest
import torch

from readtorch.viz.figures import parameter_kinds
from readtorch.viz.figures.parameter_kinds import EXAMPLES, Refusal


def in_pytorch(lines):
    """For each line that runs: the error, and the tensors under their names."""
    net = torch.nn.Module()
    net.weight = torch.nn.Parameter(torch.tensor([2.0, 4.0]))
    env = {"torch": torch, "copy": copy, "net": net, "opt": torch.optim.SGD(net.parameters(), lr=0.5)}
    seen = []
    for line in lines:
        error = ""
        try:
            exec(line, env)
        except (RuntimeError, TypeError, NameError) as raised:
            error = f"{type(raised).__name__}: {raised}"
        tensors = {name: t for name, t in env.items() if isinstance(t, torch.Tensor) and name != "loss"}
        seen.append((error, shown({"net.weight": net.weight, **tensors}, env["opt"])))
        if error:
            break
    return seen


def shown(tensors, optimizer):
    """What the figure's rows say: a row each object."""
    [held] = optimizer.param_groups[0]["params"]
    rows = {}
    for name, t in [*tensors.items(), ("opt", held)]:
        rows.setdefault(id(t), (t, []))[1].append(name)
    return sorted(
        (
            sorted(names),
            type(t).__name__,
            t._version,
            t.grad_fn.name() if t.grad_fn else "leaf" if t.requires_grad else "",
            t.tolist(),
            str(t.dtype).removeprefix("torch."),
            t.grad.tolist() if t.is_leaf and t.grad is not None else None,
            grad_dtype(t),
            sorted(other for one, others in rows.values() if one.data_ptr() == t.data_ptr() for other in others),
        )
        for t, names in rows.values()
    )


def grad_dtype(t):
    """Of its gradient, if it is another than its own."""
    grad = t.grad if t.is_leaf else None
    return str(grad.dtype).removeprefix("torch.") if grad is not None and grad.dtype != t.dtype else ""


def drawn(rows):
    """The figure's rows in the same form."""
    named = [(row, [name for name in row["holders"] if not name.startswith("loss")]) for row in rows]
    return sorted(
        (
            sorted(names),
            row["kind"],
            row["version"],
            row["graph"],
            eval(row["values"]),
            row["dtype"],
            eval(row["grad"]) if row["grad"] else None,
            row["grad_dtype"],
            sorted(other for one, others in named if one["memory"] == row["memory"] for other in others),
        )
        for row, names in named
        if names
    )


def compare(program):
    result = parameter_kinds.model({"program": program})
    for (error, rows), step, said in zip(
        in_pytorch(result["lines"]), result["steps"][1:], result["say"][1:], strict=True
    ):
        assert step["error"] == bool(error), (program, error, said)
        if error:
            assert said.removesuffix(" What follows is not run.").rstrip(".") == error.rstrip("."), program
        assert drawn(step["rows"]) == rows, program
    return result


@pytest.mark.parametrize("program", EXAMPLES)
def test_the_examples_are_pytorch_s(program):
    compare(program)


def test_an_error_names_the_node_that_the_saved_tensor_has_now():
    for write in ("v.mul_(2)", "v.detach().mul_(2)"):
        result = compare(f"v = net.weight.clone(); loss = (v * v).sum(); {write}; loss.backward()")
        assert f"output 0 of {'Mul' if write == 'v.mul_(2)' else 'Clone'}, is at version 1" in result["say"][-1]


@pytest.mark.parametrize(
    "program",
    [
        "loss = (net.weight * net.weight).sum(); net.double(); loss.backward(); opt.step()",
        "loss = (net.weight * net.weight).sum(); net.double(); loss.backward(); loss = (net.weight * net.weight).sum(); loss.backward()",
        "v = net.weight * 2; net.double(); loss = (v * v).sum(); loss.backward(); net.double()",
        "v = copy.copy(net.weight); with torch.no_grad(): v *= 2; with torch.no_grad(): net.weight *= 2; net.weight *= 2",
        "v = copy.copy(net.weight * 2); loss = (v * v).sum(); loss.backward(); u = copy.deepcopy(v); net.weight = v",
    ],
)
def test_dtypes_that_differ_and_shallow_copies_are_pytorch_s(program):
    compare(program)


@pytest.mark.parametrize(
    "program, words",
    [
        ("net.weight = torch.nn.Parameter(net.weight)", "it moves, without a .grad."),
        ("v = net.weight; net.weight = torch.nn.Parameter(v); loss = (v * v).sum()", "it moves, without a .grad."),
        ("net.weight = torch.nn.Parameter(net.weight * 0.5)", "is another one, and stays."),
        ("net.weight.data.mul_(0.5)", "steps the object that it holds."),
    ],
)
def test_a_step_says_what_becomes_of_the_module_s_weight(program, words):
    result = compare(f"loss = (net.weight * net.weight).sum(); {program}; loss.backward(); opt.step()")
    assert result["say"][-1].endswith(words)
    [moved] = [row for row in result["steps"][-1]["rows"] if "opt" in row["holders"]]
    [weight] = [row for row in result["steps"][-1]["rows"] if "net.weight" in row["holders"]]
    assert ("moves" in words) == (moved is not weight and moved["memory"] == weight["memory"])


def test_a_leaf_without_a_name_is_the_optimizer_s():
    result = compare(
        "loss = (net.weight * net.weight).sum(); net.weight = torch.nn.Parameter(net.weight); loss.backward()"
    )
    assert result["say"][-1] == "[4, 8] goes to the .grad of the object that opt holds."


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_pytorch_s(seed):
    source = random.Random(seed)
    failed = sum(compare(parameter_kinds.sample(source)["program"])["failed"] for _ in range(60))
    assert failed > 3


@pytest.mark.parametrize(
    "program, words",
    [
        ("v = 3", "Line 1, not known here: 3."),
        ("v = net.weight.sum()", "Line 1, not known here: .sum()."),
        ("loss = (net.weight * v).sum()", "Line 1, not known here: net.weight*v."),
        ("net = 3", "Line 1, not known here: net=3."),
        ("v = torch.nn.Parameter(net.weight", "Line 1, not known here: torch.nn.Parameter(net.w"),
        ("v = net.weight * 9" + "; v.mul_(9)" * 7, "This figure draws multiples of 1/1,024"),
        ("; ".join(["net.double()"] * 11), "A program has at most 10 lines."),
    ],
)
def test_refusals(program, words):
    with pytest.raises(Refusal, match=re.escape(words)):
        parameter_kinds.model({"program": program})
