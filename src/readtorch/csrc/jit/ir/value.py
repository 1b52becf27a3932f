"""What a node makes and other nodes use.

In PyTorch: `struct Value` in `torch/csrc/jit/ir/ir.h`. Explained in the chapter "JIT: scripting".
"""

from typing import NamedTuple

from .type import NoneType, OptionalType, TensorType, UnionType


class Use(NamedTuple):
    """One use of a value: input number `offset` of the node `user`."""

    user: object
    offset: int


class Value:
    """One result of one node: assigned once, used any number of times.

    It has a number that no other value of the graph has, and perhaps a name. Names are unique too: giving a
    name that is taken renames the one who had it (`x` becomes `x.1`), so the latest is the one without a
    suffix.
    """

    __slots__ = ("_node", "_offset", "_unique", "_name", "_type", "_uses")

    def __init__(self, node, offset):
        self._node = node
        self._offset = offset
        self._unique = node._graph._next_unique
        node._graph._next_unique += 1
        self._name = ""
        self._type = TensorType.get()
        self._uses = []

    def node(self):
        """The node that makes it."""
        return self._node

    def offset(self):
        """Which of the node's outputs it is."""
        return self._offset

    def unique(self):
        return self._unique

    def owningGraph(self):
        return self._node._graph

    def uses(self):
        """Where it is used, as a list of Use."""
        return list(self._uses)

    def hasUses(self):
        return bool(self._uses)

    # ------------------------------------------------------------------------------------------ type

    def type(self):
        return self._type

    def setType(self, type):
        self._type = type
        for use in self._uses:
            use.user._operator = None  # another overload may fit now
        return self

    def setTypeAs(self, other):
        return self.setType(other._type)

    def inferTypeFrom(self, tensor):
        """Note all that is known of `tensor`."""
        return self.setType(TensorType.create_from_tensor(tensor))

    def isCompleteTensor(self):
        return isinstance(self._type, TensorType) and self._type.isComplete()

    def requires_grad(self):
        return isinstance(self._type, TensorType) and self._type.requires_grad()

    requiresGrad = requires_grad

    def mustBeNone(self):
        return isinstance(self._type, NoneType) or self._node.mustBeNone()

    def mustNotBeNone(self):
        t = self._type
        if self._node.kind() == "prim::AutogradAdd" or isinstance(t, (NoneType, OptionalType)):
            return False
        return not (isinstance(t, UnionType) and t.canHoldType(NoneType.get()))

    # ----------------------------------------------------------------------------------------- names

    def hasDebugName(self):
        return bool(self._name)

    def debugName(self):
        """Its name, else its number."""
        return self._name or str(self._unique)

    def debugNameBase(self):
        """The name without its numeric suffix."""
        base, _, suffix = self.debugName().rpartition(".")
        return base if base and suffix.isdigit() else self.debugName()

    def setDebugName(self, name):
        """Give it a name ("" takes it away). Raises RuntimeError for a number."""
        if name.isdigit():
            raise RuntimeError(f"Invalid name: '{name}'")
        names = self.owningGraph()._names
        if self._name:
            del names[self._name]
            self._name = ""
        if not name:
            return self
        previous = names.get(name)
        if previous is not None:
            previous.setDebugName(_free_name(self.owningGraph(), name))
        names[name] = self
        self._name = name
        return self

    def copyMetadata(self, other):
        """Take over the type and the name of a value of another graph."""
        self.setType(other._type)
        if other._name:
            self.setDebugName(other._name)
        return self

    # ------------------------------------------------------------------------------------------ uses

    def replaceAllUsesWith(self, value):
        """Every node that used this one uses `value` instead."""
        for use in self.uses():
            use.user.replaceInput(use.offset, value)

    def replaceAllUsesAfterNodeWith(self, node, value):
        """The same, for the uses that come after `node`."""
        for use in self.uses():
            if use.user.isAfter(node):
                use.user.replaceInput(use.offset, value)

    def replaceAllUsesDominatedByNodeWith(self, node, value):
        """The same, for the uses that can only be reached through `node`."""
        for use in self.uses():
            if use.user.isDominatedBy(node):
                use.user.replaceInput(use.offset, value)

    # ------------------------------------------------------------------------------------- constants

    def toIValue(self):
        """Its value, if a prim::Constant makes it; else None. `isConstant` distinguishes that from a constant
        None.
        """
        return self._node.constant_value() if self.isConstant() else None

    def isConstant(self):
        return self._node._kind == "prim::Constant"

    def __repr__(self):
        return f"{self.debugName()} defined in ({self._node})"


def _free_name(graph, name):
    """`x` -> `x.1`, `x.1` -> `x.2`, or the next suffix that is not in use in the graph."""
    base, _, suffix = name.rpartition(".")
    number = 1
    if base and suffix.isdigit():
        number = int(suffix)
    else:
        base = name
    if base in graph._suffixes:
        number = max(number, graph._suffixes[base] + 1)
    while f"{base}.{number}" in graph._names:
        number += 1
    graph._suffixes[base] = number + 1
    return f"{base}.{number}"
