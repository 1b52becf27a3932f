"""Which nodes are written inside the expression that uses them.

The text is evaluated from left to right. So the last input may be written inside if its node stands right in
front of the user, the one before if its node stands in front of that one, and so on: the nodes are walked
backwards beside the inputs.

In PyTorch: `PythonPrintImpl::scanBlock` in `torch/csrc/jit/serialization/python_print.cpp`.
"""


def inlined_nodes(block):
    """The nodes of a block, and of the blocks inside, that need no statement."""
    scan = _Scan()
    scan.block(block)
    return scan.inlined


class _Scan:
    def __init__(self):
        self.inlined = set()

    def block(self, block):
        self.node(block.returnNode())
        for node in reversed(block.nodes()):
            self.node(node)

    def node(self, node):
        """Returns the node in front of everything that is written inside `node`."""
        if node in self.inlined:
            return node
        for inner in node.blocks():
            self.block(inner)
        point = _previous(node)
        for value in reversed(node.inputs()):
            point = self.value(point, value)
        return point

    def value(self, point, value):
        node = value.node()
        if node is point and _may_stand_inside(value):
            point = self.node(point)
            self.inlined.add(node)
        elif node.kind() == "prim::Constant":
            self.inlined.add(node)
        return point


def _previous(node):
    node = node.prev()
    while node.kind() == "prim::Constant":
        node = node.prev()
    return node


_TASKS = ("prim::fork", "prim::rpc_async", "prim::rpc_sync", "prim::rpc_remote")


def _may_stand_inside(value):
    node, uses = value.node(), value.uses()
    if node.outputsSize() != 1 or len(uses) != 1 or node.blocks():
        return False
    user, offset = uses[0].user, uses[0].offset
    if value.hasDebugName() and user.kind() != "prim::Return":
        return False  # it was a variable
    if user.kind() == "prim::Loop" and offset >= 2:
        return False  # carried: the number of turns and the condition must come behind it
    # An isinstance in a condition would refine types again, which the graph has done already.
    return user.kind() not in _TASKS and node.kind() != "prim::isinstance"
