"""The figure of the compiler's passes: its graphs and results against PyTorch's, for random constants and orders."""

import itertools
import random

import pytest
import torch

from readtorch.viz.figures import script_passes
from readtorch.viz.figures.script_passes import SLOTS, N, Value, X

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PROGRAM = """
def sine(x):
    return x.sin()


def wasteful(x, n: int):
    unused = sine(x)
    y = x.t().t().exp()
    for i in range({count}):
        y = y + x.exp() * (i * {a} + {b})
        {write}
    return y
"""
C = torch._C
THEIRS = {
    "inline": C._jit_pass_inline,
    "dead": C._jit_pass_dce,
    "peephole": lambda graph: C._jit_pass_peephole(graph, True),
    "unroll": C._jit_pass_loop_unrolling,
    "fold": C._jit_pass_constant_propagation,
    "cse": C._jit_pass_cse,
}
ORDERS = 80


@pytest.fixture
def graph_of(tmp_path, monkeypatch):
    """The program's graph, scripted by PyTorch; TorchScript reads a function's source from its file."""
    monkeypatch.syspath_prepend(tmp_path)
    numbers = itertools.count()

    def make(count, a, b, write):
        name = f"scripted_program_{tmp_path.name}_{next(numbers)}"
        text = PROGRAM.format(count=count, a=a, b=b, write="x.neg_()" if write else "")
        (tmp_path / f"{name}.py").write_text(text)
        return torch.jit.script(__import__(name).wasteful).graph.copy()

    return make


def of_torch(graph):
    """Lines of a graph of PyTorch: constants where they are used, values numbered in the order of their definition."""
    names, lines = {}, []

    def word(value):
        if value.node().kind() == "prim::Constant":
            return str(value.toIValue())
        return names[value.debugName()]

    def define(values):
        for value in values:
            names[value.debugName()] = f"%{len(names)}"
        return [names[value.debugName()] for value in values]

    def walk(block, depth):
        for node in block.nodes():
            kind, args = node.kind(), list(node.inputs())
            if kind == "prim::Constant":
                continue
            args = args[1:] if kind == "prim::CallFunction" else args
            if kind == "aten::add" and len(args) == 3:  # alpha, which is 1
                args = args[:2]
            taken = [word(a) for a in args]
            outs = define(list(node.outputs()))
            lines.append((depth, outs, kind, taken))
            for inner in node.blocks():
                lines.append((depth + 1, define(list(inner.inputs()))))
                walk(inner, depth + 1)
                lines.append((depth + 1, [word(v) for v in inner.outputs()]))

    define(list(graph.inputs()))
    walk(graph, 0)
    return [*lines, [word(v) for v in graph.outputs()]]


def of_figure(graph):
    names, lines = {}, []

    def word(arg):
        return names[arg] if isinstance(arg, Value) else str(arg)

    def define(values):
        for value in values:
            names[value] = f"%{len(names)}"
        return [names[value] for value in values]

    def walk(block, depth):
        for node in block.nodes:
            taken = [word(a) for a in node.args]
            lines.append((depth, define(node.outs), node.kind, taken))
            if node.block:
                lines.append((depth + 1, define(node.block.ins)))
                walk(node.block, depth + 1)
                lines.append((depth + 1, [word(v) for v in node.block.outs]))

    define(graph.block.ins)
    walk(graph.block, 0)
    return [*lines, [word(v) for v in graph.block.outs]]


def ran(graph):
    """What a graph of PyTorch returns, and what is in x afterwards."""
    x = torch.tensor(X, dtype=torch.float64).view(2, 2)
    result = C._create_function_from_graph("f", graph)(x, N)
    return result.flatten().tolist(), x.flatten().tolist()


@pytest.mark.parametrize("seed", range(4))
def test_graphs_and_results_are_pytorchs(graph_of, seed):
    source = random.Random(seed)
    for _ in range(ORDERS // 4):
        inputs = script_passes.FIGURE.random_inputs(source)
        given = [inputs[name] for name in ("count", "a", "b", "write")]
        kinds = [inputs[slot] for slot in SLOTS if inputs[slot] in THEIRS]
        ours, theirs = script_passes.scripted(*given), graph_of(*given)
        assert of_figure(ours) == of_torch(theirs), given
        wanted = ran(theirs)
        for number, kind in enumerate(kinds, start=1):
            script_passes.RUN[kind](ours)
            THEIRS[kind](theirs)
            assert of_figure(ours) == of_torch(theirs), (given, kinds[:number])
            found = script_passes.Run(ours).outcome
            assert found[0] == pytest.approx(wanted[0]) and found[1] == pytest.approx(wanted[1])


def test_the_careless_pass_is_found_out():
    passes = dict.fromkeys(SLOTS, "") | {"p1": "inline", "p2": "peephole"}
    for write, kind, verdict in ((True, "careless", "wrong"), (True, "cse", "right"), (False, "careless", "right")):
        result = script_passes.FIGURE.result(**{**passes, "p3": kind, "write": write})
        assert result["steps"][-1]["verdict"] == verdict


def test_a_call_hides_what_the_other_passes_need():
    """Before inlining, a call may write to x: nothing is dead, and nothing is common."""
    hidden = {"p1": "dead", "p2": "cse", "p3": "", "p4": "", "p5": "", "p6": ""}
    steps = script_passes.FIGURE.result(**hidden)["steps"]
    assert all(row["state"] == "" for step in steps for row in step["lines"])


def test_no_line_is_gone_and_there():
    source = random.Random(7)
    for _ in range(20):
        for step in script_passes.FIGURE.model(script_passes.FIGURE.random_inputs(source))["steps"]:
            keys = [row["key"] for row in step["lines"]]
            assert len(keys) == len({*keys})
