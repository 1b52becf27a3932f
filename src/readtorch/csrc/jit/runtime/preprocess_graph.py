"""Gets a graph ready to become instructions.

It finds out after which node a value is no longer needed, so that its memory can be released, and which values can
stay on the stack between the node that makes them and the one that uses them.

In PyTorch: `torch/csrc/jit/runtime/interpreter/preprocess_graph.cpp`, `can_emit_inline.h`.
"""


def preprocess(graph):
    """A copy of `graph` in which prim::Drop says what is needed no more."""
    graph = graph.copy()
    _drop_unused(graph, graph.block())
    _LastUses(graph).block(graph.block())
    return graph


def _drop_unused(graph, block):
    """After every node: a prim::Drop of its unused outputs."""
    _drop_after(graph, block.paramNode(), [v for v in block.inputs() if not v.uses()])
    for node in block.nodes():
        if node.kind() != "prim::Constant":
            _drop_after(graph, node, [v for v in node.outputs() if not v.uses()])
        for inner in node.blocks():
            _drop_unused(graph, inner)


def _drop_after(graph, node, values):
    if not values:
        return
    drop = graph.create("prim::Drop", values, 0)
    if node.kind() == "prim::Param":
        node.owningBlock().prependNode(drop)
    else:
        drop.insertAfter(node)


class _LastUses:
    """A last use inside a block does not count: the block may run again, or not at all. After the node that
    owns the block, a prim::Drop becomes the last use.
    """

    def __init__(self, graph):
        self.graph = graph
        self.seen = set()
        self.drops = {}  # node -> the prim::Drop after it

    def block(self, block):
        for node in [*block.nodes(), block.returnNode()][::-1]:
            for inner in node.blocks():
                self.block(inner)
            for value in reversed(node.inputs()):
                self.use(node, value)

    def use(self, node, value):
        if value in self.seen or value.isConstant():
            return
        self.seen.add(value)
        home = value.node().owningBlock()
        if node.owningBlock() is home:
            return
        while node.owningBlock() is not home:
            node = node.owningBlock().owningNode()
        if node not in self.drops:
            self.drops[node] = self.graph.create("prim::Drop", (), 0).insertAfter(node)
        self.drops[node].addInput(value)


# Their outputs are looked up again, or are expensive: they go through a register.
_NEVER_INLINE = {"prim::Param", "prim::Constant", "prim::TensorExprGroup", "prim::CudaFusionGroup", "prim::FusionGroup"}


def can_emit_inline(graph):
    """The nodes whose only output is used once, by the next node, in the order of the stack."""
    inline = set()

    def scan_block(block):
        for node in [*block.nodes(), block.returnNode()][::-1]:
            scan_node(node)

    def scan_node(node):
        if node in inline:
            return None
        for block in node.blocks():
            scan_block(block)
        candidate = _previous_non_constant(node)
        for value in reversed(node.inputs()):
            if value.node() is candidate and _once(value):
                inputs_begin = scan_node(candidate)
                inline.add(candidate)
                candidate = inputs_begin
        return candidate

    scan_block(graph.block())
    return inline


def _previous_non_constant(node):
    node = node.prev()
    while node.kind() == "prim::Constant":
        node = node.prev()
    return node


def _once(value):
    node = value.node()
    return node.kind() not in _NEVER_INLINE and node.outputsSize() == 1 and len(value.uses()) == 1 and not node.blocks()
