"""A list of nodes with inputs and outputs: the body of a graph, a branch of an If, the body of a Loop.

In PyTorch: `struct Block` in `torch/csrc/jit/ir/ir.h`. Explained in the chapter "JIT: scripting".
"""

from .node import Node

_LAST = float("inf")


class Block:
    """Its inputs are the outputs of its param node, its outputs the inputs of its return node.

    The two close the ring of nodes: param node, first … last, return node, param node.
    """

    __slots__ = ("_graph", "_owner", "_param", "_return", "_ranked", "__weakref__")

    def __init__(self, graph, owner=None):
        self._graph = graph
        self._owner = owner
        self._param = Node(graph, "prim::Param", (), 0)
        self._return = Node(graph, "prim::Return", (), 0)
        self._param._block = self._return._block = self
        self._param._next = self._param._prev = self._return
        self._return._next = self._return._prev = self._param
        self._param._position, self._return._position = -1, _LAST
        self._ranked = True  # whether every node's `_position` is its rank

    def owningGraph(self):
        return self._graph

    def owningNode(self):
        """The node that this is a block of; None for a graph's own block."""
        return self._owner

    def paramNode(self):
        return self._param

    def returnNode(self):
        return self._return

    param_node, return_node = paramNode, returnNode

    # ------------------------------------------------------------------------------- inputs, outputs

    def inputs(self):
        return self._param.outputs()

    def outputs(self):
        return self._return.inputs()

    def addInput(self, name=""):
        return self._param.addOutput().setDebugName(name)

    addInputToBlock = addInput

    def insertInput(self, i, name=""):
        return self._param.insertOutput(i).setDebugName(name)

    def eraseInput(self, i):
        self._param.eraseOutput(i)

    def registerOutput(self, value):
        """Make `value` the next output; returns its number."""
        self._return.addInput(value)
        return self._return.inputsSize() - 1

    def insertOutput(self, i, value):
        self._return.insertInput(i, value)

    def eraseOutput(self, i):
        self._return.removeInput(i)

    def replaceOutput(self, i, value):
        self._return.replaceInput(i, value)

    # ----------------------------------------------------------------------------------------- nodes

    def nodes(self):
        """Its nodes in order, as a list: they may be moved and destroyed while it is walked."""
        found, node = [], self._param._next
        while node is not self._return:
            found.append(node)
            node = node._next
        return found

    def all_nodes(self):
        """Its nodes and those of the blocks inside, in order."""
        for node in self.nodes():
            yield node
            for block in node._blocks:
                yield from block.all_nodes()

    def findNode(self, kind, recurse=True):
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind, recurse=True):
        return [n for n in (self.all_nodes() if recurse else self.nodes()) if n._kind == kind]

    def appendNode(self, node):
        self.link(node, self._return._prev, self._return)
        return node

    def prependNode(self, node):
        self.link(node, self._param, self._param._next)
        return node

    def addNode(self, kind, inputs):
        """A new node at the end."""
        return self.appendNode(self._graph.create(kind, inputs))

    def link(self, node, before, after):
        """Put `node` between two neighbours."""
        if node._block is not None:
            raise RuntimeError("the node is already in a block")
        node._block, node._prev, node._next = self, before, after
        before._next = after._prev = node
        if after is self._return:
            node._position = before._position + 1
        else:
            self._ranked = False

    def unlink(self, node):
        node._prev._next, node._next._prev = node._next, node._prev
        node._block = node._prev = node._next = None
        if self._graph._insert_before is node:
            self._graph._insert_before = self._graph._block._return

    def ranks(self):
        """Number the nodes anew if one was inserted between others."""
        if not self._ranked:
            for rank, node in enumerate(self.nodes()):
                node._position = rank
            self._ranked = True

    def destroy(self):
        self._return.removeAllInputs()
        for node in reversed(self.nodes()):
            node.destroy()
        for value in self._param.outputs():
            value.setDebugName("")

    # ----------------------------------------------------------------------------------------- copies

    def cloneFrom(self, source, value_of):
        """Append copies of `source`'s inputs, nodes and outputs. value_of: for values from outside of it."""
        own = {}

        def copy_of(value):
            return own[value] if value in own else value_of(value)

        for value in source._param._outputs:
            own[value] = self.addInput().copyMetadata(value)
        for node in source.nodes():
            copy = self.appendNode(self._graph.createClone(node, copy_of))
            for old, new in zip(node._outputs, copy._outputs):
                own[old] = new.copyMetadata(old)
        for value in source._return._inputs:
            self.registerOutput(copy_of(value))
        return own
