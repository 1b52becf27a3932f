"""The tables of decompositions. In PyTorch: `torch/_decomp/__init__.py`."""

from collections import defaultdict

from readtorch._ops import OpOverloadPacket
from readtorch.utils._pytree import tree_leaves

tables = {"post_autograd": {}, "pre_autograd": {}, "meta": {}}
decomposition_table = tables["post_autograd"]
pre_autograd_decomposition_table = tables["pre_autograd"]
meta_table = tables["meta"]


def register_decomposition(aten_op, registry=None, *, type="post_autograd"):
    """Decorator: the function takes an operator's arguments and does its work by others.

    aten_op: an overload, a packet (all of its overloads), or a list of such. registry: the table that it goes into, else that of this
    `type`. Raises RuntimeError for an operator that has one.
    """
    table = tables[checked(type)] if registry is None else registry

    def decorator(function):
        for overload in overloads_of(tree_leaves(aten_op)):
            if overload in table:
                raise RuntimeError(f"duplicate registrations for {overload}")
            table[overload] = function
        return function

    return decorator


def checked(type):
    if type not in tables:
        raise AssertionError(f"type must be one of post_autograd, pre_autograd, or meta, got {type}")
    return type


def overloads_of(aten_ops):
    for op in aten_ops:
        yield from [getattr(op, name) for name in op.overloads()] if isinstance(op, OpOverloadPacket) else [op]


def get_decompositions(aten_ops, type="post_autograd"):
    """operator -> decomposition, of those that have one. aten_ops: overloads and packets."""
    table = tables[checked(type)]
    by_packet = defaultdict(list)
    for overload in table:
        by_packet[overload.overloadpacket].append(overload)
    found = {}
    for op in aten_ops:
        wanted = by_packet.get(op, []) if isinstance(op, OpOverloadPacket) else [op]
        found.update((overload, table[overload]) for overload in wanted if overload in table)
    return found


def remove_decompositions(decompositions, aten_ops):
    """Takes operators out of a dict of decompositions, if they are in it."""
    for overload in overloads_of(aten_ops):
        decompositions.pop(overload, None)
