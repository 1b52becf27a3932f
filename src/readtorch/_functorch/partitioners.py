"""Where the joint graph is cut: what the forward keeps for the backward. In PyTorch: `torch/_functorch/partitioners.py`."""

import operator

from readtorch.fx import Graph, GraphModule, Node
from readtorch.utils._pytree import tree_leaves

__all__ = ["default_partition"]


def default_partition(joint_module, _joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None):
    """(forward, backward): each operator stays where it was traced, and the forward keeps what the backward asks for, as eager does.

    joint_module: of (primals, tangents), returns the forward's outputs, num_fwd_outputs of them, and the gradients.
    """
    forward_nodes = set(nodes_of_forward(joint_module.graph))
    saved_values = []
    for node in joint_module.graph.nodes:
        if node in forward_nodes and not is_multi_output(node) and any(u not in forward_nodes for u in node.users):
            saved_values.append(node)
    return _extract_fwd_bwd_modules(joint_module, saved_values, num_fwd_outputs=num_fwd_outputs)


def nodes_of_forward(graph):
    nodes = [node for node in graph.nodes if not _is_tangent(node) and node.op != "output"]
    last = max(i for i, node in enumerate(nodes) if _has_tag_is_forward(node) or _is_primal(node))
    return nodes[: last + 1]


def is_multi_output(node):
    return bool(node.users) and all(user.target is operator.getitem for user in node.users)


def _has_tag_is_forward(node):
    return node.meta.get("partitioner_tag") == "is_forward"


def _is_primal(node):
    return node.op == "placeholder" and not _is_tangent(node)


def _is_tangent(node):
    return node.op == "placeholder" and "tangents" in str(node.target)


# ------------------------------------------------------------------------------------------------- two graphs of one


def _extract_fwd_bwd_outputs(joint_module, *, num_fwd_outputs):
    (output,) = joint_module.graph.find_nodes(op="output")
    outputs = tree_leaves(output.args)
    return outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]


def _extract_fwd_bwd_modules(joint_module, saved_values, *, num_fwd_outputs):
    """The two GraphModules: the forward returns `saved_values` behind its outputs, the backward takes them in front of the gradients."""
    graph = joint_module.graph
    fwd_outputs, bwd_outputs = _extract_fwd_bwd_outputs(joint_module, num_fwd_outputs=num_fwd_outputs)
    placeholders = graph.find_nodes(op="placeholder")
    primals = [node for node in placeholders if _is_primal(node)]
    tangents = [node for node in placeholders if _is_tangent(node)]
    bwd_graph = _extract_graph_with_inputs_outputs(graph, [*saved_values, *tangents], bwd_outputs)
    used = {node.name for node in bwd_graph.find_nodes(op="placeholder") if node.users}
    saved_values = [node for node in saved_values if node.name in used]
    fwd_graph = _extract_graph_with_inputs_outputs(graph, primals, [*fwd_outputs, *saved_values])
    bwd_graph = _extract_graph_with_inputs_outputs(graph, [*saved_values, *tangents], bwd_outputs)
    return GraphModule(joint_module, fwd_graph), GraphModule(joint_module, bwd_graph)


INVALID = object()  # what a node that cannot be computed from the inputs of a part has in that part


def _extract_graph_with_inputs_outputs(joint_graph, inputs, outputs):
    """The part of a graph that computes `outputs` from `inputs`, which may be nodes in its middle. AssertionError if that does not do."""
    new_graph, env = Graph(), {}
    for node in inputs:
        env[node] = new_graph.placeholder(node.name)
        env[node].meta = node.meta
    for node in joint_graph.nodes:
        if node in env or node.op == "output":
            continue
        known = all(env[n] is not INVALID for n in node.all_input_nodes)
        env[node] = new_graph.node_copy(node, env.__getitem__) if known and node.op != "placeholder" else INVALID
    for node in outputs:
        if isinstance(node, Node) and env[node] is INVALID:
            raise AssertionError(f"Node {node} was invalid, but is output")
    new_graph.output(tuple(env[o] if isinstance(o, Node) else o for o in outputs))
    new_graph.eliminate_dead_code()
    new_graph.lint()
    return new_graph
