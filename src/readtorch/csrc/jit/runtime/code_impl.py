"""A graph as a list of instructions.

In PyTorch: `torch/csrc/jit/runtime/interpreter/code_impl.h`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.type import ClassType, FunctionType, TupleType

from . import instruction as I
from .instruction import Instruction
from .preprocess_graph import can_emit_inline, preprocess


class Code:
    """instructions, and the tables that their operands index. `sources[i]` is the node that instruction i
    is from.

    make_executor(graph, name): the GraphExecutor for the graph of a prim::fork. Executors make code and not the other
    way round, so whoever makes code that may fork passes the class.
    """

    def __init__(self, graph, function_name, make_executor=None):
        self.function_name = function_name
        self.make_executor = make_executor
        self.instructions = []
        self.sources = []
        self.constants = []
        self.operators = []  # (function, number of inputs, number of outputs)
        self.functions = []
        self.forked = []  # what make_executor has given
        self.types = []
        self.register_size = 0
        self.graph = preprocess(graph)
        self.n_inputs = len(self.graph.inputs())
        self.n_outputs = len(self.graph.outputs())
        _Emitter(self).run()

    def __str__(self):
        """One instruction a line; operators and calls with the node that they come from."""
        lines = []
        for i, (instruction, node) in enumerate(zip(self.instructions, self.sources)):
            shown = node.str() if instruction.op in (I.OP, I.OPN, I.CALL) else "\n"
            lines.append(f"{i} {instruction}" + (f" # {shown.lstrip()}" if shown != "\n" else shown))
        return "".join(line.split("\n")[0] + "\n" for line in lines)

    __repr__ = __str__


class _Emitter:
    """Walks a graph and writes its instructions."""

    def __init__(self, code):
        self.code = code
        self.inline = can_emit_inline(code.graph)
        self.register_of = {}  # Value -> register, or index in the table of constants
        self.emitted_uses = {}  # Value -> how many of its uses have been written: at the last one it is moved
        self.node = None

    def run(self):
        self.block(self.code.graph.block())
        self.emit(I.RET)

    def emit(self, op, X=0, N=0):
        self.code.instructions.append(Instruction(op, X, N))
        self.code.sources.append(self.node)
        return len(self.code.instructions) - 1

    def patch(self, at, X):
        self.code.instructions[at] = self.code.instructions[at]._replace(X=X)

    def here(self):
        return len(self.code.instructions)

    @staticmethod
    def add(table, entry):
        table.append(entry)
        return len(table) - 1

    # ------------------------------------------------------------------------------------------ values

    def load(self, values):
        for value in values:
            self.use(value)

    def use(self, value):
        if value.node() in self.inline:
            self.inside(value.node())
            return
        register = self.register_of[value]
        if value.isConstant():
            self.emit(I.LOADC, register)
            return
        self.emitted_uses[value] = self.emitted_uses.get(value, 0) + 1
        self.emit(I.MOVE if self.emitted_uses[value] == len(value.uses()) else I.LOAD, register)

    def drop(self, values):
        for value in values:
            if value.node() in self.inline:
                self.inside(value.node())
                self.emit(I.DROP)
            elif not value.isConstant():
                self.emit(I.DROPR, self.register_of[value])

    def store(self, node):
        outputs = node.outputs()
        if not outputs:
            return
        first = self.code.register_size
        for i, value in enumerate(outputs):
            self.register_of[value] = first + i
        self.code.register_size += len(outputs)
        if len(outputs) == 1:
            self.emit(I.STORE, first)
        else:
            self.emit(I.STOREN, first, len(outputs))

    # ------------------------------------------------------------------------------------------- nodes

    def block(self, block):
        self.at_level(block.paramNode())
        for node in block.nodes():
            self.at_level(node)
        self.at_level(block.returnNode())

    def at_level(self, node):
        """A node of a block; those whose output stays on the stack are written where they are used."""
        previous, self.node = self.node, node
        if node.kind() == "prim::Constant":
            self.constant(node)
        elif node.kind() == "prim::Return":
            self.load(node.inputs())
        elif node not in self.inline:
            self.write(node)
            self.store(node)
        self.node = previous

    def inside(self, node):
        previous, self.node = self.node, node
        self.write(node)
        self.node = previous

    def write(self, node):
        _WRITERS.get(node.kind(), _Emitter.operator)(self, node)

    def constant(self, node):
        if not isinstance(node.output().type(), FunctionType):
            self.register_of[node.output()] = self.add(self.code.constants, node.constant_value())

    def operator(self, node):
        self.load(node.inputs())
        operator = node.getOperator()
        entry = (operator.operation(node), node.inputsSize(), node.outputsSize())
        number = self.add(self.code.operators, entry)
        if operator.schema.is_vararg:
            self.emit(I.OPN, number, node.inputsSize())
        else:
            self.emit(I.OP, number)

    def if_(self, node):
        self.load(node.inputs())
        branch = self.emit(I.JF)
        self.block(node.blocks()[0])
        end = self.emit(I.JMP)
        self.patch(branch, self.here() - branch)
        self.block(node.blocks()[1])
        self.patch(end, self.here() - end)

    def loop(self, node):
        self.emit(I.LOADC, self.add(self.code.constants, 0))
        self.load(node.inputs())
        start = self.emit(I.LOOP, 0, node.inputsSize())
        self.block(node.blocks()[0])
        self.emit(I.JMP, start - self.here())
        self.patch(start, self.here() - start)

    def call_function(self, node):
        self.load(node.inputs()[1:])
        self.emit(I.CALL, self.add(self.code.functions, node.input(0).type().function), node.inputsSize() - 1)

    def call_method(self, node):
        self.load(node.inputs())
        type, name = node.input(0).type(), node.s("name")
        if isinstance(type, ClassType):
            self.emit(I.CALL, self.add(self.code.functions, type.getMethod(name)), node.inputsSize())
        else:
            self.emit(I.INTERFACE_CALL, self.add(self.code.constants, name), node.inputsSize())

    def get_attr(self, node):
        self.load(node.inputs())
        self.emit(I.GET_ATTR, node.input(0).type().findAttributeSlot(node.s("name")))

    def set_attr(self, node):
        self.load(node.inputs())
        self.emit(I.SET_ATTR, node.input(0).type().findAttributeSlot(node.s("name")))

    def typed(op):
        def write(self, node):
            self.load(node.inputs())
            self.emit(op, self.add(self.code.types, node.output().type()), node.inputsSize())

        return write

    def tuple_construct(self, node):
        type = node.output().type()
        if isinstance(type, TupleType) and type.fields is not None:
            _Emitter.named_tuple(self, node)
            return
        self.load(node.inputs())
        self.emit(I.TUPLE_CONSTRUCT, 0, node.inputsSize())

    def unpack(self, node):
        self.load(node.inputs())
        self.emit(I.LIST_UNPACK, 0, node.outputsSize())

    def tuple_slice(self, node):
        self.load(node.inputs())
        self.emit(I.TUPLE_SLICE, node.i("beg"), node.i("end") - node.i("beg"))

    def isinstance_(self, node):
        self.load(node.inputs())
        types = node.attribute("types")
        self.emit(I.ISINSTANCE, len(self.code.types), len(types))
        self.code.types += types

    def fork(self, node):
        self.load(node.inputs())
        forked = self.code.make_executor(node.g("Subgraph"), "<forked function>")
        self.emit(I.FORK, self.add(self.code.forked, forked), node.inputsSize())

    def plain(op):
        def write(self, node):
            self.load(node.inputs())
            self.emit(op)

        return write

    def exit(self, node):
        self.emit(I.EXIT)

    def drop_node(self, node):
        self.drop(node.inputs())

    def nothing(self, node):
        pass

    list_construct = typed(I.LIST_CONSTRUCT)
    dict_construct = typed(I.DICT_CONSTRUCT)
    named_tuple = typed(I.NAMED_TUPLE_CONSTRUCT)
    create_object = typed(I.CREATE_OBJECT)
    wait, warn, raise_, enter = plain(I.WAIT), plain(I.WARN), plain(I.RAISE), plain(I.ENTER)


_WRITERS = {
    "prim::Param": _Emitter.nothing,
    "prim::Drop": _Emitter.drop_node,
    "prim::If": _Emitter.if_,
    "prim::Loop": _Emitter.loop,
    "prim::CallFunction": _Emitter.call_function,
    "prim::CallMethod": _Emitter.call_method,
    "prim::GetAttr": _Emitter.get_attr,
    "prim::SetAttr": _Emitter.set_attr,
    "prim::ListConstruct": _Emitter.list_construct,
    "prim::DictConstruct": _Emitter.dict_construct,
    "prim::TupleConstruct": _Emitter.tuple_construct,
    "prim::ListUnpack": _Emitter.unpack,
    "prim::TupleUnpack": _Emitter.unpack,
    "prim::TupleSlice": _Emitter.tuple_slice,
    "prim::isinstance": _Emitter.isinstance_,
    "prim::CreateObject": _Emitter.create_object,
    "prim::fork": _Emitter.fork,
    "aten::wait": _Emitter.wait,
    "aten::warn": _Emitter.warn,
    "prim::RaiseException": _Emitter.raise_,
    "prim::Enter": _Emitter.enter,
    "prim::Exit": _Emitter.exit,
}
