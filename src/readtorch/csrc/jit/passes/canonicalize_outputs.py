"""Orders the outputs of If and Loop nodes by where they are used first, so that equal programs give equal
graphs.

In PyTorch: `CanonicalizeOutputs` in `torch/csrc/jit/passes/canonicalize.cpp`.
"""

from functools import cmp_to_key

from ..ir.node import _order


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
    """The indices of `values`, those that are used first in front, those without a use last."""
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
