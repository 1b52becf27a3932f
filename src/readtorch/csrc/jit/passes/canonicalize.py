"""Makes equal programs give equal graphs: values are renumbered, so that two graphs can be compared as text, and the outputs
of If and Loop nodes are ordered by their first use.

    before                                   after
    %y.3 : Tensor = aten::relu(%x)           %1 : Tensor = aten::relu(%0)

In PyTorch: `torch/csrc/jit/passes/canonicalize.cpp`.
"""

from functools import cmp_to_key

from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.node import _order


def Canonicalize(graph, keep_unique_names=False):
    """A copy of the graph whose values are numbered in order. keep_unique_names: names are kept."""
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


def CanonicalizeOutputs(graph):
    _block(graph.block())


def _block(block):
    for node in reversed(block.nodes()):  # the order of a node's outputs depends on what follows
        if node.kind() in ("prim::If", "prim::Loop"):
            order = _order_of_uses(node.outputs())
            (_permute_if if node.kind() == "prim::If" else _permute_loop)(node, order)
        for inner in node.blocks():
            _block(inner)


def _order_of_uses(values):
    """The indices of `values`, in the order of their first uses, those without a use last."""
    first = [_first_use(v) for v in values]

    def compare(i, j):
        if first[i] is None or first[j] is None:
            return (i - j) if first[i] is first[j] else (1 if first[i] is None else -1)
        return _compare_uses(first[i], first[j])

    return sorted(range(len(values)), key=cmp_to_key(compare))


def _compare_uses(a, b):
    return a.offset - b.offset if a.user is b.user else _order(a.user, b.user)


def _first_use(value):
    uses = value.uses()
    return min(uses, key=cmp_to_key(_compare_uses)) if uses else None


def _permute_outputs(node, order):
    old = node.outputs()
    for i in order:
        new = node.addOutput().setType(old[i].type())
        name = old[i].debugName() if old[i].hasDebugName() else ""
        old[i].setDebugName("")
        new.setDebugName(name)
        old[i].replaceAllUsesWith(new)
    for _ in old:
        node.eraseOutput(0)


def _permute_block_outputs(block, order, offset):
    values = block.outputs()
    for _ in order:
        block.eraseOutput(offset)
    for i in order:
        block.registerOutput(values[offset + i])


def _permute_if(node, order):
    if order == sorted(order):
        return
    _permute_outputs(node, order)
    for block in node.blocks():
        _permute_block_outputs(block, order, 0)


def _permute_loop(node, order):
    if order == sorted(order):
        return
    body, inputs = node.blocks()[0], node.inputs()
    _permute_outputs(node, order)
    _permute_block_outputs(body, order, 1)
    for _ in order:
        node.removeInput(2)
    for i in order:
        node.addInput(inputs[2 + i])
    _permute_inputs(body, order)


def _permute_inputs(body, order):
    old = body.inputs()[1:]
    for i in order:
        name = old[i].debugName() if old[i].hasDebugName() else ""
        old[i].setDebugName("")
        new = body.addInput(name).setType(old[i].type())
        old[i].replaceAllUsesWith(new)
    for _ in order:
        body.eraseInput(1)
