"""Replaces calls by the body of what they call.

    before                                                           after
    %f : Function = prim::Constant[name="double"]()                  %1 : int = prim::Constant[value=2]()
    %y : Tensor = prim::CallFunction(%f, %x)                         %y : Tensor = aten::mul(%x, %1)

In PyTorch: `torch/csrc/jit/passes/inliner.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.scope import InlinedCall
from readtorch.csrc.jit.ir.type import ClassType

from .constant_pooling import ConstantPooling
from .constant_propagation import ConstantPropagationImmutableTypes
from .peephole import PeepholeOptimize


def Inline(graph):
    """Inlines every call of a function or method whose graph is known, and the calls inside of it."""
    _inline_block(graph.block())


def inlined(graph):
    """A copy of `graph` in which every call is inlined."""
    copy = graph.copy()
    Inline(copy)
    return copy


def _inline_block(block):
    for node in block.nodes():
        if node.kind() == "prim::CallFunction":
            constant = node.input(0)
            inline_call(node, constant.type().function, node.inputs()[1:])
            if not constant.uses():
                constant.node().destroy()
        elif node.kind() == "prim::CallMethod" and isinstance(node.input(0).type(), ClassType):
            inline_call(node, node.input(0).type().getMethod(node.s("name")), node.inputs())
        else:
            for inner in node.blocks():
                _inline_block(inner)


def preoptimized(graph):
    """What is inlined: a copy in which every call is inlined, tidied with what is known without any input."""
    copy = inlined(graph)
    PeepholeOptimize(copy, disable_shape_peepholes=True)
    ConstantPropagationImmutableTypes(copy)
    ConstantPooling(copy)
    return copy


def inline_call(call, function, inputs):
    """Replace `call` by the body of `function`, itself inlined."""
    graph = call.owningGraph()
    body = preoptimized(function.graph)
    first = call.prev()
    with graph.insert_point_guard(call):
        outputs = graph.insertGraph(body, inputs)
    _note_origin(first.next(), call, function)
    for old, new in zip(call.outputs(), outputs):
        _pass_on_name(old, new, inputs)
        old.replaceAllUsesWith(new)
    call.destroy()


def _pass_on_name(old, new, inputs):
    """The result keeps the name it had at the call, and a type that the caller knows better."""
    if old.hasDebugName() and new not in inputs and new.node().kind() != "prim::Param":
        new.setDebugName(old.debugName())


def _note_origin(node, call, function):
    """The nodes from `node` up to `call` came from `function`, called there: for tracebacks and scopes."""
    entry = InlinedCall(function.name, call.sourceRange(), _module_of(call))
    while node is not call:
        _note_one(node, call, entry)
        node = node.next()


def _note_one(node, call, entry):
    node._callstack = (*call.callstack(), entry, *node.callstack())
    for block in node.blocks():
        for inner in block.nodes():
            _note_one(inner, call, entry)


def _module_of(call):
    if call.kind() != "prim::CallMethod":
        return None
    value = call.input(0)
    path = value.node().s("name") if value.node().kind() == "prim::GetAttr" else "self"
    return f"{path}({value.type().name()})"
