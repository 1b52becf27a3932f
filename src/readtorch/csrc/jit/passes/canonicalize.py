"""Numbers the values anew, so that two graphs can be compared as text.

    before                                   after
    %y.3 : Tensor = aten::relu(%x)           %1 : Tensor = aten::relu(%0)

In PyTorch: `torch/csrc/jit/passes/canonicalize.cpp`.
"""
from ..ir.graph import Graph


def Canonicalize(graph, keep_unique_names=False):
    """A copy of the graph whose values are numbered in order; names are dropped unless they shall be kept."""
    result = Graph()
    own = {}
    for value in graph.inputs():
        own[value] = _renamed(result.addInput(), value, keep_unique_names)
    for node in graph.nodes():
        copy = result.insertNode(result.createClone(node, own.__getitem__))
        for old, new in zip(node.outputs(), copy.outputs()):
            own[old] = _renamed(new, old, keep_unique_names)
    for value in graph.outputs():
        result.registerOutput(own[value])
    if not keep_unique_names:
        for node in result.all_nodes():
            for block in node.blocks():
                for value in block.inputs():
                    value.setDebugName("")
            for value in node.outputs():
                value.setDebugName("")
    return result


def _renamed(new, old, keep):
    new.setType(old.type())
    return new.setDebugName(old.debugName()) if keep and old.hasDebugName() else new
