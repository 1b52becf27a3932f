"""Annotations in the text of a program, as types.

    Tensor   List[int]   Optional[Tuple[Tensor, int]]   Dict[str, Tensor]   int | None   __torch__.nets.Net

In PyTorch: `torch/csrc/jit/frontend/script_type_parser.cpp`. Explained in the chapter "JIT: scripting".
"""

import ast

from readtorch.csrc.jit.ir.type import (
    AnyClassType,
    AnyEnumType,
    AnyListType,
    AnyTupleType,
    AnyType,
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    FutureType,
    GeneratorType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    StorageType,
    StreamObjType,
    StringType,
    TensorType,
    TupleType,
    union_of,
)

from .definition import parse_expression
from .error_report import ErrorReport

_NAMED = {
    "Tensor": TensorType,
    "torch.Tensor": TensorType,
    "int": IntType,
    "float": FloatType,
    "bool": BoolType,
    "complex": ComplexType,
    "str": StringType,
    "Device": DeviceObjType,
    "torch.device": DeviceObjType,
    "Stream": StreamObjType,
    "number": NumberType,
    "None": NoneType,
    "NoneType": NoneType,
    "Any": AnyType,
    "Capsule": AnyType,
    "list": AnyListType,
    "tuple": AnyTupleType,
    "Generator": GeneratorType,
    "torch.Generator": GeneratorType,
    "Storage": StorageType,
    "AnyClassType": AnyClassType,
    "AnyEnumType": AnyEnumType,
}
INFERRED = TensorType.getInferred()  # of a parameter without an annotation; it equals every other Tensor


def type_name(type):
    """A type in an error message."""
    return "Tensor (inferred)" if type is INFERRED else type.annotation_str


class ScriptTypeParser:
    """text: for the ranges of errors. resolver: knows the types that the program has names for."""

    def __init__(self, text, resolver):
        self.text = text
        self.resolver = resolver

    def range(self, node):
        return self.text.range(node)

    def type(self, node):
        """The type that the tree `node` spells. Raises ErrorReport."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return union_of([self.type(node.left), self.type(node.right)])
        name = dotted_name(node)
        if name is None:
            raise ErrorReport(self.range(node), "Expression of type cannot be used in a type expression")
        return self._named(name, node)

    def _constant(self, node):
        if node.value is None:
            return NoneType.get()
        if isinstance(node.value, str):
            inner = parse_expression(node.value, self.range(node))
            for part in ast.walk(inner):
                ast.copy_location(part, node)
            return self.type(inner)
        raise ErrorReport(self.range(node), f"Unknown type name '{node.value}'")

    def _named(self, name, node):
        found = self.resolver.resolve_type(name, self.range(node)) if name not in _NAMED else None
        if found is not None:
            return found
        if name in _NAMED:
            return _NAMED[name].get()
        raise ErrorReport(self.range(node), f"Unknown type name '{name}'")

    def _subscript(self, node):
        name = (dotted_name(node.value) or "").rpartition(".")[2]
        if name not in ("Tuple", "tuple", "Union", *_OF_PARTS):
            name = self.resolver.resolve_generic(name)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name in ("Tuple", "tuple"):
            return TupleType([] if _is_empty_tuple(node.slice) else [self.type(p) for p in parts])
        if name in ("Union",):
            return union_of([self.type(p) for p in parts])
        make, count = _OF_PARTS.get(name, (None, 0))
        if make is None:
            raise ErrorReport(self.range(node.value), f"Unknown type constructor {name}")
        if len(parts) != count:
            raise ErrorReport(
                self.range(node), f" expected exactly {count} element type{'s' * (count > 1)} but found {len(parts)}"
            )
        return make(*[self.type(p) for p in parts])

    def broadcast_length(self, node):
        """`BroadcastingList2[int]` -> 2: how many entries one number stands for; None for anything else."""
        if isinstance(node, ast.BinOp):
            return self.broadcast_length(node.left)
        name = dotted_name(node.value) if isinstance(node, ast.Subscript) else None
        if name == "Optional":
            return self.broadcast_length(node.slice)
        digits = (name or "").removeprefix("BroadcastingList")
        return int(digits) if name and digits != name and digits.isdigit() else None


_OF_PARTS = {
    "List": (ListType, 1),
    "list": (ListType, 1),
    "Optional": (lambda t: union_of([t, NoneType.get()]), 1),
    "Dict": (DictType, 2),
    "dict": (DictType, 2),
    "Future": (FutureType, 1),
    "Final": (lambda t: t, 1),
    **{f"BroadcastingList{n}": (ListType, 1) for n in range(1, 7)},
}


def _is_empty_tuple(node):
    return isinstance(node, ast.Tuple) and (not node.elts or (len(node.elts) == 1 and _is_empty_tuple(node.elts[0])))


def dotted_name(node):
    """`a.b.c` of attribute lookups on a name, or None."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
