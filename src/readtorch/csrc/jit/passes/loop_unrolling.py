"""Repeats the body of a loop, so that other passes see several iterations at once.

    before                                           after
    prim::Loop(%n, %true, %x)                        prim::Loop(%n // 8, %true, %0, %x)
      block0(%i, %t):                                  block0(%unused, %i, %t):
        %t1 = aten::mul(%t, %i)                          %t1 = aten::mul(%t, %i)
        -> (%true, %t1)                                  %i1 = aten::add(%i, 1)
                                                         %t2 = aten::mul(%t1, %i1)   … eight times
                                                         -> (%true, %i8, %t8)
                                                     prim::Loop(%n - %n // 8 * 8, %true, …)   the rest

In PyTorch: `torch/csrc/jit/passes/loop_unrolling.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.type import IntType

from .dead_code_elimination import EliminateDeadCode

FACTOR = 8  # iterations in one
MAX_BODY_SIZE = 32  # nodes of a body that is repeated
MAX_BODY_REPEATS = 64  # iterations of a loop that is unrolled completely
NOT_EXECUTED = ("prim::Constant", "prim::profile", "prim::profile_ivalue")


def UnrollLoops(graph):
    """Loops that count, and whose body is small. Returns whether there were any."""
    return _unroll(graph, constant_only=False)


def UnrollConstantLoops(graph):
    """Only those whose number of iterations is known."""
    return _unroll(graph, constant_only=True)


def _unroll(graph, constant_only):
    changed = _unroll_block(graph.block(), constant_only)
    if changed:
        EliminateDeadCode(graph)
    return changed


def _unroll_block(block, constant_only):
    changed = False
    for node in block.nodes():
        for inner in node.blocks():
            changed |= _unroll_block(inner, constant_only)
        if node.kind() == "prim::Loop" and is_for_loop(node):
            iterations = node.input(0).toIValue()
            if isinstance(iterations, int) and iterations < MAX_BODY_REPEATS and _is_small(node.blocks()[0]):
                _count_explicitly(node)
                _unroll_completely(node, iterations)
                changed = True
            elif not constant_only and not isinstance(iterations, int) and _is_small(node.blocks()[0]):
                _count_explicitly(node)
                _unroll_by_factor(node)
                changed = True
    return changed


def is_for_loop(node):
    """A loop that nothing but its count ends: both conditions are constantly true."""
    conditions = node.input(1), node.blocks()[0].outputs()[0]
    return all(c.isConstant() and c.toIValue() is True for c in conditions)


def _is_small(block):
    """The nodes of inner blocks count, too, and of each block the return; constants do not."""
    return _size(block) <= MAX_BODY_SIZE


def _size(block):
    executed = sum(1 for node in block.nodes() if node.kind() not in NOT_EXECUTED)
    return executed + 1 + sum(_size(inner) for node in block.nodes() for inner in node.blocks())


def _append_body(source, target, inputs):
    """Append copies of the nodes of a body to the block `target`; returns the values of its outputs."""
    graph = target.owningGraph()
    own = dict(zip(source.inputs(), inputs))

    def copy_of(value):
        return own.get(value, value)

    for node in source.nodes():
        copy = target.appendNode(graph.createClone(node, copy_of))
        for old, new in zip(node.outputs(), copy.outputs()):
            own[old] = new.copyMetadata(old)
    return [copy_of(value) for value in source.outputs()]


def _unroll_completely(loop, iterations):
    """All iterations one after another, instead of the loop."""
    body = loop.blocks()[0]
    carried = loop.inputs()[2:]
    scratch = loop.addBlock()
    for _ in range(iterations):
        carried = _append_body(body, scratch, [body.inputs()[0], *carried])[1:]
    for node in scratch.nodes():
        node.moveBefore(loop)
    for output, value in zip(loop.outputs(), carried):
        output.replaceAllUsesWith(value)
    loop.destroy()


def _count_explicitly(loop):
    """If the body reads the number of the iteration, that becomes a carried value, which the body increases."""
    graph, body = loop.owningGraph(), loop.blocks()[0]
    if not body.inputs()[0].uses():
        return
    with graph.insert_point_guard(loop):
        zero = graph.insertConstant(0)
    counter = body.insertInput(1).setType(IntType.get())
    body.inputs()[0].replaceAllUsesWith(counter)
    with graph.insert_point_guard(body):
        following = graph.insert("aten::add", [counter, 1])
    body.insertOutput(1, following)
    loop.insertInput(2, zero)
    loop.insertOutput(0).setType(IntType.get())


def _unroll_by_factor(loop):
    """FACTOR iterations in one, and a second loop for the rest."""
    graph = loop.owningGraph()
    rest = graph.createClone(loop, lambda value: value).insertAfter(loop)
    for i, (output, of_rest) in enumerate(zip(loop.outputs(), rest.outputs())):
        output.replaceAllUsesWith(of_rest)
        rest.replaceInput(i + 2, output)
        if output.hasDebugName():
            of_rest.setDebugName(output.debugName())
    _repeat_body(loop)
    with graph.insert_point_guard(loop):
        count = loop.input(0)
        iterations = graph.insert("aten::__round_to_zero_floordiv", [count, FACTOR])
        left = graph.insert("aten::sub", [count, graph.insert("aten::mul", [iterations, FACTOR])])
    loop.replaceInput(0, iterations)
    rest.replaceInput(0, left)


def _repeat_body(loop):
    body, longer = loop.blocks()[0], loop.addBlock()
    carried = [longer.addInput().copyMetadata(value) for value in body.inputs()]
    first, carried = carried[0], carried[1:]
    for _ in range(FACTOR):
        outputs = _append_body(body, longer, [first, *carried])
        carried = outputs[1:]
    for value in outputs:
        longer.registerOutput(value)
    loop.eraseBlock(0)
