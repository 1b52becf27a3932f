"""Removes tuples that are only taken apart again.

    before                                           after
    %t : (Tensor, int) = prim::TupleConstruct(%a, %n)
    %b : Tensor, %m : int = prim::TupleUnpack(%t)    (%b is %a, %m is %n)

In PyTorch: `torch/csrc/jit/passes/lower_tuples.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.type import TupleType

from .dead_code_elimination import EliminateDeadCode


def LowerSimpleTuples(graph):
    """Takes away tuples where no block, input or output of the graph has to change."""
    for node in graph.all_nodes():
        remove_tuple_nodes(node)
    EliminateDeadCode(graph)


def remove_tuple_nodes(node):
    """Let the users of an unpacked, indexed or sliced tuple use what it was made of, if that is in sight."""
    if node.kind() not in ("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"):
        return
    construct = node.input(0).node()
    if construct.kind() != "prim::TupleConstruct":
        return
    if node.kind() == "prim::TupleUnpack":
        for output, value in zip(node.outputs(), construct.inputs()):
            output.replaceAllUsesWith(value)
    elif node.kind() == "prim::TupleIndex":
        index = node.input(1).toIValue()
        if index is not None and -construct.inputsSize() <= index < construct.inputsSize():
            node.output().replaceAllUsesWith(construct.input(index))
    else:
        values = construct.inputs()[node.i("beg") : node.i("end")]
        graph = node.owningGraph()
        shorter = graph.createTuple(values).insertBefore(node)
        node.output().replaceAllUsesWith(shorter.output())


def LowerAllTuples(graph):
    """Also takes apart tuples that are the graph's inputs and outputs, or go through If and Loop.

    The graph's signature changes: one tuple becomes as many values. Raises RuntimeError if a tuple is left.
    """
    _lower_block(graph.block())
    LowerSimpleTuples(graph)
    for node in graph.all_nodes():
        if any(isinstance(v.type(), TupleType) for v in node.outputs()):
            raise RuntimeError(f"tuple appears in op that does not forward tuples: {node}")


def _lower_block(block):
    graph = block.owningGraph()
    _flatten_values(block.paramNode(), block.paramNode().next())
    for node in block.nodes():
        for inner in node.blocks():
            _lower_block(inner)
        if node.kind() in ("prim::If", "prim::Loop"):
            _flatten_inputs(node, graph)
            _flatten_values(node, node.next())
        else:
            remove_tuple_nodes(node)
    _flatten_inputs(block.returnNode(), graph)


def _flatten_inputs(node, graph):
    """Each tuple among a node's inputs is unpacked before it."""
    i = 0
    while i < node.inputsSize():
        value = node.input(i)
        if not isinstance(value.type(), TupleType):
            i += 1
            continue
        with graph.insert_point_guard(node):
            parts = graph.insertNode(graph.createTupleUnpack(value)).outputs()
        remove_tuple_nodes(parts[0].node() if parts else node)
        node.removeInput(i)
        for offset, part in enumerate(parts):
            node.insertInput(i + offset, _source_of(part))


def _source_of(part):
    """The value that an unpacked part is, if its tuple was just made."""
    construct = part.node().input().node()
    return construct.input(part.offset()) if construct.kind() == "prim::TupleConstruct" else part


def _flatten_values(node, where):
    """Each tuple that a node gives becomes several outputs, packed again after it."""
    graph = node.owningGraph()
    i = 0
    while i < node.outputsSize():
        value = node.outputsAt(i)
        if not isinstance(value.type(), TupleType):
            i += 1
            continue
        parts = []
        for offset, type in enumerate(value.type().elements()):
            parts.append(node.insertOutput(i + 1 + offset).setType(type))
        with graph.insert_point_guard(where):
            whole = graph.insertNode(graph.createTuple(parts, value.type())).output()
        value.replaceAllUsesWith(whole)
        node.eraseOutput(i)
