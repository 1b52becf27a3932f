"""Moves all constants to the beginning, each once.

    before                                        after
    %1 : int = prim::Constant[value=1]()          %1 : int = prim::Constant[value=1]()
    %2 : Tensor = aten::add(%x, %y, %1)           %2 : Tensor = aten::add(%x, %y, %1)
    %3 : int = prim::Constant[value=1]()          %4 : Tensor = aten::add(%2, %y, %1)
    %4 : Tensor = aten::add(%2, %y, %3)

In PyTorch: `torch/csrc/jit/passes/constant_pooling.cpp`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.ir.alias_analysis import AliasDb
from readtorch.csrc.jit.ir.node_hashing import node_key


def ConstantPooling(graph):
    alias_db = AliasDb(graph)
    known = {}
    for node in graph.all_nodes():
        if node.kind() != "prim::Constant":
            continue
        first = known.setdefault(node_key(node), node)
        if first is node:
            _to_front(node, graph)
        elif alias_db.safeToChangeAliasingRelationship(node.output(), first.output()):
            node.replaceAllUsesWith(first)
            node.destroy()


def _to_front(node, graph):
    """Before everything else; constants found later go before those found earlier, as in PyTorch."""
    graph_first = graph.block().nodes()[0]
    if node is not graph_first:
        node.moveBefore(graph_first)
