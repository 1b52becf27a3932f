"""`DTensor`: one tensor over the ranks of a mesh, and functions that make some.

In PyTorch: `torch/distributed/tensor/_api.py`.
"""

import copy
import inspect
import warnings

import readtorch
from readtorch import Tensor
from readtorch.distributed._mesh_layout import contiguous
from readtorch.distributed.device_mesh import _mesh_resources
from readtorch.nn.parameter import Parameter

from ._collective_utils import check_tensor_meta, mesh_broadcast
from ._dispatch import OpDispatcher
from ._dtensor_spec import DTensorSpec, TensorMeta
from ._random import draw
from ._redistribute import Redistribute, redistribute_local_tensor
from ._utils import (
    assert_no_mixed_partial_types,
    compute_global_tensor_info,
    compute_local_shape_and_global_offset,
    normalize_to_torch_size,
)
from .placement_types import Partial, Replicate, _is_shard_like

__all__ = ["DTensor", "distribute_tensor", "distribute_module", "ones", "empty", "full", "rand", "randn", "zeros"]


def _normalize_placements_for_grad(placements):
    """How the gradient of a tensor with these placements is placed: each rank's summand has the gradient of the sum."""
    return tuple(Replicate() if placement.is_partial() else placement for placement in placements)


class _ToTorchTensor(readtorch.autograd.Function):
    """`DTensor.to_local`. The gradient of a local tensor is the local tensor of a DTensor's gradient."""

    @staticmethod
    def forward(ctx, input, grad_placements):
        ctx.spec, ctx.grad_placements = input._spec, grad_placements
        ctx.set_materialize_grads(False)
        local = input._local_tensor
        return local.view_as(local)  # a tensor of its own: the graph's marks are not for the one that the DTensor keeps

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output is None:
            return None, None
        spec, placements = ctx.spec, ctx.grad_placements
        _, stride = compute_global_tensor_info(grad_output, spec.mesh, spec.placements)
        if placements is None:
            placements = _normalize_placements_for_grad(spec.placements)
        return DTensor.from_local(grad_output, spec.mesh, placements, shape=spec.shape, stride=tuple(stride)), None


class _FromTorchTensor(readtorch.autograd.Function):
    """`DTensor.from_local`. The gradient of a local tensor is what this rank has of the DTensor's gradient."""

    @staticmethod
    def forward(ctx, input, device_mesh, placements, run_check, shape, stride, grad_placements):
        ctx.placements, ctx.mesh, ctx.grad_placements = placements, device_mesh, grad_placements
        ctx.set_materialize_grads(False)
        if not shape and not stride:
            whole = compute_global_tensor_info(input, device_mesh, placements)
        elif shape and stride:
            whole = shape, stride
        else:
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}.", "Please pass both shape and stride at the same time."
            )
        if not device_mesh._is_current_rank_part_of_mesh():
            input = input.new_empty(0, requires_grad=input.requires_grad)
        elif run_check:
            input = _checked_on_all_ranks(input, device_mesh, placements, not shape and not stride)
        meta = TensorMeta(readtorch.Size(whole[0]), tuple(whole[1]), input.dtype)
        spec = DTensorSpec(device_mesh, placements, meta)
        return DTensor(input.view_as(input), spec, requires_grad=input.requires_grad)

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output is None:
            return (None,) * 7
        placements = ctx.grad_placements
        if placements is None:
            placements = _normalize_placements_for_grad(ctx.placements)
        if grad_output.placements == placements:
            return grad_output.to_local(), *(None,) * 6
        target = DTensorSpec(ctx.mesh, placements, grad_output._spec.tensor_meta)
        local = redistribute_local_tensor(grad_output._local_tensor, grad_output._spec, target)
        return local, *(None,) * 6


def _checked_on_all_ranks(tensor, mesh, placements, check_shape_stride):
    """The tensor, and where it shall be replicated that of the first rank."""
    check_tensor_meta(tensor, check_shape_stride=check_shape_stride)
    for dim, placement in enumerate(placements):
        if placement.is_replicate():
            tensor = tensor.contiguous()
            mesh_broadcast(tensor, mesh, mesh_dim=dim)
    return tensor


class DTensor(Tensor):
    """One tensor over the ranks of a mesh. It has the whole tensor's sizes; each rank has its local tensor.

    `placements` says for each dimension of `device_mesh` what a rank has: a `Shard`, a `Replicate` or a `Partial`. An operator on
    DTensors runs on the local tensors of each rank, after the collectives that its rule asks for; every rank must call it.
    Made by `DTensor.from_local`, `distribute_tensor` and the functions `zeros`, `ones`, `full`, `empty`, `rand` and `randn`.
    Explained in the chapter "Shards: FSDP and DTensor".
    """

    __slots__ = ("_local_tensor", "_spec")

    _op_dispatcher = OpDispatcher()

    @staticmethod
    def __new__(cls, local_tensor, spec, *, requires_grad):
        t = Tensor._make_wrapper_subclass(
            cls,
            spec.shape,
            strides=spec.stride,
            dtype=local_tensor.dtype,
            layout=local_tensor.layout,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        t._spec, t._local_tensor = spec, local_tensor
        return t

    def __init__(self, *args, **kwargs):
        super().__init__()

    def __repr__(self):
        spec = self._spec
        return f"DTensor(local_tensor={self._local_tensor}, device_mesh={spec.mesh}, placements={spec.placements})"

    def __tensor_flatten__(self):
        return ["_local_tensor", "device_mesh"], (self._spec.placements, self._spec.tensor_meta, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, context, outer_size, outer_stride):
        placements, meta, requires_grad = context
        spec = DTensorSpec(inner_tensors["device_mesh"], placements, TensorMeta(outer_size, outer_stride, meta.dtype))
        return DTensor(inner_tensors["_local_tensor"], spec, requires_grad=requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return DTensor._op_dispatcher.dispatch(DTensor, func, args, kwargs or {})

    @staticmethod
    def from_local(
        local_tensor,
        device_mesh=None,
        placements=None,
        *,
        run_check=False,
        shape=None,
        stride=None,
        grad_placements=None,
    ):
        """The DTensor of which each rank gives its local tensor. Nothing is sent, unless run_check.

        placements: by default all ranks have the same tensor. run_check: compare dtypes and sizes over the ranks, and take the first
        rank's tensor where it shall be replicated. shape, stride: of the whole tensor; without them every rank has as much as this one.
        grad_placements: how the gradient shall be placed before it flows into `local_tensor`.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                f"the local_tensor argument only accepts torch.Tensor but got {type(local_tensor)} value."
            )
        device_mesh = device_mesh or _mesh_resources.get_current_mesh()
        if device_mesh.device_type != local_tensor.device.type and not local_tensor.is_meta:
            local_tensor = local_tensor.to(device_mesh.device_type)
        if placements is None:
            placements = [Replicate()] * device_mesh.ndim
        placements = _without_negative_dims(placements, local_tensor.ndim)
        assert_no_mixed_partial_types(placements)
        grad_placements = None if grad_placements is None else tuple(grad_placements)
        return _FromTorchTensor.apply(local_tensor, device_mesh, placements, run_check, shape, stride, grad_placements)

    def to_local(self, *, grad_placements=None):
        """What this rank has. grad_placements: how its gradient will be placed, by default as this tensor."""
        if not readtorch.is_grad_enabled():
            result = self._local_tensor
        else:
            result = _ToTorchTensor.apply(self, None if grad_placements is None else tuple(grad_placements))
        if getattr(self, "_is_param", False) and not getattr(result, "_is_param", False):
            if result is self._local_tensor:
                result = result.view_as(result)
            result._is_param = True
        return result

    def redistribute(
        self, device_mesh=None, placements=None, *, async_op=False, forward_dtype=None, backward_dtype=None
    ):
        """The same tensor with other placements, on the same mesh.

        A shard becomes whole by an all-gather, a sum by an all-reduce, or a shard by a reduce-scatter; a shard along another dimension
        takes an all-to-all, and a shard of a whole takes nothing. The gradient goes the other way. forward_dtype, backward_dtype: what to
        cast to before the collectives; the result has forward_dtype, the gradient this tensor's. async_op: accepted; the collectives
        are complete here when this returns.
        """
        device_mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        for own, wanted in zip(self.placements, placements, strict=True):
            if wanted.is_partial() and own != wanted:
                raise RuntimeError(
                    f"Can not redistribute from {own} to {wanted}, redistributing to Partial is for internal use only!"
                )
        dtype = self._local_tensor.dtype
        forward = forward_dtype or dtype
        backward = {"op_dtype": backward_dtype or dtype, "out_dtype": dtype}
        dtypes = {"op_dtype": forward, "out_dtype": forward, "backward_options": backward}
        placements = _without_negative_dims(placements, self.ndim)
        return Redistribute.apply(self, device_mesh, placements, async_op, dtypes)

    def full_tensor(self, *, grad_placements=None):
        """The whole tensor, on every rank. grad_placements: how its gradient will be placed, by default whole on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return _ToTorchTensor.apply(whole, None if grad_placements is None else tuple(grad_placements))

    @property
    def device_mesh(self):
        """The mesh whose ranks it is spread over."""
        return self._spec.mesh

    @property
    def placements(self):
        """For each dimension of the mesh, what a rank has of it."""
        return self._spec.placements


def _without_negative_dims(placements, ndim):
    made = []
    for placement in placements:
        if _is_shard_like(placement) and placement.dim < 0:
            placement = copy.copy(placement)
            placement.dim += ndim
        made.append(placement)
    return tuple(made)


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """The DTensor of a whole tensor: every rank gets its part of the one that the first rank along each dimension of the mesh has.

    tensor: a leaf. placements: by default all ranks have all of it. src_data_rank: whose tensor it is, along each dimension; None: every
    rank cuts its own, and nothing is sent.
    """
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    if device_mesh.device_type != tensor.device.type and not tensor.is_meta:
        tensor = tensor.to(device_mesh.device_type)
    placements = [Replicate()] * device_mesh.ndim if placements is None else placements
    if len(placements) != device_mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! "
            f"Found placements length: {len(placements)}, and device_mesh.ndim: {device_mesh.ndim}."
        )
    assert_no_mixed_partial_types(placements)
    if isinstance(tensor, DTensor):
        _check_is_so(tensor, device_mesh, placements)
        return tensor
    placements, local = _without_negative_dims(placements, tensor.ndim), tensor.detach()
    for dim, placement in enumerate(placements):
        local = _distribute_along(local, placement, device_mesh, dim, src_data_rank)
    spec = DTensorSpec(device_mesh, placements, TensorMeta(tensor.size(), tensor.stride(), tensor.dtype))
    return DTensor(local.requires_grad_(tensor.requires_grad), spec, requires_grad=tensor.requires_grad)


def _distribute_along(local, placement, mesh, dim, src_data_rank):
    """What this rank gets along one dimension of the mesh."""
    if _is_shard_like(placement):
        return placement._shard_tensor(local, mesh, dim, src_data_rank)
    if not isinstance(placement, Replicate | Partial):
        raise RuntimeError(
            f"Trying to distribute tensor with unsupported placements {placement} on device mesh dimension {dim}!"
        )
    local = Replicate._make_replicate_tensor(local, mesh, dim, src_data_rank)
    return placement._partition_value(local, mesh, dim) if placement.is_partial() else local


def _check_is_so(tensor, mesh, placements):
    if tensor.device_mesh != mesh:
        raise ValueError(
            f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
        )
    if tensor.placements != tuple(placements):
        raise ValueError(
            f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {placements}. "
            "do you want to call `redistribute` instead?"
        )


def distribute_module(module, device_mesh=None, partition_fn=None, input_fn=None, output_fn=None):
    """Make all parameters and buffers of a module DTensors, in place.

    partition_fn: called as (name, submodule, mesh) with each submodule, to shard its parameters; what it leaves alone every rank has.
    input_fn, output_fn: called as (module, inputs, mesh) and (module, outputs, mesh) before and after `forward`; what they return
    takes the place.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been called on this module!"
        )
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    for name, submodule in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, submodule, device_mesh)
        _replicate_module_params_buffers(submodule, device_mesh)
    if input_fn is not None:
        hook = _with_module("input_fn", "inputs", input_fn)
        module.register_forward_pre_hook(lambda mod, inputs: hook(mod, inputs, device_mesh))
    if output_fn is not None:
        after = _with_module("output_fn", "outputs", output_fn)
        module.register_forward_hook(lambda mod, inputs, outputs: after(mod, outputs, device_mesh))
    module._distribute_module_applied = True
    return module


def _with_module(name, what, function):
    """A function of (module, what, mesh); one of (what, mesh) is deprecated."""
    count = len(inspect.signature(function).parameters)
    if count == 3:
        return function
    if count != 2:
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    warnings.warn(
        f"Deprecating {name} that takes two arguments ({what}, device_mesh), "
        f"please use {name} that takes in (module, {what}, device_mesh) instead!",
        FutureWarning,
        stacklevel=3,
    )
    return lambda module, values, mesh: function(values, mesh)


def _replicate_module_params_buffers(module, mesh):
    """What is not distributed yet, every rank has."""
    everywhere = [Replicate()] * mesh.ndim
    for key, param in module._parameters.items():
        if param is not None and not isinstance(param, DTensor):
            whole = distribute_tensor(param.data, mesh, everywhere)
            module.register_parameter(key, Parameter(whole, requires_grad=param.requires_grad))
    for key, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[key] = distribute_tensor(buffer, mesh, everywhere)


# ------------------------------------------------------------------------- new tensors


def _dtensor_init_helper(init_op, size, device_mesh=None, placements=None, **options):
    """A new DTensor: each rank makes its part with `init_op`."""
    device_mesh = device_mesh or _mesh_resources.get_current_mesh()
    placements = placements or [Replicate()] * device_mesh.ndim
    if device_mesh.ndim != len(placements):
        raise AssertionError("mesh dimension does not match the length of placements")
    if options["layout"] != readtorch.strided:
        raise AssertionError("layout value not supported!")
    dtype = options["dtype"] or readtorch.get_default_dtype()
    spec = DTensorSpec(device_mesh, placements, TensorMeta(size, tuple(contiguous(size)), dtype))
    options = options | {"device": device_mesh.device_type}
    if init_op in (readtorch.rand, readtorch.randn):
        local = draw(init_op, spec, **options)
    else:
        shape, _ = compute_local_shape_and_global_offset(size, device_mesh, placements, skip_offset=True)
        value = [options.pop("fill_value")] if "fill_value" in options else []
        local = init_op(shape, *value, **options)
    spec = spec.shallow_copy_with_tensor_meta(spec.tensor_meta._replace(dtype=local.dtype))
    return DTensor(local, spec, requires_grad=options["requires_grad"])


def ones(*size, dtype=None, layout=readtorch.strided, requires_grad=False, device_mesh=None, placements=None):
    """A DTensor of ones. size: numbers, or a list of them. placements: by default every rank has all of it."""
    size, options = normalize_to_torch_size(size), {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _dtensor_init_helper(readtorch.ones, size, device_mesh, placements, **options)


def empty(*size, dtype=None, layout=readtorch.strided, requires_grad=False, device_mesh=None, placements=None):
    """A DTensor whose elements are not set. size, placements: as of `ones`."""
    size, options = normalize_to_torch_size(size), {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _dtensor_init_helper(readtorch.empty, size, device_mesh, placements, **options)


def full(
    size, fill_value, *, dtype=None, layout=readtorch.strided, requires_grad=False, device_mesh=None, placements=None
):
    """A DTensor all of whose elements are `fill_value`. size, placements: as of `ones`."""
    size, options = normalize_to_torch_size(size), {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _dtensor_init_helper(readtorch.full, size, device_mesh, placements, fill_value=fill_value, **options)


def rand(*size, requires_grad=False, dtype=None, layout=readtorch.strided, device_mesh=None, placements=None):
    """A DTensor of random numbers from 0 to 1, whose shards differ. size, placements: as of `ones`."""
    size, options = normalize_to_torch_size(size), {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _dtensor_init_helper(readtorch.rand, size, device_mesh, placements, **options)


def randn(*size, requires_grad=False, dtype=None, layout=readtorch.strided, device_mesh=None, placements=None):
    """A DTensor of normally distributed random numbers, whose shards differ. size, placements: as of `ones`."""
    size, options = normalize_to_torch_size(size), {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _dtensor_init_helper(readtorch.randn, size, device_mesh, placements, **options)


def zeros(*size, requires_grad=False, dtype=None, layout=readtorch.strided, device_mesh=None, placements=None):
    """A DTensor of zeros. size, placements: as of `ones`."""
    size, options = normalize_to_torch_size(size), {"dtype": dtype, "layout": layout, "requires_grad": requires_grad}
    return _dtensor_init_helper(readtorch.zeros, size, device_mesh, placements, **options)
