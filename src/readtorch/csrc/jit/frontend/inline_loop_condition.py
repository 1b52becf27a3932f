"""Moves the condition of a loop from a block of its own to where it is evaluated: before the loop and at the end of its body.

    before                                           after
    Loop(%iterations)                                <condition> -> %c
      block0(%i): <body>                             Loop(%iterations, %c)
      block1(): <condition> -> %c                      block0(%i): <body> <condition> -> %c1

In PyTorch: `torch/csrc/jit/frontend/inline_loop_condition.cpp`, `torch/csrc/jit/frontend/canonicalize_modified_loop.cpp`.
Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.type import IntType

FOREVER = 2**63 - 1


def inline_block_before(node, block):
    for inner in block.nodes():
        inner.moveBefore(node)


def InlineLoopCondition(graph):
    for node in graph.all_nodes():
        if node.kind() == "prim::Loop":
            body, condition = node.blocks()
            first = node.addBlock()
            first.cloneFrom(condition, lambda v: v)
            inline_block_before(node, first)
            node.insertInput(1, first.outputs()[0])
            node.eraseBlock(2)
            inline_block_before(body.returnNode(), condition)
            body.insertOutput(0, condition.outputs()[0])
            node.eraseBlock(1)


def CanonicalizeModifiedLoops(graph):
    """A loop that has both a number of iterations and a condition of its own counts its iterations itself, as a Python
    `while` would.

    That is what a `break` makes of a `for`.
    """
    for node in graph.all_nodes():
        if node.kind() == "prim::Loop" and _is_modified(node):
            _canonicalize(graph, node)


def _is_modified(node):
    """Whether it is neither a `for` (condition always true) nor a `while` (iterations without limit)."""
    goes_on = node.blocks()[0].outputs()[0].toIValue() is True and node.input(1).toIValue() is True
    return not goes_on and node.input(0).toIValue() != FOREVER


def _canonicalize(graph, node):
    body, iterations = node.blocks()[0], node.input(0)
    with graph.insert_point_guard(node):
        zero, one = graph.insertConstant(0), graph.insertConstant(1)
        condition = graph.insert("aten::gt", [iterations, zero])
        node.replaceInput(0, graph.insertConstant(FOREVER))
        if node.input(1).toIValue() is not True:
            condition = graph.insert("aten::__and__", [condition, node.input(1)])
        node.replaceInput(1, condition)
    node.addOutput().setType(IntType.get())
    with graph.insert_point_guard(body):
        node.addInput(zero)
        iteration = body.addInput().setType(IntType.get())
        body.inputs()[0].setDebugName("").replaceAllUsesWith(iteration)
        following = graph.insert("aten::add", [iteration, one])
        body.registerOutput(following)
        more = graph.insert("aten::lt", [following, iterations])
        go_on = graph.insert("aten::__and__", [more, body.outputs()[0]])
        body.replaceOutput(0, go_on)
