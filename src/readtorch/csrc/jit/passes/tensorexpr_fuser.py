"""Puts chains of pointwise operators, and the reduction that ends one, into groups: one kernel each.

    before                                     after
    %1 : Tensor = aten::mul(%x, %y)            %2 : Tensor = prim::TensorExprGroup_0(%x, %y)
    %2 : Tensor = aten::tanh(%1)

A node joins the group that makes one of its inputs, unless the way from the group to the node also leads
through something
outside: a group runs at one moment. Nothing is fused that reads or makes what some node of the graph writes
to in place.

In PyTorch: `torch/csrc/jit/passes/tensorexpr_fuser.cpp`. Explained in the chapter "Inductor: loops, fusion, code".
"""

from readtorch.csrc.jit.ir.alias_analysis import AliasDb
from readtorch.csrc.jit.ir.type import ListType
from readtorch.csrc.jit.tensorexpr.kernel import GroupGraph
from readtorch.csrc.jit.tensorexpr.lowerings import lowering_of, reduction_of

from .dead_code_elimination import EliminateDeadCode

SMALLEST = 2  # nodes that are worth a group
MAX_INPUTS = 24


def FuseTensorExprs(graph, min_group_size=SMALLEST):
    """Returns a list of (kind, why it was not fused) of the nodes that might have been."""
    refused = []
    alias_db = AliasDb(graph)
    _block(graph.block(), alias_db, min_group_size, refused)
    EliminateDeadCode(graph)
    return refused


def _block(block, alias_db, smallest, refused):
    for node in block.nodes():
        for inner in node.blocks():
            _block(inner, alias_db, smallest, refused)
    fuse_groups(block, chosen_groups(block, alias_db, smallest, refused), alias_db)


MAY_BE_VIEWS = ("aten::to", "aten::type_as", "aten::expand_as", "aten::expand")
NO_WORK = ("aten::to", "aten::expand_as", "aten::expand")


def chosen_groups(block, alias_db, smallest=SMALLEST, refused=None):
    """The groups of a block that are worth a kernel, each a list of nodes."""
    groups = Grouping(block, alias_db, [] if refused is None else refused).groups()
    return [group for group in groups if sum(n.kind() not in NO_WORK for n in group) >= smallest]


def fuse_groups(block, chosen, alias_db):
    """Replace each group by one node; returns these, in the order of the groups."""
    if chosen:
        reorder(block, chosen, alias_db)
    return [make_group(group) for group in chosen]


class Grouping:
    """Decides which nodes of one block belong together."""

    def __init__(self, block, alias_db, refused):
        self.nodes = block.nodes()
        self.order = {node: i for i, node in enumerate(self.nodes)}
        self.alias_db = alias_db
        self.refused = refused
        self.group_of = {}  # node -> list of nodes, in order

    def groups(self):
        for node in self.nodes:
            if self.may_be_fused(node):
                self.add(node)
        unique = {id(group): group for group in self.group_of.values()}
        return list(unique.values())

    def may_be_fused(self, node):
        if lowering_of(node) is None and reduction_of(node) is None:
            return False
        if self.alias_db.hasWriters(node):
            self.refused.append((node.kind(), "it reads or makes what is written to in place"))
            return False
        # What may be a view of its input must stay one where the caller can see it.
        return node.kind() not in MAY_BE_VIEWS or not self.alias_db.escapes(node.output())

    def add(self, node):
        """A new group of `node` alone, joined with those of its inputs where that is possible."""
        group = self.group_of[node] = [node]
        makers = {v.node() for v in node.inputs() if v.node() in self.group_of}
        for maker in sorted(makers, key=self.order.get, reverse=True):
            other = self.group_of[maker]
            if other is not group and reduction_of(maker) is None and self.may_join(other, group):
                group = self.join(other, group)

    def may_join(self, first, second):
        """Whether the two can run at one moment: no way leads out of one, through others, and into one of
        them.
        """
        both = first + second
        if len(external_inputs(both)) > MAX_INPUTS or not self.reductions_fit(both):
            return False
        inside = set(map(id, both))
        earliest = min(self.order[n] for n in both)
        seen, stack = set(), [v.node() for v in external_inputs(both)]
        while stack:
            node = stack.pop()
            if id(node) in inside:
                return False
            if id(node) in seen or self.order.get(node, -1) < earliest and node not in self.group_of:
                continue
            seen.add(id(node))
            for member in self.group_of.get(node, [node]):
                for used in used_by(member):
                    stack.append(used.node())
        return True

    @staticmethod
    def reductions_fit(nodes):
        """Reductions of one group go over the same dimension, and nothing in it goes on with what they
        give.
        """
        found = {n.output(): reduction_of(n)[1] for n in nodes if reduction_of(n) is not None}
        return len(set(found.values())) < 2 and not any(v in found for n in nodes for v in n.inputs())

    def join(self, first, second):
        """Both as one group."""
        first += [n for n in second if n not in first]
        first.sort(key=self.order.get)
        for node in first:
            self.group_of[node] = first
        return first


def used_by(node):
    """The values that a node needs, those that its blocks take from outside included."""
    values = node.inputs()
    for block in node.blocks():
        for inner in block.nodes():
            values += used_by(inner)
        values += block.outputs()
    return values


def reorder(block, groups, alias_db):
    """Put the members of each group next to each other, everything after what it needs; effects stay in
    order.
    """
    nodes = block.nodes()
    unit_of = {node: [node] for node in nodes} | {node: group for group in groups for node in group}
    last_effect, after_effect = None, {}
    for node in nodes:
        if id(unit_of[node]) not in {id(g) for g in groups} and is_pinned(node, alias_db):
            after_effect[id(unit_of[node])] = last_effect
            last_effect = unit_of[node]
    placed, sequence = set(), []

    def place(unit):
        stack = [(unit, False)]
        while stack:
            unit, ready = stack.pop()
            if id(unit) in placed:
                continue
            if ready:
                placed.add(id(unit))
                sequence.extend(unit)
                continue
            stack.append((unit, True))
            needed = [unit_of[v.node()] for n in unit for v in used_by(n) if v.node() in unit_of]
            needed += [after_effect[id(unit)]] if after_effect.get(id(unit)) else []
            stack += [(u, False) for u in reversed(needed) if u is not unit and id(u) not in placed]

    for node in nodes:
        place(unit_of[node])
    for node in sequence:
        node.moveBefore(block.returnNode())


def is_pinned(node, alias_db):
    """Whether its order among the other pinned nodes matters."""
    return node.hasSideEffects() or node.isNondeterministic() or bool(node.blocks()) or alias_db.hasWriters(node)


def external_inputs(group):
    """The values that a group takes from outside, each once, in order of use. Constants are not among
    them.
    """
    inside = set(group)
    inputs = {}
    for node in group:
        for value in node.inputs():
            if value.node() not in inside and not travels_along(value):
                inputs[value] = None
    return list(inputs)


def travels_along(value):
    """Whether a value is copied into the group: a constant, or a list of such."""
    if value.isConstant():
        worth = value.toIValue()
        return not hasattr(worth, "_array") or worth._array.ndim == 0
    return value.node().kind() == "prim::ListConstruct" and all(v.isConstant() for v in value.node().inputs())


def make_group(group):
    """Replace the nodes by one prim::TensorExprGroup whose Subgraph has copies of them."""
    graph = group[0].owningGraph()
    inputs, inside = external_inputs(group), set(group)
    outputs = [n.output() for n in group if any(use.user not in inside for use in n.output().uses())]
    subgraph, own = GroupGraph(), {}
    for value in inputs:
        own[value] = subgraph.addInput().copyMetadata(value)
    for node in group:
        for value in node.inputs():
            if value not in own:
                copy_constant(subgraph, value, own)
        copy = subgraph.insertNode(subgraph.createClone(node, own.__getitem__))
        own[node.output()] = copy.output().copyMetadata(node.output())
    for value in outputs:
        subgraph.registerOutput(own[value])
    fused = graph.create("prim::TensorExprGroup", inputs, len(outputs)).g_("Subgraph", subgraph)
    fused.insertAfter(group[-1])
    for old, new in zip(outputs, fused.outputs()):
        name = old.debugName() if old.hasDebugName() else None
        new.setType(old.type())
        old.replaceAllUsesWith(new)
        if name:
            old.setDebugName("")
            new.setDebugName(name)
    for node in reversed(group):
        node.destroy()
    return fused


def copy_constant(subgraph, value, own):
    """A copy of the constant, or of the list of constants, that makes `value`."""
    node = value.node()
    if isinstance(value.type(), ListType) or node.kind() == "prim::ListConstruct":
        for part in node.inputs():
            if part not in own:
                copy_constant(subgraph, part, own)
    copy = subgraph.insertNode(subgraph.createClone(node, own.__getitem__))
    own[value] = copy.output().setType(value.type())


def groups_of(graph):
    """The TensorExprGroup nodes of a graph."""
    return graph.findAllNodes("prim::TensorExprGroup")
