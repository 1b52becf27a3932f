"""Python's annotations, as objects, as types of TorchScript.

In PyTorch: `torch/jit/annotations.py`. Explained in the chapter "JIT: scripting".
"""

import enum
import inspect
import types
import typing
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035  programs import them from here

import readtorch
from readtorch._jit_internal import BroadcastingList1, BroadcastingList2, BroadcastingList3  # noqa: F401
from readtorch.c10.module_names import room_of
from readtorch.csrc.jit.api.compilation_unit import python_cu
from readtorch.csrc.jit.frontend.script_type_parser import INFERRED
from readtorch.csrc.jit.ir.constants import enum_type, qualified_name
from readtorch.csrc.jit.ir.type import (
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
    StringType,
    TensorType,
    TupleType,
    union_of,
)

_SIMPLE = {
    float: FloatType,
    int: IntType,
    str: StringType,
    bool: BoolType,
    complex: ComplexType,
    type(None): NoneType,
    None: NoneType,
    typing.Any: AnyType,
    readtorch.device: DeviceObjType,
    readtorch.Generator: GeneratorType,
    readtorch.dtype: IntType,
    readtorch.layout: IntType,
    readtorch.memory_format: IntType,
}


def annotation_to_type(annotation, range=None):
    """The type that an annotation means. Raises ValueError for one that means none."""
    found = try_annotation_to_type(annotation, range)
    if found is None:
        raise ValueError(f"Unknown type annotation: '{annotation}'")
    return found


def try_annotation_to_type(annotation, range=None):
    """The same, or None."""
    if annotation is inspect.Signature.empty:
        return INFERRED
    if isinstance(annotation, typing.Hashable) and annotation in _SIMPLE:
        return _SIMPLE[annotation].get()
    if typing.get_origin(annotation) is not None:
        return _generic(annotation, range)
    if inspect.isclass(annotation):
        return _class(annotation, range)
    script_type = getattr(annotation, "script_interface", None)
    return script_type


def _generic(annotation, range):
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    parts = [try_annotation_to_type(a, range) for a in args if a != () and a is not Ellipsis]
    if origin is typing.Final:
        return parts[0]
    if any(p is None for p in parts):
        return None
    if origin is tuple:
        return TupleType(parts)
    if origin is list:
        return ListType(*parts)
    if origin is dict:
        return DictType(*parts)
    if origin in (typing.Union, types.UnionType):
        return union_of(parts)
    return FutureType(parts[0]) if origin is readtorch.jit.Future else None


def _class(cls, range):
    if issubclass(cls, readtorch.Tensor):
        return TensorType.get()
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return named_tuple_type(cls)
    if issubclass(cls, enum.Enum):
        return _registered(enum_type(cls))
    if issubclass(cls, readtorch.nn.Module) or cls is readtorch.jit.Future:
        return None
    if cls.__module__ in ("builtins", "typing") or room_of(cls.__module__) is not None:
        return None
    from ._recursive import try_script_class  # it compiles methods, which have annotations

    return try_script_class(cls)


def named_tuple_type(cls):
    """The TupleType of a NamedTuple class; fields without annotation are tensors."""
    name = qualified_name(cls)
    known = python_cu.get_type(name)
    hints = typing.get_type_hints(cls) if cls.__dict__.get("__annotations__") else {}
    types = [annotation_to_type(hints[f]) if f in hints else INFERRED for f in cls._fields]
    made = TupleType(types, name, cls._fields, cls._field_defaults)
    if known is not None:
        if not known.isSubtypeOf(made):
            raise RuntimeError(f"Can't redefine NamedTuple: {known.annotation_str}")
        return known
    return python_cu.register_type(made)


def _registered(type):
    return python_cu.get_type(type.qualified) or python_cu.register_type(type)
