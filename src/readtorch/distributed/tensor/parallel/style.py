"""Styles: how a layer's parameters are cut, and how its inputs and outputs are placed for that.

In PyTorch: `torch/distributed/tensor/parallel/style.py`.

Note [ Columns, then rows ]
y = x Wᵀ of a linear layer whose W has its rows over the ranks (`ColwiseParallel`: rows of W are columns of Wᵀ) needs no message: each
rank has all of x and makes some of y's features. A second layer whose W has its columns over the ranks (`RowwiseParallel`) takes
these features as they are, and each rank makes a summand of its output: one all-reduce for both layers, and one in the backward.
"""

from abc import ABC, abstractmethod
from functools import partial

from readtorch import Tensor
from readtorch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from readtorch.distributed.tensor.placement_types import Placement
from readtorch.nn import Embedding, Linear, Parameter

__all__ = [
    "ParallelStyle",
    "RowwiseParallel",
    "SequenceParallel",
    "ColwiseParallel",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
]


class ParallelStyle(ABC):
    """How a module is parallelized. A subclass says it in `_apply(module, device_mesh)`, which returns the module.

    src_data_rank: whose parameters they are, as of `distribute_tensor`.
    """

    src_data_rank = 0

    @abstractmethod
    def _apply(self, module, device_mesh): ...

    def _distribute_parameter(self, module, name, param, device_mesh, placement):
        whole = distribute_tensor(param, device_mesh, [placement], src_data_rank=self.src_data_rank)
        module.register_parameter(name, Parameter(whole, requires_grad=param.requires_grad))


def _placed(tensor, mesh, layouts):
    """A local tensor as the DTensor that it is a part of."""
    return tensor if isinstance(tensor, DTensor) else DTensor.from_local(tensor, mesh, layouts, run_check=False)


class _LayerParallel(ParallelStyle):
    """What the styles of linear layers and embeddings have in common; in PyTorch each has these methods of its own.

    input_layouts, output_layouts: how the input is placed and the output shall be. use_local_output: give a local tensor.
    """

    def _prepare_input_fn(self, desired, mod, inputs, device_mesh):
        tensor = _placed(inputs[0], device_mesh, self.input_layouts)
        return tensor if self.input_layouts == desired else tensor.redistribute(placements=desired, async_op=True)

    def _prepare_output_fn(self, mod, outputs, device_mesh):
        if outputs.placements != self.output_layouts:
            outputs = outputs.redistribute(placements=self.output_layouts, async_op=True)
        return outputs.to_local() if self.use_local_output else outputs

    def _apply(self, module, device_mesh):
        if isinstance(module, Linear):
            partition, desired = self._partition_linear_fn, self.linear_input
        elif isinstance(module, Embedding):
            partition, desired = self._partition_embedding_fn, (Replicate(),)
        else:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        prepare = partial(self._prepare_input_fn, desired)
        return distribute_module(module, device_mesh, partition, prepare, self._prepare_output_fn)

    def __repr__(self):
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_LayerParallel):
    """Each rank has some of a linear layer's outputs, or of an embedding's features: see Note [ Columns, then rows ].

    input_layouts: how the input is placed; by default every rank has it. output_layouts: how the output shall be; by default each rank has
    its features. use_local_output: give local tensors instead of DTensors.
    """

    linear_input = (Replicate(),)

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.use_local_output = use_local_output

    def _partition_linear_fn(self, name, module, device_mesh):
        for key, param in list(module.named_parameters()):
            self._distribute_parameter(module, key, param, device_mesh, Shard(0))

    def _partition_embedding_fn(self, name, module, device_mesh):
        for key, param in list(module.named_parameters()):
            self._distribute_parameter(module, key, param, device_mesh, Shard(1))


class RowwiseParallel(_LayerParallel):
    """Each rank has the weights of some of a linear layer's inputs, or some rows of an embedding: see Note [ Columns, then rows ].

    input_layouts: how the input is placed; by default each rank has its features, as after `ColwiseParallel`. output_layouts: how the
    output shall be; by default every rank has it. use_local_output: give local tensors instead of DTensors.
    """

    linear_input = (Shard(-1),)

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _partition_linear_fn(self, name, module, device_mesh):
        self._distribute_parameter(module, "weight", module.weight, device_mesh, Shard(1))
        if getattr(module, "bias", None) is not None:
            self._distribute_parameter(module, "bias", module.bias, device_mesh, Replicate())

    def _partition_embedding_fn(self, name, module, device_mesh):
        for key, param in list(module.named_parameters()):
            self._distribute_parameter(module, key, param, device_mesh, Shard(0))


class SequenceParallel(ParallelStyle):
    """Each rank has some positions of the sequence: for layers that treat each alone, LayerNorm, RMSNorm or Dropout. Every rank has all parameters.

    sequence_dim: the dimension of the positions. use_local_output: give local tensors instead of DTensors.
    """

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _replicate_module_fn(self, name, module, device_mesh):
        for key, param in list(module.named_parameters()):
            whole = DTensor.from_local(param, device_mesh, [Replicate()], run_check=False)
            module.register_parameter(key, Parameter(whole))

    def _prepare_input_fn(self, mod, inputs, device_mesh):
        tensor = inputs[0]
        if not isinstance(tensor, Tensor):
            raise ValueError(f"expecting input of {mod} to be a torch.Tensor or DTensor, but got {tensor}")
        tensor = _placed(tensor, device_mesh, self.sequence_sharding)
        if tensor.placements != self.sequence_sharding:
            tensor = tensor.redistribute(placements=self.sequence_sharding, async_op=True)
        return tensor

    def _prepare_output_fn(self, mod, outputs, device_mesh):
        return outputs.to_local() if self.use_local_output else outputs

    def _apply(self, module, device_mesh):
        return distribute_module(
            module, device_mesh, self._replicate_module_fn, self._prepare_input_fn, self._prepare_output_fn
        )

    def __repr__(self):
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"
        )


def _as_tuple(layouts):
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """Makes DTensors of a module's inputs and redistributes them.

    input_layouts: how each positional input is placed, None for one that is left alone; desired_input_layouts: how it shall be; the same
    by name in input_kwarg_layouts and desired_input_kwarg_layouts. use_local_output: give the module local tensors.
    """

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_output=False,
    ):
        self.input_layouts, self.desired_input_layouts = _as_tuple(input_layouts), _as_tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs and len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _prepare_input_arg(self, value, mesh, layout, desired):
        if layout is None:
            return value
        if not isinstance(value, Tensor):
            raise AssertionError("expecting input to be a torch.Tensor!")
        tensor = _placed(value, mesh, (layout,))
        if desired is not None and layout != desired:
            tensor = tensor.redistribute(placements=(desired,))
        return tensor.to_local() if self.use_local_output else tensor

    def _prepare_input_fn(self, inputs, device_mesh):
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        both = zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
        return tuple(self._prepare_input_arg(value, device_mesh, now, then) for value, now, then in both)

    def _prepare_input_kwarg_fn(self, inputs, kwargs, device_mesh):
        now, then = self.input_kwarg_layouts, self.desired_input_kwarg_layouts
        made = {k: self._prepare_input_arg(v, device_mesh, now.get(k), then.get(k)) for k, v in kwargs.items()}
        return self._prepare_input_fn(inputs, device_mesh), made

    def _apply(self, module, device_mesh):
        if self.with_kwargs:
            module.register_forward_pre_hook(
                lambda _, inputs, kwargs: self._prepare_input_kwarg_fn(inputs, kwargs, device_mesh), with_kwargs=True
            )
        else:
            module.register_forward_pre_hook(lambda _, inputs: self._prepare_input_fn(inputs, device_mesh))
        return module

    def __repr__(self):
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Makes DTensors of a module's outputs and redistributes them.

    output_layouts: how each output is placed, None for one that is left alone; desired_output_layouts: how it shall be.
    use_local_output: give local tensors.
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        self.output_layouts, self.desired_output_layouts = _as_tuple(output_layouts), _as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _prepare_out_fn(self, outputs, device_mesh):
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(outputs) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        both = zip(outputs, self.output_layouts, self.desired_output_layouts, strict=True)
        made = tuple(self._prepare_out(value, device_mesh, now, then) for value, now, then in both)
        return made[0] if len(made) == 1 else made

    def _prepare_out(self, value, mesh, layout, desired):
        if layout is None:
            return value
        tensor = _placed(value, mesh, (layout,))
        if layout != desired:
            tensor = tensor.redistribute(placements=(desired,))
        return tensor.to_local() if self.use_local_output else tensor

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda _, inputs, outputs: self._prepare_out_fn(outputs, device_mesh))
        return module

    def __repr__(self):
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, desired_output_layouts={self.desired_output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module; use_local_input is the first one's use_local_output."""

    def __init__(
        self,
        *,
        input_layouts=None,
        desired_input_layouts=None,
        input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None,
        use_local_input=False,
        output_layouts,
        desired_output_layouts,
        use_local_output=True,
    ):
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module, device_mesh):
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)

    def __repr__(self):
        before, after = self.prepare_module_input, self.prepare_module_output
        return (
            f"PrepareModuleInputOutput(input_layouts={before.input_layouts}, "
            f"desired_input_layouts={before.desired_input_layouts}, input_kwarg_layouts={before.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={before.desired_input_kwarg_layouts}, use_local_input={before.use_local_output}, "
            f"output_layouts={after.output_layouts}, desired_output_layouts={after.desired_output_layouts}, "
            f"use_local_output={after.use_local_output})"
        )
