"""Types in the text of a program, and which classes and functions a text names.

In PyTorch: `PrintDepsTable` and `TypePrinter` of `torch/csrc/jit/serialization/python_print.cpp`.
"""

from ..ir.type import (
    AnyType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    InterfaceType,
    ListType,
    OptionalType,
    TupleType,
    UnionType,
)


class Dependencies:
    """The classes and functions that a text names, in the order in which they were met."""

    def __init__(self):
        self.types = []

    def add(self, type):
        if not any(_same(type, known) for known in self.types):
            self.types.append(type)

    def add_all(self, type):
        """A type and the types in it."""
        if isinstance(type, (ClassType, InterfaceType, EnumType)) or (
            isinstance(type, TupleType) and type.qualified
        ):
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
