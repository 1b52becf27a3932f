"""From the user's function to the one that is traced. In PyTorch: `torch/_functorch/_aot_autograd/graph_capture_wrappers.py`.

fn                            of the user: takes and returns a list
fn_input_mutations_to_outputs returns also the inputs that it has written to
fn_prepped_for_autograd       the same for training, and says which results have a gradient
create_joint                  takes gradients as well, and returns also those of the inputs
create_functionalized_fn      runs all of it on FunctionalTensors: what is traced below them writes to nothing
"""

import readtorch
from readtorch._functorch.partitioners import _is_tangent
from readtorch._subclasses.functional_tensor import FunctionalTensorMode
from readtorch._tensor import Tensor
from readtorch.fx.experimental.proxy_tensor import get_proxy_mode

from .functional_utils import from_fun, to_fun
from .schemas import MutationType, OutputType


def fn_input_mutations_to_outputs(fn, meta):
    """For inference: (inputs that are written to behind the graph, outputs)."""

    def inner_fn(*args):
        outs = fn(*args)
        return (*(args[i] for i in meta.mutated_inp_runtime_indices), *outs)

    return inner_fn


def maybe_to_fresh_input(i, t, meta):
    """An input, or a copy of one that is written to: the gradient wanted is that of the tensor before the write."""
    info = meta.input_info[i]
    if not isinstance(t, Tensor) or info.mutation_type is not MutationType.MUTATED_OUT_GRAPH:
        return t
    if info.requires_grad and info.mutates_data:
        return t.clone()
    return t.view(t.shape) if info.mutates_metadata else t


def fn_prepped_for_autograd(fn, meta):
    """For training: ([written inputs, outputs, intermediate bases], which of them have a gradient)."""

    def inner_fn(*args):
        args = [maybe_to_fresh_input(i, t, meta) for i, t in enumerate(args)]
        outs = list(fn(*args))
        written = [args[i] for i in meta.mutated_inp_runtime_indices]
        save = OutputType.alias_of_intermediate_save_as_output
        bases = [o._base for o, info in zip(outs, meta.output_info) if info.output_type is save]
        for arg in args:
            from_fun(arg)  # a write to it has to be in its history before that is asked for
        return [*written, *outs, *bases], meta.tangent_mask

    return inner_fn


def create_joint(fn):
    """fn: returns (outputs, which have a gradient). The joint function: (primals, tangents) -> (outputs, gradients of the primals)."""

    def inner_fn(primals, tangents):
        outs, tangent_mask = fn(*primals)
        tag_forward(get_proxy_mode().tracer.graph)
        grad_primals = [p for p in primals if isinstance(p, Tensor) and p.requires_grad]
        outs_to_grad = [o for o, wanted in zip(outs, tangent_mask) if wanted]
        pairs = [
            (o.view(t.shape) if o.shape != t.shape else o, t) for o, t in zip(outs_to_grad, tangents) if o.requires_grad
        ]
        grads = iter(())
        if grad_primals:
            needed_outs, needed_tangents = map(list, zip(*pairs)) if pairs else ([], [])
            grads = iter(
                readtorch.autograd.grad(needed_outs, grad_primals, grad_outputs=needed_tangents, allow_unused=True)
            )
        return outs, [next(grads) if isinstance(p, Tensor) and p.requires_grad else None for p in primals]

    return inner_fn


def tag_forward(graph):
    """Note in what has been traced so far that it is of the forward. The gradients that come in are not."""
    for node in graph.nodes:
        node.meta["partitioner_tag"] = "is_backward" if _is_tangent(node) else "is_forward"


def create_functionalized_fn(fn, meta, requires_grad, trace_joint):
    """`fn` on FunctionalTensors. requires_grad: which of the primals do, for what is traced comes without."""

    def functionalized(primals, *tangents):
        with FunctionalTensorMode():
            f_primals = [to_fun(p, wanted) for p, wanted in zip(primals, requires_grad)]
            outs = fn(f_primals, *[[to_fun(t) for t in given] for given in tangents]) if trace_joint else fn(*f_primals)
            for i in meta.mutated_graph_handled_indices:
                write_in_graph(primals[i], from_fun(f_primals[i]))
            if not trace_joint:
                return tuple(map(from_fun, outs))
            return [from_fun(o) for o in outs[0]], [from_fun(g) for g in outs[1]]

    if trace_joint:

        def joint_helper(primals, tangents):
            return functionalized(primals, tangents)

        return joint_helper
    return lambda *args: functionalized(args)


def write_in_graph(before, after):
    """The one write that a graph may have: at its end, to an input."""
    if before is not after:
        with readtorch.no_grad():
            before.copy_(after)
