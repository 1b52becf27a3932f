"""What AOTAutograd knows of the inputs and outputs of a function. In PyTorch: `torch/_functorch/_aot_autograd/schemas.py`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property


class OutputType(Enum):
    """What an output is, and so what a caller gets for it."""

    non_alias = 1  # a tensor of its own
    alias_of_input = 2  # a view of an input: made anew from that input
    is_input = 3  # an input: that input
    alias_of_intermediate_save_as_output = 4  # a view of a tensor that the graph returns for this purpose
    alias_of_intermediate = 5  # another view of the same
    alias_of_intermediate_base_is_user_output = 6  # a view of another output
    unsafe_view_alias = (
        7  # a view of something that nobody else has: a tensor of its own, as far as autograd needs to know
    )
    custom_function_view = 8  # what an autograd.Function made of an input


OWN = (OutputType.non_alias, OutputType.unsafe_view_alias, OutputType.custom_function_view)
OF_INTERMEDIATE = (
    OutputType.alias_of_intermediate_save_as_output,
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_base_is_user_output,
)


class MutationType(Enum):
    """Who writes to an input that the function writes to: the graph, or what runs behind it."""

    NOT_MUTATED = 1
    MUTATED_IN_GRAPH = 2
    MUTATED_OUT_GRAPH = 3


@dataclass(frozen=True)
class InputAliasInfo:
    """What a function does to an input.

    mutates_metadata: it changes how the tensor sees its memory, as `t_` does. keep_input_mutations: the graph may write.
    """

    is_leaf: bool
    mutates_data: bool
    mutates_metadata: bool
    mutations_under_no_grad_or_inference_mode: bool
    requires_grad: bool
    keep_input_mutations: bool

    @cached_property
    def mutation_type(self):
        if not self.mutates_data and not self.mutates_metadata:
            return MutationType.NOT_MUTATED
        unseen_by_autograd = not self.mutates_metadata and not self.requires_grad
        if self.keep_input_mutations and self.mutates_data:
            if unseen_by_autograd or self.mutations_under_no_grad_or_inference_mode:
                return MutationType.MUTATED_IN_GRAPH
        return MutationType.MUTATED_OUT_GRAPH

    @property
    def needs_tangent(self):
        """Whether the values that are written have a gradient."""
        return self.mutation_type is MutationType.MUTATED_OUT_GRAPH and self.mutates_data and self.requires_grad


@dataclass(frozen=True)
class OutputAliasInfo:
    """What an output of a function is.

    base_idx: of `alias_of_input` and `is_input`, which input; of views of intermediates, which of these; of
    `alias_of_intermediate_base_is_user_output`, which output. requires_grad_for_backward: False for a view that is made under
    no_grad, which requires grad and has no graph. view_metas: the views that lead from the base to it.
    """

    output_type: OutputType
    raw_type: type
    base_idx: int | None
    requires_grad: bool
    requires_grad_for_backward: bool
    view_metas: tuple | None = None

    @property
    def needs_tangent(self):
        return self.output_type in OWN and self.raw_type is not None and self.requires_grad_for_backward


@dataclass
class ViewAndMutationMeta:
    """All of it. The traced forward returns, in this order:

        inputs that were written to (those of `mutated_inp_runtime_indices`) · outputs · intermediate bases · saved for backward

    traced_tangents: fake tensors like the gradients that come for the first three, where there are any.
    grad_enabled_mutation: the grad mode that the function leaves, or None.
    """

    input_info: list
    output_info: list
    num_intermediate_bases: int
    keep_input_mutations: bool
    traced_tangents: list
    tangent_memory_formats: list = field(default_factory=list)
    grad_enabled_mutation: bool | None = None

    @cached_property
    def mutated_inp_runtime_indices(self):
        return [i for i, m in enumerate(self.input_info) if m.mutation_type is MutationType.MUTATED_OUT_GRAPH]

    @cached_property
    def mutated_graph_handled_indices(self):
        return [i for i, m in enumerate(self.input_info) if m.mutation_type is MutationType.MUTATED_IN_GRAPH]

    @property
    def num_mutated_inp_runtime_indices(self):
        return len(self.mutated_inp_runtime_indices)

    @property
    def num_outputs(self):
        return len(self.output_info)

    @cached_property
    def num_forward_returns(self):
        """How many outputs of the traced forward are not there for its backward."""
        return self.num_mutated_inp_runtime_indices + self.num_outputs + self.num_intermediate_bases

    @cached_property
    def aliased_out_indices(self):
        return [i for i, m in enumerate(self.output_info) if m.output_type not in OWN]

    @cached_property
    def unsafe_view_out_indices(self):
        return [i for i, m in enumerate(self.output_info) if m.output_type is OutputType.unsafe_view_alias]

    @cached_property
    def tangent_mask(self):
        """Which of the first `num_forward_returns` outputs have a gradient."""
        inputs = [self.input_info[i].needs_tangent for i in self.mutated_inp_runtime_indices]
        outputs = [info.needs_tangent for info in self.output_info]
        return inputs + outputs + [True] * self.num_intermediate_bases


@dataclass
class AOTConfig:
    """What the caller of `aot_function` asked for. A compiler that is None is that of the forward."""

    fw_compiler: Callable
    bw_compiler: Callable | None
    inference_compiler: Callable | None
    partition_fn: Callable
    decompositions: dict | None
    keep_inference_input_mutations: bool

    def __post_init__(self):
        self.bw_compiler = self.bw_compiler or self.fw_compiler
        self.inference_compiler = self.inference_compiler or self.fw_compiler


@dataclass
class TensorAlias:
    """Hides a tensor from autograd on its way out of an `autograd.Function`."""

    alias: object
