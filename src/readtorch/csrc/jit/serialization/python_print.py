"""A graph as the text of a TorchScript program.

    def forward(self,
        x: Tensor) -> Tensor:
      fc = self.fc
      return torch.relu((fc).forward(x, ))

It is what archives hold: compiling the text gives the graph again. A value that is used once, right where it
is due, is written inside the expression that uses it; others get a variable.

In PyTorch: `torch/csrc/jit/serialization/python_print.cpp`. Explained in the chapter "JIT: scripting".
"""

import enum

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.csrc.jit.ir import formatting as plain
from readtorch.csrc.jit.ir.constants import enum_type, type_of_value
from readtorch.csrc.jit.ir.formatting import quoted
from readtorch.csrc.jit.ir.type import (
    AnyType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    InterfaceType,
    ListType,
    NoneType,
    OptionalType,
    TupleType,
    UnionType,
)

# --------------------------------------------------------------- types, and the classes and functions that a text names


class Dependencies:
    """The classes and functions that a text names, in the order in which they were met."""

    def __init__(self):
        self.types = []

    def add(self, type):
        if not any(_same(type, known) for known in self.types):
            self.types.append(type)

    def add_all(self, type):
        """A type and the types in it."""
        if isinstance(type, (ClassType, InterfaceType, EnumType)) or (isinstance(type, TupleType) and type.qualified):
            self.add(type)
        if not isinstance(type, ClassType):
            for part in type.containedTypes():
                self.add_all(part)


def _same(a, b):
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):
        return a.function is b.function
    return a is b or a == b


def type_text(type, name_of=None):
    """A type as Python spells it. name_of: the names of classes."""
    if name_of is None:
        return type.annotation_str
    if isinstance(type, (ClassType, InterfaceType, EnumType, FunctionType)) or (
        isinstance(type, TupleType) and type.qualified
    ):
        return name_of(type)
    if isinstance(type, (ListType, DictType, OptionalType, UnionType, TupleType)):
        return (
            type.withContained([_Named(type_text(t, name_of)) for t in type.containedTypes()]).annotation_str
            if not isinstance(type, UnionType)
            else f"Union[{', '.join(type_text(t, name_of) for t in type.types)}]"
        )
    return type.annotation_str


class _Named(AnyType):
    """Stands for a type whose text is known."""

    def __init__(self, text):
        self.spelled = text

    @property
    def annotation_str(self):
        return self.spelled


# --------------------------------------------------------- which nodes are written inside the expression that uses them


def inlined_nodes(block):
    """The nodes of a block, and of the blocks inside, that need no statement."""
    scan = _Scan()
    scan.block(block)
    return scan.inlined


class _Scan:
    def __init__(self):
        self.inlined = set()

    def block(self, block):
        self.node(block.returnNode())
        for node in reversed(block.nodes()):
            self.node(node)

    def node(self, node):
        """Returns the node before everything that is written inside `node`."""
        if node in self.inlined:
            return node
        for inner in node.blocks():
            self.block(inner)
        point = _previous(node)
        for value in reversed(node.inputs()):
            point = self.value(point, value)
        return point

    def value(self, point, value):
        node = value.node()
        if node is point and _may_stand_inside(value):
            point = self.node(point)
            self.inlined.add(node)
        elif node.kind() == "prim::Constant":
            self.inlined.add(node)
        return point


def _previous(node):
    node = node.prev()
    while node.kind() == "prim::Constant":
        node = node.prev()
    return node


_TASKS = ("prim::fork", "prim::rpc_async", "prim::rpc_sync", "prim::rpc_remote")


def _may_stand_inside(value):
    node, uses = value.node(), value.uses()
    if node.outputsSize() != 1 or len(uses) != 1 or node.blocks():
        return False
    user, offset = uses[0].user, uses[0].offset
    if value.hasDebugName() and user.kind() != "prim::Return":
        return False  # it was a variable
    if user.kind() == "prim::Loop" and offset >= 2:
        return False  # carried: the number of iterations and the condition must come after it
    # An isinstance in a condition would refine types again, which the graph has done already.
    return user.kind() not in _TASKS and node.kind() != "prim::isinstance"


# ------------------------------------------------------------------------------------------------------------ constants


def constant_text(value, out):
    """A literal; a tensor, an object and text that is not ASCII go into the table of constants of `out`."""
    if isinstance(value, (TensorImpl, ScriptObject)) or (isinstance(value, str) and not value.isascii()):
        return f"CONSTANTS.c{_index(value, out.constants)}"
    if isinstance(value, enum.Enum):
        type = enum_type(value.__class__)
        out.dependencies.add(type)
        return f"{out.type_text(type)}.{value.name}"
    if isinstance(value, tuple):
        inner = ", ".join(constant_text(v, out) for v in value)
        name = ""
        if hasattr(value, "_fields"):
            name = out.type_text(type_of_value(value))
        return f"{name}({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(constant_text(v, out) for v in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{constant_text(k, out)}: {constant_text(v, out)}" for k, v in value.items()) + "}"
    return plain.constant_text(value)


def _index(value, table):
    """Its number in the table: equal tensors share one."""
    for i, known in enumerate(table):
        if known is value or (isinstance(known, TensorImpl) and isinstance(value, TensorImpl) and _equal(known, value)):
            return i
    table.append(value)
    return len(table) - 1


def _equal(a, b):
    return a.dtype == b.dtype and a.device == b.device and a.shape == b.shape and a.equal(b)


# ---------------------------------------------------------------------------------------------------------- expressions


def is_identifier(name):
    return name.isascii() and name.isidentifier()


def expression_text(node, body):
    """body: knows the text of the inputs."""
    special = _SPECIAL.get(node.kind())
    return special(node, body) if special else _operator(node, body)


def _operator(node, body):
    """`torch.add(x, y, alpha=2)`; arguments at the end that have their defaults are left out."""
    schema = node.getSchema()
    inputs = node.inputs()
    count = len(inputs)
    if not schema.is_vararg:
        count = _needed(schema, inputs)
    parts = []
    for i, value in enumerate(inputs[:count]):
        keyword = i < len(schema.arguments) and schema.arguments[i].kwarg_only
        parts.append(f"{schema.arguments[i].name}={body.use(value)}" if keyword else body.use(value))
    return f"{_name(node.kind())}({', '.join(parts)})"


def _needed(schema, inputs):
    """How many arguments must be written."""
    arguments = schema.arguments
    if any(a.is_out for a in arguments):
        return len(inputs)
    count = len(inputs)
    while count and _has_default(arguments[count - 1], inputs[count - 1]):
        count -= 1
    return count


def _has_default(argument, value):
    if not argument.has_default or not value.isConstant():
        return False
    given, default = value.toIValue(), argument.default_value
    return type(given) is type(default) and given == default


def _name(kind):
    namespace, _, name = kind.partition("::")
    if kind in ("aten::backward", "aten::grad"):
        return f"torch.autograd.{name}"
    return f"torch.{name}" if namespace == "aten" else f"ops.{namespace}.{name}"


# ---------------------------------------------------------------------------------------------- special forms


def _constant(node, body):
    type = node.output().type()
    if isinstance(type, FunctionType):
        body.out.dependencies.add(type)
        return body.out.type_text(type)
    if node.mustBeNone():
        return "None"
    return constant_text(node.constant_value(), body.out)


def _annotated(node, body, text):
    return f"annotate({body.out.type_text(node.output().type())}, {text})"


def _conversion(node, body):
    return _annotated(node, body, body.use(node.input()))


def _call_of(name):
    return lambda node, body: f"{name}({body.list_of(node.inputs())})"


def _getitem(node, body):
    container, index = map(body.use, node.inputs())
    return f"{container}[{index}]" if is_identifier(container) else f"({container})[{index}]"


def _tuple(node, body):
    type = node.output().type()
    name = body.out.type_text(type) if type.qualified else ""
    return f"{name}({body.list_of(node.inputs())}{',' if node.inputsSize() == 1 else ''})"


def _tuple_index(node, body):
    container, index = map(body.use, node.inputs())
    return f"({container})[{index}]"


def _tuple_slice(node, body):
    return f"({body.use(node.input())})[{node.i('beg')}:{node.i('end')}]"


def _can_be_inferred(type):
    """Whether a list of such elements shows its type."""
    if isinstance(type, (OptionalType, UnionType, NoneType)):
        return False
    if isinstance(type, (ListType, DictType, TupleType)):
        return all(map(_can_be_inferred, type.containedTypes()))
    return True


def _list(node, body):
    text = f"[{body.list_of(node.inputs())}]"
    if not node.inputs() or not _can_be_inferred(node.output().type().elem):
        return _annotated(node, body, text)
    return text


def _dict(node, body):
    inputs = node.inputs()
    text = "{" + ", ".join(f"{body.use(k)}: {body.use(v)}" for k, v in zip(inputs[::2], inputs[1::2])) + "}"
    type = node.output().type()
    if not inputs or not (_can_be_inferred(type.key) and _can_be_inferred(type.value)):
        return _annotated(node, body, text)
    return text


def _new_object(node, body):
    name = body.out.type_text(node.output().type())
    return f"{name}.__new__({name})"


def _get_attr(node, body):
    name, object = node.s("name"), body.use(node.input())
    return f"{object}.{name}" if is_identifier(name) else f"getattr({object}, {quoted(name)})"


def _arguments(values, body):
    return "".join(f"{body.use(v)}, " for v in values)


def _call_function(node, body):
    function, *given = node.inputs()
    return f"{body.use(function)}({_arguments(given, body)})"


def _call_method(node, body):
    object, *given = node.inputs()
    body.out.dependencies.add(object.type())
    return f"({body.use(object)}).{node.s('name')}({_arguments(given, body)})"


def _unwrap(node, body):
    text = body.use(node.input())
    if node.input().mustBeNone():
        text = f"annotate({body.out.type_text(OptionalType(node.output().type()))}, {text})"
    return f"torch._unwrap_optional({text})"


def _cast(node, body):
    return f"unchecked_cast({body.out.type_text(node.output().type())}, {body.use(node.input())})"


def _isinstance(node, body):
    types = [body.out.type_text(t) for t in node.attribute("types")]
    wanted = types[0] if len(types) == 1 else f"({', '.join(types)})"
    return f"isinstance({body.use(node.input())}, {wanted})"


def _raise(node, body):
    message, name = node.inputs()
    more = "" if name.mustBeNone() else f", {body.use(name)}"
    return f"ops.prim.RaiseException({body.use(message)}{more})"


def _python_op(node, body):
    scalars = ", ".join(map(str, node.attribute("scalar_args")))
    return f"^{node.pyname()}({scalars})({body.list_of(node.inputs())})"


_SPECIAL = {
    "prim::Constant": _constant,
    "prim::PythonOp": _python_op,
    "prim::Uninitialized": lambda node, body: f"uninitialized({body.out.type_text(node.output().type())})",
    "aten::ScalarImplicit": _conversion,
    "aten::FloatImplicit": _conversion,
    "aten::IntImplicit": _conversion,
    "aten::ComplexImplicit": _conversion,
    "aten::Int": _call_of("int"),
    "aten::Float": _call_of("float"),
    "aten::Complex": _call_of("complex"),
    "aten::Bool": _call_of("bool"),
    "aten::str": _call_of("str"),
    "prim::Print": _call_of("print"),
    "aten::sorted": _call_of("sorted"),
    "aten::__getitem__": _getitem,
    "prim::TupleConstruct": _tuple,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::CreateObject": _new_object,
    "prim::GetAttr": _get_attr,
    "prim::CallFunction": _call_function,
    "prim::CallMethod": _call_method,
    "aten::_unwrap_optional": _unwrap,
    "prim::unchecked_unwrap_optional": _cast,
    "prim::unchecked_cast": _cast,
    "prim::isinstance": _isinstance,
    "prim::tolist": lambda node, body: _annotated(node, body, f"{body.use(node.input(0))}.tolist()"),
    "prim::EnumValue": lambda node, body: f"({body.use(node.input())}).value",
    "prim::EnumName": lambda node, body: f"({body.use(node.input())}).name",
    "prim::RaiseException": _raise,
}


# --------------------------------------------------------------------------------------- statements, functions, classes


RESERVED = set(
    "_ as aten attribute CONSTANTS fork getattr inf nan infj nanj ops __torch__ and assert async await "
    "break class "
    "continue def del elif else except False finally for from global if import in is lambda None nonlocal "
    "not or pass "
    "raise return True try with while yield uninitialized unchecked_cast".split()
)
LONG = 40  # characters: a longer expression is not written inside another one
FOREVER = 2**63 - 1


class PythonPrint:
    """Writes functions and classes, one after another. constants: tensors that the text names as
    CONSTANTS.c0, …

    name_of(type): how a class is called; by default by its own name.
    """

    def __init__(self, constants=None, dependencies=None, name_of=None):
        self.lines = []
        self.constants = [] if constants is None else constants
        self.dependencies = dependencies or Dependencies()
        self.name_of = name_of
        self.level = 0

    def text(self):
        return "".join(self.lines)

    def write(self, line):
        self.lines.append("  " * self.level + line + "\n")

    def type_text(self, type):
        return type_text(type, self.name_of)

    # ------------------------------------------------------------------------------------------- functions

    def function(self, function, with_first_type=True):
        """A `def`. with_first_type: of a method, `self` has none where the class around it implies it."""
        _Body(self).function(function, with_first_type)

    def named_type(self, type):
        """The definition of what a text names."""
        if isinstance(type, FunctionType):
            self.function(type.function)
        elif isinstance(type, ClassType):
            self.class_(type)
        elif isinstance(type, TupleType):
            self.write(f"class {type.name()}(NamedTuple):")
            for name, part in zip(type.fields, type.types):
                self.dependencies.add_all(part)
                self.write(f"  {name} : {self.type_text(part)}")
        elif isinstance(type, EnumType):
            self.write(f"class {type.qualified.rpartition('.')[2]}(Enum):")
            for name, value in type.values.items():
                self.write(f"  {name} = {constant_text(value, self)}")
        else:
            self.interface(type)

    def interface(self, type):
        self.write(f"class {type.qualified.rpartition('.')[2]}({'Module' * type.module}Interface):")
        for schema in type.schemas.values():
            arguments = "".join(f", {a.name}: {self.type_text(a.type)}" for a in schema.arguments[1:])
            self.write(f"  def {schema.name}(self{arguments}) -> {self.type_text(schema.returns[0].type)}:")
            self.write("    pass")

    def class_(self, type):
        self.write(f"class {type.name()}{'(Module)' * type.module}:")
        self.level += 1
        if type.module:
            for title, kind in (("__parameters__", "parameter"), ("__buffers__", "buffer")):
                names = "".join(f'"{a.name}", ' for a in type.attributes if a.kind == kind)
                self.write(f"{title} = [{names}]")
            for title, hooks in (("__forward_pre_hooks__", type.pre_hooks), ("__forward_hooks__", type.hooks)):
                if hooks:
                    self.write(f"{title} = [{''.join(chr(34) + h.name + chr(34) + ', ' for h in hooks)}]")
        self._attributes(type)
        for name, value in type.constants.items():
            self.write(f"{name} : Final[{self.type_text(type_of_value(value))}] = {constant_text(value, self)}")
        for method in [*type.methods.values(), *dict.fromkeys([*type.hooks, *type.pre_hooks])]:
            self.function(method)
        self.level -= 1

    def _attributes(self, type):
        for i, attribute in enumerate(type.attributes):
            self.dependencies.add_all(attribute.type)
            text = self.type_text(attribute.type)
            if is_identifier(attribute.name):
                self.write(f"{attribute.name} : {text}")
                continue
            if i == 0:
                self.write("__annotations__ = []")
            self.write(f'__annotations__["{attribute.name}"] = {text}')


class _Body:
    """The body of one function."""

    def __init__(self, out):
        self.out = out
        self.used = set()  # names of variables
        self.counters = {}
        self.names = {}  # Value -> its variable
        self.expressions = {}  # Value -> the text that stands for it, where it is used
        self.split_at = {}  # Node -> up to which input its inlined inputs have been looked at

    def function(self, function, with_first_type):
        graph, schema = function.graph, function.schema
        parameters = []
        for i, (argument, value) in enumerate(zip(schema.arguments, graph.inputs())):
            self.out.dependencies.add_all(argument.type)
            name = self.new_name(argument.name)
            self.names[value] = name
            typed = f"{name}: {self.out.type_text(argument.type)}" if i or with_first_type else name
            if argument.has_default:
                typed += f"={constant_text(argument.default_value, self.out)}"
            parameters.append(typed)
        returns = schema.returns[0].type
        self.out.dependencies.add_all(returns)
        indent = "  " * self.out.level
        signature = (",\n" + indent + "    ").join(parameters)
        self.out.write(f"def {function.name}({signature}) -> {self.out.type_text(returns)}:")
        self.body(graph.block())

    def body(self, block):
        """The constants that are too long to be inlined, the statements, the return."""
        self.inlined = inlined_nodes(block)
        self.out.level += 1
        for node in _constants_used(block):
            self.node(node)
        self.block(block, bool(block.outputs()))
        outputs = block.outputs()
        if outputs:
            self.out.write(f"return {self.list_of(outputs)}")
        self.out.level -= 1

    # ----------------------------------------------------------------------------------------------- names

    def new_name(self, candidate):
        name = candidate
        while name in self.used or name in RESERVED:
            number = self.counters.get(name, 0)
            self.counters[name] = number + 1
            name = f"{candidate}{number}"
        self.used.add(name)
        return name

    def name_value(self, value):
        base = _identifier(value.debugNameBase()) if value.hasDebugName() else "_"
        self.names[value] = self.new_name(base)
        return self.names[value]

    def use(self, value):
        """The text of a value where it is used."""
        return self.names[value] if value in self.names else self.expressions[value]

    def list_of(self, values):
        return ", ".join(map(self.use, values))

    # ------------------------------------------------------------------------------------------ statements

    def block(self, block, more_follows):
        nodes = block.nodes()
        if not nodes and not more_follows:
            self.out.write("pass")
        for node in nodes:
            if node.kind() != "prim::Constant":
                self.node(node)

    def node(self, node):
        for value in [*node.inputs(), *node.outputs()]:
            self.out.dependencies.add_all(value.type())
        for name in node.attributeNames():
            for type in {"ty": lambda: [node.attribute(name)], "tys": lambda: node.attribute(name)}.get(
                node.kindOf(name), list
            )():
                self.out.dependencies.add_all(type)
        statement = _STATEMENTS.get(node.kind())
        if statement is not None:
            statement(self, node)
            return
        text = expression_text(node, self)
        is_constant = node.kind() == "prim::Constant"
        if node not in self.inlined or (is_constant and self.is_long(text)):
            self.define(node, text)
            return
        self.expressions[node.output()] = text
        if self.is_long(text):
            self.split(node.output())

    def define(self, node, text):
        names = ", ".join(self.name_value(v) for v in node.outputs())
        self.out.write(f"{names} = {text}" if names else text)

    def is_long(self, text):
        return len(text) + self.out.level * 2 >= LONG

    def split(self, value):
        """Note [Long expressions]: what is too long to be inlined gets a variable, and with it whatever
        would be evaluated before it in the same statement: else that would come later than it should."""
        use = value.uses()[0]
        found = []
        self._scan_long(use.user, use.offset, found)
        for each in reversed(found):
            self.define(each.node(), self.use(each))

    def _scan_long(self, user, offset, found):
        seen = user in self.split_at
        for i in range(offset, (self.split_at[user] if seen else -1), -1):
            value = user.input(i)
            if value.node().kind() != "prim::Constant" and value.node() in self.inlined:
                found.append(value)
        self.split_at[user] = offset
        if not seen and user in self.inlined:
            use = user.output().uses()[0]
            self._scan_long(use.user, use.offset - 1, found)

    def assign(self, left, right):
        if left:
            self.out.write(f"{self.list_of(left)} = {self.list_of(right)}")

    def if_(self, node):
        for value in node.outputs():
            self.name_value(value)
        for word, block in ((f"if {self.use(node.input())}:", node.blocks()[0]), ("else:", node.blocks()[1])):
            self.out.write(word)
            self.out.level += 1
            self.block(block, bool(node.outputs()))
            self.assign(node.outputs(), block.outputs())
            self.out.level -= 1

    def loop(self, node):
        body = node.blocks()[0]
        iteration, carried = body.inputs()[0], body.inputs()[1:]
        is_for = node.input(0).toIValue() != FOREVER
        for value in node.outputs():
            self.name_value(value)
        for inner, value in zip(carried, node.outputs()):
            self.names[inner] = self.use(value)
        for value, start in zip(node.outputs(), node.inputs()[2:]):
            annotation = f": {self.out.type_text(value.type())}" if value.type() != start.type() else ""
            self.out.write(f"{self.use(value)}{annotation} = {self.use(start)}")
        self.name_value(iteration)
        if is_for:
            self.out.write(f"for {self.use(iteration)} in range({self.use(node.input(0))}):")
        else:
            self.out.write(f"{self.use(iteration)} = {self.use(node.input(1))}")
            self.out.write(f"while {self.use(iteration)}:")
        self.out.level += 1
        first = 1 if is_for else 0
        left = body.inputs()[first:]
        self.block(body, bool(left))
        self.assign(left, body.outputs()[first:])
        self.out.level -= 1

    def unpack(self, node):
        names = "".join(f"{self.name_value(v)}, " for v in node.outputs())
        self.out.write(f"{names}= {self.use(node.input())}" if names else self.use(node.input()))

    def set_attr(self, node):
        self.out.write(f"{self.use(node.input(0))}.{node.s('name')} = {self.use(node.input(1))}")

    def fork(self, node):
        """The forked graph as a function inside of this one."""
        name, inner = self.new_name("__forked_function"), node.g("Subgraph")
        self.out.write(f"def {name}():")
        for value, given in zip(inner.inputs(), node.inputs()):
            self.names[value] = self.use(given)
        outer, self.inlined = self.inlined, None
        self.body(inner.block())
        self.inlined = outer
        self.define(node, f"fork({name})")

    def enter(self, node):
        named = f" as {self.name_value(node.output())}" if node.output().uses() else ""
        self.out.write(f"with {self.use(node.input())}{named}:")
        self.out.level += 1

    def exit(self, node):
        if node.prev().kind() == "prim::Enter":
            self.out.write("pass")
        self.out.level -= 1

    def container_index(self, node):
        out = node.output()
        name = self.name_value(out)
        container, key = map(self.use, node.inputs())
        self.out.write(f"{name} : {self.out.type_text(out.type())} = {container}[{key}]")


_STATEMENTS = {
    "prim::If": _Body.if_,
    "prim::Loop": _Body.loop,
    "prim::TupleUnpack": _Body.unpack,
    "prim::ListUnpack": _Body.unpack,
    "prim::SetAttr": _Body.set_attr,
    "prim::fork": _Body.fork,
    "prim::Enter": _Body.enter,
    "prim::Exit": _Body.exit,
    "prim::ModuleContainerIndex": _Body.container_index,
}


def _constants_used(block):
    """The constants that the nodes of a block use, in the order of their first use."""
    found = {}

    def scan(node):
        for value in node.inputs():
            if value.isConstant():
                found.setdefault(value.node())
        for inner in node.blocks():
            for each in [*inner.nodes(), inner.returnNode()]:
                scan(each)

    for node in [*block.nodes(), block.returnNode()]:
        scan(node)
    return list(found)


def _identifier(name):
    start = "_" if not name or name[0].isdigit() else ""
    return start + "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)


def code_of_function(function):
    """(text, constants) of one function: what `.code` shows. Of a method, `self` has no type, whatever its name."""
    out = PythonPrint()
    first = function.schema.arguments[0] if function.schema.arguments else None
    is_method = first is not None and isinstance(first.type, ClassType) and _is_method(function, first)
    out.function(function, with_first_type=not is_method)
    return out.text(), {f"c{i}": value for i, value in enumerate(out.constants)}


def _is_method(function, first):
    return first.name == "self" or first.type.findMethod(function.name) is function
