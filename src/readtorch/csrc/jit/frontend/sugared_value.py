"""What a name or an expression means while a program is compiled.

Most expressions are values of the graph (SimpleValue). Others exist only during compilation: a function that can be
called, a module that has attributes, the `range` of a loop. Its methods say what each can do; the others raise.

A loop over something whose length is known during compilation, such as a tuple, is unrolled. Everything else that can
be iterated over has a length, and an item for each index, which the body of the loop looks up.

In PyTorch: `torch/csrc/jit/frontend/sugared_value.h`, `sugared_value.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.api.function_impl import RecursiveMethodCallError
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import (
    AnyListType,
    AnyTupleType,
    BoolType,
    ClassType,
    DeviceObjType,
    DictType,
    EnumType,
    InterfaceType,
    IntType,
    ListType,
    StringType,
    TensorType,
    TupleType,
    matchTypeVariables,
    tryEvalTypeVariables,
)
from readtorch.csrc.jit.runtime.operator import getAllOperatorsFor

from .error_report import ErrorReport
from .schema_matching import NamedValue, emit_builtin_call, match_schema, match_schemas
from .script_type_parser import type_name


class SugaredValue:
    """The methods take the range of the expression and the Emitter that compiles it."""

    kind = "value"

    def as_value(self, range, emitter):
        """The Value that it is in the graph."""
        raise ErrorReport(range, f"{self.kind} cannot be used as a value")

    def attr(self, range, emitter, name):
        raise ErrorReport(range, f"attribute lookup is not defined on {self.kind}")

    def has_attr(self, range, emitter, name):
        raise ErrorReport(range, f"attribute lookup is not defined on {self.kind}")

    def set_attr(self, range, emitter, name, value):
        raise ErrorReport(range, f"attribute assignment is not defined on {self.kind}")

    def as_tuple(self, range, emitter, size=None):
        """Its parts, as SugaredValues. size: how many are wanted, if that is known."""
        raise ErrorReport(range, f"{self.kind} cannot be used as a tuple")

    def call(self, range, emitter, args, kwargs):
        """args, kwargs: NamedValues."""
        raise ErrorReport(range, f"cannot call a {self.kind}")

    def iter(self, range, emitter):
        """What a loop over it goes through: a SugaredValue with `length` and `item`, or with `static_length`."""
        raise ErrorReport(range, f"{self.kind} cannot be used as an iterable")

    def static_length(self):
        """How many iterations a loop over it has, if that is known now; then the loop is unrolled."""
        return None

    def length(self, range, emitter):
        raise ErrorReport(range, f"'{self.kind}' object is not iterable")

    def item(self, range, emitter, index, type_hint=None):
        raise ErrorReport(range, f"'{self.kind}' object is not subscriptable")


class NoneSugared(SugaredValue):
    """What `print` returns."""

    kind = "None"


class SimpleValue(SugaredValue):
    """A value of the graph."""

    kind = "value"

    def __init__(self, value):
        self.value = value

    def as_value(self, range, emitter):
        return self.value

    def type(self):
        return self.value.type()

    # ------------------------------------------------------------------------------------- attributes

    def has_attr(self, range, emitter, name):
        type = self.type()
        if not isinstance(type, ClassType):
            raise ErrorReport(
                range, f"hasattr's first argument must be an object or NamedTuple, but got {type_name(type)} instead"
            )
        return type.findMethod(name) is not None or type.hasAttribute(name) or name in type.constants

    def attr(self, range, emitter, name):
        for look in (self._cast, self._property, self._field, self._member, self._method):
            found = look(range, emitter, name)
            if found is not None:
                return found
        hint = " Did you forget to initialize an attribute in __init__()?" if isinstance(self.type(), ClassType) else ""
        raise ErrorReport(range, f"'{type_name(self.type())}' object has no attribute or method '{name}'.{hint}")

    def _cast(self, range, emitter, name):
        if name in CAST_METHODS and self.type().isSubtypeOf(TensorType.get()):
            return TensorCast(self.value, CAST_METHODS[name])
        return None

    def _property(self, range, emitter, name):
        namespace = _PROPERTIES.get(self.type().__class__, {}).get(name)
        if namespace is None:
            return None
        return SimpleValue(emitter.graph.insert(f"{namespace}::{name}", [self.value], range=range))

    def _field(self, range, emitter, name):
        """A field of a named tuple."""
        type = self.type()
        if not isinstance(type, TupleType) or name not in (type.fields or ()):
            return None
        i = type.fields.index(name)
        graph = emitter.graph
        node = graph.createTupleIndex(self.value, graph.insertConstant(i), type.types[i])
        return SimpleValue(graph.insertNode(node).output())

    def _member(self, range, emitter, name):
        """An attribute or method of an object, the name or value of an enum's member."""
        type, graph = self.type(), emitter.graph
        if isinstance(type, ClassType):
            if type.findMethod(name) is not None:
                return MethodValue(self.value, name)
            if type.hasAttribute(name):
                node = graph.createGetAttr(self.value, name)
                return SimpleValue(graph.insertNode(node).setSourceRange(range).output())
            if name in type.constants:
                return SimpleValue(graph.insertConstant(type.constants[name], None, range))
            if name in type.properties:
                return MethodValue(self.value, type.properties[name][0]).call(range, emitter, [], [])
        if isinstance(type, InterfaceType) and type.getMethod(name) is not None:
            return MethodValue(self.value, name)
        if isinstance(type, EnumType) and name in ("name", "value"):
            node = graph.create("prim::EnumName" if name == "name" else "prim::EnumValue", [self.value])
            node.output().setType(StringType.get() if name == "name" else type.value_type)
            return SimpleValue(graph.insertNode(node).setSourceRange(range).output())
        return None

    def _method(self, range, emitter, name):
        """An operator that takes it as `self`: `x.foo(y)` is `foo(x, y)`."""
        if name == "type" and takes_self("aten::to", self.type()):
            return BuiltinFunction("aten::to", self.value)
        if takes_self(f"aten::{name}", self.type()):
            return BuiltinFunction(f"aten::{name}", self.value)
        if name == "tolist" and self.type().isSubtypeOf(TensorType.get()):
            return SpecialForm("tolist")
        return None

    def set_attr(self, range, emitter, name, value):
        type = self.type()
        if not isinstance(type, ClassType):
            raise ErrorReport(range, f"Tried to set an attribute: {name} on a non-class: {type_name(type)}")
        expected = type.findAttribute(name)
        if expected is None:
            if not emitter.is_initializing(type):
                self._set_property(range, emitter, name, value)
                return
            expected = self._new_attribute(range, emitter, name, value)
        if not value.type().isSubtypeOf(expected):
            raise ErrorReport(
                range,
                f"Wrong type for attribute assignment. Expected {type_name(expected)} but got "
                f"{type_name(value.type())}",
            )
        emitter.graph.insertNode(emitter.graph.createSetAttr(self.value, name, value)).setSourceRange(range)

    def _new_attribute(self, range, emitter, name, value):
        """In `__init__` the first assignment declares an attribute."""
        if emitter.graph.insertPoint().owningBlock() is not emitter.graph.block():
            raise ErrorReport(
                range, "First assignment cannot be in a control-flow block. Initialize the field at the top level first"
            )
        self.type().addAttribute(name, value.type())
        return value.type()

    def _set_property(self, range, emitter, name, value):
        getter_and_setter = self.type().properties.get(name)
        if getter_and_setter is None:
            raise ErrorReport(
                range, f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?"
            )
        if getter_and_setter[1] is None:
            raise ErrorReport(range, f"Tried to set read-only attribute: {name}")
        MethodValue(self.value, getter_and_setter[1]).call(range, emitter, [NamedValue(value)], [])

    # ---------------------------------------------------------------------------------------- containers

    def as_tuple(self, range, emitter, size=None):
        type, graph = self.type(), emitter.graph
        if isinstance(type, TupleType) and self.value.node().kind() == "prim::TupleConstruct":
            return [SimpleValue(v) for v in self.value.node().inputs()]
        if isinstance(type, TupleType):
            return [SimpleValue(v) for v in graph.insertNode(graph.createTupleUnpack(self.value)).outputs()]
        if isinstance(type, ListType):
            if size is None:
                raise ErrorReport(range, "cannot statically infer the expected size of a list in this context")
            return [SimpleValue(v) for v in graph.insertNode(graph.createListUnpack(self.value, size)).outputs()]
        if isinstance(type, AnyTupleType):
            raise ErrorReport(
                range,
                "Provided tuple is not fully defined/refined including its element types, please provide "
                "a value of type like Tuple[int, int]",
            )
        raise ErrorReport(range, f"{type_name(type)} cannot be used as a tuple")

    def iter(self, range, emitter):
        type = self.type()
        if isinstance(type, (ListType, StringType, TensorType)):
            return self
        if isinstance(type, DictType):
            return SimpleValue(emitter.graph.insert("aten::keys", [self.value], range=range))
        if isinstance(type, TupleType):
            return SugaredTuple(self.as_tuple(range, emitter))
        raise ErrorReport(range, f"'{type_name(type)}' object is not iterable")

    def length(self, range, emitter):
        if isinstance(self.type(), (ListType, StringType, TensorType)):
            return emitter.graph.insert("aten::len", [self.value], range=range)
        raise ErrorReport(range, f"'{type_name(self.type())}' object is not iterable")

    def item(self, range, emitter, index, type_hint=None):
        type, graph = self.type(), emitter.graph
        if isinstance(type, (ListType, StringType, DictType)):
            return SimpleValue(graph.insert("aten::__getitem__", [self.value, index], range=range))
        if type.isSubtypeOf(TensorType.get()):
            return SimpleValue(graph.insert("aten::select", [self.value, 0, index], range=range))
        if isinstance(type, ClassType):
            return self.attr(range, emitter, "__getitem__").call(range, emitter, [NamedValue(index)], [])
        raise ErrorReport(range, f"'{type_name(type)}' object is not subscriptable")

    def call(self, range, emitter, args, kwargs):
        if isinstance(self.type(), ClassType):
            return self.attr(range, emitter, "__call__").call(range, emitter, args, kwargs)
        return super().call(range, emitter, args, kwargs)


CAST_METHODS = {
    "byte": 0,
    "char": 1,
    "short": 2,
    "int": 3,
    "long": 4,
    "half": 5,
    "float": 6,
    "double": 7,
    "cfloat": 9,
    "cdouble": 10,
}
_TENSOR_PROPERTIES = (
    "dtype device grad data shape is_cuda is_cpu is_sparse is_mkldnn is_quantized is_meta requires_grad "
    "layout T H mT mH itemsize nbytes ndim name real imag"
).split()
_PROPERTIES = {
    TensorType: {
        **{name: "prim" for name in _TENSOR_PROPERTIES},
        "is_leaf": "aten",
        "mT": "aten",
        "mH": "aten",
        "real": "aten",
        "imag": "aten",
    },
    DeviceObjType: {"type": "prim", "index": "prim"},
}


# ------------------------------------------------------------------------------- operators, functions, methods, classes


def takes_self(kind, type):
    """Whether an operator `kind` has an argument `self` for which a value of this type can be passed."""
    for operator in getAllOperatorsFor(kind):
        index = operator.schema.argument_index("self")
        if index is None:
            continue
        env = {}
        formal = operator.schema.arguments[index].type
        if matchTypeVariables(formal, type, env) is not None:
            continue
        concrete = tryEvalTypeVariables(formal, env)
        if concrete is not None and type.isSubtypeOf(concrete):
            return True
    return False


class BuiltinFunction(SugaredValue):
    """An operator, perhaps as a method of `self`."""

    kind = "builtin"

    def __init__(self, name, self_value=None):
        self.name = name
        self.self_value = self_value

    def call(self, range, emitter, args, kwargs):
        self_value = None if self.self_value is None else NamedValue(self.self_value, "self", range)
        return SimpleValue(emit_builtin_call(emitter.graph, self.name, args, kwargs, range, self_value))


class Cast(BuiltinFunction):
    """`int(x)`, `float(x)`, `bool(x)`, `str(x)`: nothing is done for what has the type already."""

    def __init__(self, type, name):
        super().__init__(name)
        self.type = type

    def call(self, range, emitter, args, kwargs):
        if len(args) == 1 and not kwargs:
            value, graph = args[0].value(emitter.graph), emitter.graph
            if value.type().isSubtypeOf(self.type):
                return SimpleValue(value)
            if isinstance(self.type, BoolType) and _has_length(value.type()):
                length = graph.insert("aten::len", [value], range=range)
                return SimpleValue(graph.insert("aten::gt", [length, 0], range=range))
        return super().call(range, emitter, args, kwargs)


def _has_length(type):
    return type.isSubtypeOf(AnyListType.get()) or isinstance(type, (StringType, DictType))


class TensorCast(SugaredValue):
    """`x.float()`."""

    def __init__(self, value, dtype):
        self.value = value
        self.dtype = dtype

    def call(self, range, emitter, args, kwargs):
        graph = emitter.graph
        dtype = graph.insertConstant(self.dtype, IntType.get(), range)
        return SimpleValue(graph.insert("aten::to", [], {"self": self.value, "dtype": dtype}, range))


class MagicMethod(SugaredValue):
    """`len(x)`, `x + y`, …: a method of x if x is an object, else what `base` does."""

    def __init__(self, name, base):
        self.name = name
        self.base = base

    def call(self, range, emitter, args, kwargs):
        if args:
            value = args[0].value(emitter.graph)
            if isinstance(value.type(), ClassType):
                return SimpleValue(value).attr(range, emitter, self.name).call(range, emitter, args[1:], kwargs)
        return self.base.call(range, emitter, args, kwargs)


class FunctionValue(SugaredValue):
    """A compiled function; several if it has overloads."""

    kind = "function"

    def __init__(self, *functions):
        self.functions = functions

    def call(self, range, emitter, args, kwargs):
        for function in self.functions:
            ensure_defined(function, range, "function")
        graph = emitter.graph
        index, matched = match_schemas([f.schema for f in self.functions], range, graph, args, kwargs)
        value = graph.insertFunctionCall(self.functions[index], matched.inputs)
        value.node().setSourceRange(range)
        return SimpleValue(value)


class MethodValue(SugaredValue):
    """A method of an object."""

    kind = "method"

    def __init__(self, self_value, *names):
        self.self_value = self_value
        self.names = names

    def call(self, range, emitter, args, kwargs):
        type, graph = self.self_value.type(), emitter.graph
        schemas = [self._schema(range, type, name) for name in self.names]
        args = [NamedValue(self.self_value), *args]
        index, matched = match_schemas(schemas, range, graph, args, kwargs)
        value = graph.insertMethodCall(self.names[index], schemas[index], matched.inputs)
        value.node().setSourceRange(range)
        return SimpleValue(value)

    def _schema(self, range, type, name):
        if isinstance(type, InterfaceType):
            return type.getMethod(name)
        method = type.getMethod(name)
        ensure_defined(method, range, "method")
        return method.schema


def ensure_defined(function, range, what):
    """Compile a function that is called at `range`."""
    try:
        function.ensure_defined()
    except RecursiveMethodCallError:
        raise ErrorReport(
            range, f" {what} '{function.name}' is called recursively. Recursive calls are not supported"
        ) from None


class ClassValue(SugaredValue):
    """A TorchScript class: calling it makes an object."""

    kind = "class"

    def __init__(self, type, python_class=None):
        self.type = type
        self.python_class = python_class

    def call(self, range, emitter, args, kwargs):
        graph = emitter.graph
        made = graph.insertNode(graph.createObject(self.type)).setSourceRange(range).output()
        if self.type.findMethod("__init__") is None:
            raise ErrorReport(range, f"Class {self.type.name()} does not have an __init__ function defined")
        MethodValue(made, "__init__").call(range, emitter, args, kwargs)
        return SimpleValue(made)

    def attr(self, range, emitter, name):
        if name in self.type.static_methods:
            return FunctionValue(self.type.static_methods[name])
        if name == "__new__":
            return SpecialForm("CreateObject")
        raise ErrorReport(range, f"Tried to lookup unknown attribute on class {self.type.annotation_str}")


class NamedTupleConstructor(SugaredValue):
    def __init__(self, type):
        self.type = type

    def call(self, range, emitter, args, kwargs):
        arguments = [
            Argument(name, t, default_value=self.type.defaults.get(name), has_default=name in self.type.defaults)
            for name, t in zip(self.type.fields, self.type.types)
        ]
        schema = FunctionSchema(self.type.name(), "", tuple(arguments), (Argument("", self.type),))
        matched = match_schema(schema, range, emitter.graph, args, kwargs)
        node = emitter.graph.createTuple(matched.inputs, self.type)
        return SimpleValue(emitter.graph.insertNode(node).setSourceRange(range).output())


class EnumClassValue(SugaredValue):
    kind = "enum class"

    def __init__(self, type):
        self.type = type

    def attr(self, range, emitter, name):
        if name not in self.type.values:
            raise ErrorReport(range, f"{self.type.annotation_str}' has no attribute '{name}'")
        return SimpleValue(emitter.graph.insertConstant(self.type.python_class[name], self.type, range))

    def iter(self, range, emitter):
        members = list(self.type.python_class)
        return SimpleValue(emitter.graph.insertConstant(members, ListType(self.type), range))


class SpecialForm(SugaredValue):
    """A call that looks at its arguments' trees, such as `annotate(List[int], [])`. See `calls.py`."""

    kind = "special form"

    def __init__(self, form):
        self.form = form


class PrintValue(SugaredValue):
    kind = "print"

    def call(self, range, emitter, args, kwargs):
        if kwargs:
            raise ErrorReport(range, "print doesn't accept any keyword arguments")
        graph = emitter.graph
        graph.insertNode(graph.create("prim::Print", [a.value(graph) for a in args], 0)).setSourceRange(range)
        return NoneSugared()


class ExceptionValue(SugaredValue):
    """An exception class. qualified_name: None for AssertionError, as in PyTorch."""

    kind = "exception"

    def __init__(self, name, qualified_name=None):
        self.name = name
        self.qualified_name = qualified_name

    def call(self, range, emitter, args, kwargs):
        graph = emitter.graph
        values = [a.value(graph) for a in [*args, *kwargs]]
        if not values:
            message = graph.insertConstant("", None, range)
        elif len(values) == 1:
            message = values[0]
        else:
            message = graph.insertNode(graph.createTuple(values)).output()
        return ExceptionMessage(message, self.class_name(range, emitter))

    def class_name(self, range, emitter):
        return self.qualified_name and emitter.graph.insertConstant(self.qualified_name, None, range)


class ExceptionMessage(SugaredValue):
    """An exception that is ready to be raised."""

    def __init__(self, message, class_name):
        self.message = message
        self.class_name = class_name


class SliceValue(SugaredValue):
    """A `slice(start, stop, step)` object."""

    kind = "Python slice value"

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step


class BuiltinModule(SugaredValue):
    """`torch`: its attributes are operators."""

    kind = "builtin module"

    def __init__(self, namespace):
        self.namespace = namespace

    def attr(self, range, emitter, name):
        if self.namespace == "aten" and name == "autograd":
            return BuiltinModule("aten")
        return BuiltinFunction(f"{self.namespace}::{name}")


# ------------------------------------------------------------------------------------------------------------ iterables


class RangeValue(SugaredValue):
    """`range(stop)`, `range(start, stop, step)`. iterations: their number, if known."""

    kind = "range"

    def __init__(self, range, emitter, values, iterations=None):
        for i, value in enumerate(values):
            if not isinstance(value.type(), IntType):
                raise ErrorReport(
                    range, f"all inputs of range must be ints, found {type_name(value.type())} in argument {i}"
                )
        if not 1 <= len(values) <= 3:
            count = "at least 1 arguments, got 0" if not values else f"at most 3 arguments, got {len(values)}"
            raise ErrorReport(range, f"range expected {count}")
        self.only_stop = len(values) == 1
        self.iterations = iterations
        constant = emitter.graph.insertConstant
        if self.only_stop:
            self.start, self.stop, self.step = constant(0, None, range), values[0], constant(1, None, range)
        else:
            self.start, self.stop = values[:2]
            self.step = values[2] if len(values) == 3 else constant(1, None, range)

    def iter(self, range, emitter):
        return self

    def static_length(self):
        return self.iterations

    def length(self, range, emitter):
        if self.iterations is not None:
            return emitter.graph.insertConstant(self.iterations, None, range)
        if self.only_stop:
            return self.stop
        return emitter.graph.insert("aten::__range_length", [self.start, self.stop, self.step], range=range)

    def item(self, range, emitter, index, type_hint=None):
        if self.only_stop:
            return SimpleValue(index)
        return SimpleValue(emitter.graph.insert("aten::__derive_index", [index, self.start, self.step], range=range))


class SugaredTuple(SugaredValue):
    """Several SugaredValues, one after the other."""

    kind = "Tuple"

    def __init__(self, parts):
        self.parts = parts

    def as_value(self, range, emitter):
        values = [part.as_value(range, emitter) for part in self.parts]
        return emitter.graph.insertNode(emitter.graph.createTuple(values)).output()

    def as_tuple(self, range, emitter, size=None):
        return self.parts

    def iter(self, range, emitter):
        return self

    def static_length(self):
        return len(self.parts)

    def item(self, range, emitter, index, type_hint=None):
        if not index.isConstant() or not isinstance(index.type(), IntType):
            raise ErrorReport(
                range,
                "Expected integer literal for index. ModuleList/Sequential indexing is only supported "
                "with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is "
                "not a literal. Enumeration is supported, e.g. 'for index, v in enumerate(self): out = "
                "v(inp)'",
            )
        i = index.toIValue()
        if not -len(self.parts) <= i < len(self.parts):
            raise ErrorReport(range, f"Index {i} out of range of length {len(self.parts)}")
        return self.parts[i]


class IterableTree(SugaredValue):
    """Several iterables side by side: `zip(a, b)`, `enumerate(a)`. It is as long as the shortest."""

    kind = "iterabletree"

    def __init__(self, range, children):
        self.children = []
        lengths = [child.static_length() for child in children]
        if any(n is None for n in lengths) and any(n is not None for n in lengths):
            raise ErrorReport(
                range,
                "Can not iterate over a module list or tuple with a value that does not have a statically "
                "determinable length\n",
            )
        self.children = children
        self.iterations = min(lengths) if lengths and lengths[0] is not None else None

    def iter(self, range, emitter):
        return self

    def static_length(self):
        return self.iterations

    def leaves(self):
        return [leaf for c in self.children for leaf in (c.leaves() if isinstance(c, IterableTree) else [c])]

    def length(self, range, emitter):
        graph = emitter.graph
        lengths = [leaf.length(range, emitter) for leaf in self.leaves()]
        together = graph.insertNode(graph.createList(IntType.get(), lengths)).output()
        return graph.insert("prim::min", [together], range=range)

    def item(self, range, emitter, index, type_hint=None):
        return SugaredTuple([child.item(range, emitter, index) for child in self.children])
