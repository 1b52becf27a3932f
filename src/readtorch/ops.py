"""All operators by name: `ops.aten.add.Tensor`, `print(ops)`, `ops.listing()`.

In PyTorch: `torch/_ops.py`. Explained in the chapter "One operator call".
"""

import functools
import sys
from types import ModuleType

from .aten.dispatcher import registry
from .aten.python_arg_parser import REJECTED, TooLarge, convert
from .c10.dispatch_key import AUTOGRAD, NAMES


class OpOverload:
    """One operator, callable with its schema's arguments in order."""

    def __init__(self, operator):
        self._operator = operator
        self._schema = operator.schema
        self.__name__ = f"{operator.schema.name}.{operator.schema.overload or 'default'}"

    def __call__(self, /, *args, **kwargs):
        return self._operator.call(*bind(self._schema, args, kwargs))

    def keys(self):
        """The names of the keys that this operator has a kernel for."""
        return operator_keys(self._operator)

    def __str__(self):
        return f"aten.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='aten.{self._schema.name}', overload='{self._schema.overload or 'default'}')>"


class OpOverloadPacket:
    """All overloads of one operator name."""

    def __init__(self, name):
        self._name = name
        self._operators = [op for op in registry.values() if op.schema.name == name]

    def __call__(self, /, *args, **kwargs):
        """Calls the first overload that the arguments fit. Raises RuntimeError if none is."""
        failures = []
        for operator in self._operators:
            try:
                bound = bind(operator.schema, args, kwargs)
            except RuntimeError as error:
                failures.append(str(error))
                continue
            return operator.call(*bound)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n"
            + "\n\n".join(failures)
            + "\n\n"
        )

    def overloads(self):
        return [op.schema.overload or "default" for op in self._operators]

    def __getattr__(self, overload):
        operator = registry.get(f"aten::{self._name}" + ("" if overload == "default" else f".{overload}"))
        if operator is None:
            raise AttributeError(f"The underlying op of 'aten.{self._name}' has no overload name '{overload}'")
        return OpOverload(operator)

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


# How the messages call a type of a schema.
_TYPE_NAMES = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}


def bind(schema, args, kwargs):
    """The arguments in the schema's order, converted to its types. Raises RuntimeError.

    In PyTorch: `createStackForSchema` and `tryMatchSchema` in `torch/csrc/jit/python/pybind_utils.h`.
    """
    if len(args) + len(kwargs) > len(schema.arguments):
        raise RuntimeError(
            f"aten::{schema.name}() expected at most {len(schema.arguments)} argument(s) but "
            f"received {len(args) + len(kwargs)} argument(s). Declaration: {schema}"
        )
    positional = sum(not a.keyword_only for a in schema.arguments)
    if len(args) > positional:
        raise RuntimeError(
            f"aten::{schema.name}() takes {positional} positional argument(s) but {len(args)} "
            f"was/were given.  Declaration: {schema}"
        )
    bound = [_converted(schema, i, value) for i, value in enumerate(args)]
    for position in range(len(args), len(schema.arguments)):
        argument = schema.arguments[position]
        if argument.name in kwargs:
            bound.append(_converted(schema, position, kwargs[argument.name]))
        elif argument.has_default or argument.type.optional:
            bound.append(default_of(argument))
        else:
            raise RuntimeError(
                f"aten::{schema.name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
            )
    unknown = [name for name in kwargs if all(a.name != name for a in schema.arguments)]
    if unknown:
        raise RuntimeError(
            f"Unknown keyword argument '{unknown[0]}' for operator 'aten::{schema.name}'. Schema: {schema}"
        )
    return bound


def default_of(argument):
    """An argument's default as its type has it: the schema spells `int64` and `mean` as words and 0 for (0, 0)."""
    if argument.default is None or argument.type.is_tensor:
        return argument.default
    return convert(argument.type, argument.default, numbers_as_tensors=False)


def _converted(schema, position, value):
    argument = schema.arguments[position]
    if value is None and argument.type.optional:
        return None
    converted = _as_type(argument.type, value, schema.name.removesuffix("_") in NUMBERS_AS_TENSORS)
    if converted is not REJECTED:
        return converted
    expected = _TYPE_NAMES.get(argument.type.base, argument.type.base)
    expected = f"List[{expected}]" if argument.type.is_list else expected
    expected = f"Optional[{expected}]" if argument.type.optional else expected
    raise RuntimeError(
        f"aten::{schema.name}() Expected a value of type '{expected}' for argument "
        f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
        f"Position: {position}\nValue: {value!r}\nDeclaration: {schema}\n"
        f"Cast error details: {_reason(argument.type, value)}"
    )


# The operators that take a number in a tensor's place. In PyTorch: `should_allow_numbers_as_tensors`.
NUMBERS_AS_TENSORS = {
    "add",
    "sub",
    "subtract",
    "mul",
    "multiply",
    "div",
    "divide",
    "true_divide",
    "floor_divide",
    "copy",
    "to",
    "_to_copy",
}


def _as_type(kind, value, numbers_as_tensors):
    """`value` as a schema's type, or REJECTED: a bool may be any number, a dtype has no other name than its own."""
    if kind.base == "bool" and not kind.is_list and (value is None or isinstance(value, (int, float))):
        return bool(value)
    if kind.base == "ScalarType" and isinstance(value, str):
        return REJECTED
    try:
        return convert(kind, value, numbers_as_tensors)
    except TooLarge:
        return REJECTED


def _reason(kind, value):
    """Why a value is no value of a type: numbers and tensors are cast by PyTorch, the others by pybind11."""
    shown = f"{value}"
    if kind.base == "Scalar" and not kind.is_list:
        return f"Cannot cast {shown} to number"
    if kind.base == "Tensor" and not kind.is_list:
        return f"Unable to cast {shown} to Tensor"
    if kind.base in ("int", "float") and kind.is_list and not kind.optional and isinstance(value, (list, tuple)):
        value = next((v for v in value if _as_type(type(kind)(kind.base), v, False) is REJECTED), value)
    return (
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or "
        "compile in debug mode for details)"
    )


@functools.lru_cache(1)
def operator_names(count):
    """The names of all operators; `count`: how many there are, for families may still be coming."""
    return {op.schema.name for op in registry.values()}


class _Aten(ModuleType):
    def __getattr__(self, name):
        if name in operator_names(len(registry)):
            return OpOverloadPacket(name)
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")

    def __dir__(self):
        return sorted(operator_names(len(registry)))


aten = _Aten("readtorch.ops.aten")


def operator_keys(operator):
    """What calls of `operator` can reach: kernels by backend, a composite, and Autograd if it has a
    derivative.
    """
    keys = [NAMES[key] for key in operator.kernels]
    if operator.composite is not None:
        keys.append("CompositeImplicitAutograd")
    if (operator.variant_of or operator).derivative is not None and AUTOGRAD not in operator.kernels:
        keys.append("Autograd")
    return keys


def listing():
    """All operators as (schema text, key names), sorted by name."""
    return [(str(op.schema), operator_keys(op)) for _, op in sorted(registry.items())]


sys.modules[aten.__name__] = aten
