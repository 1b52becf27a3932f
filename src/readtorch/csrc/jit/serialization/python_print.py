"""A graph as the text of a TorchScript program.

    def forward(self,
        x: Tensor) -> Tensor:
      fc = self.fc
      return torch.relu((fc).forward(x, ))

It is what archives hold: compiling the text gives the graph again. A value that is used once, right where its
turn is, is written inside the expression that uses it; others get a variable.

In PyTorch: `torch/csrc/jit/serialization/python_print.cpp`. Explained in the chapter "JIT: scripting".
"""

from ..ir.type import (
    ClassType,
    EnumType,
    FunctionType,
    TupleType,
)
from .print_constants import constant_text
from .print_expressions import expression_text, is_identifier
from .print_inlining import inlined_nodes
from .print_types import Dependencies, type_text

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
        """A `def`. with_first_type: of a method, `self` has none when the class around it tells."""
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
            for title, hooks in (
                ("__forward_pre_hooks__", type.pre_hooks),
                ("__forward_hooks__", type.hooks),
            ):
                if hooks:
                    self.write(f"{title} = [{''.join(chr(34) + h.name + chr(34) + ', ' for h in hooks)}]")
        self._attributes(type)
        for name, value in type.constants.items():
            from ..ir.constants import type_of_value

            self.write(
                f"{name} : Final[{self.type_text(type_of_value(value))}] = {constant_text(value, self)}"
            )
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
        """The constants that are too long to stand inside, the statements, the return."""
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
        """The text that stands for a value."""
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
        """Note [Long expressions]: what is too long to stand inside gets a variable, and with it whatever
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
        turn, carried = body.inputs()[0], body.inputs()[1:]
        is_for = node.input(0).toIValue() != FOREVER
        for value in node.outputs():
            self.name_value(value)
        for inner, value in zip(carried, node.outputs()):
            self.names[inner] = self.use(value)
        for value, start in zip(node.outputs(), node.inputs()[2:]):
            annotation = f": {self.out.type_text(value.type())}" if value.type() != start.type() else ""
            self.out.write(f"{self.use(value)}{annotation} = {self.use(start)}")
        self.name_value(turn)
        if is_for:
            self.out.write(f"for {self.use(turn)} in range({self.use(node.input(0))}):")
        else:
            self.out.write(f"{self.use(turn)} = {self.use(node.input(1))}")
            self.out.write(f"while {self.use(turn)}:")
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
