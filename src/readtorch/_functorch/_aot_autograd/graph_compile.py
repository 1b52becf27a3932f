"""From the traced graph to what runs. In PyTorch: `torch/_functorch/_aot_autograd/graph_compile.py`."""

from readtorch._tensor import Tensor

from .graph_capture import aot_dispatch_autograd_graph, aot_dispatch_base_graph
from .runtime_wrappers import compiled_function, runtime_wrapper
from .utils import boxed


def aot_dispatch_base(flat_fn, flat_args, meta, aot_config):
    """Compile a function without a backward. Returns a function of the list of its arguments."""
    graph_module, args = aot_dispatch_base_graph(flat_fn, flat_args, meta, aot_config)
    compiled = aot_config.inference_compiler(graph_module, args)
    return runtime_wrapper(compiled, meta, trace_joint=False)


def aot_dispatch_autograd(flat_fn, flat_args, meta, aot_config):
    """Compile a function and its backward. Returns a function of the list of its arguments."""
    joint, joint_inputs = aot_dispatch_autograd_graph(flat_fn, flat_args, meta, aot_config)
    fw_module, bw_module = aot_config.partition_fn(joint, joint_inputs, num_fwd_outputs=meta.num_forward_returns)
    (output,) = fw_module.graph.find_nodes(op="output")
    output.meta["visible_outputs"] = meta.num_forward_returns  # those after them are saved for backward
    compiled_fw = boxed(aot_config.fw_compiler(fw_module, joint_inputs[0]))
    function = compiled_function(compiled_fw, lazily(aot_config.bw_compiler, bw_module), meta)
    without_gradient = indices_of_inps_to_detach(bw_module, flat_args)
    return runtime_wrapper(function.apply, meta, trace_joint=True, to_detach=without_gradient)


def lazily(compiler, graph_module):
    """The compiled graph, compiled when it is called for the first time: many programs that could have a backward have none."""
    compiled = None

    def call(args):
        nonlocal compiled
        if compiled is None:
            fakes = [node.meta["val"] for node in graph_module.graph.find_nodes(op="placeholder")]
            compiled = boxed(compiler(graph_module, fakes))
        return compiled(args)

    return call


def indices_of_inps_to_detach(bw_module, flat_args):
    """Inputs that require grad and for which the backward returns None: a node of autograd for them would be in vain."""
    (output,) = bw_module.graph.find_nodes(op="output")
    grads = output.args[0]
    return [
        i
        for i, (a, grad) in enumerate(zip(flat_args, grads))
        if isinstance(a, Tensor) and a.requires_grad and grad is None
    ]
