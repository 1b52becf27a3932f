"""The dispatcher's operators as nodes know them.

A graph has numbers where the dispatcher wants a dtype, a layout or a memory format (ir/enums.py); they are
looked up here.

In PyTorch: `torch/csrc/jit/runtime/register_c10_ops.cpp`.
"""

from readtorch.aten import dispatcher
from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema
from readtorch.csrc.jit.ir.enums import OBJECTS

from .operator import Operator, add_source

_by_name = {}
_indexed = 0  # how many of the dispatcher's operators are in _by_name


def names():
    _index()
    return list(_by_name)


def _index():
    global _indexed
    if _indexed != len(dispatcher.registry):
        _by_name.clear()
        for full_name, operator in list(dispatcher.registry.items()):
            _by_name.setdefault(full_name.partition(".")[0], []).append(operator)
        _indexed = len(dispatcher.registry)


def operators_of(name):
    """The dispatcher's overloads of `name`."""
    _index()
    found = [jit_operator(operator) for operator in _by_name.get(name, ())]
    return sorted(found, key=lambda o: (any(a.is_out for a in o.schema.arguments), _numbers(o.schema)))


def _numbers(schema):
    """Overloads with tensors are tried before those with numbers, as in PyTorch."""
    return sum(a.type.str() == "Scalar" for a in schema.arguments)


def jit_operator(operator):
    """An Operator of the dispatcher as one of ours."""
    schema = parse_schema(str(operator.schema))
    return Operator(schema, lambda node: operation_of(operator, schema))


def operation_of(operator, schema):
    """The function that calls it with a graph's values."""
    tables = [(i, OBJECTS[a.real_name]) for i, a in enumerate(schema.arguments) if a.real_name in OBJECTS]
    if not tables:
        return operator.call

    def call_with_objects(*arguments):
        arguments = list(arguments)
        for i, table in tables:
            if type(arguments[i]) is int:
                arguments[i] = table[arguments[i]]
        return operator.call(*arguments)

    return call_with_objects


add_source(operators_of, names)
