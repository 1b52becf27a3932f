"""Constants in the text of a program.

In PyTorch: `printConstant` in `torch/csrc/jit/serialization/python_print.cpp`.
"""

import enum

from ....c10.tensor_impl import TensorImpl
from ..api.object import ScriptObject
from ..ir import constant_text as plain


def constant_text(value, out):
    """A literal; a tensor, an object and text that is not ASCII go into the table of constants of `out`."""
    if isinstance(value, (TensorImpl, ScriptObject)) or (isinstance(value, str) and not value.isascii()):
        return f"CONSTANTS.c{_index(value, out.constants)}"
    if isinstance(value, enum.Enum):
        from ..ir.constants import enum_type

        type = enum_type(value.__class__)
        out.dependencies.add(type)
        return f"{out.type_text(type)}.{value.name}"
    if isinstance(value, tuple):
        inner = ", ".join(constant_text(v, out) for v in value)
        name = ""
        if hasattr(value, "_fields"):
            from ..ir.constants import type_of_value

            name = out.type_text(type_of_value(value))
        return f"{name}({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return _list(value, out)
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{constant_text(k, out)}: {constant_text(v, out)}" for k, v in value.items())
            + "}"
        )
    return plain.constant_text(value)


def _list(values, out):
    if not values:
        return "[]"
    return f"[{', '.join(constant_text(v, out) for v in values)}]"


def _index(value, table):
    """Its number in the table: equal tensors share one."""
    for i, known in enumerate(table):
        if known is value or (
            isinstance(known, TensorImpl) and isinstance(value, TensorImpl) and _equal(known, value)
        ):
            return i
    table.append(value)
    return len(table) - 1


def _equal(a, b):
    return a.dtype == b.dtype and a.device == b.device and a.shape == b.shape and a.equal(b)
