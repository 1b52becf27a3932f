"""Which values may share memory, and which of them are written to.

Coarser than PyTorch's: every value belongs to one set, and what is in a container is in the container's set.
All inputs of the graph, what comes out of attributes and what is put into containers by operators is in one
set, the *wildcard*.

In PyTorch: `torch/csrc/jit/ir/alias_analysis.cpp`. Explained in the chapter "JIT:
scripting".
"""

from .type import (
    AnyType,
    ClassType,
    DictType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    UnionType,
    VarType,
)

_MAKES_CONTAINER = {"prim::ListConstruct", "prim::DictConstruct", "prim::TupleConstruct"}
_PASSES_ON = _MAKES_CONTAINER | {
    "prim::ListUnpack",
    "prim::TupleUnpack",
    "prim::TupleIndex",
    "prim::TupleSlice",
    "prim::unchecked_cast",
    "prim::unchecked_unwrap_optional",
    "prim::GetAttr",
    "prim::TensorExprGroup",
    "prim::profile",
}
# What they call may do anything with what it is given.
_OPAQUE = {
    "prim::CallFunction",
    "prim::CallMethod",
    "prim::PythonOp",
    "prim::fork",
    "aten::wait",
    "prim::Enter",
    "prim::Exit",
    "prim::SetAttr",
}


def isMutableType(type):
    """Whether a value of this type can be written to, or holds something that can."""
    if isinstance(type, (TensorType, ListType, DictType, ClassType, InterfaceType, FutureType, AnyType, VarType)):
        return True
    if isinstance(type, (TupleType, UnionType, OptionalType)):
        return any(map(isMutableType, type.containedTypes()))
    return False


class AliasDb:
    """The sets of a graph's values, as it was when this was made."""

    def __init__(self, graph):
        self.graph = graph
        self.parent = {}  # value -> another of its set
        self.wildcard = object()
        self.writes = {}  # node -> the values that it writes to
        for value in graph.inputs():
            self.join(value, self.wildcard)
        self.visit_block(graph.block())
        self.written = {self.root(v) for values in self.writes.values() for v in values}

    # ----------------------------------------------------------------------------------------------- sets

    def root(self, value):
        while value in self.parent:
            value = self.parent[value]
        return value

    def join(self, a, b):
        """`a` and `b` may share memory, if they can be written to at all."""
        if any(v is not self.wildcard and not isMutableType(v.type()) for v in (a, b)):
            return
        a, b = self.root(a), self.root(b)
        if a is not b:
            self.parent[a] = b

    def join_all(self, values):
        mutable = [v for v in values if isMutableType(v.type())]
        for a, b in zip(mutable, mutable[1:]):
            self.join(a, b)

    # ------------------------------------------------------------------------------------------ the graph

    def visit_block(self, block):
        for node in block.nodes():
            self.visit(node)

    def visit(self, node):
        for block in node.blocks():
            self.visit_block(block)
        kind = node.kind()
        if kind == "prim::If":
            for i, output in enumerate(node.outputs()):
                for block in node.blocks():
                    self.join(output, block.outputs()[i])
        elif kind == "prim::Loop":
            block = node.blocks()[0]
            for group in zip(node.inputs()[2:], block.inputs()[1:], block.outputs()[1:], node.outputs()):
                self.join_all(group)
        elif kind in _OPAQUE:
            self.visit_opaque(node)
        elif kind in _PASSES_ON:
            self.join_all([*node.inputs(), *node.outputs()])
        elif kind not in ("prim::Constant", "prim::Uninitialized", "prim::CreateObject"):
            self.visit_operator(node)

    def visit_opaque(self, node):
        values = [v for v in [*node.inputs(), *node.outputs()] if isMutableType(v.type())]
        for value in values:
            self.join(value, self.wildcard)
        self.writes[node] = values

    def visit_operator(self, node):
        schema = node.maybeSchema()
        if schema is None:
            self.visit_opaque(node)
            return
        sets = {}
        for argument, value in zip(schema.arguments, node.inputs()):
            alias = argument.alias_info
            if alias is None:
                continue
            if alias.writes:
                self.writes.setdefault(node, []).append(value)
            if "*" in alias.after:
                self.join(value, self.wildcard)
                self.join_all([value, *[v for v in node.inputs() if v is not value]])
            for name in alias.before:
                sets[name] = value
        for result, value in zip(schema.returns, node.outputs()):
            for name in result.alias_info.before if result.alias_info else ():
                if name == "*":
                    self.join_all([value, *node.inputs()])
                elif name in sets:
                    self.join(value, sets[name])

    # -------------------------------------------------------------------------------------------- queries

    def mayAlias(self, a, b):
        return isMutableType(a.type()) and isMutableType(b.type()) and self.root(a) is self.root(b)

    def hasWriters(self, thing):
        """Whether a value, or any input or output of a node, is written to somewhere in the graph."""
        values = [*thing.inputs(), *thing.outputs()] if hasattr(thing, "outputs") else [thing]
        return any(isMutableType(v.type()) and self.root(v) in self.written for v in values)

    def isMutable(self, node):
        """Whether the node writes to something."""
        return node in self.writes

    def isWildcard(self, value):
        return isMutableType(value.type()) and self.root(value) is self.root(self.wildcard)

    def writesToAlias(self, node, values):
        """Whether the node writes to what one of `values` may share memory with."""
        roots = {self.root(v) for v in values}
        return any(self.root(v) in roots for v in self.writes.get(node, ()))

    def safeToChangeAliasingRelationship(self, a, b):
        """Whether `b` may stand for `a`: nobody writes to either, and the caller, who may write later, does not get both."""
        return not (self.hasWriters(a) or self.hasWriters(b) or (self.escapes(a) and self.escapes(b)))

    def escapes(self, value):
        outputs = {self.root(v) for v in self.graph.outputs() if isMutableType(v.type())}
        return isMutableType(value.type()) and self.root(value) in outputs
