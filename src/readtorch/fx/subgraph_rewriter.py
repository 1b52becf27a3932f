"""`replace_pattern`: puts a graph in place of each that looks like a pattern. In PyTorch: `torch/fx/subgraph_rewriter.py`."""

import copy
from dataclasses import dataclass
from typing import NamedTuple

from readtorch.nn import Module

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import SubgraphMatcher

__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters", "ReplacedPatterns"]


class Match(NamedTuple):
    """anchor: the node of the pattern that the search began with. nodes_map: node of the pattern -> node of the graph."""

    anchor: Node
    nodes_map: dict


@dataclass
class ReplacedPatterns:
    """The same, and the nodes that stand there now."""

    anchor: Node
    nodes_map: dict
    replacements: list


def replace_pattern(gm, pattern, replacement):
    """Replace `pattern` by `replacement` wherever it is found in a GraphModule. Returns the list of Matches.

    Both are functions of the same parameters, or GraphModules: their inputs stand for whatever is used there. Nodes fit if they
    do the same with equal constants; names do not matter, and neither do nodes around them, but only the pattern's results may be
    used by others.
    """
    return [
        Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)
    ]


def replace_pattern_with_filters(
    gm,
    pattern,
    replacement=None,
    match_filters=None,
    ignore_literals=False,
    replacement_callback=None,
    node_name_match="",
):
    """The same for matches that all filters accept; returns the list of ReplacedPatterns.

    match_filters: functions of (match, graph, graph of the pattern). ignore_literals: constants need not be equal.
    replacement_callback: makes the graph for each match, from the same three. node_name_match: see `SubgraphMatcher.match`.
    """
    pattern_graph = _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, remove_overlapping_matches=True, ignore_literals=ignore_literals)
    matches = matcher.match(gm.graph, node_name_match=node_name_match)
    matches = [m for m in matches if all(accepts(m, gm.graph, pattern_graph) for accepts in match_filters or ())]
    common = _graph_of(replacement) if callable(replacement) or isinstance(replacement, Graph) else None
    if common is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    replaced = {}  # node that stood in the graph -> what stands there now
    results = []
    for match in matches:
        graph = replacement_callback(match, gm.graph, pattern_graph) if replacement_callback else common
        results.append(_replace_match(gm, pattern_graph, match, graph, replaced))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return results


def _graph_of(program):
    if isinstance(program, Graph):
        return program
    return program.graph if isinstance(program, GraphModule) else symbolic_trace(program).graph


def _replace_match(gm, pattern_graph, match, replacement_graph, replaced):
    """Put a graph in place of one match. Returns the ReplacedPatterns."""
    placeholders = [n for n in replacement_graph.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(placeholders):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(placeholders)}")
    _update_inputs(match, replaced)
    val_map = dict(zip(placeholders, match.placeholder_nodes))
    with gm.graph.inserting_before(_insert_point(gm.graph, match.returning_nodes)):
        results = gm.graph.graph_copy(replacement_graph, val_map)
    results = (results,) if isinstance(results, Node) else results
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    new = [node for node in val_map.values() if node not in match.placeholder_nodes]
    for old, result in zip(match.returning_nodes, results):
        old.replace_all_uses_with(result)
        replaced[old] = result
    for node in reversed(pattern_graph.nodes):
        if node.op not in ("placeholder", "output"):
            gm.graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(anchor=match.anchors[0], nodes_map=match.nodes_map, replacements=new)


def _update_inputs(match, replaced):
    """An input may be the result of a match that has been replaced."""
    for i, node in enumerate(match.placeholder_nodes):
        if isinstance(node, Node) and node in replaced:
            match.placeholder_nodes[i] = replaced[node]
            position = list(match.nodes_map.values()).index(node)
            match.nodes_map[list(match.nodes_map)[position]] = replaced[node]


def _insert_point(graph, returning_nodes):
    """The node to insert before: the first that uses a result; behind the last result if nobody does."""
    users = {user for node in returning_nodes for user in node.users}
    if users:
        return next(node for node in graph.nodes if node in users)
    following = None
    for node in reversed(graph.nodes):
        if node in returning_nodes:
            break
        following = node
    if following is None:
        raise AssertionError("The insert point can't be None")
    return following


def _replace_attributes(gm, replacement):
    """Give the module what the new nodes name, from the replacement, and delete what no node names any more."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _attribute(gm, node.target) is not None:
            continue
        value = _attribute(replacement, node.target)
        if value is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                f'" node during subgraph rewriting with target {node.target}, '
                "but the referenced attribute does not exist in the replacement GraphModule",
            )
        if isinstance(value, Module):
            gm.add_submodule(node.target, copy.deepcopy(value))
        else:
            setattr(gm, node.target, copy.deepcopy(value))
    gm.graph.lint()


def _attribute(module, target):
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None
