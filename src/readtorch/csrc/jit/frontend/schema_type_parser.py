"""Reads types as graphs and schemas print them.

    int[]   Tensor(a!)?   Dict(str, Tensor[])   (int, float)   Float(4, *, requires_grad=0, device=cpu)
    NamedTuple(x : Tensor, y : int)   __torch__.nets.Net

In PyTorch: `torch/csrc/jit/frontend/schema_type_parser.cpp`; ours also reads named tuples and classes, so
that every graph that was printed can be read back.
"""

import re
from dataclasses import dataclass, replace

from readtorch.c10.device import device as Device
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.csrc.jit.ir.type import (
    AnyClassType,
    AnyEnumType,
    AnyListType,
    AnyTupleType,
    AnyType,
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    FunctionType,
    FutureType,
    GeneratorType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    QSchemeType,
    RRefType,
    StorageType,
    StreamObjType,
    StringType,
    TensorType,
    TupleType,
    VarType,
    union_of,
)

NAMED = {
    "Tensor": TensorType,
    "int": IntType,
    "float": FloatType,
    "complex": ComplexType,
    "bool": BoolType,
    "str": StringType,
    "Scalar": NumberType,
    "number": NumberType,
    "NoneType": NoneType,
    "None": NoneType,
    "Any": AnyType,
    "Device": DeviceObjType,
    "Generator": GeneratorType,
    "Stream": StreamObjType,
    "Storage": StorageType,
    "QScheme": QSchemeType,
    "AnyClassType": AnyClassType,
    "AnyEnumType": AnyEnumType,
    "list": AnyListType,
    "tuple": AnyTupleType,
    "SymInt": IntType,
    "SymBool": BoolType,
    # These are numbers in TorchScript, and a schema prints them by name.
    "ScalarType": IntType,
    "Layout": IntType,
    "MemoryFormat": IntType,
    "Dimname": StringType,
}
NUMBERS_BY_NAME = {"ScalarType", "Layout", "MemoryFormat", "SymInt"}
_SCALAR_TYPES = {name: dtype for dtype, name in SCALAR_TYPE_NAMES.items()}
OF_ONE = {"Future": FutureType, "Await": AwaitType, "RRef": RRefType}
_TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*|-?\d+|[^\s\w])")


class Function:
    """Stands for a function of which only the word `Function` was printed."""

    qualified_name = "Function"


@dataclass
class AliasInfo:
    """The `(a!)` of a schema: the sets of memory that the value may be in, and whether the operator writes to
    it.

    of_list: it follows the brackets, `t[](a!)`: the list is written to. `Tensor(a!)[]`: its elements
    are.
    """

    before: tuple
    after: tuple
    writes: bool
    of_list: bool = False

    @property
    def is_write(self):
        return self.writes

    @property
    def before_set(self):
        return set(self.before)

    @property
    def after_set(self):
        return set(self.after)


class TypeParser:
    """Reads types from a text, one after another.

    classes: qualified name -> type; a name that is not there makes a new, empty class (None: no classes are
    allowed).
    """

    def __init__(self, text, position=0, classes=None):
        self.text = text
        self.position = position
        self.classes = classes
        self.real_name = None  # of the type last read: ScalarType, Layout, MemoryFormat, SymInt, which are numbers

    # ---------------------------------------------------------------------------------------- tokens

    def peek(self):
        match = _TOKEN.match(self.text, self.position)
        return match[1] if match else ""

    def next(self):
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise RuntimeError(f"unexpected end of {self.text!r}")
        self.position = match.end()
        return match[1]

    def take(self, token):
        """Whether `token` comes next; if so, it is passed."""
        if self.peek() != token:
            return False
        self.next()
        return True

    def expect(self, token):
        if not self.take(token):
            raise RuntimeError(
                f"expected {token} but found '{self.peek()}' here:\n{self.text}\n{' ' * self.position}~ <--- HERE"
            )

    def list_of(self, parse, end):
        """What `parse` reads, separated by commas, up to `end`."""
        found = []
        while not self.take(end):
            if found:
                self.expect(",")
            found.append(parse())
        return found

    # ----------------------------------------------------------------------------------------- types

    def type(self):
        """The next type, without alias information."""
        return self.type_and_alias()[0]

    def type_and_alias(self):
        """The next type and its AliasInfo (None if it has none)."""
        found, alias = self._head()
        while True:
            if self.take("["):
                self.length = None if self.peek() == "]" else int(self.next())
                self.expect("]")
                found = ListType(found)
                of_list = self._alias()
                alias = alias if of_list is None else replace(of_list, of_list=True)
            elif self.take("?"):
                found = OptionalType(found)
            else:
                return found, alias

    def _head(self):
        self.length = None  # of a list: how many entries one number stands for
        if self.take("("):
            return TupleType(self.list_of(self.type, ")")), self._alias()
        name = self.next()
        self.real_name = name if name in NUMBERS_BY_NAME else self.real_name
        if name in _SCALAR_TYPES or name.removesuffix("Tensor") in _SCALAR_TYPES:
            return self._tensor(name), None
        if name == "Tensor" and self._facts_follow():
            return self._tensor(name), None
        if name == "Dict":
            self.expect("(")
            key = self.type()
            self.expect(",")
            value = self.type()
            self.expect(")")
            return DictType(key, value), self._alias()
        if name == "Union":
            self.expect("(")
            return union_of(self.list_of(self.type, ")")), None
        if name in OF_ONE:
            closing = {"(": ")", "[": "]"}[self.next()]
            inner = self.type()
            self.expect(closing)
            return OF_ONE[name](inner), self._alias()
        if name == "NamedTuple":
            self.expect("(")
            fields = self.list_of(self._field, ")")
            return TupleType([t for _, t in fields], None, [n for n, _ in fields]), None
        if name == "Function":
            return FunctionType(Function), None
        if "." in name:
            return self._class(name), None
        if name in NAMED:
            return NAMED[name].get(), self._alias()
        if name.islower() or name[:1] == "t":
            return VarType(name), self._alias()
        raise RuntimeError(f"unknown type specifier. {name}")

    def _field(self):
        name = self.next()
        self.expect(":")
        return name, self.type()

    def _class(self, name):
        if self.classes is None:
            raise RuntimeError(f"Expected classes namespace but got {name}")
        if name not in self.classes:
            self.classes[name] = ClassType(name)
        return self.classes[name]

    def _facts_follow(self):
        """After `Tensor`: whether a bracket of sizes, requires_grad or device comes, and not an alias set."""
        return re.match(r"\((\d|\*,|\*\)|requires_grad|device)", self.text[self.position :]) is not None

    def _tensor(self, name):
        dtype = _SCALAR_TYPES.get(name) or _SCALAR_TYPES.get(name.removesuffix("Tensor"))
        has_rank = name in _SCALAR_TYPES
        sizes, facts = [], {}
        if self.peek() == "(":
            self.next()
            self.list_of(lambda: self._fact(sizes, facts), ")")
        if not has_rank and not sizes:
            sizes = None
        undefined = None
        if self.text.startswith("[Undefined]", self.position):
            self.position += len("[Undefined]")
            undefined = True
        return TensorType(dtype, sizes, undefined=undefined, **facts)

    def _fact(self, sizes, facts):
        token = self.next()
        if token == "*":
            sizes.append(None)
        elif token.lstrip("-").isdigit():
            sizes.append(int(token))
        elif token == "strides":
            self.expect("=")
            self.expect("[")
            facts["strides"] = self.list_of(lambda: int(self.next()), "]")
        elif token == "requires_grad":
            self.expect("=")
            facts["requires_grad"] = self.next() == "1"
        elif token == "device":
            self.expect("=")
            name = self.next()
            facts["device"] = Device(f"{name}:{self.next()}" if self.take(":") else name)
        else:
            raise RuntimeError(f"unexpected specifier `{token}` in a Tensor's type")

    # ----------------------------------------------------------------------------------------- alias

    def _alias(self):
        if not re.match(r"\((\*|[a-z](!|\||\)| ->))", self.text[self.position :]):
            return None
        self.next()
        before, writes = self._alias_set()
        after = before
        if self.take("-"):
            self.expect(">")
            after, _ = self._alias_set()
        self.expect(")")
        return AliasInfo(before, after, writes)

    def _alias_set(self):
        names = [self.next()]
        writes = self.take("!")
        while self.take("|"):
            names.append(self.next())
        return tuple(names), writes


def parse_type(text, classes=None):
    """The type that `text` spells."""
    parser = TypeParser(text, classes=classes)
    found = parser.type()
    if parser.peek():
        raise RuntimeError(f"not a type: {text!r}")
    return found
