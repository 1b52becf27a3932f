"""The figure of passes: its graphs, code and results against PyTorch's, for random programs."""

import itertools
import random
import re

import pytest
import torch
from torch import fx
from torch.fx.passes.dialect.common.cse_pass import CSEPass

from readtorch.viz.figures import fx_passes
from readtorch.viz.figures.fx_passes import EXAMPLE, EXAMPLES, FIRST, SCALE, WEIGHT
from readtorch.viz.inputs import Refusal

PROGRAMS = 40


class Root(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(SCALE, dtype=torch.float64))
        self.linear = torch.nn.Linear(3, 3, bias=False, dtype=torch.float64)
        with torch.no_grad():
            self.linear.weight.copy_(torch.tensor(WEIGHT))


def module_of(program):
    """A module whose forward is this program."""
    names = {"torch": torch}
    exec("def forward(self, x, y):\n    " + "\n    ".join(re.split(r"; *", program)), names)
    return type("Program", (Root,), {"forward": names["forward"]})()


def dead(traced):
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return traced


def pattern(traced):
    fx.replace_pattern(traced, lambda a, b, c: a * b + c, lambda a, b, c: torch.addcmul(c, a, b))
    return traced


PASSES = {"dead": dead, "pattern": pattern, "cse": lambda traced: CSEPass()(traced).graph_module}


def body(code):
    return [line.strip() for line in code.strip().splitlines()[1:]]


def ran(function):
    """What it returns for the figure's example, and what is in its inputs afterwards."""
    x, y = (torch.tensor(values, dtype=torch.float64) for values in EXAMPLE.values())
    result = function(x, y)
    return torch.stack([result, x, y]).detach()


def figure_results(seed, passes):
    source = random.Random(seed)
    for _ in range(PROGRAMS):
        inputs = fx_passes.sample(source) | dict.fromkeys(fx_passes.SLOTS, "") | passes
        try:
            yield inputs["program"], fx_passes.model(inputs)
        except Refusal:
            continue


@pytest.mark.parametrize(
    "kinds", [("dead",), ("cse",), ("pattern",), ("cse", "dead", "pattern"), ("pattern", "cse")], ids="-".join
)
def test_graph_and_code_are_pytorchs(kinds):
    count = 0
    for program, result in figure_results(1, dict(zip(fx_passes.SLOTS, kinds))):
        traced = fx.symbolic_trace(module_of(program))
        for step, kind in zip(result["steps"], ("", *kinds)):
            traced = PASSES[kind](traced) if kind else traced
            nodes = [node for node in step["nodes"] if node["state"] != "gone"]
            assert [n["name"] for n in nodes] == [n.name for n in traced.graph.nodes], program
            assert [n["op"] for n in nodes] == [n.op for n in traced.graph.nodes], program
            assert [*step["code"].values()] == body(traced.code), program
        count += 1
    assert count > PROGRAMS / 2


@pytest.mark.parametrize("kinds", [("dead", "cse", "pattern"), ("pattern", "cse", "fold")], ids="-".join)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_said_of_the_result_is_so(kinds, seed):
    seen = set()
    for program, result in figure_results(seed, dict(zip(fx_passes.SLOTS, kinds))):
        root = module_of(program)
        wanted = ran(root)
        for step, say in zip(result["steps"], result["say"]):
            names = {"torch": torch}
            exec("def forward(self, x, y):\n    " + "\n    ".join(step["code"].values()), names)
            if "self.folded" in "".join(step["code"].values()):  # what has been folded is not in the code
                continue
            try:
                found = ran(lambda x, y: names["forward"](root, x, y))
            except TypeError as error:
                assert step["verdict"] == "fails" and str(error).splitlines()[0] in say, program
                continue
            right = torch.allclose(found[0], wanted[0]), torch.allclose(found[1:], wanted[1:])
            expected = "wrong" if not right[0] else "right" if right[1] else "inputs"
            assert step["verdict"] == expected, (program, step["title"])
            said = [float(v) for v in re.search(r"returns \[(.*?)\]", say)[1].split(", ")]
            assert torch.allclose(torch.tensor(said, dtype=found.dtype), found[0], atol=1e-4), program
            seen.add(step["verdict"])
    assert "right" in seen


def test_folding_leaves_one_attribute_and_the_value():
    result = fx_passes.model({"program": "return x * (self.scale * 2 + 1)", "first": "fold", "second": "", "third": ""})
    assert [*result["steps"][1]["code"].values()] == [
        "folded = self.folded",
        "mul_1 = x * folded;  x = folded = None",
        "return mul_1",
    ]
    assert result["steps"][1]["verdict"] == "right" and "It still returns [5, -14, -3]." in result["say"][1]
    for program, result in figure_results(3, {"first": "fold"}):
        traced, folded = result["steps"]
        assert folded["verdict"] == traced["verdict"], program


@pytest.mark.parametrize(
    "program, kind, verdict",
    [
        (EXAMPLES[0], "dead", "wrong"),
        (EXAMPLES[1], "cse", "wrong"),
        ("x.add_(1); return y * 2", "dead", "inputs"),
        (FIRST, "dead", "right"),
        (EXAMPLES[3], "pattern", "right"),
        ("return x * y + 2", "pattern", "fails"),
    ],
)
def test_passes_that_go_wrong_are_found_out(program, kind, verdict):
    result = fx_passes.model({"program": program, "first": kind, "second": "", "third": ""})
    assert result["steps"][1]["verdict"] == verdict


@pytest.mark.parametrize(
    "program, verdict",
    [
        (FIRST, "right"),
        ("x += 1; return x", "inputs"),
        ("x -= y; return x", "inputs"),
        ("x /= 2; return x", "inputs"),
        (EXAMPLES[4], "wrong"),
        ("a = x.exp(); a *= 2; return -a", "right"),
        ("a = 2; a *= x; return a", "right"),
        ("torch.relu_(x); return x", "right"),
    ],
)
def test_a_trace_is_compared_with_the_program_itself(program, verdict):
    """`x += 1` is `x = x + 1` to a trace."""
    (step,) = fx_passes.model({"program": program} | dict.fromkeys(fx_passes.SLOTS, ""))["steps"]
    wanted, found = ran(module_of(program)), ran(fx.symbolic_trace(module_of(program)))
    same = torch.allclose(wanted[0], found[0]), torch.allclose(wanted[1:], found[1:])
    assert step["verdict"] == verdict == ("wrong" if not same[0] else "right" if same[1] else "inputs")


def test_the_order_of_passes_decides_how_many_nodes_are_left():
    """A node in the middle of a match has no user outside; once the sums are one, the product has but one user."""
    for order in itertools.permutations(("dead", "cse", "pattern")):
        result = fx_passes.model({"program": FIRST} | dict(zip(fx_passes.SLOTS, order)))
        wanted = 9 if order.index("cse") < order.index("pattern") else 10
        assert len(result["steps"][-1]["code"]) + 2 == wanted, order


@pytest.mark.parametrize(
    "program, said",
    [
        ("", "The last statement is return …."),
        ("a = x", "The last statement is return …."),
        ("return x; return y", "Nothing is run after return"),
        ("return 2", "The program returns a number"),
        ("return x * (2 + 3)", "2 + 3: Python computes this before any proxy hears of it."),
        ("return x.cos()", "Not in this figure. FX takes .cos() as a call_method"),
        ("return z", "Not known here: z. Allowed"),
        ("z += 1; return x", "Not known here: z. Allowed"),
        ("return len(x)", "Not in this figure. symbolic_trace raises RuntimeError: len"),
        ("if x: return x", "Not in this figure. symbolic_trace raises TraceError: an if"),
        ("return x[0] @ y", "Not in this figure. FX takes it as a call_function of the module operator"),
        ("import os; return x", "Not known here: import. Allowed"),
        ("a = 2; a += 1; return x", "2 + 1: Python computes this"),
        ("s = self.scale; s += 1; return x * s", "The trace succeeds, but the program itself does not run"),
        ("torch.relu_(self.scale); return x", "The trace succeeds, but the program itself does not run"),
        ("self.scale.add_(1); return x", "The trace succeeds, but the program itself does not run"),
        ("return x +", "Something is missing at the end of a statement."),
        ("return (x", "Something is missing at the end of a statement."),
        ("return x / 0", "A number grows beyond"),
        ("return x if x else y", "Not in this figure. symbolic_trace raises TraceError: an if"),
        ("return x if x.sum() > 0 else y", "Not in this figure. symbolic_trace raises TraceError: an if"),
        ("x[0] = 1; return x", "Not in this figure. symbolic_trace raises TypeError"),
        ("return x + torch.rand(3)", "Not in this figure. symbolic_trace runs it once"),
        ("return x + torch.ones(3)", "Not in this figure. symbolic_trace runs it once"),
        ("with torch.no_grad(): y = x * 2; return y", "Not in this figure. FX records the operators inside"),
        ("return x.shape[0] * y", "Not in this figure. FX takes it as call_functions: getattr"),
        ("return torch.tanh(x)", "Not in this figure. FX takes it as a call_function"),
        ("return torch.sin(x)", "Not in this figure. FX takes a function of torch as a call_function"),
        ("if = x; return x", "if is no name for a value here."),
        ("self.scale = x; return x", "self.scale is no name for a value here."),
        ("return x y", "Not known here: y."),
        ("return 1234567.0 * x", "1234567.0: a number has at most six digits"),
        ("return " + " + ".join(["x"] * 30), "At most 24 nodes, please."),
    ],
)
def test_a_refusal_says_why(program, said):
    with pytest.raises(Refusal) as refused:
        fx_passes.FIGURE.result(program=program)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    "program",
    [
        "return x if x.sum() > 0 else y",
        "for a in x: pass\nreturn x",
        "while x: pass\nreturn x",
        "return x * len(x)",
        "x[0] = 1\nreturn x",
        "x[0] += 1\nreturn x",
    ],
)
def test_what_the_figure_says_of_pytorchs_refusals_is_so(program):
    wanted = next(why for pattern, why in fx_passes.IN_PYTORCH.items() if re.search(pattern, program))
    names = {}
    exec("def function(x, y):\n " + program.replace("\n", "\n "), names)
    with pytest.raises(Exception) as raised:
        fx.symbolic_trace(names["function"])
    assert f"symbolic_trace raises {raised.type.__name__}: " in wanted


def test_what_the_figure_says_of_other_programs_is_so():
    def loops(x, y):
        for _ in range(2):
            x = x + 1
        if True:
            with torch.no_grad():
                y = y * x.shape[0]
        return y + torch.ones(1)

    found = [(node.op, getattr(node.target, "__name__", node.target)) for node in fx.symbolic_trace(loops).graph.nodes]
    sizes = [("call_function", "getattr"), ("call_function", "getitem")]
    counted = [*found[2:4], *found[4:6], found[6], found[7][:1] + ("tensor",), found[8][1]]
    assert counted == [("call_function", "add")] * 2 + sizes + [("call_function", "mul"), ("get_attr", "tensor"), "add"]


def test_a_pass_without_anything_to_do_says_so():
    found = fx_passes.model({"program": "z = y + x * x; return z", "first": "pattern", "second": "cse", "third": ""})
    assert all(". It found nothing. It still returns" in line for line in found["say"][1:])
    assert (
        "found nothing"
        not in fx_passes.model({"program": "return x * y + x.exp()", "first": "pattern", "second": "", "third": ""})[
            "say"
        ][1]
    )
