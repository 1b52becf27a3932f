"""A program: a block of nodes, and how new ones are put into it.

In PyTorch: `struct Graph` in `torch/csrc/jit/ir/ir.h`. Explained in the chapter "JIT: scripting".
"""

from readtorch.c10 import scalar_type
from readtorch.c10.device import device as Device

from .block import Block
from .constants import insert_constant
from .lint import lint
from .node import Node
from .printer import graph_text
from .scope import Scope
from .type import BoolType, DictType, FloatType, FunctionType, IntType, ListType, NoneType, TensorType, TupleType


class Graph:
    """Values in static single assignment: each is made by one node, and control flow passes them through
    blocks.

    Nodes are inserted where the insert point is: at the end of the graph, until `setInsertPoint` moves it.
    """

    def __init__(self):
        self._next_unique = 0
        self._names = {}  # debug name -> Value
        self._suffixes = {}  # base of a name -> the last suffix it was given
        self.current_scope = Scope()  # what new nodes get
        self.current_range = None
        self._insert_before = None
        self._block = Block(self)
        self._insert_before = self._block.returnNode()

    # --------------------------------------------------------------------------- the block's, for short

    def block(self):
        return self._block

    def inputs(self):
        return self._block.inputs()

    def outputs(self):
        return self._block.outputs()

    def nodes(self):
        return self._block.nodes()

    def all_nodes(self):
        """The nodes of all blocks, in order."""
        return list(self._block.all_nodes())

    def addInput(self, name=""):
        return self._block.addInput(name)

    def insertInput(self, i, name=""):
        return self._block.insertInput(i, name)

    def eraseInput(self, i):
        self._block.eraseInput(i)

    def registerOutput(self, value):
        return self._block.registerOutput(value)

    def eraseOutput(self, i):
        self._block.eraseOutput(i)

    def appendNode(self, node):
        return self._block.appendNode(node)

    def prependNode(self, node):
        return self._block.prependNode(node)

    def param_node(self):
        return self._block.paramNode()

    def return_node(self):
        return self._block.returnNode()

    def findNode(self, kind, recurse=True):
        return self._block.findNode(kind, recurse)

    def findAllNodes(self, kind, recurse=True):
        return self._block.findAllNodes(kind, recurse)

    # -------------------------------------------------------------------------------------- insert point

    def insertPoint(self):
        """The node before which new ones are inserted."""
        return self._insert_before

    def setInsertPoint(self, where):
        """A Node: before it. A Block: at its end."""
        self._insert_before = where.returnNode() if isinstance(where, Block) else where

    def insert_point_guard(self, where):
        """`with graph.insert_point_guard(node_or_block):` inserts there, then goes back."""
        return InsertPointGuard(self, where)

    def insertNode(self, node):
        return node.insertBefore(self._insert_before)

    def insertConstant(self, value, type=None, range=None):
        """A prim::Constant with this value; returns its output. Raises RuntimeError if a graph cannot hold
        the value.
        """
        return insert_constant(self, value, type, range)

    def insert(self, kind, args=(), kwargs=None, range=None):
        """Insert the operator `kind` whose schema fits; Python values become constants. Returns its output
        Value.

        args, kwargs: Values or Python values. In PyTorch: `Graph::insert`, `emitBuiltinCall`.
        """
        from readtorch.csrc.jit.frontend.schema_matching import emit_builtin_call

        return emit_builtin_call(self, kind, list(args), dict(kwargs or {}), range or self.current_range)

    # ----------------------------------------------------------------------------------------- new nodes

    def create(self, kind, inputs=(), outputs=1):
        """A node that is not in any block yet."""
        return Node(self, kind, inputs, outputs)

    def createClone(self, node, value_of, copy_blocks=True):
        """A copy of a node of any graph. value_of: old input Value -> the one to use."""
        copy = Node(self, node._kind, [value_of(v) for v in node._inputs], 0)
        copy.copyAttributes(node).copyMetadata(node)
        for name in node.attributeNames():
            if node.kindOf(name) == "g":
                copy.g_(name, node.g(name).copy())
        for value in node._outputs:
            copy.addOutput().setType(value._type)
        if copy_blocks:
            for block in node._blocks:
                copy.addBlock().cloneFrom(block, value_of)
        return copy

    def createNone(self):
        node = self.create("prim::Constant")
        node.output().setType(NoneType.get())
        return node

    def createUninitialized(self, type):
        node = self.create("prim::Uninitialized")
        node.output().setType(type)
        return node

    def createList(self, element_type, values):
        node = self.create("prim::ListConstruct", values)
        node.output().setType(ListType(element_type))
        return node

    def createListUnpack(self, value, size):
        node = self.create("prim::ListUnpack", [value], size)
        for output in node.outputs():
            output.setType(value.type().elem)
        return node

    def createTuple(self, values, type=None):
        """type: the named tuple to make."""
        node = self.create("prim::TupleConstruct", values)
        node.output().setType(type or TupleType([v.type() for v in values]))
        return node

    def createTupleUnpack(self, value):
        types = value.type().elements()
        node = self.create("prim::TupleUnpack", [value], len(types))
        for output, t in zip(node.outputs(), types):
            output.setType(t)
        return node

    def createTupleIndex(self, value, index, type):
        node = self.create("prim::TupleIndex", [value, index])
        node.output().setType(type)
        return node

    def createTupleSlice(self, value, start, step, count):
        """`value[start::step]`, `count` elements of it."""
        types = value.type().elements()
        which = [start + i * step for i in range(count)]
        node = self.create(
            "prim::TupleConstruct",
            [self.insertNode(self.createTupleIndex(value, self.insertConstant(i), types[i])).output() for i in which],
        )
        node.output().setType(TupleType([types[i] for i in which]))
        return node

    def createDict(self, key_type, value_type, keys, values):
        node = self.create("prim::DictConstruct", [v for pair in zip(keys, values) for v in pair])
        node.output().setType(DictType(key_type, value_type))
        return node

    def createNumToTensor(self, value):
        node = self.create("prim::NumToTensor", [value])
        dtype = {FloatType: scalar_type.float64, BoolType: scalar_type.bool}.get(type(value.type()), scalar_type.int64)
        node.output().setType(TensorType(dtype, (), (), Device("cpu")))
        return node

    def createGetAttr(self, value, name):
        node = self.create("prim::GetAttr", [value]).s_("name", name)
        node.output().setType(value.type().getAttribute(name))
        field = f"_{name}" if name.isdigit() else name
        node.output().setDebugName(field)
        return node

    def createSetAttr(self, value, name, new):
        return self.create("prim::SetAttr", [value, new], 0).s_("name", name)

    def createObject(self, type):
        node = self.create("prim::CreateObject")
        node.output().setType(type)
        return node

    def createIsInstance(self, value, types):
        node = self.create("prim::isinstance", [value]).tys_("types", list(types))
        node.output().setType(BoolType.get())
        return node

    def createLoad(self, name, type):
        node = self.create("prim::Load").s_("name", name)
        node.output().setType(type)
        return node

    def createStore(self, name, value):
        return self.create("prim::Store", [value], 0).s_("name", name)

    def insertUncheckedCast(self, value, type):
        """Say that `value` is a `type`, which the program has just checked."""
        node = self.insertNode(self.create("prim::unchecked_cast", [value]))
        return node.output().setType(type)

    def insertToList(self, value, type):
        """`value.tolist()`, annotated with the type of its result."""
        depth, element = 0, type
        while isinstance(element, ListType):
            depth, element = depth + 1, element.elem
        kinds = {IntType: 0, FloatType: 1, BoolType: 2}
        inputs = [value, self.insertConstant(depth), self.insertConstant(kinds[element.__class__])]
        node = self.insertNode(self.create("prim::tolist", inputs))
        return node.output().setType(type)

    def insertFunctionCall(self, function, values):
        """`function(*values)` for a Function; values in the order of its schema."""
        constant = self.insertNode(self.create("prim::Constant").s_("name", function.name))
        constant.output().setType(FunctionType(function))
        node = self.insertNode(self.create("prim::CallFunction", [constant.output(), *values]))
        return node.output().setType(function.schema.returns[0].type)

    def insertMethodCall(self, name, schema, values):
        """`values[0].name(*values[1:])`."""
        node = self.insertNode(self.create("prim::CallMethod", values).s_("name", name))
        return node.output().setType(schema.returns[0].type)

    def insertGraph(self, callee, inputs):
        """Insert copies of the nodes of `callee`, its inputs being `inputs`. Returns the Values of its
        outputs.
        """
        own = dict(zip(callee.inputs(), inputs))
        for node in callee.nodes():
            copy = self.insertNode(self.createClone(node, own.__getitem__))
            for old, new in zip(node._outputs, copy._outputs):
                own[old] = new.copyMetadata(old)
        return [own[v] for v in callee.outputs()]

    # ----------------------------------------------------------------------------------------- whole graph

    def copy(self):
        other = Graph()
        other._block.cloneFrom(self._block, _not_in_scope)
        return other

    def lint(self):
        """Raises RuntimeError if the graph is not well formed."""
        lint(self)

    def makeMultiOutputIntoTuple(self):
        """Let several outputs become one tuple."""
        if len(self.outputs()) == 1:
            return
        outputs = self.outputs()
        if outputs:
            result = self.appendNode(self.createTuple(outputs)).output()
        else:
            result = self.appendNode(self.createNone()).output()
        for _ in outputs:
            self.eraseOutput(0)
        self.registerOutput(result)

    def str(self, print_source_ranges=True):
        return graph_text(self, print_source_ranges)

    def __repr__(self):
        return self.str()


class InsertPointGuard:
    def __init__(self, graph, where):
        self.graph = graph
        self.where = where

    def __enter__(self):
        self.previous = self.graph.insertPoint()
        self.graph.setInsertPoint(self.where)

    def __exit__(self, *exception):
        self.graph.setInsertPoint(self.previous)


def _not_in_scope(value):
    raise RuntimeError(f"Graph::copy() encountered a use of a value {value.debugName()} not in scope. Run lint!")
