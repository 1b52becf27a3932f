"""Graphs that the reference compiled: read from their text, run, rewritten by each pass, printed and read again."""

import pytest
import torch

import readtorch
from readtorch.csrc.jit.ir import parse_ir
from readtorch.csrc.jit.passes.common_subexpression_elimination import EliminateCommonSubexpression
from readtorch.csrc.jit.passes.constant_pooling import ConstantPooling
from readtorch.csrc.jit.passes.constant_propagation import ConstantPropagation, ConstantPropagationImmutableTypes
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.loop_unrolling import UnrollConstantLoops, UnrollLoops
from readtorch.csrc.jit.passes.lower_tuples import LowerSimpleTuples
from readtorch.csrc.jit.passes.peephole import PeepholeOptimize
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.graph_executor import GraphExecutor
from readtorch.csrc.jit.runtime.interpreter import run
from tests.jit.scripted_sources import FUNCTIONS
from tests.reference import assert_close, to_readtorch

PASSES = [
    EliminateDeadCode,
    LowerSimpleTuples,
    ConstantPropagation,
    ConstantPropagationImmutableTypes,
    PeepholeOptimize,
    EliminateCommonSubexpression,
    ConstantPooling,
    UnrollLoops,
    UnrollConstantLoops,
]
CASES = [pytest.param(f, inputs, id=f.__name__) for f, inputs in FUNCTIONS]


def text_of(function):
    return str(torch.jit.script(function).inlined_graph)


def values_of(graph, inputs):
    return run(Code(graph, "f"), to_readtorch(list(inputs)))


def plain(value):
    """A result without the names that the reference's text does not tell."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(plain, value)) if type(value) in (tuple, list) else tuple(map(plain, value))
    return value


def check(graph, function, cases):
    graph.lint()
    for inputs in cases:
        copies = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
        expected = torch.jit.script(function)(*copies)
        assert_close(plain(values_of(graph, inputs)[0]), plain(expected))


@pytest.mark.parametrize("function, cases", CASES)
def test_runs_as_in_the_reference(function, cases):
    check(parse_ir(text_of(function)), function, cases)


@pytest.mark.parametrize("function, cases", CASES)
def test_every_pass_keeps_the_meaning(function, cases):
    for rewrite in PASSES:
        graph = parse_ir(text_of(function))
        rewrite(graph)
        check(graph, function, cases)


@pytest.mark.parametrize("function, cases", CASES)
def test_all_passes_one_after_another(function, cases):
    graph = parse_ir(text_of(function))
    for rewrite in PASSES * 2:
        rewrite(graph)
        graph.lint()
    check(graph, function, cases)
    for inputs in cases:
        assert len(GraphExecutor(parse_ir(text_of(function)), "f").run(to_readtorch(list(inputs)))) == 1


@pytest.mark.parametrize("function, cases", CASES)
def test_print_parse_print(function, cases):
    for text in (text_of(function), str(torch.jit.script(function).graph)):
        graph = parse_ir(text)
        assert str(graph) == text
        assert str(parse_ir(str(graph))) == text
        copy = graph.copy()
        copy.lint()
        check(parse_ir(str(copy)), function, cases) if "Call" not in text else None


@pytest.mark.parametrize("nodes", [30, 31, 32])
@pytest.mark.parametrize("branch", [False, True])
def test_how_large_a_body_is_written_out(nodes, branch):
    """The return of each block counts as a node."""
    lines = ["def f(x, n: int):", "    for i in range(5):", *["        x = x.sin()"] * (nodes - 3 * branch)]
    lines += ["        if n > 1:", "            x = x.cos()"] * branch
    text = "\n".join([*lines, "    return x\n"])
    theirs = torch.jit.CompilationUnit(text).f.graph.copy()
    ours = readtorch.jit.CompilationUnit(text).f.graph.copy()
    torch._C._jit_pass_loop_unrolling(theirs)
    UnrollLoops(ours)
    left = [len(graph.findAllNodes("prim::Loop")) for graph in (theirs, ours)]
    assert left[0] == left[1] == (branch or nodes > 31)
