"""Common subexpressions are computed once. In PyTorch: `torch/fx/passes/dialect/common/cse_pass.py`."""

from readtorch._ops import ops
from readtorch.fx.graph import Graph
from readtorch.fx.graph_module import GraphModule
from readtorch.fx.passes.infra.pass_base import PassBase, PassResult
from readtorch.utils._pytree import tree_flatten

_RANDOM = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu rand_like rand "
    "randint randn randperm"
).split()
_IN_PLACE = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_".split()

aten = ops.aten
rand_ops = {getattr(aten, name) for name in _RANDOM if hasattr(aten, name)}
inplace_ops = {getattr(aten, name) for name in _IN_PLACE}


def get_CSE_banned_ops():
    """The operators of which two equal calls are not the same: those that draw random numbers or write to an argument."""
    return rand_ops | inplace_ops


class CSEPass(PassBase):
    """Of calls of the same function with the same arguments the first stays. banned_ops: packets whose calls all stay."""

    def __init__(self, banned_ops=None):
        self.banned_ops = banned_ops or set()

    def call(self, graph_module):
        new_graph, env, seen = Graph(), {}, {}  # seen: what a call computes -> its node
        modified = False
        for node in graph_module.graph.nodes:
            key = self._key(node, env)
            if key is not None and key in seen:
                env[node] = seen[key]
                modified = True
                continue
            env[node] = new_graph.node_copy(node, env.__getitem__)
            if key is not None:
                seen[key] = env[node]
        return PassResult(GraphModule(graph_module, new_graph) if modified else graph_module, modified)

    def _key(self, node, env):
        """Equal for nodes that compute the same; None for those that stay."""
        target = getattr(node.target, "overloadpacket", node.target)
        if node.op in ("placeholder", "output", "get_attr") or target in self.banned_ops:
            return None
        leaves, spec = tree_flatten((node.args, node.kwargs))
        leaves = [
            env.get(leaf, leaf) if leaf.__hash__ else id(leaf) for leaf in leaves
        ]  # 1 and 1.0 are equal, as in PyTorch
        return node.op, node.target, tuple(leaves), str(spec)
