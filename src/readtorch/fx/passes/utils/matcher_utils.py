"""Finds a pattern, which is a graph itself, in a graph. In PyTorch: `torch/fx/passes/utils/matcher_utils.py`.

The pattern's outputs are its *anchors*: each node of the graph that could be one is tried, and from it the arguments are compared
backwards. A placeholder of the pattern is whatever stands there. A match counts if nothing but its results is used outside of it.
"""

import copy
from dataclasses import dataclass, field

from readtorch._ops import OpOverload
from readtorch._tensor import Tensor
from readtorch.fx.graph_module import _get_attr
from readtorch.fx.node import Node

from .fuser_utils import validate_partition

__all__ = ["SubgraphMatcher", "InternalMatch"]


@dataclass
class InternalMatch:
    """anchors: the pattern's outputs. nodes_map: node of the pattern -> node of the graph, or a constant for a placeholder.
    placeholder_nodes, returning_nodes: what the pattern's inputs and outputs are in the graph."""

    anchors: list
    nodes_map: dict = field(default_factory=dict)
    placeholder_nodes: list = field(default_factory=list)
    returning_nodes: list = field(default_factory=list)
    name_node_map: dict = field(default_factory=dict)

    def __copy__(self):
        nodes = self.nodes_map.copy(), self.placeholder_nodes.copy(), self.returning_nodes.copy()
        return InternalMatch(self.anchors, *nodes)


def _is_computed(pn):
    return pn.op not in ("placeholder", "output")


class SubgraphMatcher:
    """Finds `pattern`, a Graph, in graphs.

    match_output: the pattern's output must be that of the graph. match_placeholder: its inputs must be inputs there.
    remove_overlapping_matches: of matches that share nodes only the first. ignore_literals: constants need not be equal.
    """

    def __init__(
        self,
        pattern,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=False,
    ):
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        output_node = next(iter(reversed(pattern.nodes)))
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes = output_node.all_input_nodes
        self.pattern_anchors = [n for n in output_node.all_input_nodes if len(n.users) == 1]
        if match_output:
            self.pattern_anchors = [output_node]

    def match(self, graph, node_name_match=""):
        """The list of InternalMatches. node_name_match: a node with this in its name fits every node of the pattern."""
        candidates = [
            (anchor, [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        candidates = [(anchor, nodes) for anchor, nodes in candidates if nodes]
        found = InternalMatch(anchors=self.pattern_anchors)
        matches = self._with_anchors(candidates, found, node_name_match) if candidates else []
        matches = [m for m in matches if self._is_contained(m.nodes_map)]
        matches = [m for m in matches if validate_partition([gn for pn, gn in m.nodes_map.items() if _is_computed(pn)])]
        return self._remove_overlapping_matches(matches) if self.remove_overlapping_matches else matches

    def _with_anchors(self, candidates, match, node_name_match):
        """All ways to go on with a match: a node for each anchor that is left."""
        if not candidates:
            match.placeholder_nodes = [match.nodes_map[pn] for pn in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
            return [match]
        (anchor, nodes), *rest = candidates
        found = []
        for node in nodes:
            attempt = copy.copy(match)
            if self._match_nodes(anchor, node, attempt, node_name_match):
                found += self._with_anchors(rest, attempt, node_name_match)
        return found

    # ------------------------------------------------------------------------------------------------------- nodes

    def _nodes_are_equal(self, pn, gn, node_name_match=""):
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _match_attributes(self, pn, gn):
        """Attributes are equal if both are tensors of one class: what they hold does not matter."""
        theirs, value = _get_attr(pn.graph.owning_module, pn.target), _get_attr(gn.graph.owning_module, gn.target)
        if type(theirs) is not type(value):
            return False
        if not isinstance(theirs, Tensor):
            raise RuntimeError(f"Unsupported type {theirs} when matching attributes")
        return True

    def _match_nodes(self, pn, gn, match, node_name_match=""):
        """Whether a node of the pattern can be a node of the graph, with all before it. Adds them to the match."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] == gn
        if gn in match.nodes_map.values() or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        arguments = _arguments_of_both(pn, gn)
        return arguments is not None and self._match_args(*arguments, match)

    def _match_args(self, args1, args2, match):
        if len(args1) != len(args2):
            return False
        for a1, a2 in zip(args1, args2):
            if isinstance(a1, Node) and isinstance(a2, Node):
                matched = self._match_nodes(a1, a2, match)
            elif isinstance(a1, (list, tuple)) and isinstance(a2, (list, tuple)):
                matched = self._match_args(a1, a2, match)
            else:
                matched = self._match_literals(a1, a2, match) or self.ignore_literals
            if not matched:
                return False
        return True

    def _match_literals(self, pn, gn, match):
        """Whether constants are equal, or one stands where the pattern has an input."""
        if isinstance(gn, Node):
            return False
        if isinstance(pn, Node):
            return pn.op == "placeholder" and match.nodes_map.setdefault(pn, gn) == gn
        return type(gn) is type(pn) and gn == pn

    # ----------------------------------------------------------------------------------------------------- matches

    def _is_contained(self, nodes_map):
        """Whether what is used outside of the match are the pattern's results."""
        inside = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            user in inside for gn, pn in inside.items() if pn not in self.pattern_returning_nodes for user in gn.users
        )

    def _remove_overlapping_matches(self, matches):
        kept, taken = [], set()
        for match in matches:
            nodes = {gn for pn, gn in match.nodes_map.items() if _is_computed(pn)}
            if not nodes & taken:
                kept.append(match)
                taken |= nodes
        return kept


def _arguments_of_both(pn, gn):
    """The arguments of two nodes as lists that can be compared; None if they cannot. Of an overload with the defaults."""
    is_same_call = len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs)
    if is_same_call:
        return [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
    if pn.op == "call_function" and isinstance(pn.target, OpOverload):
        return _all_arguments(pn), _all_arguments(gn)
    return None


def _all_arguments(node):
    found = []
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.name in node.kwargs:
            found.append(node.kwargs[argument.name])
        elif not argument.kwarg_only and i < len(node.args):
            found.append(node.args[i])
        else:
            found.append(argument.default_value)
    return found
