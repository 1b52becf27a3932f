"""Python values in a graph: which type they have, and the prim::Constant that holds one.

In PyTorch: `torch/csrc/jit/ir/constants.cpp`; `tryToInferType` in `torch/csrc/jit/python/pybind_utils.h`.
"""

import enum

from readtorch.c10.device import device as Device
from readtorch.c10.module_names import is_in, room_of
from readtorch.c10.tensor_impl import TensorImpl

from .enums import as_number
from .type import (
    BoolType,
    ComplexType,
    DeviceObjType,
    DictType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    ListType,
    NoneType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    unifyTypeList,
)

_OF_PYTHON = {
    bool: BoolType,
    int: IntType,
    float: FloatType,
    complex: ComplexType,
    str: StringType,
    type(None): NoneType,
    Device: DeviceObjType,
}


def type_of_value(value):
    """The type that a Python value has in a graph. Raises RuntimeError if it has none."""
    value = as_number(value)
    if type(value) in _OF_PYTHON:
        return _OF_PYTHON[type(value)].get()
    if isinstance(value, TensorImpl):
        return TensorType.get()
    if hasattr(value, "script_type"):  # objects, enums, futures and functions say it themselves
        return value.script_type()
    if isinstance(value, enum.Enum):
        return enum_type(type(value))
    if isinstance(value, tuple):
        return _tuple_type(value)
    if isinstance(value, list):
        return ListType(_element_type(value, "List"))
    if isinstance(value, dict):
        return DictType(_element_type(list(value), "Dictionary"), _element_type(list(value.values()), "Dictionary"))
    if isinstance(value, (int, str)):  # subclasses, such as Size's entries
        return IntType.get() if isinstance(value, int) else StringType.get()
    raise RuntimeError(
        f"Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs "
        f"or outputs of traced functions, but instead got value of type {type(value).__name__}.\n"
        f"Value: {value}"
    )


def _tuple_type(value):
    types = [type_of_value(v) for v in value]
    if not hasattr(value, "_fields"):
        return TupleType(types)
    return TupleType(types, qualified_name(type(value)), value._fields, value._field_defaults)


def _element_type(values, what):
    if not values:
        raise RuntimeError(f"{what} trace inputs must have elements")
    found = unifyTypeList([type_of_value(v) for v in values])
    if found is None:
        raise RuntimeError(
            f"{what} inputs to traced functions must have consistent element type. "
            f"Found {' and '.join(dict.fromkeys(type_of_value(v).annotation_str for v in values))}"
        )
    return found


def qualified_name(cls):
    """The name of a Python class or function in TorchScript: `__torch__.` and where it is defined.

    This library's are called as PyTorch's, so that archives of both name the same things.
    """
    name = "_lambda" if cls.__name__ == "<lambda>" else cls.__name__
    module = cls.__module__ or "readtorch"  # generated operators have none
    if is_in("nn.functional", module):
        module = "torch.nn.functional"  # one file there
    elif room_of(module) is not None:
        module = f"torch.{room_of(module)}".removesuffix(".")
    return f"__torch__.{name}" if module == "__main__" else f"__torch__.{module}.{name}"


def enum_type(cls):
    """The EnumType of a Python Enum."""
    types = [type_of_value(member.value) for member in cls]
    value_type = unifyTypeList(types)
    if value_type is None or not all(t == types[0] for t in types):
        raise RuntimeError(f"Enum {cls} has values of different types")
    return EnumType(qualified_name(cls), value_type, {m.name: m.value for m in cls}, cls)


# --------------------------------------------------------------------------------------------- prim::Constant


def insert_constant(graph, value, type=None, range=None):
    """Insert a prim::Constant with the value `value`; returns its output."""
    node = graph.create("prim::Constant")
    set_constant(node, as_number(value), type)
    if range is not None:
        node.setSourceRange(range)
    return graph.insertNode(node).output()


def set_constant(node, value, type=None):
    """Give the prim::Constant `node` a value. type: where the value does not determine it (None, an empty
    list).
    """
    output = node.output()
    if value is None:
        output.setType(type if isinstance(type, OptionalType) else NoneType.get())
    elif isinstance(value, bool):
        node.i_("value", int(value))
        output.setType(BoolType.get())
    elif isinstance(value, int):
        node.i_("value", int(value))
        output.setType(IntType.get())
    elif isinstance(value, float):
        node.f_("value", value)
        output.setType(FloatType.get())
    elif isinstance(value, complex):
        node.c_("value", value)
        output.setType(ComplexType.get())
    elif isinstance(value, str):
        node.s_("value", value)
        output.setType(StringType.get())
    elif isinstance(value, Device):
        node.s_("value", str(value))
        output.setType(DeviceObjType.get())
    elif isinstance(value, TensorImpl):
        _set_tensor(node, value)
    else:
        node.ival_("value", value)
        output.setType(type if isinstance(type, Type) else type_of_value(value))


def _set_tensor(node, value):
    if value.requires_grad:
        raise RuntimeError(
            "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
            f"input, or detaching the gradient\nTensor:\n{value}"
        )
    node.t_("value", value)
    node.output().inferTypeFrom(value)


def constant_value(node):
    """The value of a prim::Constant, as a Python value."""
    type = node.output().type()
    if isinstance(type, FunctionType):
        return type.function
    if not node.hasAttribute("value"):
        return None
    value = node.attribute("value")
    if isinstance(type, BoolType):
        return bool(value)
    return Device(value) if isinstance(type, DeviceObjType) else value
