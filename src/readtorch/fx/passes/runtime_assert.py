"""Sizes of inputs are read once, behind the placeholders.

In PyTorch: `torch/fx/passes/runtime_assert.py`, which also writes assertions on sizes that depend on elements.
"""

from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SymInt
from readtorch.fx.experimental.symbolic_shapes import is_accessor_node


def insert_deferred_runtime_asserts(graph):
    """Let each symbol that the graph uses be one node, `sym_size.int` of the first input that has it, or an input itself."""
    nodes = _nodes_of_symbols(graph)
    for node in list(graph.nodes):
        val = node.meta.get("val")
        first = nodes.get(val.node.expr.symbol) if isinstance(val, SymInt) and is_accessor_node(node) else None
        if first is not None and first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)
    for node in nodes.values():
        if node.op != "placeholder" and not node.users:
            graph.erase_node(node)


def _nodes_of_symbols(graph):
    """{symbol: its node}, of which some are new."""
    placeholders, found = graph.find_nodes(op="placeholder"), {}
    with graph.inserting_before(next(node for node in graph.nodes if node.op != "placeholder")):
        for placeholder in placeholders:
            val = placeholder.meta.get("val")
            if isinstance(val, SymInt) and val.node.expr.symbol is not None:
                found.setdefault(val.node.expr.symbol, placeholder)
            for dim, size in enumerate(val.shape if isinstance(val, Tensor) else ()):
                if isinstance(size, SymInt) and size.node.expr.symbol not in (None, *found):
                    node = graph.call_function(ops.aten.sym_size.int, (placeholder, dim))
                    node.meta["val"] = size
                    found[size.node.expr.symbol] = node
    return found
