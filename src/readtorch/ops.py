"""All operators by name: `ops.aten.add.Tensor`, `print(ops)`, `ops.listing()`.

In PyTorch: `torch/_ops.py`. Explained in the chapter "One operator call".
"""
import sys
from types import ModuleType

from .aten.dispatcher import registry
from .c10.dispatch_key import AUTOGRAD, NAMES


class OpOverload:
    """One operator, callable with its schema's arguments in order."""

    def __init__(self, operator):
        self._operator = operator
        self._schema = operator.schema
        self.__name__ = f"{operator.schema.name}.{operator.schema.overload or 'default'}"

    def __call__(self, *args, **kwargs):
        arguments = list(args)
        for argument in self._schema.arguments[len(args):]:
            if argument.name not in kwargs and not argument.has_default and not argument.type.optional:
                raise RuntimeError(f"aten::{self._schema.name}() is missing value for argument '{argument.name}'. "
                                   f"Declaration: {self._schema}")
            arguments.append(kwargs.get(argument.name, argument.default))
        return self._operator.call(*arguments)

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

    def overloads(self):
        return [op.schema.overload or "default" for op in registry.values() if op.schema.name == self._name]

    def __getattr__(self, overload):
        operator = registry.get(f"aten::{self._name}" + ("" if overload == "default" else f".{overload}"))
        if operator is None:
            raise AttributeError(f"The underlying op of 'aten.{self._name}' has no overload name '{overload}'")
        return OpOverload(operator)

    def __repr__(self):
        return f"<OpOverloadPacket(op='aten.{self._name}')>"


class _Aten(ModuleType):
    def __getattr__(self, name):
        if any(op.schema.name == name for op in registry.values()):
            return OpOverloadPacket(name)
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")

    def __dir__(self):
        return sorted({op.schema.name for op in registry.values()})


aten = _Aten("readtorch.ops.aten")


def operator_keys(operator):
    """What calls of `operator` can reach: kernels by backend, a composite, and Autograd if it has a derivative."""
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
