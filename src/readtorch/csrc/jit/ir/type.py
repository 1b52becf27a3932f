"""Types of the values in a graph.

Every type has two spellings: `str()`, which graphs and schemas print (`int[]`, `Tensor?`, `Dict(str,
Tensor)`), and `annotation_str`, which is Python's (`List[int]`, `Optional[Tensor]`, `Dict[str, Tensor]`).

In PyTorch: `aten/src/ATen/core/jit_type_base.h`, `jit_type.h`, `type.cpp`. Explained in the chapter
"JIT: scripting".
"""


class Type:
    """A type. Two are equal when they have the same class and the same parts."""

    def kind(self):
        """The name of the class, as PyTorch spells it."""
        return type(self).__name__

    def containedTypes(self):
        """The types that this one is made of."""
        return []

    def withContained(self, types):
        """The same type made of other parts."""
        return self

    def _parts(self):
        return tuple(self.containedTypes())

    def __eq__(self, other):
        return self is other or (type(self) is type(other) and self._parts() == other._parts())

    def __hash__(self):
        return hash((type(self).__name__, self._parts()))

    def isSubtypeOf(self, other):
        """Whether a value of this type may stand where `other` is asked for."""
        if self == other or isinstance(other, AnyType):
            return True
        if isinstance(other, OptionalType):
            return isinstance(self, NoneType) or self.isSubtypeOf(other.elem)
        return isinstance(other, UnionType) and any(self.isSubtypeOf(t) for t in other.types)

    def hasFreeVariables(self):
        return any(t.hasFreeVariables() for t in self.containedTypes())

    def is_interface_type(self):
        return isinstance(self, InterfaceType)

    def is_module(self):
        return False

    def __repr__(self):
        return self.annotation_str


class _Simple(Type):
    """A type without parts: there is one object per class, which `get()` gives."""

    text = python_text = None

    def __init_subclass__(cls):
        cls._only = None

    @classmethod
    def get(cls):
        if cls._only is None:
            cls._only = cls()
        return cls._only

    def str(self):
        return self.text

    @property
    def annotation_str(self):
        return self.python_text or self.text


class AnyType(_Simple):
    text = "Any"


class NoneType(_Simple):
    text = "NoneType"


class NumberType(_Simple):
    """An int, a float or a complex; which one only the run will tell."""

    text, python_text = "Scalar", "number"


class _Number(_Simple):
    def isSubtypeOf(self, other):
        return isinstance(other, NumberType) or super().isSubtypeOf(other)


class IntType(_Number):
    text = "int"


class FloatType(_Number):
    text = "float"


class ComplexType(_Number):
    text = "complex"


class BoolType(_Simple):
    text = "bool"


class StringType(_Simple):
    text = "str"


class DeviceObjType(_Simple):
    text = "Device"


class GeneratorType(_Simple):
    text = "Generator"


class StreamObjType(_Simple):
    text = "Stream"


class StorageType(_Simple):
    text = "Storage"


class QSchemeType(_Simple):
    text = "QScheme"


class AnyListType(_Simple):
    text = "list"


class AnyTupleType(_Simple):
    text = "tuple"


class AnyClassType(_Simple):
    text = "AnyClassType"


class AnyEnumType(_Simple):
    text = "AnyEnumType"


class VarType(Type):
    """A type variable of a schema: the `t` of `aten::append.t(t[](a!) self, t el)`."""

    def __init__(self, name):
        self.name = name

    def _parts(self):
        return self.name

    def hasFreeVariables(self):
        return True

    def str(self):
        return self.name

    @property
    def annotation_str(self):
        return self.name


class FunctionType(Type):
    """The type of one function: a constant in a graph that a CallFunction can name."""

    def __init__(self, function):
        self.function = function

    def _parts(self):
        return id(self.function)

    def str(self):
        return "Function"

    @property
    def annotation_str(self):
        return self.function.qualified_name


class InterfaceType(Type):
    """A list of methods; every class that has them is a subtype."""

    def __init__(self, name, methods=None, is_module=False):
        self.qualified = name
        self.schemas = dict(methods or {})  # name -> FunctionSchema
        self.module = is_module

    def _parts(self):
        return self.qualified

    def is_module(self):
        return self.module

    def getMethod(self, name):
        return self.schemas.get(name)

    def str(self):
        return f"InterfaceType<{self.qualified.rpartition('.')[2]}>"

    @property
    def annotation_str(self):
        return self.qualified


class EnumType(Type):
    """A Python Enum. values: name -> value; all values have the type `value_type`."""

    def __init__(self, name, value_type, values, python_class=None):
        self.qualified = name
        self.value_type = value_type
        self.values = dict(values)
        self.python_class = python_class

    def _parts(self):
        return self.qualified

    def isSubtypeOf(self, other):
        return isinstance(other, AnyEnumType) or super().isSubtypeOf(other)

    def str(self):
        return f"Enum<{self.qualified}>"

    @property
    def annotation_str(self):
        return self.qualified


from .class_type import ClassType  # noqa: E402, F401
from .container_types import (
    AwaitType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    RRefType,
    TupleType,  # noqa: E402, F401
    UnionType,
    union_of,
    unwrap_optional,
)
from .tensor_type import TensorType  # noqa: E402, F401
