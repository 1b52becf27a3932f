"""Passes over graphs of operators. In PyTorch: `torch/_functorch/compile_utils.py`."""

import operator

from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.c10.tensor_impl import storage_impl
from readtorch.fx import Graph, Node
from readtorch.utils._pytree import tree_flatten, tree_leaves

aten = ops.aten
RANDOM = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu rand_like rand "
    "randint randn randperm"
).split()
# Two calls make two results.
NOT_MERGED = {getattr(aten, name) for name in RANDOM if hasattr(aten, name)} | {aten.empty}


def get_aten_target(node):
    """The operator of a node, without its overload."""
    return getattr(node.target, "overloadpacket", node.target)


def fx_graph_cse(graph):
    """A graph in which nodes that compute the same are one (common subexpression elimination).

    Random numbers stay apart, and so does what shares memory with an output: two outputs are two tensors.
    """
    new_graph, env, known = Graph(), {}, {}
    kept_apart = nodes_that_alias_outputs(graph)
    for node in graph.nodes:
        if node.op != "call_function" or get_aten_target(node) in NOT_MERGED or node in kept_apart:
            env[node] = new_graph.node_copy(node, env.__getitem__)
            continue
        key = key_of(node, env)
        if key not in known:
            known[key] = new_graph.node_copy(node, env.__getitem__)
        env[node] = known[key]
    return new_graph


def key_of(node, env):
    """What two nodes have in common that compute the same. With types: 1 and 1.0 are equal."""
    leaves, spec = tree_flatten((node.args, node.kwargs))
    leaves = [env[leaf] if isinstance(leaf, Node) else leaf for leaf in leaves]
    return node.target, tuple((type(leaf), leaf) for leaf in leaves), str(spec)


def nodes_that_alias_outputs(graph):
    (output,) = graph.find_nodes(op="output")
    storages = storages_of(output.all_input_nodes)
    return {node for node in graph.nodes if get_node_storage(node) in storages}


def get_node_storage(node):
    """What tells the storages of results apart; None for what is no tensor."""
    value = node.meta.get("val")
    return id(storage_impl(value)) if isinstance(value, Tensor) else None


def storages_of(nodes):
    return set(map(get_node_storage, nodes)) - {None}


def raise_getitems(graph_module):
    """Takes results out of tuples as soon as they are there, so that the others can be freed."""
    for node in reversed(graph_module.graph.find_nodes(op="call_function", target=operator.getitem)):
        node.args[0].append(node)
    graph_module.recompile()
    return graph_module


def strip_overloads(graph_module):
    """Nodes call packets instead of overloads: `aten.add` instead of `aten.add.Tensor`."""
    for node in graph_module.graph.nodes:
        node.target = get_aten_target(node)
    graph_module.recompile()


def get_outputs(graph):
    (output,) = graph.find_nodes(op="output")
    return tree_leaves(output.args[0])
