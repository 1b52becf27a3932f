"""The trace. In PyTorch: `torch/_functorch/_aot_autograd/graph_capture.py`."""

from readtorch._tensor import Tensor
from readtorch.fx.experimental.proxy_tensor import make_fx

from .graph_capture_wrappers import (
    create_functionalized_fn,
    create_joint,
    fn_input_mutations_to_outputs,
    fn_prepped_for_autograd,
)


def aot_dispatch_base_graph(flat_fn, flat_args, meta, aot_config):
    """(The graph of a function without a backward, the fake tensors that it takes)."""
    fn = fn_input_mutations_to_outputs(flat_fn, meta)
    traced = create_functionalized_fn(fn, meta, [requires_grad_of(a) for a in flat_args], trace_joint=False)
    args = [detached(a) for a in flat_args]
    graph_module = make_fx(traced, decomposition_table=aot_config.decompositions)(*args)
    return cleaned(graph_module), args


def aot_dispatch_autograd_graph(flat_fn, flat_args, meta, aot_config):
    """(The joint graph of a function and its backward, the fake tensors that it takes: (primals, tangents))."""
    fn = create_joint(fn_prepped_for_autograd(flat_fn, meta))
    traced = create_functionalized_fn(fn, meta, [requires_grad_of(a) for a in flat_args], trace_joint=True)
    joint_inputs = [detached(a) for a in flat_args], list(meta.traced_tangents)
    graph_module = make_fx(traced, decomposition_table=aot_config.decompositions)(*joint_inputs)
    return cleaned(graph_module), joint_inputs


def requires_grad_of(a):
    return isinstance(a, Tensor) and a.requires_grad


def detached(a):
    """A graph holds no gradients: what is traced is below autograd."""
    return a.detach() if isinstance(a, Tensor) else a


def cleaned(graph_module):
    graph_module.graph.eliminate_dead_code()
    assert_functional_graph(graph_module.graph)
    graph_module.recompile()
    return graph_module


def assert_functional_graph(graph):
    """A graph writes to nothing but its inputs, and that at its end. Raises AssertionError."""
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for node in graph.nodes:
        operator = getattr(node.target, "_operator", None)
        if node.op != "call_function" or operator is None or not any(a.type.writes for a in operator.schema.arguments):
            continue
        if operator.schema.name != "copy_" or node.args[0] not in placeholders:
            raise AssertionError(
                f"aot_autograd expected to have an entirely functional graph, but found {node.format_node()}"
            )
