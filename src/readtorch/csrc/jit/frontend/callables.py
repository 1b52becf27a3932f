"""What can be called in a program: operators, functions, methods, classes, casts, exceptions.

In PyTorch: `torch/csrc/jit/frontend/sugared_value.h`. Explained in the chapter "JIT: scripting".
"""

from ..api.function_impl import RecursiveMethodCallError
from ..ir.function_schema import Argument, FunctionSchema
from ..ir.type import AnyListType, BoolType, ClassType, DictType, InterfaceType, IntType, ListType, StringType
from ..ir.unification import matchTypeVariables, tryEvalTypeVariables
from ..runtime.operator import getAllOperatorsFor
from .error_report import ErrorReport
from .schema_matching import NamedValue, emit_builtin_call, match_schema, match_schemas
from .sugared_value import NoneSugared, SimpleValue, SugaredValue


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
                return (
                    SimpleValue(value).attr(range, emitter, self.name).call(range, emitter, args[1:], kwargs)
                )
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
            Argument(
                name, t, default_value=self.type.defaults.get(name), has_default=name in self.type.defaults
            )
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
