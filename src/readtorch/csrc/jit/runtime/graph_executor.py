"""Decides how a graph is run: which passes rewrite it before it becomes instructions.

In PyTorch: `torch/csrc/jit/runtime/graph_executor.cpp`, and `runProfilingInsensitiveOptimizations` in
`torch/csrc/jit/runtime/profiling_graph_executor_impl.cpp`. There the first run only records which types and shapes occur,
and the graph is then rewritten for these, by a second list of passes.
"""

import threading
from typing import NamedTuple

from readtorch.csrc.jit.passes.common_subexpression_elimination import EliminateCommonSubexpression
from readtorch.csrc.jit.passes.constant_pooling import ConstantPooling
from readtorch.csrc.jit.passes.constant_propagation import ConstantPropagation
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.inliner import Inline
from readtorch.csrc.jit.passes.inplace_check import CheckInplace
from readtorch.csrc.jit.passes.loop_unrolling import UnrollLoops
from readtorch.csrc.jit.passes.lower_tuples import LowerSimpleTuples
from readtorch.csrc.jit.passes.peephole import PeepholeOptimize
from readtorch.csrc.jit.passes.tensorexpr_fuser import FuseTensorExprs

from . import instruction as I
from .code_impl import Code
from .interpreter import raise_failure, run

DEFAULT_PASSES = [
    Inline,
    CheckInplace,
    LowerSimpleTuples,
    ConstantPropagation,
    PeepholeOptimize,
    EliminateCommonSubexpression,
    ConstantPooling,
    UnrollLoops,
    ConstantPropagation,
    EliminateCommonSubexpression,
    EliminateDeadCode,
]


# Operators that a group must have: a kernel of its own has its own exp, which differs from eager's in the last bit, and that
# should buy something. In PyTorch: 2, but the builds for CPUs fuse nothing unless they are asked to.
SMALLEST_GROUP = 5


def fuse_long_chains(graph):
    FuseTensorExprs(graph, SMALLEST_GROUP)


# Passes that run on every graph before it is executed, in this order: functions of a graph. The fuser is last.
pipeline = [*DEFAULT_PASSES, fuse_long_chains]

# The threads in which graphs run as they were written. Nearly always there are none, and asking that costs
# nothing.
_unoptimized = set()


def optimized_execution():
    """Whether graphs are optimised before they run, in this thread."""
    return not _unoptimized or threading.get_ident() not in _unoptimized


def set_graph_executor_optimize(enabled):
    (_unoptimized.discard if enabled else _unoptimized.add)(threading.get_ident())


class ExecutionPlan(NamedTuple):
    """graph: what runs, after the passes; code: its instructions; run(arguments): the list of the outputs'
    values.
    """

    graph: object
    code: object
    run: object


class GraphExecutor:
    """Runs one graph. The optimised copy and its code are made at the first call."""

    def __init__(self, graph, name):
        self.graph = graph
        self.name = name
        self._plans = {}  # optimised? -> ExecutionPlan
        self._lock = threading.RLock()

    def plan(self):
        """The ExecutionPlan of this thread: with or without optimisation."""
        optimize = not _unoptimized or optimized_execution()
        return self._plans.get(optimize) or self._make_plan(optimize)

    def _make_plan(self, optimize):
        with self._lock:
            if optimize not in self._plans:
                graph = self.graph.copy()
                for rewrite in pipeline if optimize else ():
                    rewrite(graph)
                code = Code(graph, self.name, GraphExecutor)
                self._plans[optimize] = ExecutionPlan(graph, code, _runner(code))
            return self._plans[optimize]

    def code(self):
        return self.plan().code

    def run(self, arguments):
        """The list of the outputs' values."""
        return self.plan().run(arguments)

    def debug_flush(self):
        """Forget what was made, so that a changed graph or pipeline counts."""
        self._plans.clear()


def _runner(code):
    """A function of the arguments. One operator on them, as they are, needs no machine: that is what a fused
    graph is.
    """
    nodes = [n for n in code.graph.nodes() if n.kind() != "prim::Drop"]
    graph = code.graph
    if (
        len(nodes) != 1
        or nodes[0].inputs() != graph.inputs()
        or nodes[0].outputs() != graph.outputs()
        or not code.operators
    ):
        return lambda arguments: run(code, arguments)
    operation, one = code.operators[0][0], len(graph.outputs()) == 1

    def run_operator(arguments):
        try:
            result = operation(*arguments)
        except Exception as error:
            raise_failure(code, _place_of_operator(code), error)
        return [result] if one else list(result)

    return run_operator


def _place_of_operator(code):
    return next(i for i, instruction in enumerate(code.instructions) if instruction.op in (I.OP, I.OPN))
