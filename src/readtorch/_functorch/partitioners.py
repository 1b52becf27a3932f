"""Where the joint graph is cut: what the forward keeps for the backward.

    default_partition                       what the backward asks for is kept, as eager does
    min_cut_rematerialization_partition     as few bytes as possible are kept, and what is cheap is computed again

Sizes that are left open are nodes as well. Where the backward needs them they are saved, numbers behind the tensors; what a result takes
in memory is counted with the sizes of the trace.

In PyTorch: `torch/_functorch/partitioners.py`. Left out: checkpointed regions within a graph.

Note [The cut as a flow]. A node becomes two, joined by an edge whose capacity is what it costs to save its result; results flow to their
users without limit. Gradients that come in, and all that is computed from them, belong to the sink, inputs to the source, and so does what must
not be computed again. A set of edges that separates the two is a set of results from which the backward can be computed; the
cheapest one is the minimum cut:

    source -> x_in    x is not computed again: an input, a random or an expensive result …
    x_in -> x_out     the bytes of x, twice as many if it need not be in memory otherwise
    x_out -> y_in     y is computed from x
    x_in -> sink      x is computed from gradients
    x_out -> sink     x is a result of the backward, and can be computed in either part
"""

import dataclasses
import heapq
import math
import operator

from readtorch._ops import ops
from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SYM_TYPES, hint_of
from readtorch.fx import Graph, GraphModule, Node
from readtorch.fx.experimental.symbolic_shapes import (
    find_symbol_binding_fx_nodes,
    free_symbols,
    is_symbol_binding_fx_node,
)
from readtorch.utils._pytree import tree_leaves, tree_map_only
from readtorch.utils.flop_counter import FlopCounterMode

from . import config
from ._activation_checkpointing.knapsack import dp_knapsack, greedy_knapsack
from .compile_utils import fx_graph_cse, get_aten_target, get_node_storage, get_outputs, raise_getitems, storages_of
from .min_cut import SINK, SOURCE, FlowGraph
from .op_types import get_default_op_list

__all__ = ["default_partition", "min_cut_rematerialization_partition"]

aten = ops.aten
FREE = (operator.getitem, aten.lift_fresh_copy, aten.lift_fresh)  # may always be computed again


def default_partition(joint_module, _joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None):
    """(forward, backward): each operator stays where it was traced, and the forward keeps what the backward asks for, as eager does.

    joint_module: of (primals, tangents), returns the forward's outputs, num_fwd_outputs of them, and the gradients.
    """
    forward_nodes = set(nodes_of_forward(joint_module.graph))
    saved_values = []
    for node in joint_module.graph.nodes:
        users = [user for user in node.users if user not in forward_nodes]
        if node not in forward_nodes or not users or is_multi_output(node):
            continue
        saved_values += users if all(map(is_sym_node, users)) else [node]  # sizes of a tensor do not need the tensor
    return _extract_fwd_bwd_modules(joint_module, saved_values, num_fwd_outputs=num_fwd_outputs)


def nodes_of_forward(graph):
    nodes = [node for node in graph.nodes if not _is_tangent(node) and node.op != "output"]
    last = max(i for i, node in enumerate(nodes) if _has_tag_is_forward(node) or _is_primal(node))
    return nodes[: last + 1]


def is_sym_node(node):
    """Whether it computes a number of sizes that are left open."""
    return isinstance(node.meta.get("val"), SYM_TYPES)


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
    outputs = get_outputs(joint_module.graph)
    return outputs[:num_fwd_outputs], outputs[num_fwd_outputs:]


def _extract_fwd_bwd_modules(joint_module, saved_values, *, num_fwd_outputs):
    """The two GraphModules: the forward returns `saved_values` behind its outputs, the backward takes them in front of the gradients.

    Numbers come last in the forward and first in the backward.
    """
    graph = joint_module.graph
    fwd_outputs, bwd_outputs = _extract_fwd_bwd_outputs(joint_module, num_fwd_outputs=num_fwd_outputs)
    placeholders = graph.find_nodes(op="placeholder")
    primals = [node for node in placeholders if _is_primal(node)]
    tangents = [node for node in placeholders if _is_tangent(node)]
    saved_values = list(dict.fromkeys(saved_values))
    bwd_graph = _extract_graph_with_inputs_outputs(graph, [*saved_values, *tangents], bwd_outputs)
    used = {node.name for node in bwd_graph.find_nodes(op="placeholder") if node.users}
    saved_sym_nodes = [node for node in saved_values if node.name in used and is_sym_node(node)]
    saved_values = [node for node in saved_values if node.name in used and not is_sym_node(node)]
    saved_sym_nodes = with_bindings(graph, saved_sym_nodes, [*saved_values, *tangents])
    fwd_graph = _extract_graph_with_inputs_outputs(graph, primals, [*fwd_outputs, *saved_values, *saved_sym_nodes])
    bwd_graph = _extract_graph_with_inputs_outputs(graph, [*saved_sym_nodes, *saved_values, *tangents], bwd_outputs)
    return tuple(raise_getitems(GraphModule(joint_module, graph)) for graph in (fwd_graph, bwd_graph))


def with_bindings(graph, saved_sym_nodes, others):
    """What is saved of sizes: first each symbol that the backward's inputs have in their sizes, then what is computed from symbols."""
    bindings = find_symbol_binding_fx_nodes(graph)
    binding = [node for node in saved_sym_nodes if is_symbol_binding_fx_node(node)]
    derived = [node for node in saved_sym_nodes if node not in binding]
    for node in [*derived, *others]:
        needed = [bindings[s] for s in sorted(free_symbols(node.meta.get("val"))) if s in bindings]
        binding += [found for found in needed if found not in binding]
    return binding + derived


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


# --------------------------------------------------------------------------------------- which node is of which part


@dataclasses.dataclass
class NodeInfo:
    """Which nodes of a joint graph a part needs.

    required_fw: node -> its number among the forward's. required_bw: those of the backward. tangents_closure: of these, what is computed
    from gradients that come in. static_lifetime_input_nodes: inputs that are there anyway, such as parameters.
    distance: node -> how many steps it is from the backward.
    """

    inputs: list
    required_fw: dict
    required_bw: set
    tangents_closure: set
    static_lifetime_input_nodes: set
    distance: dict

    def is_required_fw(self, node):
        return node in self.required_fw


FAR = int(1e9)  # from the backward: no way leads there


def classify_nodes(joint_module, static_lifetime_input_indices, num_fwd_outputs):
    graph = joint_module.graph
    closure = set()
    for node in graph.nodes:
        if _is_tangent(node) or node in closure:
            closure.update([node, *node.users])
    fwd_outputs, bwd_outputs = _extract_fwd_bwd_outputs(joint_module, num_fwd_outputs=num_fwd_outputs)
    inputs = [node for node in graph.nodes if _is_primal(node)]
    forward = _extract_graph_with_inputs_outputs(graph, inputs, fwd_outputs)
    names = {node.name for node in forward.nodes if node.op != "output"}
    required_fw = {node: number for number, node in enumerate(n for n in graph.nodes if n.name in names)}
    static = {inputs[i] for i in static_lifetime_input_indices or ()}
    required_bw = closure | {o for o in bwd_outputs if o is not None}
    return NodeInfo(inputs, required_fw, required_bw, closure, static, distances_from_backward(graph, required_fw))


def distances_from_backward(graph, required_fw):
    distance = {}
    for node in reversed(graph.nodes):
        if node.op == "output":
            distance[node] = FAR
        elif node not in required_fw:
            distance[node] = 0
        else:
            distance[node] = min([FAR, *(distance[user] + 1 for user in node.users)])
    return distance


def _size_of(node):
    """The bytes of a node's result, with the sizes of the trace."""
    if is_sym_node(node):
        return 1
    value = node.meta.get("val")
    return sum(hint_of(t.numel()) * t.dtype.itemsize for t in tree_leaves(value) if isinstance(t, Tensor))


# -------------------------------------------------------------------------------------------------------- the cut


@dataclasses.dataclass(frozen=True)
class MinCutOptions:
    """Which results are not computed again, see config.py."""

    ban_if_used_far_apart: bool
    ban_if_long_fusible_chains: bool
    ban_if_materialized_backward: bool
    ban_if_not_in_allowlist: bool
    ban_if_reduction: bool

    @classmethod
    def of_config(cls):
        some = not config.aggressive_recomputation
        return cls(
            some and config.ban_recompute_used_far_apart,
            some and config.ban_recompute_long_fusible_chains,
            some and config.ban_recompute_materialized_backward,
            some and config.ban_recompute_not_in_allowlist,
            config.ban_recompute_reductions,
        )


def solve_min_cut(joint_graph, node_info, options, dont_ban=frozenset()):
    """(The nodes to save, the nodes that are not computed again). dont_ban: nodes that may be, whatever they are."""
    problem = _MinCut(node_info, options, dont_ban)
    for node in joint_graph.nodes:
        if node.op != "output":
            problem.add(node)
    if options.ban_if_used_far_apart:
        problem.ban_what_is_used_far_apart()
    if options.ban_if_long_fusible_chains:
        problem.ban_ends_of_long_chains(joint_graph)
    try:
        _, edges = problem.flow.minimum_cut()
    except ValueError as without_limit:
        raise RuntimeError(
            "AOT Autograd failed to partition the joint forward-backward graph.\n\nThe partitioner determines which intermediate values to "
            "save from the forward pass vs recompute in the backward pass. This error means a value is required for backward, but "
            f"cannot be saved AND cannot be recomputed: {' -> '.join(without_limit.args[0])}"
        ) from None
    cut = {u.removesuffix("_in") for u, v in edges}
    return [node for node in joint_graph.nodes if node.name in cut], problem.banned


class _MinCut:
    """The flow graph of a joint graph: Note [The cut as a flow]."""

    def __init__(self, info, options, dont_ban):
        self.info, self.options, self.dont_ban = info, options, dont_ban
        self.flow, self.banned = FlowGraph(), {}  # the latter in the order in which they were found

    def add(self, node):
        """The edges of a node."""
        here, there = f"{node.name}_in", f"{node.name}_out"
        if node in self.info.tangents_closure:
            self.flow.add_edge(here, SINK, math.inf)
            return
        if node in self.info.required_bw:
            self.flow.add_edge(there, SINK, math.inf)
        if _is_primal(node) or self.info.is_required_fw(node) and self.why_not_again(node):
            self.ban(node)
        self.flow.add_edge(here, there, self.cost_of_saving(node))
        for user in node.users:
            self.flow.add_edge(there, f"{user.name}_in", math.inf)

    def ban(self, node):
        """Do not compute it again."""
        if not get_default_op_list().is_view(node) and node not in self.dont_ban:
            self.banned[node] = None
            self.flow.add_edge(SOURCE, f"{node.name}_in", math.inf)

    def cost_of_saving(self, node):
        if is_sym_node(node):
            return 1
        if not isinstance(node.meta.get("val"), Tensor):
            return math.inf  # a tuple: its parts are saved
        if config.treat_parameters_as_free_to_save and node in self.info.static_lifetime_input_nodes:
            return 0
        if config.recompute_views and get_default_op_list().is_view(node):
            return math.inf
        nearer_is_better = 1.1 ** max(min(self.info.distance[node], 100), 1)
        size = int(_size_of(node) * nearer_is_better)
        return size if is_materialized(node) else 2 * size

    def why_not_again(self, node):
        """Why a result of the forward is not computed again in the backward, or None."""
        types, options = get_default_op_list(), self.options
        if node.op != "call_function" or is_sym_node(node) or get_aten_target(node) in FREE:
            return None
        if config.recompute_views and types.is_view(node):
            return None
        if options.ban_if_not_in_allowlist and not types.is_recomputable(node):
            return "not in recomputable allowlist"
        if not options.ban_if_not_in_allowlist and (types.is_random(node) or types.is_compute_intensive(node)):
            return "random or compute intensive op"
        if options.ban_if_materialized_backward and self.is_materialized_backwards(node):
            return "materialized in backward"
        if config.max_dist_from_bw < self.info.distance[node] < 1000:
            return "too far from backward"
        if options.ban_if_reduction and _size_of(node) * 4 < sum(_size_of(i) for i in node.args if isinstance(i, Node)):
            return "reduction op"
        return None

    def is_materialized_backwards(self, node):
        """Whether an operator of the backward, one that does not fuse, needs the result: then it has to be in memory there anyway."""
        types = get_default_op_list()
        if types.is_view(node):
            return False
        pending = [node]
        while pending:
            current = pending.pop()
            for user in current.users:
                if not self.info.is_required_fw(user) and not is_fusible(current, user):
                    return True
                if types.is_view(user):
                    pending.append(user)
        return False

    # Two rules about what would not fuse if it were computed again.

    def ban_what_is_used_far_apart(self):
        """Of a result that is used early and late, with something between that does not fuse: the late use."""
        order = self.info.required_fw
        for used in order:
            users = [user for user in used.users if user in order]
            if not users:
                continue
            first = self.first_unfusible(users, max(order[user] for user in users))
            for user in users:
                if order[user] > first and is_fusible(used, user) and user not in self.banned:
                    self.ban(user)

    def first_unfusible(self, start, end):
        """The number of the first node behind those of `start` that does not fuse with the one before it, at most `end`."""
        order, count = self.info.required_fw, iter(range(FAR))
        queue, seen = [], set()

        def push(node, fuses):
            if (node, fuses) not in seen:
                seen.add((node, fuses))
                heapq.heappush(queue, (order[node], next(count), node, fuses))

        for node in start:
            push(node, True)
        while queue:
            number, _, node, fuses = heapq.heappop(queue)
            if not fuses:
                return number
            for user in node.users:
                if user in order and order[user] <= end:
                    push(user, is_fusible(node, user))
        return end

    def ban_ends_of_long_chains(self, graph):
        """Of operators that fuse with each other, more than a hundred: the last."""
        order, visited = self.info.required_fw, set()
        for start in graph.nodes:
            if start not in order:
                continue
            queue = [(order[start], start.name, start)]
            while queue:
                number, _, current = heapq.heappop(queue)
                if current in visited:
                    continue
                visited.add(current)
                if number > order[start] + 100 and not queue:
                    self.ban(current)
                    break
                for user in current.users:
                    if user in order and is_fusible(current, user) and user not in self.banned:
                        heapq.heappush(queue, (order[user], user.name, user))


def is_fusible(a, b):
    """Whether b can take the elements of a as they come. `cat` can, and gives none."""
    types = get_default_op_list()
    return get_aten_target(b) is aten.cat or types.is_fusible(a) and types.is_fusible(b)


def is_materialized(node):
    """Whether a result is in memory, whatever is saved: an input, or somebody needs it who does not fuse."""
    return node.op == "placeholder" or not all(is_fusible(node, user) for user in node.users)


# ----------------------------------------------------------------------------------------------- within a budget


def choose_saved_values_set(joint_graph, node_info, memory_budget=1):
    """The nodes to save if activations may take this share of the room between what inputs need and what the cut saves.

    From one cut to the next more is computed again, until what is saved fits; the last bans only what is expensive or random, and
    the knapsack problem says which of these are saved for all that.
    """
    if not 0 <= memory_budget <= 1:
        raise RuntimeError(f"The valid ranges for memory budget are 0 <= m <= 1. The provided value is {memory_budget}")
    if memory_budget == 0:
        return node_info.inputs
    options = MinCutOptions.of_config()
    fastest, _ = solve_min_cut(joint_graph, node_info, options)
    least, most = total_size(node_info.inputs), total_size(fastest)
    if memory_budget == 1 or most <= least:
        return fastest
    options = dataclasses.replace(
        options, ban_if_used_far_apart=False, ban_if_long_fusible_chains=False, ban_if_materialized_backward=False
    )
    for allowlist in (options.ban_if_not_in_allowlist, False):
        options = dataclasses.replace(options, ban_if_not_in_allowlist=allowlist)
        saved, banned = solve_min_cut(joint_graph, node_info, options)
        if (total_size(saved) - least) / (most - least) < memory_budget:
            return saved
    candidates = recomputable_banned_nodes(banned, node_info)
    if not candidates:
        return node_info.inputs
    memory = [_size_of(node) / 1e9 / (most - least) for node in candidates]
    again = _optimize_runtime_with_given_memory(memory, [estimate_runtime(node) for node in candidates], memory_budget)
    return solve_min_cut(joint_graph, node_info, options, {candidates[i] for i in again})[0]


def total_size(nodes):
    return sum(map(_size_of, nodes)) / 1e9


def recomputable_banned_nodes(banned, node_info):
    """What could be computed again all the same: what the backward needs, and is no input. The largest first."""
    storages = storages_of(node_info.inputs)

    def is_candidate(node):
        return node_info.distance[node] < FAR and get_node_storage(node) not in storages

    return sorted(filter(is_candidate, banned), key=_size_of, reverse=True)


def _optimize_runtime_with_given_memory(memory, runtimes, max_memory):
    """The numbers of the results that are to be computed again."""
    solvers = {"dp": dp_knapsack, "greedy": greedy_knapsack}
    if config.activation_memory_budget_solver not in solvers:
        raise RuntimeError(f"Not aware of memory budget knapsack solver: {config.activation_memory_budget_solver}")
    return solvers[config.activation_memory_budget_solver](memory, runtimes, max_memory)[2]


def estimate_runtime(node):
    """What it costs to compute a result again."""
    if config.activation_memory_budget_runtime_estimator == "testing":
        return 1
    if config.activation_memory_budget_runtime_estimator != "flops":
        raise RuntimeError(f"Not aware of runtime estimator: {config.activation_memory_budget_runtime_estimator}")
    args, kwargs = tree_map_only(Node, lambda n: n.meta["val"], (node.args, node.kwargs))
    with FlopCounterMode(display=False) as mode:
        node.target(*args, **kwargs)
    return max(mode.get_total_flops(), 1)


# ------------------------------------------------------------------------------------------------- the partition


def min_cut_rematerialization_partition(
    joint_module, _joint_inputs, compiler="inductor", *, num_fwd_outputs, static_lifetime_input_indices=None
):
    """(forward, backward): as few bytes as possible are kept, and the backward computes again what is cheap: Note [The cut as a flow].

    joint_module: as for `default_partition`. static_lifetime_input_indices: inputs that cost nothing to keep. How much may be kept:
    `config.activation_memory_budget`.
    """
    joint_module.graph.eliminate_dead_code()
    if config.cse:
        joint_module.graph = fx_graph_cse(joint_module.graph)
    joint_module.recompile()
    node_info = classify_nodes(joint_module, static_lifetime_input_indices, num_fwd_outputs)
    if not node_info.required_bw:
        return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
    saved_values = choose_saved_values_set(joint_module.graph, node_info, config.activation_memory_budget)
    fw_module, bw_module = _extract_fwd_bwd_modules(joint_module, saved_values, num_fwd_outputs=num_fwd_outputs)
    return fw_module, raise_getitems(reordering_to_mimic_autograd_engine(bw_module))


def reordering_to_mimic_autograd_engine(graph_module):
    """What is computed again comes right before its first use, instead of all of it first: it is in memory for a shorter time."""
    graph = graph_module.graph
    order = {node: number for number, node in enumerate(graph.nodes)}
    uses = [order[user] for node in graph.nodes if _is_tangent(node) for user in node.users]
    if not uses:
        return graph_module
    new_graph, env = Graph(), {}
    for node in graph.find_nodes(op="placeholder"):
        env[node] = new_graph.node_copy(node, env.__getitem__)
    for node in list(graph.nodes)[min(uses) :]:
        for needed in sorted(needed_for(node, env), key=order.__getitem__):
            env[needed] = new_graph.node_copy(needed, env.__getitem__)
    return GraphModule(graph_module, new_graph)


def needed_for(node, env):
    """A node and all that it is computed from, as far as it is not there yet."""
    found, pending = set(), [node]
    while pending:
        current = pending.pop()
        if current not in found and current not in env:
            found.add(current)
            pending += current.all_input_nodes
    return found
