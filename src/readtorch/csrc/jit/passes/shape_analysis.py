"""Forgets all that is known of tensors.

    before                                                        after
    %y : Float(4, 3, device=cpu) = aten::relu(%x)                 %y : Tensor = aten::relu(%x)

In PyTorch: `torch/csrc/jit/passes/shape_analysis.cpp` (`EraseShapeInformation`).
"""

from readtorch.csrc.jit.ir.type import TensorType


def unshaped(type):
    """The same type, its tensors bare."""
    if isinstance(type, TensorType):
        return type if type.isInferredType() else TensorType.get()
    parts = type.containedTypes()
    if not parts or type.kind() == "ClassType":
        return type
    return type.withContained([unshaped(part) for part in parts])


def EraseShapeInformation(graph):
    """Every value of the graph, and of the graphs inside its nodes."""
    for value in graph.inputs():
        value.setType(unshaped(value.type()))
    for node in graph.all_nodes():
        for block in node.blocks():
            for value in block.inputs():
                value.setType(unshaped(value.type()))
        for value in node.outputs():
            value.setType(unshaped(value.type()))
        if node.hasAttribute("Subgraph"):
            EraseShapeInformation(node.g("Subgraph"))
