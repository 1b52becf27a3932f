"""What a name or an expression means while a program is compiled.

Most expressions are values of the graph (SimpleValue). Others exist only while compiling: a function that can
be called, a module that has attributes, the `range` of a loop. What each of them can do is its methods; what
it cannot raises.

In PyTorch: `torch/csrc/jit/frontend/sugared_value.cpp`. Explained in the chapter "JIT: scripting".
"""

from ..ir.type import (
    AnyTupleType,
    ClassType,
    DeviceObjType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    StringType,
    TensorType,
    TupleType,
)
from .error_report import ErrorReport
from .schema_matching import NamedValue
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
        """What a loop over it goes through: a SugaredValue with `length` and `item`, or with `static_length`.
        """
        raise ErrorReport(range, f"{self.kind} cannot be used as an iterable")

    def static_length(self):
        """How many turns a loop over it has, if that is known now; then the loop is unrolled."""
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
                range,
                f"hasattr's first argument must be an object or NamedTuple, but got {type_name(type)} "
                "instead",
            )
        return type.findMethod(name) is not None or type.hasAttribute(name) or name in type.constants

    def attr(self, range, emitter, name):
        for look in (self._cast, self._property, self._field, self._member, self._method):
            found = look(range, emitter, name)
            if found is not None:
                return found
        hint = (
            " Did you forget to initialize an attribute in __init__()?"
            if isinstance(self.type(), ClassType)
            else ""
        )
        raise ErrorReport(
            range, f"'{type_name(self.type())}' object has no attribute or method '{name}'.{hint}"
        )

    def _cast(self, range, emitter, name):
        if name in CAST_METHODS and self.type().isSubtypeOf(TensorType.get()):
            return callables.TensorCast(self.value, CAST_METHODS[name])
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
                return callables.MethodValue(self.value, name)
            if type.hasAttribute(name):
                node = graph.createGetAttr(self.value, name)
                return SimpleValue(graph.insertNode(node).setSourceRange(range).output())
            if name in type.constants:
                return SimpleValue(graph.insertConstant(type.constants[name], None, range))
            if name in type.properties:
                return callables.MethodValue(self.value, type.properties[name][0]).call(
                    range, emitter, [], []
                )
        if isinstance(type, InterfaceType) and type.getMethod(name) is not None:
            return callables.MethodValue(self.value, name)
        if isinstance(type, EnumType) and name in ("name", "value"):
            node = graph.create("prim::EnumName" if name == "name" else "prim::EnumValue", [self.value])
            node.output().setType(StringType.get() if name == "name" else type.value_type)
            return SimpleValue(graph.insertNode(node).setSourceRange(range).output())
        return None

    def _method(self, range, emitter, name):
        """An operator that takes it as `self`: `x.foo(y)` is `foo(x, y)`."""
        if name == "type" and callables.takes_self("aten::to", self.type()):
            return callables.BuiltinFunction("aten::to", self.value)
        if callables.takes_self(f"aten::{name}", self.type()):
            return callables.BuiltinFunction(f"aten::{name}", self.value)
        if name == "tolist" and self.type().isSubtypeOf(TensorType.get()):
            return callables.SpecialForm("tolist")
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
                range,
                "First assignment cannot be in a control-flow block. Initialize the field at the top "
                "level first",
            )
        self.type().addAttribute(name, value.type())
        return value.type()

    def _set_property(self, range, emitter, name, value):
        getter_and_setter = self.type().properties.get(name)
        if getter_and_setter is None:
            raise ErrorReport(
                range,
                f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?",
            )
        if getter_and_setter[1] is None:
            raise ErrorReport(range, f"Tried to set read-only attribute: {name}")
        callables.MethodValue(self.value, getter_and_setter[1]).call(range, emitter, [NamedValue(value)], [])

    # ---------------------------------------------------------------------------------------- containers

    def as_tuple(self, range, emitter, size=None):
        type, graph = self.type(), emitter.graph
        if isinstance(type, TupleType) and self.value.node().kind() == "prim::TupleConstruct":
            return [SimpleValue(v) for v in self.value.node().inputs()]
        if isinstance(type, TupleType):
            return [SimpleValue(v) for v in graph.insertNode(graph.createTupleUnpack(self.value)).outputs()]
        if isinstance(type, ListType):
            if size is None:
                raise ErrorReport(
                    range, "cannot statically infer the expected size of a list in this context"
                )
            return [
                SimpleValue(v) for v in graph.insertNode(graph.createListUnpack(self.value, size)).outputs()
            ]
        if isinstance(type, AnyTupleType):
            raise ErrorReport(
                range,
                "Provided tuple is not fully defined/refined including its element types, please provide "
                "a value of type like Tuple[int, int]",
            )
        raise ErrorReport(range, f"{type_name(type)} cannot be used as a tuple")

    def iter(self, range, emitter):
        from .iterables import SugaredTuple  # made of sugared values

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


from . import callables  # noqa: E402  they make SimpleValues
