"""The passes that run over every graph that the compiler has made.

In PyTorch: `runCleanupPasses` in `torch/csrc/jit/frontend/ir_emitter.cpp`.
"""

from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.passes.canonicalize import CanonicalizeOutputs
from readtorch.csrc.jit.passes.constant_pooling import ConstantPooling
from readtorch.csrc.jit.passes.constant_propagation import ConstantPropagationImmutableTypes
from readtorch.csrc.jit.passes.lower_tuples import LowerSimpleTuples
from readtorch.csrc.jit.passes.normalize_ops import NormalizeOps


def run_cleanup_passes(graph):
    _empty_lists(graph)
    NormalizeOps(graph)
    _fork_graphs(graph)
    LowerSimpleTuples(graph)
    ConstantPropagationImmutableTypes(graph)
    ConstantPooling(graph)
    CanonicalizeOutputs(graph)


def _empty_lists(graph):
    """A `[]` that was not expected to be of another type is a list of tensors."""
    for node in graph.all_nodes():
        if node.kind() == "prim::EmptyListLiteral":
            made = graph.createList(node.output().type().elem, []).copyMetadata(node).insertBefore(node)
            node.output().replaceAllUsesWith(made.output())
            node.destroy()


def _fork_graphs(graph):
    """The block of a fork becomes a graph of its own, whose inputs are the values that it uses.

    In PyTorch: `lift_closures.cpp`, `inline_forked_closures.cpp`.
    """
    for node in graph.all_nodes():
        if node.kind() != "prim::forkClosure":
            continue
        block, inner, captured = node.blocks()[0], Graph(), {}

        def outside(value):
            if value not in captured:
                captured[value] = inner.addInput().copyMetadata(value)
            return captured[value]

        inner.block().cloneFrom(block, outside)
        fork = graph.create("prim::fork", list(captured)).g_("Subgraph", inner).setSourceRange(node.sourceRange())
        name = node.output().debugName() if node.output().hasDebugName() else ""
        node.output().setDebugName("")
        fork.insertBefore(node).output().setType(node.output().type()).setDebugName(name)
        node.output().replaceAllUsesWith(fork.output())
        node.destroy()
