"""Decompositions: operators in terms of fewer, simpler ones, for compilers that know only these.

    make_fx(f, decomposition_table=core_aten_decompositions())

traces a decomposition in place of each operator that has one. There are two kinds: compositions, which the dispatcher takes apart anyway where
nobody has a kernel, and the functions of `activations.py`, `losses.py`, `norms.py` and `shapes.py`, for operators that have kernels of their own.

In PyTorch: `torch/_decomp/__init__.py` and `decompositions.py`.
"""

from readtorch._ops import OpOverload, ops
from readtorch.aten.dispatcher import registry as operators

from . import activations, losses, norms, shapes  # noqa: F401  (they fill the table)
from .table import (
    decomposition_table,
    get_decompositions,
    meta_table,  # noqa: F401
    pre_autograd_decomposition_table,  # noqa: F401
    register_decomposition,
    remove_decompositions,
)

__all__ = [
    "decomposition_table",
    "register_decomposition",
    "get_decompositions",
    "remove_decompositions",
    "core_aten_decompositions",
]


def core_aten_decompositions():
    """Decompositions of all operators that have one: what is left of a program traced with it are operators of "core ATen" and a few others."""
    table = dict(decomposition_table)
    for operator in operators.values():
        schema = operator.schema
        if operator.composite is None or schema.is_out or schema.is_inplace or operator.kernels:
            continue
        packet = getattr(ops.aten, schema.name, None)
        overload = packet and getattr(packet, schema.overload or "default", None)
        if isinstance(overload, OpOverload) and overload not in table:
            table[overload] = overload.decompose
    return table
