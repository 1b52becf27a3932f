"""What runs in place of a function: the compiled graphs, and around them what a graph cannot do.

    runtime_wrapper        behind the graph: writes to inputs are made, views of inputs are made anew
    CompiledFunction       an autograd.Function whose forward and backward are the two compiled graphs

In PyTorch: `torch/_functorch/_aot_autograd/runtime_wrappers.py`.
"""

import readtorch
from readtorch._tensor import Tensor
from readtorch.autograd import Function
from readtorch.autograd.graph import increment_version
from readtorch.c10.local_dispatch_key_set import set_grad_mode, tls

from .functional_utils import gen_alias_from_base
from .schemas import OF_INTERMEDIATE, OWN, OutputType, TensorAlias
from .utils import boxed

# ------------------------------------------------------------------------------------------- around the graph


def runtime_wrapper(compiled, meta, trace_joint, to_detach=()):
    """A function of the list of arguments that does what the traced one did: returns its outputs, and writes to what that wrote to."""
    run_graph = in_grad_mode(boxed(compiled), trace_joint)
    if is_all(meta):
        return detaching(run_graph, to_detach)

    def run(args):
        outs = run_graph([a.detach() if i in to_detach else a for i, a in enumerate(args)])
        increment_version([args[i] for i in meta.mutated_graph_handled_indices])
        written = meta.num_mutated_inp_runtime_indices
        apply_input_mutations(args, outs[:written], meta)
        outs = replay_output_aliases(args, outs[written:], meta)
        if meta.grad_enabled_mutation is not None:
            readtorch.set_grad_enabled(meta.grad_enabled_mutation)
        return outs

    return run


def is_all(meta):
    """Whether nothing is to be done behind the graph, whose outputs are the function's."""
    writes = meta.mutated_graph_handled_indices or meta.num_mutated_inp_runtime_indices
    is_plain = all(info.output_type in OWN for info in meta.output_info)
    return is_plain and not writes and meta.grad_enabled_mutation is None


def detaching(run_graph, to_detach):
    if not to_detach:
        return run_graph
    return lambda args: run_graph([a.detach() if i in to_detach else a for i, a in enumerate(args)])


def in_grad_mode(run_graph, enabled):
    """The graph, run while operations are recorded, or are not."""

    def run(args):
        before = tls.grad_mode
        if before is enabled:
            return run_graph(args)
        set_grad_mode(enabled)
        try:
            return run_graph(args)
        finally:
            set_grad_mode(before)

    return run


def unwrapped(t):
    return t.alias if isinstance(t, TensorAlias) else t


def apply_input_mutations(args, updated, meta):
    """Give the inputs that the function writes to the values that the graph has made for them."""
    for i, new in zip(meta.mutated_inp_runtime_indices, map(unwrapped, updated)):
        info, original = meta.input_info[i], args[i]
        if info.mutates_metadata:
            original.as_strided_(new.size(), new.stride(), new.storage_offset())
        if not info.mutates_data:
            continue
        if info.is_leaf and original.requires_grad:  # then the function wrote where autograd does not see it, too
            original.detach().copy_(new)
        else:
            original.copy_(new)


def replay_output_aliases(args, fw_outs, meta):
    """The outputs as the caller gets them. fw_outs: outputs of the graph and, behind them, its intermediate bases."""
    outs = []
    for out, info in zip(fw_outs, meta.output_info):
        if info.output_type is OutputType.is_input:
            out = args[info.base_idx]
        elif info.output_type is OutputType.alias_of_input:
            out = gen_alias_from_base(args[info.base_idx], unwrapped(out), info.requires_grad, info.view_metas)
        elif info.output_type in OF_INTERMEDIATE:
            base = fw_outs[base_place(info, meta)]
            out = gen_alias_from_base(unwrapped(base), unwrapped(out), info.requires_grad, info.view_metas)
        outs.append(unwrapped(out))
    return outs


def base_place(info, meta):
    """Where among the graph's outputs the base of a view of an intermediate is."""
    if info.output_type is OutputType.alias_of_intermediate_base_is_user_output:
        return info.base_idx
    return meta.num_outputs + info.base_idx


# --------------------------------------------------------------------------------------------- in autograd's graph


def compiled_function(compiled_fw, compiled_bw, meta):
    """The autograd.Function with these two graphs, which are functions of lists."""

    class CompiledFunction(Function):
        @staticmethod
        def forward(ctx, *args):
            outs = compiled_fw(list(args))
            saved = outs[meta.num_forward_returns :]
            ctx.symints = [s for s in saved if not isinstance(s, Tensor)]
            ctx.save_for_backward(*saved[: len(saved) - len(ctx.symints)])
            returned = outs[: meta.num_forward_returns]
            ctx.mark_non_differentiable(*hide_aliases(returned, meta))
            return tuple(returned)

        @staticmethod
        def backward(ctx, *grads):
            saved = [*ctx.symints, *ctx.saved_tensors]
            wanted = [g for g, used in zip(grads, meta.tangent_mask) if used]
            tangents = [
                g.contiguous(memory_format=memory_format)
                for g, memory_format in zip(wanted, meta.tangent_memory_formats)
            ]
            if readtorch.is_grad_enabled():
                return once_differentiable(compiled_bw, [*saved, *tangents])
            return tuple(compiled_bw([*saved, *tangents]))

    return CompiledFunction


def hide_aliases(returned, meta):
    """Wrap, in place, what autograd must not see. Returns the outputs that do not require grad."""
    written = meta.num_mutated_inp_runtime_indices
    for place, i in enumerate(meta.mutated_inp_runtime_indices):
        info = meta.input_info[i]
        if info.mutates_metadata and not info.mutates_data:
            returned[place] = TensorAlias(returned[place])
    for i in meta.unsafe_view_out_indices:
        out = returned[written + i]
        returned[written + i] = readtorch._unsafe_view(out, out.shape)
    for i in meta.aliased_out_indices:
        returned[written + i] = TensorAlias(returned[written + i])
    infos = [meta.input_info[i] for i in meta.mutated_inp_runtime_indices] + meta.output_info
    return [t for t, info in zip(returned, infos) if isinstance(t, Tensor) and not info.requires_grad]


def once_differentiable(compiled_bw, args):
    """The backward when its results are to have a graph, too: they have one, which says that it cannot be run."""

    class CompiledFunctionBackward(Function):
        @staticmethod
        def forward(ctx, *_):
            return tuple(compiled_bw(list(args)))

        @staticmethod
        def backward(ctx, *grads):
            raise RuntimeError("torch.compile with aot_autograd does not currently support double backward")

    if not any(isinstance(a, Tensor) and a.requires_grad for a in args):  # what is saved comes without its history
        return CompiledFunctionBackward.apply(readtorch.empty(0, requires_grad=True), *args)
    return CompiledFunctionBackward.apply(*args)
