"""Computes what is asked for twice once.

    before                                  after
    %1 : Tensor = aten::exp(%x)             %1 : Tensor = aten::exp(%x)
    %2 : Tensor = aten::exp(%x)             %3 : Tensor = aten::add(%1, %1, %one)
    %3 : Tensor = aten::add(%1, %2, %one)

In PyTorch: `torch/csrc/jit/passes/common_subexpression_elimination.cpp`. Explained in the chapter
"JIT: scripting".
"""

from readtorch.csrc.jit.ir.alias_analysis import AliasDb
from readtorch.csrc.jit.ir.node_hashing import node_key


def EliminateCommonSubexpression(graph):
    """Two nodes are the same if kind, inputs, attributes and output types are, and nothing they touch is
    written to.

    Returns whether anything was found.
    """
    return _Eliminator(graph).block(graph.block(), {})


class _Eliminator:
    def __init__(self, graph):
        self.alias_db = AliasDb(graph)

    def block(self, block, known):
        """known: key -> node, of what has been computed before this block."""
        known, changed = dict(known), False
        for node in block.nodes():
            for inner in node.blocks():
                changed |= self.block(inner, known)
            if not self.may_be_shared(node):
                continue
            key = node_key(node)
            first = known.setdefault(key, node)
            if first is not node and self.may_replace(node, first):
                node.replaceAllUsesWith(first)
                node.destroy()
                changed = True
        return changed

    def may_be_shared(self, node):
        return not (
            node.blocks()
            or node.hasSideEffects()
            or node.isNondeterministic()
            or self.alias_db.hasWriters(node)
            or node.kind() in ("prim::CreateObject", "prim::Uninitialized", "prim::GetAttr")
        )

    def may_replace(self, node, first):
        return all(
            self.alias_db.safeToChangeAliasingRelationship(a, b) for a, b in zip(node.outputs(), first.outputs())
        )
