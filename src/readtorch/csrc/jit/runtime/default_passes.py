"""The passes that every graph goes through before it runs.

In PyTorch: `runProfilingInsensitiveOptimizations` in
`torch/csrc/jit/runtime/profiling_graph_executor_impl.cpp`.
"""
from ..passes.common_subexpression_elimination import EliminateCommonSubexpression
from ..passes.constant_pooling import ConstantPooling
from ..passes.constant_propagation import ConstantPropagation
from ..passes.dead_code_elimination import EliminateDeadCode
from ..passes.inliner import Inline
from ..passes.loop_unrolling import UnrollLoops
from ..passes.lower_tuples import LowerSimpleTuples
from ..passes.peephole import PeepholeOptimize

DEFAULT_PASSES = [
    Inline,
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
