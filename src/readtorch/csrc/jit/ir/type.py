"""Types of the values in a graph.

Every type has two spellings: `str()`, which graphs and schemas print (`int[]`, `Tensor?`, `Dict(str,
Tensor)`), and `annotation_str`, which is Python's (`List[int]`, `Optional[Tensor]`, `Dict[str, Tensor]`).

In PyTorch: `aten/src/ATen/core/type.cpp`, `jit_type.h`, `union_type.cpp`. Explained in the chapter "JIT: scripting".
"""

from .class_type import ClassType
from .jit_type_base import Type
from .tensor_type import TensorType


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

    def includes(self, other):
        return True


class NoneType(_Simple):
    text = "NoneType"


class NumberType(_Simple):
    """An int, a float or a complex; which one is known at run time only."""

    text, python_text = "Scalar", "number"

    def includes(self, other):
        return isinstance(other, (IntType, FloatType, ComplexType))


class IntType(_Simple):
    text = "int"


class FloatType(_Simple):
    text = "float"


class ComplexType(_Simple):
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

    def includes(self, other):
        return isinstance(other, ListType)


class AnyTupleType(_Simple):
    text = "tuple"

    def includes(self, other):
        return isinstance(other, TupleType)


class AnyClassType(_Simple):
    text = "AnyClassType"

    def includes(self, other):
        return isinstance(other, ClassType)


class AnyEnumType(_Simple):
    text = "AnyEnumType"

    def includes(self, other):
        return isinstance(other, EnumType)


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

    def includes(self, other):
        return isinstance(other, ClassType) and other.provides(self.schemas)

    def is_interface_type(self):
        return True

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

    def str(self):
        return f"Enum<{self.qualified}>"

    @property
    def annotation_str(self):
        return self.qualified


# ----------------------------------------------------------------------------- types that are made of others


class _OfOne(Type):
    """A type with one part, `elem`."""

    def __init__(self, elem):
        self.elem = elem

    def containedTypes(self):
        return [self.elem]

    def withContained(self, types):
        return type(self)(*types)

    def getElementType(self):
        return self.elem


class ListType(_OfOne):
    """A list. It can be written to, so no list is a subtype of another."""

    def str(self):
        return f"{self.elem.str()}[]"

    @property
    def annotation_str(self):
        return f"List[{self.elem.annotation_str}]"

    @staticmethod
    def ofTensors():
        return ListType(TensorType.get())

    @staticmethod
    def ofInts():
        return ListType(IntType.get())


class OptionalType(_OfOne):
    """A value or None."""

    def includes(self, other):
        return isinstance(other, NoneType) or other.isSubtypeOf(self.elem)

    def isSubtypeOf(self, other):
        if isinstance(other, OptionalType):
            return self.elem.isSubtypeOf(other.elem)
        if isinstance(other, UnionType):
            return NoneType.get().isSubtypeOf(other) and self.elem.isSubtypeOf(other)
        return isinstance(other, AnyType)

    def str(self):
        return f"{self.elem.str()}?"

    @property
    def annotation_str(self):
        return f"Optional[{self.elem.annotation_str}]"


class FutureType(_OfOne):
    """What `fork` returns: a value that another task is still computing."""

    def isSubtypeOf(self, other):
        if isinstance(other, FutureType):
            return self.elem.isSubtypeOf(other.elem)
        return super().isSubtypeOf(other)

    def str(self):
        return f"Future[{self.elem.str()}]"

    @property
    def annotation_str(self):
        return f"Future[{self.elem.annotation_str}]"


class AwaitType(_OfOne):
    """A value that is computed when it is asked for."""

    def str(self):
        return f"Await[{self.elem.str()}]"

    @property
    def annotation_str(self):
        return f"Await[{self.elem.annotation_str}]"


class RRefType(_OfOne):
    """A reference to a value in another process."""

    def str(self):
        return f"RRef[{self.elem.str()}]"

    @property
    def annotation_str(self):
        return f"RRef[{self.elem.annotation_str}]"


class DictType(Type):
    def __init__(self, key, value):
        self.key = key
        self.value = value

    def containedTypes(self):
        return [self.key, self.value]

    def withContained(self, types):
        return DictType(*types)

    def getKeyType(self):
        return self.key

    def getValueType(self):
        return self.value

    def str(self):
        return f"Dict({self.key.str()}, {self.value.str()})"

    @property
    def annotation_str(self):
        return f"Dict[{self.key.annotation_str}, {self.value.annotation_str}]"


class TupleType(Type):
    """A tuple; with `fields`, a named one.

    name: the qualified name of a named tuple, such as `__torch__.Point`; None if only its text was seen.
    defaults: field name -> default value.
    """

    def __init__(self, elements, name=None, fields=None, defaults=None):
        self.types = tuple(elements)
        self.qualified = name
        self.fields = tuple(fields) if fields is not None else None
        self.defaults = defaults or {}

    def elements(self):
        return list(self.types)

    containedTypes = elements

    def withContained(self, types):
        return TupleType(types, self.qualified, self.fields, self.defaults)

    def _parts(self):
        return (self.types, self.fields, self.qualified)

    def name(self):
        return self.qualified and self.qualified.rpartition(".")[2]

    def isSubtypeOf(self, other):
        if isinstance(other, TupleType):
            same_fields = other.fields is None or self.fields == other.fields
            return (
                same_fields
                and len(self.types) == len(other.types)
                and all(mine.isSubtypeOf(its) for mine, its in zip(self.types, other.types))
            )
        return super().isSubtypeOf(other)

    def str(self):
        if self.fields is None:
            return f"({', '.join(t.str() for t in self.types)})"
        fields = ", ".join(f"{n} : {t.str()}" for n, t in zip(self.fields, self.types))
        return f"NamedTuple({fields})"

    @property
    def annotation_str(self):
        if self.qualified:
            return self.qualified
        return f"Tuple[{', '.join(t.annotation_str for t in self.types) or '()'}]"


class UnionType(Type):
    """One of several types. Make one with `union_of`, which leaves out what others include."""

    def __init__(self, types):
        self.types = tuple(types)

    def containedTypes(self):
        return list(self.types)

    def withContained(self, types):
        return union_of(types)

    def includes(self, other):
        return any(other.isSubtypeOf(t) for t in self.types)

    def isSubtypeOf(self, other):
        return isinstance(other, AnyType) or all(t.isSubtypeOf(other) for t in self.types)

    def canHoldType(self, t):
        return t.isSubtypeOf(self)

    def str(self):
        return f"Union({', '.join(t.str() for t in self.types)})"

    @property
    def annotation_str(self):
        return f"Union[{', '.join(t.annotation_str for t in self.types)}]"


# The order in which a Union lists its types (that of `TypeKind`).
_UNION_ORDER = [
    "EnumType",
    "TensorType",
    "TupleType",
    "ListType",
    "DictType",
    "FloatType",
    "ComplexType",
    "FutureType",
    "IntType",
    "NoneType",
    "StringType",
    "BoolType",
    "DeviceObjType",
    "ClassType",
]


def union_of(types):
    """The type of a value that has one of `types`: nested unions are opened, and what another includes is
    left out.
    """
    flat = []
    for t in types:
        flat += (
            t.types if isinstance(t, UnionType) else [t.elem, NoneType.get()] if isinstance(t, OptionalType) else [t]
        )
    kept = []
    for t in flat:
        if not any(t.isSubtypeOf(k) for k in kept):
            kept = [k for k in kept if not k.isSubtypeOf(t)] + [t]
    if len(kept) == 1:
        return kept[0]
    if len(kept) == 2 and NoneType.get() in kept:
        return OptionalType(next(t for t in kept if not isinstance(t, NoneType)))
    order = {name: i for i, name in enumerate(_UNION_ORDER)}
    return UnionType(sorted(kept, key=lambda t: (order.get(t.kind(), len(order)), t.str())))


def unwrap_optional(t):
    """What is left of a type once None is ruled out."""
    if isinstance(t, OptionalType):
        return t.elem
    if isinstance(t, UnionType):
        return union_of([part for part in t.types if not isinstance(part, NoneType)])
    return t


# ---------------------------------------------- what types have in common, and what the variables of a schema stand for


def unifyTypes(a, b, default_to_union=False):
    """The least type that includes both, or None. default_to_union: rather than None, their Union."""
    found = _unify(a, b, default_to_union)
    if found is None and default_to_union:
        return union_of([a, b])
    return found


def _unify(a, b, default_to_union):
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.merge(b)
    if a.isSubtypeOf(b):
        return b
    if b.isSubtypeOf(a):
        return a
    if isinstance(a, NoneType) or isinstance(b, NoneType):
        other = b if isinstance(a, NoneType) else a
        return None if isinstance(other, UnionType) else OptionalType(other)
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner = _unify(unwrap_optional(a), unwrap_optional(b), False)
        return None if inner is None else OptionalType(inner)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.types) == len(b.types):
        parts = [unifyTypes(x, y, default_to_union) for x, y in zip(a.types, b.types)]
        return None if None in parts else TupleType(parts)
    if isinstance(a, FutureType) and isinstance(b, FutureType):
        inner = unifyTypes(a.elem, b.elem)
        return None if inner is None else FutureType(inner)
    if isinstance(a, ListType) and isinstance(b, ListType) and _are_tensors(a.elem, b.elem):
        return ListType(a.elem.merge(b.elem))
    return None


def _are_tensors(*types):
    return all(isinstance(t, TensorType) for t in types)


def unifyTypeList(types, default_to_union=False):
    """The least type that includes all of `types`, or None."""
    if not types:
        return None
    found = types[0]
    for t in types[1:]:
        found = unifyTypes(found, t, default_to_union)
        if found is None:
            return None
    return found


def matchTypeVariables(formal, actual, env):
    """Find what the variables in `formal` must stand for so that `actual` fits, and note it in `env` (name ->
    type).

    Returns None, or why it cannot be done. A formal without variables always matches: whether it is a
    subtype is checked elsewhere.
    """
    if not formal.hasFreeVariables():
        return None
    if isinstance(formal, VarType):
        return _bind(formal.name, actual, env)
    if isinstance(formal, OptionalType):
        if isinstance(actual, NoneType):
            return None  # it fits whatever the variable is
        return matchTypeVariables(formal.elem, unwrap_optional(actual), env)
    if type(formal) is not type(actual):
        return f"Cannot match {formal.annotation_str} to {actual.annotation_str}"
    if isinstance(formal, TupleType) and len(formal.types) != len(actual.types):
        return "Cannot match tuples of mismatched size"
    for f, a in zip(formal.containedTypes(), actual.containedTypes()):
        reason = matchTypeVariables(f, a, env)
        if reason is not None:
            return reason
    return None


def _bind(name, actual, env):
    bound = env.get(name)
    both = actual if bound is None else unifyTypes(bound, actual)
    if both is None:
        return (
            f"Type variable '{name}' previously matched to type {bound.annotation_str} is matched to type "
            f"{actual.annotation_str}"
        )
    env[name] = both
    return None


def tryEvalTypeVariables(t, env):
    """`t` with its variables replaced, or None if one is not in `env`."""
    if not t.hasFreeVariables():
        return t
    if isinstance(t, VarType):
        return env.get(t.name)
    parts = [tryEvalTypeVariables(part, env) for part in t.containedTypes()]
    return None if None in parts else t.withContained(parts)


def evalTypeVariables(t, env):
    found = tryEvalTypeVariables(t, env)
    return t if found is None else found
