"""Removes nodes without a use or a visible effect.

    before                                           after
    %1 : Tensor = aten::relu(%x)                     %1 : Tensor = aten::relu(%x)
    %2 : Tensor = aten::neg(%x)                      return (%1)
    return (%1)

In PyTorch: `torch/csrc/jit/passes/dead_code_elimination.cpp`. Explained in the chapter "JIT: scripting".
"""


def EliminateDeadCode(graph_or_block, keep_writes=True):
    """Marks from the outputs backwards what is needed, then removes the rest, also outputs of If and Loop
    nodes.

    A node stays if something that stays uses it, or if it does more than compute: it prints, raises, writes
    in place.
    """
    block = graph_or_block if hasattr(graph_or_block, "paramNode") else graph_or_block.block()
    marker = _Marker(keep_writes)
    marker.mark_block(block)
    _sweep(block, marker)


class _Marker:
    def __init__(self, keep_writes):
        self.keep_writes = keep_writes
        self.nodes = set()
        self.values = set()

    def mark_block(self, block):
        """Mark what the block's outputs need, and what must run in it."""
        self.use_all(block.returnNode().inputs())
        for node in reversed(block.nodes()):
            self.visit(node)

    def visit(self, node):
        """Later nodes have been visited: whether an output is used is known. Around a loop more may become
        known, so nodes with blocks are visited again.
        """
        if (node in self.nodes and not node.blocks()) or not (
            self.must_run(node) or any(o in self.values for o in node.outputs())
        ):
            return
        self.nodes.add(node)
        if node.kind() == "prim::Loop":
            self.mark_loop(node)
        elif node.kind() == "prim::If":
            self.use(node.input())
            for block in node.blocks():
                self.mark_branch(node, block)
        else:
            self.use_all(node.inputs())
            for block in node.blocks():
                self.mark_block(block)

    def mark_branch(self, node, block):
        for output, inner in zip(node.outputs(), block.outputs()):
            if output in self.values:
                self.use(inner)
        for inner in reversed(block.nodes()):
            self.visit(inner)

    def mark_loop(self, node):
        """A carried value is needed if it is used after the loop, or in its body; the body may need more of
        itself.
        """
        block = node.blocks()[0]
        self.use_all(node.inputs()[:2])
        self.use(block.outputs()[0])
        while True:
            before = len(self.values), len(self.nodes)
            for output, inner, carried, start in zip(
                node.outputs(), block.outputs()[1:], block.inputs()[1:], node.inputs()[2:]
            ):
                if output in self.values or carried in self.values:
                    self.use(inner)
                    self.use(start)
            for inner in reversed(block.nodes()):
                self.visit(inner)
            if before == (len(self.values), len(self.nodes)):
                return

    def use(self, value):
        self.values.add(value)

    def use_all(self, values):
        self.values.update(values)

    def must_run(self, node):
        return node.hasSideEffects() or (self.keep_writes and _writes(node))


def _writes(node):
    """Whether the node, or one inside, writes to a tensor or container."""
    if node.blocks():
        return any(_writes(inner) for block in node.blocks() for inner in block.nodes())
    if node.kind().startswith("prim::"):
        return node.kind() in ("prim::SetAttr", "prim::TracedModuleForward")
    schema = node.maybeSchema()
    return schema is not None and schema.is_mutable


def _sweep(block, marker):
    """Destroy, from the end, what was not marked. So whoever used a dead value is gone before the value
    goes.
    """
    for node in reversed(block.nodes()):
        if node not in marker.nodes:
            node.destroy()
        elif node.kind() == "prim::Loop":
            _sweep_loop(node, marker)
        else:
            if node.kind() == "prim::If":
                _drop_if_outputs(node)
            for inner in node.blocks():
                _sweep(inner, marker)


def _drop_if_outputs(node):
    for i in reversed(range(node.outputsSize())):
        if not node.outputsAt(i).uses():
            node.eraseOutput(i)
            for block in node.blocks():
                block.eraseOutput(i)


def _sweep_loop(node, marker):
    """Carried values without a use: first their outputs go, then the body's dead nodes, then their
    way in.
    """
    block = node.blocks()[0]
    dead = [
        i
        for i, output in enumerate(node.outputs())
        if output not in marker.values and block.inputs()[i + 1] not in marker.values
    ]
    for i in reversed(dead):
        block.eraseOutput(i + 1)
    _sweep(block, marker)
    for i in reversed(dead):
        node.removeInput(i + 2)
        block.eraseInput(i + 1)
        node.eraseOutput(i)
