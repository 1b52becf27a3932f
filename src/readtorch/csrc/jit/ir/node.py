"""One operation of a graph.

In PyTorch: `struct Node` in `torch/csrc/jit/ir/ir.h`. Explained in the chapter "JIT: scripting".
"""

from .attributes import Attributes
from .constants import constant_value
from .printer import node_text
from .side_effects import has_side_effects, is_nondeterministic
from .type import NoneType, OptionalType
from .value import Use, Value


class Node(Attributes):
    """kind: what it does, such as "aten::add" or "prim::If"; inputs and outputs: Values; blocks: for control
    flow.

    The nodes of a block are a doubly linked list, closed by the block's return node. `Graph.create` makes a
    node, which is in no block until it is inserted.
    """

    __slots__ = (
        "_graph",
        "_kind",
        "_inputs",
        "_outputs",
        "_blocks",
        "_attributes",
        "_block",
        "_prev",
        "_next",
        "_position",
        "_range",
        "_scope",
        "_callstack",
        "_operator",
        "__weakref__",
    )

    def __init__(self, graph, kind, inputs=(), num_outputs=1):
        self._graph = graph
        self._kind = kind
        self._inputs = []
        self._outputs = []
        self._blocks = []
        self._attributes = {}
        self._block = self._prev = self._next = None  # its block and neighbours there
        self._position = 0  # its rank in the block, see Block.ranks
        self._range = graph.current_range  # SourceRange, or None
        self._scope = graph.current_scope
        self._callstack = ()  # InlinedCalls, outermost first
        self._operator = None  # the one whose schema it matches, once asked
        for value in inputs:
            self.addInput(value)
        for _ in range(num_outputs):
            self.addOutput()

    def kind(self):
        return self._kind

    def owningGraph(self):
        return self._graph

    def owningBlock(self):
        return self._block

    # ------------------------------------------------------------------------------------ inputs

    def inputs(self):
        return list(self._inputs)

    def input(self, which=None):
        """The only input, or number `which`, or the one that the schema calls `which`."""
        if isinstance(which, str):
            return self.namedInput(which)
        if which is None:
            (only,) = self._inputs
            return only
        return self._inputs[which]

    inputsAt = input

    def inputsSize(self):
        return len(self._inputs)

    def namedInput(self, name):
        """The input that the schema calls `name`."""
        index = self.getSchema().argument_index(name)
        if index is None:
            raise RuntimeError(f"Couldn't find an argument called {name}")
        return self._inputs[index]

    def hasNamedInput(self, name):
        schema = self.maybeSchema()
        return schema is not None and schema.argument_index(name) is not None

    def addInput(self, value):
        self._operator = None
        value._uses.append(Use(self, len(self._inputs)))
        self._inputs.append(value)
        return value

    def insertInput(self, i, value):
        """Put `value` before input `i`."""
        tail = self._inputs[i:]
        for _ in tail:
            self.removeInput(len(self._inputs) - 1)
        for v in [value, *tail]:
            self.addInput(v)
        return value

    def replaceInput(self, i, value):
        """Let input `i` be `value`; returns what it was."""
        self._operator = None
        old = self._inputs[i]
        old._uses.remove(Use(self, i))
        self._inputs[i] = value
        value._uses.append(Use(self, i))
        return old

    def replaceInputWith(self, old, new):
        """Use `new` wherever this node uses `old`."""
        for i, value in enumerate(self._inputs):
            if value is old:
                self.replaceInput(i, new)

    def removeInput(self, i):
        """Drop input `i`; those after it move up."""
        self._operator = None
        rest = self._inputs[i:]
        for offset, value in enumerate(rest, i):
            value._uses.remove(Use(self, offset))
        del self._inputs[i:]
        for value in rest[1:]:
            self.addInput(value)

    def removeAllInputs(self):
        self._operator = None
        for offset, value in enumerate(self._inputs):
            value._uses.remove(Use(self, offset))
        self._inputs = []

    # ----------------------------------------------------------------------------------- outputs

    def outputs(self):
        return list(self._outputs)

    def output(self):
        """The only output."""
        (only,) = self._outputs
        return only

    def outputsAt(self, i):
        return self._outputs[i]

    def outputsSize(self):
        return len(self._outputs)

    def hasUses(self):
        return any(o._uses for o in self._outputs)

    def addOutput(self):
        self._operator = None
        self._outputs.append(Value(self, len(self._outputs)))
        return self._outputs[-1]

    def insertOutput(self, i):
        self._outputs.insert(i, Value(self, i))
        self._number_outputs()
        return self._outputs[i]

    def eraseOutput(self, i):
        """Drop output `i`, which nothing may use."""
        value = self._outputs[i]
        if value._uses:
            raise RuntimeError(f"cannot erase output {value.debugName()}: it is used")
        value.setDebugName("")
        del self._outputs[i]
        self._number_outputs()

    def _number_outputs(self):
        for i, value in enumerate(self._outputs):
            value._offset = i

    def replaceAllUsesWith(self, other):
        """What used this node's outputs uses those of `other`."""
        for mine, its in zip(self._outputs, other._outputs):
            mine.replaceAllUsesWith(its)

    # ------------------------------------------------------------------------------------ blocks

    def blocks(self):
        return list(self._blocks)

    def addBlock(self):
        from .block import Block  # blocks are made of nodes

        self._blocks.append(Block(self._graph, self))
        return self._blocks[-1]

    def eraseBlock(self, i):
        self._blocks.pop(i).destroy()

    def findNode(self, kind, recurse=True):
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True):
        """All nodes of a kind in its blocks; recurse: in blocks inside these too."""
        return [n for block in self._blocks for n in block.findAllNodes(kind, recurse)]

    # ------------------------------------------------------------------------------------- position

    def next(self):
        return self._next

    def prev(self):
        return self._prev

    def insertBefore(self, other):
        """Insert this node, which is in no block, before `other`."""
        other._block.link(self, other._prev, other)
        return self

    def insertAfter(self, other):
        other._block.link(self, other, other._next)
        return self

    def moveBefore(self, other):
        self._block.unlink(self)
        return self.insertBefore(other)

    def moveAfter(self, other):
        self._block.unlink(self)
        return self.insertAfter(other)

    def destroy(self):
        """Remove it from the graph, with its blocks. Nothing may use its outputs."""
        while self._outputs:
            self.eraseOutput(len(self._outputs) - 1)
        while self._blocks:
            self.eraseBlock(len(self._blocks) - 1)
        self.removeAllInputs()
        if self._block is not None:
            self._block.unlink(self)

    def isBefore(self, other):
        """Whether it runs before `other`; a node of a nested block counts as the block's owner."""
        return self is not other and _order(self, other) < 0

    def isAfter(self, other):
        return self is not other and _order(self, other) > 0

    def isDominatedBy(self, dominator):
        """Whether it can only be reached after `dominator` has run: one of the blocks around it holds
        `dominator`, before.
        """
        node = self
        while node is not None:
            if node._block is dominator._block:
                return dominator.isBefore(node)
            node = node._block.owningNode()
        return False

    def blocks_from_root(self):
        """The nodes that own the blocks around it, outermost first, and itself."""
        chain, node = [], self
        while node is not None:
            chain.append(node)
            node = node._block.owningNode()
        return chain[::-1]

    # ------------------------------------------------------------------------------------ origin

    def sourceRange(self):
        """Where in the program it comes from; None if unknown. `str` of it in PyTorch: `highlight()` here."""
        return self._range

    def setSourceRange(self, range):
        self._range = range
        return self

    def scope(self):
        return self._scope

    def setScope(self, scope):
        self._scope = scope
        return self

    def scopeName(self):
        return self._scope.names_from_root()

    def callstack(self):
        """The calls around it that inlining has removed, outermost first."""
        return self._callstack

    def copyMetadata(self, other):
        """Take over range, scope and call stack."""
        self._range, self._scope, self._callstack = other._range, other._scope, other._callstack
        return self

    # ------------------------------------------------------------------------------------ meaning

    def maybeOperator(self):
        """The registered operator whose schema fits its inputs' types, or None."""
        if self._operator is None:
            from readtorch.csrc.jit.runtime.operator import find_operator

            self._operator = find_operator(self)
        return self._operator

    def maybeSchema(self):
        operator = self.maybeOperator()
        return operator and operator.schema

    def getOperator(self):
        """The same; raises RuntimeError where there is none."""
        operator = self.maybeOperator()
        if operator is None:
            from readtorch.csrc.jit.runtime.operator import missing_operator

            raise missing_operator(self)
        return operator

    def getSchema(self):
        return self.getOperator().schema

    def schema(self):
        """The text of its schema."""
        return str(self.maybeSchema() or "(no schema)")

    def matches(self, schema):
        """Whether it is the operator that `schema` (a text) spells."""
        operator = self.maybeOperator()
        return operator is not None and str(operator.schema) == schema

    def mustBeNone(self):
        if self._kind == "prim::AutogradZero" or (
            len(self._outputs) == 1 and isinstance(self._outputs[0]._type, NoneType)
        ):
            return True
        return (
            self._kind == "prim::Constant" and not self._attributes and isinstance(self._outputs[0]._type, OptionalType)
        )

    def isNondeterministic(self):
        return is_nondeterministic(self)

    def hasSideEffects(self):
        return has_side_effects(self)

    def constant_value(self):
        """Of a prim::Constant: its value."""
        return constant_value(self)

    def pyname(self):
        return self._attributes["name"][1]

    def pyobj(self):
        return self._attributes["function"][1]

    def str(self):
        return node_text(self)

    def __repr__(self):
        return self.str()


def _order(a, b):
    """Negative if `a` runs before `b`. Nodes of different blocks are compared by the blocks' owners."""
    if a._block is not b._block:
        chain_a, chain_b = a.blocks_from_root(), b.blocks_from_root()
        depth = next((i for i, (x, y) in enumerate(zip(chain_a, chain_b)) if x is not y), None)
        if depth is None:  # one is inside the other: the owner starts first
            return len(chain_a) - len(chain_b)
        a, b = chain_a[depth], chain_b[depth]
        if a._block is not b._block:  # two blocks of one node: the first block comes first
            blocks = a._block.owningNode()._blocks
            return blocks.index(a._block) - blocks.index(b._block)
    a._block.ranks()
    return a._position - b._position
