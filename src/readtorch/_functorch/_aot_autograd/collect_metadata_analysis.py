"""What a function does to its inputs, and what its outputs are: found by running it once under functionalization, on fake tensors.

In PyTorch: `torch/_functorch/_aot_autograd/collect_metadata_analysis.py`.

Note [Outputs that share memory]. A compiled function cannot return a view of an input: what it returns is a tensor of its own for
autograd, which would not know of a write to the input. So the caller gets `input.view(…)`, made anew when the graph has run. A view of an
intermediate tensor gets the same treatment where autograd could notice: if two outputs share memory, a write to one changes the other and
its history. The intermediate tensor (the base) becomes an output of the graph, and both views are made from it. A single view of an
intermediate has no one to share with, and is a tensor of its own (`unsafe_view_alias`). So are the results of `unbind` and `split`,
for autograd refuses writes to them anyway, as long as at most one other output shares their memory.
"""

from collections import Counter, defaultdict

import readtorch
from readtorch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from readtorch._tensor import Tensor
from readtorch.autograd.function import BackwardCFunction
from readtorch.c10.memory_format import suggested_format

from .functional_utils import (
    are_all_mutations_under_no_grad_or_inference_mode,
    from_fun,
    has_data_mutation,
    has_metadata_mutation,
    metadata_key,
    storage_of,
    to_fun,
)
from .schemas import OF_INTERMEDIATE, InputAliasInfo, OutputAliasInfo, OutputType, ViewAndMutationMeta


def run_functionalized_fw_and_collect_metadata(f, keep_input_mutations):
    """A function that takes f's flat arguments, fake tensors, and returns the ViewAndMutationMeta of `f`."""

    def inner(*flat_args):
        before = readtorch.is_grad_enabled()
        with FunctionalTensorMode():
            memo = {id(a): to_fun(a) for a in flat_args}
            args = [memo[id(a)] for a in flat_args]
            outs = list(f(*args))
            input_info = [input_info_of(a, given, keep_input_mutations) for a, given in zip(args, flat_args)]
            outputs = _Outputs(args, outs, input_info)
            output_info = [outputs.info_of(o) for o in outs]
            meta = ViewAndMutationMeta(
                input_info, output_info, len(outputs.intermediate_bases), keep_input_mutations, traced_tangents=[]
            )
            candidates = [args[i] for i in meta.mutated_inp_runtime_indices] + outs + outputs.intermediate_bases
            tangents = [from_fun(t) for t, wanted in zip(candidates, meta.tangent_mask) if wanted]
        meta.tangent_memory_formats = [suggested_format(t._array) for t in tangents]
        meta.traced_tangents = [tangent_like(t, m) for t, m in zip(tangents, meta.tangent_memory_formats)]
        after = readtorch.is_grad_enabled()
        if after != before:
            meta.grad_enabled_mutation = after
            readtorch.set_grad_enabled(before)
        return meta

    return inner


def input_info_of(functional, given, keep_input_mutations):
    is_tensor = isinstance(given, Tensor)
    mutates_data = has_data_mutation(functional)
    return InputAliasInfo(
        is_leaf=is_tensor and given.is_leaf,
        mutates_data=mutates_data,
        mutates_metadata=has_metadata_mutation(functional, given),
        mutations_under_no_grad_or_inference_mode=mutates_data
        and are_all_mutations_under_no_grad_or_inference_mode(functional),
        requires_grad=is_tensor and functional.requires_grad,
        keep_input_mutations=keep_input_mutations,
    )


def tangent_like(t, memory_format):
    """A fake tensor that stands for the gradient of an output: of the same shape, and no view of anything."""
    return t.detach().contiguous(memory_format=memory_format)


class _Outputs:
    """The outputs of a function beside its inputs and each other. intermediate_bases: what the graph has to return besides."""

    def __init__(self, args, outs, input_info):
        self.input_info, self.intermediate_bases = input_info, []
        tensors = [o for o in outs if isinstance(o, Tensor)]
        self.input_of_storage = {storage_of(a): i for i, a in enumerate(args) if isinstance(a, Tensor)}
        self.inputs = {id(a) for a in args if isinstance(a, Tensor)}
        self.place = {id(o): i for i, o in enumerate(outs)}
        self.place_of_base = {}
        self.sharing = Counter(map(storage_of, tensors))
        self.multi_output_views = Counter(storage_of(o) for o in tensors if is_multi_output_view(o))
        self.requiring_grad = defaultdict(list)
        for o in tensors:
            if o.requires_grad:
                self.requiring_grad[storage_of(o), metadata_key(o)].append(o)

    def info_of(self, o):
        if not isinstance(o, Tensor):
            return OutputAliasInfo(OutputType.non_alias, None, None, False, False)
        output_type, base_idx = self.type_of(o)
        replayed = output_type in OF_INTERMEDIATE
        if (
            output_type is OutputType.alias_of_input
        ):  # a tensor that `t_` has changed is no longer what its views were made of
            replayed = not self.input_info[base_idx].mutates_metadata
        return OutputAliasInfo(
            output_type,
            raw_type=type(o),
            base_idx=base_idx,
            requires_grad=o.requires_grad,
            requires_grad_for_backward=o.requires_grad and (o._base is None or o.grad_fn is not None),
            view_metas=o.elem.view_metas if replayed and isinstance(o, FunctionalTensor) else None,
        )

    def type_of(self, o):
        """(OutputType, base_idx) of an output, see Note [Outputs that share memory]."""
        storage = storage_of(o)
        others = self.sharing[storage] - self.multi_output_views[storage]
        if storage in self.input_of_storage:
            return self.type_of_input_alias(o, self.input_of_storage[storage], others)
        if o._base is not None and o.requires_grad and o._base.requires_grad:
            if self.sharing[storage] == 1 or others <= 1:
                return OutputType.unsafe_view_alias, None
            return self.type_of_intermediate_alias(o)
        same = [other for other in self.requiring_grad[storage, metadata_key(o)] if other is not o]
        if self.sharing[storage] > 1 and same and not o.requires_grad:  # `return out, out.detach()`
            return OutputType.alias_of_intermediate_base_is_user_output, self.place[id(same[0])]
        return OutputType.non_alias, None

    def type_of_input_alias(self, o, base_idx, others):
        if isinstance(o.grad_fn, BackwardCFunction):
            return OutputType.custom_function_view, None
        if o.grad_fn is not None and others == 0:
            return OutputType.non_alias, base_idx
        return (OutputType.is_input if id(o) in self.inputs else OutputType.alias_of_input), base_idx

    def type_of_intermediate_alias(self, o):
        base = o._base
        if id(base) in self.place:
            return OutputType.alias_of_intermediate_base_is_user_output, self.place[id(base)]
        if id(base) in self.place_of_base:
            return OutputType.alias_of_intermediate, self.place_of_base[id(base)]
        self.place_of_base[id(base)] = len(self.intermediate_bases)
        self.intermediate_bases.append(base)
        return OutputType.alias_of_intermediate_save_as_output, self.place_of_base[id(base)]


def is_multi_output_view(t):
    metas = t.elem.view_metas if isinstance(t, FunctionalTensor) else ()
    return bool(metas) and metas[-1].is_multi_output
