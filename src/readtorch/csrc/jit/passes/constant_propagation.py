"""Computes now what can be computed now.

    before                                              after
    %1 : int = prim::Constant[value=2]()                %4 : int = prim::Constant[value=6]()
    %2 : int = prim::Constant[value=3]()                %5 : Tensor = aten::mul(%x, %4)
    %3 : int = aten::mul(%1, %2)
    %5 : Tensor = aten::mul(%x, %3)

An If whose condition is known is replaced by its branch, a Loop without iterations by its inputs.

In PyTorch: `torch/csrc/jit/passes/constant_propagation.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.ir.alias_analysis import AliasDb, isMutableType
from readtorch.csrc.jit.ir.node_hashing import node_key

from .dead_code_elimination import EliminateDeadCode

_SKIPPED = {
    "prim::If",
    "prim::Loop",
    "prim::Closure",
    "prim::Constant",
    "prim::AutogradZero",
    "prim::Uninitialized",
    "prim::Guard",
    "prim::profile",
    "prim::unchecked_unwrap_optional",
    "prim::unchecked_cast",
    "prim::isinstance",
    "prim::CreateObject",
    "prim::GetAttr",
    "prim::Enter",
    "prim::Exit",
}
_CONSTRUCTS = {
    "prim::ListConstruct": lambda node: list,
    "prim::TupleConstruct": lambda node: _tuple_maker(node),
    "prim::DictConstruct": lambda node: lambda values: dict(zip(values[::2], values[1::2])),
}
_UNPACKS = {"prim::TupleUnpack", "prim::ListUnpack"}


def ConstantPropagation(graph, immutable_types_only=False):
    """immutable_types_only: leave alone what has to do with tensors, lists and dicts."""
    propagator = _Propagator(graph, immutable_types_only)
    propagator.block(graph.block())
    if propagator.changed:
        EliminateDeadCode(graph)


def ConstantPropagationImmutableTypes(graph):
    ConstantPropagation(graph, immutable_types_only=True)


class _Propagator:
    def __init__(self, graph, immutable_types_only):
        self.graph = graph
        self.alias_db = AliasDb(graph)
        self.immutable_types_only = immutable_types_only
        self.changed = False

    def block(self, block):
        for node in block.nodes():
            if node.owningBlock() is not None:  # it may have gone with an If
                self.node(node)

    def node(self, node):
        if node.kind() == "prim::If":
            self.if_(node)
        elif node.kind() == "prim::Loop":
            self.loop(node)
        else:
            if self.is_known(node):
                self.replace(node, run_node(node))
            for block in node.blocks():
                self.block(block)

    def is_known(self, node):
        """Whether running the node now gives what every run would give, without a visible effect."""
        if node.kind() in _SKIPPED or node.blocks() or node.hasSideEffects() or node.isNondeterministic():
            return False
        if not node.outputs() or not all(v.isConstant() for v in node.inputs()):
            return False
        values = [*node.inputs(), *node.outputs()]
        if self.immutable_types_only and any(isMutableType(v.type()) for v in values):
            return False
        return not self.alias_db.hasWriters(node) and not self.escapes(node)

    def escapes(self, node):
        """A new list each time is not the same list each time, if the caller gets it."""
        containers = ("prim::ListConstruct", "prim::DictConstruct")
        return node.kind() in containers and any(self.alias_db.escapes(v) for v in node.outputs())

    def replace(self, node, results):
        """Constants instead of the node, if constants can hold the results."""
        if results is None:
            return
        with self.graph.insert_point_guard(node):
            for output, value in zip(node.outputs(), results):
                if isinstance(value, TensorImpl) and value.requires_grad:
                    continue
                constant = self.graph.insertConstant(
                    value, output.type() if not isinstance(value, TensorImpl) else None
                )
                constant.node().setSourceRange(node.sourceRange())
                output.replaceAllUsesWith(constant)
                self.changed = True

    # ----------------------------------------------------------------------------------- control flow

    def if_(self, node):
        if node.input().isConstant():
            block = node.blocks()[0 if node.input().toIValue() else 1]
            self.block(block)
            inline_block(node, block)
            self.changed = True
            return
        for block in node.blocks():
            self.block(block)
        self.same_in_both(node)

    def same_in_both(self, node):
        """An output that is the same value on both sides needs no If."""
        for i in reversed(range(node.outputsSize())):
            first, second = (block.outputs()[i] for block in node.blocks())
            if first is not second and not _same_constant(first, second):
                continue
            self.changed = True
            if first.node().owningBlock() in node.blocks():
                first.node().moveBefore(node)
            node.outputsAt(i).replaceAllUsesWith(first)
            node.eraseOutput(i)
            for block in node.blocks():
                block.eraseOutput(i)

    def loop(self, node):
        trips, condition = node.input(0).toIValue(), node.input(1)
        never = (condition.isConstant() and not condition.toIValue()) or (isinstance(trips, int) and trips < 1)
        if never:
            for output, start in zip(node.outputs(), node.inputs()[2:]):
                output.replaceAllUsesWith(start)
            node.destroy()
            self.changed = True
            return
        self.unchanged(node)
        self.block(node.blocks()[0])

    def unchanged(self, node):
        """What every iteration of a loop passes on unchanged need not be carried."""
        block = node.blocks()[0]
        for i in reversed(range(node.outputsSize())):
            carried = block.inputs()[i + 1]
            if block.outputs()[i + 1] is carried:
                self.changed = True
                start = node.input(i + 2)
                node.outputsAt(i).replaceAllUsesWith(start)
                carried.replaceAllUsesWith(start)
                node.eraseOutput(i)
                node.removeInput(i + 2)
                block.eraseOutput(i + 1)
                block.eraseInput(i + 1)


def _same_constant(a, b):
    return a.isConstant() and b.isConstant() and node_key(a.node()) == node_key(b.node())


def inline_block(node, block):
    """Replace an If by the nodes of one of its blocks."""
    for inner in block.nodes():
        inner.moveBefore(node)
    for output, value in zip(node.outputs(), block.outputs()):
        output.replaceAllUsesWith(value)
    node.destroy()


def run_node(node):
    """The values of a node's outputs, its inputs being constants; None if it raises."""
    try:
        return evaluate(node, [v.toIValue() for v in node.inputs()])
    except Exception:
        return None  # the program will raise it when it comes there


def evaluate(node, values):
    """The values of a node's outputs; `values` are those of its inputs. None if no operator fits."""
    if node.kind() in _CONSTRUCTS:
        return [_CONSTRUCTS[node.kind()](node)(values)]
    if node.kind() in _UNPACKS:
        return list(values[0])
    operator = node.maybeOperator()
    if operator is None:
        return None
    result = operator.operation(node)(*values)
    return [result] if node.outputsSize() == 1 else list(result)


def _tuple_maker(node):
    from readtorch.csrc.jit.runtime.interpreter import named_tuple_class

    type = node.output().type()
    return named_tuple_class(type)._make if type.fields is not None else tuple
