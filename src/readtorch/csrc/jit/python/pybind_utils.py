"""Calls of TorchScript functions from Python: arguments are bound to the signature and converted to its types.

In PyTorch: `torch/csrc/jit/python/pybind_utils.h`, `torch/csrc/jit/python/pybind_utils.cpp`. Explained in the chapter "JIT: scripting".
"""

from enum import Enum

import numpy as np

from readtorch.c10.device import device as Device
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.scalar_type import dtype
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.frontend.tracer import type_of_tuple
from readtorch.csrc.jit.ir.enums import as_number
from readtorch.csrc.jit.ir.type import (
    AnyListType,
    AnyTupleType,
    AnyType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceObjType,
    DictType,
    EnumType,
    FloatType,
    FutureType,
    InterfaceType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    UnionType,
)

REJECTED = object()  # the conversion's answer for a value that does not fit


def call_function(function, args, kwargs):
    """`function(*args, **kwargs)`. Raises RuntimeError for arguments that do not fit its schema.

    During a trace the call is recorded as one node.
    """
    schema = function.schema
    arguments = bind(schema, args, kwargs)
    if threads_with_modes and tls.tracer is not None:
        return _traced_call(function, arguments)
    return to_python(function.executor().run(arguments))


def make_entry(function):
    """The function (args, kwargs) -> result through which calls of `function` go.

    Tensors by position, as many as there are parameters, need no conversion: they go straight to the
    executor.
    """
    arguments = function.schema.arguments
    count = len(arguments)
    executor = function.executor()
    if not all(isinstance(a.type, TensorType) for a in arguments):
        return lambda args, kwargs: call_function(function, args, kwargs)

    def entry(args, kwargs):
        if kwargs or len(args) != count or (threads_with_modes and tls.tracer is not None):
            return call_function(function, args, kwargs)
        for value in args:
            if not isinstance(value, TensorImpl):
                return call_function(function, args, kwargs)
        outputs = executor.plan().run(args)
        return outputs[0] if len(outputs) == 1 else to_python(outputs)

    return entry


def to_python(outputs):
    """What a function returns: its only output, or a tuple of them."""
    if len(outputs) == 1:
        return outputs[0]
    return tuple(outputs) if outputs else None


def bind(schema, args, kwargs):
    """The values of a call in the schema's order."""
    if len(args) > len(schema.arguments):
        raise RuntimeError(
            f"{schema.name}() expected at most {len(schema.arguments)} argument(s) but received {len(args)} "
            f"argument(s). Declaration: {schema}"
        )
    values, used = [], 0
    for i, argument in enumerate(schema.arguments):
        if i < len(args):
            if argument.name in kwargs:
                raise RuntimeError(
                    f"Argument '{argument.name}' specified both as positional and keyword argument. Schema: {schema}"
                )
            values.append(argument_value(schema, i, args[i]))
        elif argument.name in kwargs:
            values.append(argument_value(schema, i, kwargs[argument.name]))
            used += 1
        elif argument.has_default:
            values.append(argument.default_value)
        else:
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
            )
    if used < len(kwargs):
        names = {a.name for a in schema.arguments}
        unknown = [name for name in kwargs if name not in names]
        raise RuntimeError(f"Unknown keyword argument '{unknown[0]}' for operator '{schema.name}'. Schema: {schema}")
    return values


def argument_value(schema, position, value):
    """One argument as a value of its type."""
    argument = schema.arguments[position]
    if isinstance(argument.type, TensorType) and isinstance(value, TensorImpl):
        return value
    converted = to_ivalue(value, argument.type)
    if converted is not REJECTED:
        return converted
    is_tensor = isinstance(argument.type, TensorType)
    inferred = is_tensor and argument.type.isInferredType()
    kind = "Tensor (inferred)" if inferred else argument.type.annotation_str
    hint = (
        f"Inferred '{argument.name}' to be of type 'Tensor' because it was not annotated with an explicit type.\n"
        if inferred
        else ""
    )
    details = (
        f"Unable to cast {value} to Tensor"
        if is_tensor
        else f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define "
        "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )
    number = position - (schema.arguments[0].name == "self")
    raise RuntimeError(
        f"{schema.name}() Expected a value of type '{kind}' for argument '{argument.name}' but instead found "
        f"type '{type(value).__name__}'.\n{hint}Position: {number}\nValue: {value!r}\nDeclaration: {schema}\n"
        f"Cast error details: {details}"
    )


# ------------------------------------------------------------------------------------------------ conversions


def to_ivalue(value, type):
    """A Python value as a value of type `type`, or REJECTED."""
    convert = _CONVERSIONS.get(type.__class__)
    return value if convert is None else convert(value, type)


def _tensor(value, type):
    """None is accepted as well: in PyTorch an undefined tensor."""
    return value if isinstance(value, TensorImpl) or value is None else REJECTED


def _number(kind):
    def convert(value, type):
        if isinstance(value, TensorImpl):
            number = value.item() if value._array.size == 1 and not value.requires_grad else REJECTED
            return REJECTED if kind is int and not isinstance(number, int) else kind(number)
        value = as_number(value)
        if isinstance(value, (np.generic,)):
            value = value.item()
        if (
            kind is float
            and isinstance(value, (int, float))
            or kind is complex
            and isinstance(value, (int, float, complex))
        ):
            return kind(value)
        return kind(value) if kind is int and isinstance(value, int) else REJECTED

    return convert


def _scalar(value, type):
    if isinstance(value, TensorImpl):
        return value.item() if value._array.ndim == 0 else REJECTED
    return value if isinstance(value, (int, float, complex)) else REJECTED


def _bool(value, type):
    if isinstance(value, TensorImpl) and value._array.size == 1:
        return bool(value)
    return value if isinstance(value, bool) else REJECTED


def _instance(*kinds):
    return lambda value, type: value if isinstance(value, kinds) else REJECTED


def _device(value, type):
    return Device(value) if isinstance(value, (Device, str)) else REJECTED


def _optional(value, type):
    return None if value is None else to_ivalue(value, type.elem)


def _union(value, type):
    found = (to_ivalue(value, t) for t in _exact_first(value, type.types))
    return next((v for v in found if v is not REJECTED), REJECTED)


def _exact_first(value, types):
    """In a Union of int and float an int stays one: the type that fits as it is goes first."""
    exact = {int: IntType, float: FloatType, bool: BoolType, str: StringType}.get(type(value))
    return sorted(types, key=lambda t: not isinstance(t, exact)) if exact else types


def _list(value, type):
    if not isinstance(value, (list, tuple)):
        return REJECTED
    converted = [to_ivalue(v, type.elem) for v in value]
    return REJECTED if any(v is REJECTED for v in converted) else converted


def _dict(value, type):
    if not isinstance(value, dict):
        return REJECTED
    converted = {to_ivalue(k, type.key): to_ivalue(v, type.value) for k, v in value.items()}
    return REJECTED if REJECTED in converted or any(v is REJECTED for v in converted.values()) else converted


def _tuple(value, type):
    if not isinstance(value, (tuple, list)) or len(value) != len(type.types):
        return REJECTED
    converted = [to_ivalue(v, t) for v, t in zip(value, type.types)]
    if any(v is REJECTED for v in converted):
        return REJECTED
    return type_of_tuple(value)(converted)


def _object(value, type):
    """An object of the class; what wraps one (a ScriptModule) gives it as `_c`."""
    value = getattr(value, "_c", value)
    fits = hasattr(value, "script_type") and value.script_type().isSubtypeOf(type)
    return value if fits else REJECTED


def _enum(value, type):
    return (
        value
        if isinstance(value, Enum) and (type.python_class is None or isinstance(value, type.python_class))
        else REJECTED
    )


def _int(value, type):
    return as_number(value) if isinstance(value, dtype) else _as_int(value, type)


_as_int = _number(int)
_CONVERSIONS = {
    TensorType: _tensor,
    IntType: _int,
    FloatType: _number(float),
    ComplexType: _number(complex),
    NumberType: _scalar,
    BoolType: _bool,
    StringType: _instance(str),
    NoneType: _instance(type(None)),
    DeviceObjType: _device,
    OptionalType: _optional,
    UnionType: _union,
    ListType: _list,
    DictType: _dict,
    TupleType: _tuple,
    ClassType: _object,
    InterfaceType: _object,
    EnumType: _enum,
    FutureType: _instance(object),
    AnyListType: _instance(list),
    AnyTupleType: _instance(tuple),
    AnyType: lambda value, type: as_number(getattr(value, "_c", value)),
}


# ---------------------------------------------------------------------------------------------------- tracing


def _traced_call(function, arguments):
    """A call during a trace: a node that calls the function, which itself is not traced."""
    from readtorch.csrc.jit.frontend.tracer import Paused  # the tracer calls functions, too

    state = tls.tracer
    graph = state.graph
    inputs = [state.get_value(value) for value in arguments]
    is_method = bool(arguments) and hasattr(arguments[0], "slots")
    if is_method:
        output = graph.insertMethodCall(function.name, function.schema, inputs)
    else:
        output = graph.insertFunctionCall(function, inputs)
    with Paused():
        result = to_python(function.executor().run(arguments))
    if isinstance(result, TensorImpl):
        state.set_outputs_of_call(output, result)
    else:
        state.set_value(result, output)
    return result
