"""Random programs mean the same before and after every pass, after all of them, and after being printed and
read.
"""

import pytest

import readtorch as rt
import readtorch.jit
from readtorch.csrc.jit.ir import parse_ir
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.graph_executor import GraphExecutor
from readtorch.csrc.jit.runtime.interpreter import run
from tests.jit.random_graphs import RandomProgram
from tests.jit.test_scripted_graphs import PASSES

SEEDS = 60


def inputs():
    return [rt.tensor([0.5, -1.0, 2.0]), rt.tensor([1.0, 0.25, -0.5]), 5, 2, [1, 2, 3]]


def plain(value):
    if isinstance(value, rt.Tensor):
        return [round(v, 5) for v in value.tolist()]
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def meaning(graph):
    """What a run gives, and what it leaves in its arguments; or that it raised."""
    arguments = inputs()
    try:
        result = run(Code(graph, "f"), arguments)
    except RuntimeError as error:
        return str(error).splitlines()[-1]
    return plain(result), plain(arguments)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_program(seed):
    graph = RandomProgram(seed).graph
    graph.lint()
    expected = meaning(graph)
    text = str(graph)
    assert str(parse_ir(text)) == text
    assert meaning(parse_ir(text)) == expected
    for rewrite in PASSES:
        copy = graph.copy()
        rewrite(copy)
        copy.lint()
        assert meaning(copy) == expected, rewrite.__name__
    every = graph.copy()
    for rewrite in PASSES * 2:
        rewrite(every)
        every.lint()
    assert meaning(every) == expected
    if not isinstance(expected, str):
        arguments = inputs()
        assert plain(GraphExecutor(graph, "f").run(arguments)) == expected[0]
        assert plain(arguments) == expected[1]
