"""Checks that a graph is well formed.

In PyTorch: `Graph::lint`, `Node::lint` in `torch/csrc/jit/ir/ir.cpp`.
"""

from .value import Use


def lint(graph):
    """Raises RuntimeError with the first rule that is broken:

    - every node that is reached belongs to this graph, and its neighbours agree on it;
    - a value is used only where it has been made, in its block or in one inside;
    - inputs and uses are each other's mirror image;
    - no two values have the same number or name.
    """
    _Lint(graph).block(graph.block(), set())


def check(holds, *message):
    if not holds:
        raise RuntimeError("lint: " + " ".join(str(part) for part in message))


class _Lint:
    def __init__(self, graph):
        self.graph = graph
        self.numbers = set()
        self.names = set()

    def block(self, block, visible):
        """Check a block. visible: the values made before it."""
        visible = set(visible)
        self.node(block.paramNode(), visible)
        previous = block.paramNode()
        for node in [*block.nodes(), block.returnNode()]:
            check(node.prev() is previous and previous.next() is node, "neighbours disagree at", node)
            check(node.owningBlock() is block, "block not that of", node)
            check(node.kind() != "prim::Param", "a param node among the nodes")
            self.node(node, visible)
            previous = node
        check(block.returnNode().next() is block.paramNode(), "the ring of nodes is open")

    def node(self, node, visible):
        check(node.owningGraph() is self.graph, "node of another graph:", node)
        for i, value in enumerate(node.inputs()):
            check(value in visible, f"%{value.debugName()} not in scope at", node)
            check(Use(node, i) in value.uses(), f"%{value.debugName()} does not know its use by", node)
        if node.kind() in ("prim::Constant", "prim::Param"):
            check(not node.inputs(), "inputs of", node)
        for block in node.blocks():
            check(block.owningNode() is node, "block of another node than", node)
            self.block(block, visible)
        for i, value in enumerate(node.outputs()):
            check(value.node() is node and value.offset() == i, f"%{value.debugName()} is not output {i} of", node)
            self.value(value)
            visible.add(value)

    def value(self, value):
        check(value.unique() not in self.numbers, "number given twice:", value.unique())
        self.numbers.add(value.unique())
        check(value.debugName() not in self.names, "name given twice:", value.debugName())
        self.names.add(value.debugName())
        check(value.unique() < self.graph._next_unique, "number too high:", value.unique())
        for use in value.uses():
            inputs = use.user.inputs()
            check(use.offset < len(inputs) and inputs[use.offset] is value, f"stale use of %{value.debugName()}")
