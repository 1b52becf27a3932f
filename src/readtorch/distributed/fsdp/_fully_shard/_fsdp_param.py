"""One parameter: its shard, its whole, and the way from one to the other.

In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_param.py`. Left out: the extension by which a tensor subclass gathers
itself, and parameters that are DTensors on a mesh to which the dimensions of FSDP belong already (`dp_mesh_dims`).

Note [ Two parameters for one ]

There are two Parameters. The sharded one is a DTensor of a rank's part; the optimizer has it, state_dicts show it, and it
gets the reduced gradient. The unsharded one is an ordinary Parameter; the module computes with it, and autograd leaves the
gradient there. Under its name the module holds now one, now the other. The whole parameter is one object from the first
all-gather on: resharding empties its storage, and the next all-gather fills it again, without a change that the version
counter would note. Graphs that have saved it see their numbers again.

Note [ What tensor parallelism has cut is cut again ]

A parameter may be a DTensor on a mesh of its own before: tensor parallelism has cut it, and the ranks here are those that have
the same piece. Then the unsharded parameter is that DTensor, and what is gathered and reduced is its local tensor. The sharded one
is a DTensor on the meshes of both, FSDP's dimensions first, though it cuts last: where both cut the same dimension, FSDP's cut is
a `_StridedShard`, of as many parts as there were pieces.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

import readtorch
from readtorch import nn
from readtorch.c10.cuda.device_memory import empty_returnable
from readtorch.distributed.device_mesh import DeviceMesh
from readtorch.distributed.tensor import DTensor, Replicate, Shard
from readtorch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from readtorch.distributed.tensor.placement_types import _StridedShard

from ._fsdp_api import CPUOffloadPolicy
from ._fsdp_common import HSDPMeshInfo, _chunk_with_empty, _from_local_no_grad, _to_dtype_if_needed


class ShardedState(Enum):
    """Which one of its parameters the module holds."""

    SHARDED = auto()
    SHARDED_POST_FORWARD = auto()  # over fewer ranks, between forward and backward
    UNSHARDED = auto()


@dataclass
class ParamModuleInfo:
    """Where a parameter stands: `module.param_name`, and other places if it is shared."""

    module: nn.Module
    param_name: str
    shared_modules: list = field(default_factory=list)
    shared_param_names: list = field(default_factory=list)


class FSDPParam:
    """See Note [ Two parameters for one ]."""

    def __init__(self, param, module_info, mesh_info, post_forward_mesh_info, device, placement_fn, mp_policy, offload):
        self._module_info = module_info
        self.mesh_info = mesh_info
        self.post_forward_mesh_info = post_forward_mesh_info
        self.device = device
        self.offload_to_cpu = isinstance(offload, CPUOffloadPolicy)
        self.pin_memory = self.offload_to_cpu and offload.pin_memory and device.type != "cpu"
        self.grad_offload_event = None
        self.mp_policy = mp_policy
        self.param_dtype = self.reduce_dtype = None
        self.all_gather_output = None  # the whole parameter, padded, in one dimension
        self._unsharded_param = None
        self.unsharded_accumulated_grad = None  # in reduce_dtype, from backward passes without a reduction
        self._sharded_post_forward_param_data = None
        self._param_fqn = None
        self._orig_param_uid = id(param)
        self._init_sharded_param(param, placement_fn)
        module_info.module.register_load_state_dict_post_hook(lambda *args: self.reset_sharded_param())

    # ------------------------------------------------------------------------------------------- the shard

    @readtorch.no_grad()
    def _init_sharded_param(self, param, placement_fn):
        """Cut this rank's part out of the parameter, padded to the size of the largest part."""
        if not param.is_contiguous():
            raise NotImplementedError(
                f"FSDP does not support non-contiguous parameters yet: {param.shape=} {param.stride()=}"
            )
        self.fsdp_placement = self._placement(param, placement_fn)
        dim, count = self.fsdp_placement.dim, self.mesh_info.shard_mesh_size
        self._unsharded_dtensor_spec = param._spec if isinstance(param, DTensor) else None
        if dim >= param.ndim:
            raise AssertionError(f"Shard dim {dim} is invalid for {param.ndim}D tensor: {param.shape}")
        self._sharding_spec = self._spec_of_shards(param)
        whole = param._local_tensor if self.is_dtensor else param.detach()
        if dim > 0 and whole.size(dim) % count != 0:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: {whole.size()} (world size: {count})"
            )
        self._orig_size, self.orig_dtype = whole.size(), param.dtype
        chunks = _chunk_with_empty(whole, count, dim)
        mine = chunks[self.mesh_info.shard_mesh_rank]
        self.sharded_size = mine.size()
        self.padded_sharded_param_size = chunks[0].size()
        self._set_shard(self._padded(mine))
        self.sharded_param = nn.Parameter(self.to_sharded_dtensor(self._shard_view()), param.requires_grad)
        self._setattr_on_modules(self.sharded_param)
        self.sharded_state = ShardedState.SHARDED

    @property
    def is_dtensor(self):
        """Whether the parameter was a DTensor before: Note [ What tensor parallelism has cut is cut again ]."""
        return self._unsharded_dtensor_spec is not None

    def _spec_of_shards(self, param):
        """How the sharded parameter, and its gradient, are placed."""
        mesh, placement, earlier = self.mesh_info.mesh, self.fsdp_placement, ()
        meta = TensorMeta(param.size(), param.stride(), param.dtype)
        if self.is_dtensor:
            before = self._unsharded_dtensor_spec
            if len(before.placements) > 2:
                raise NotImplementedError(f"FSDP only supports 1D TP/EP or 2D EP+TP, not {before.placements}")
            mesh, earlier, meta = DeviceMesh._concatenate([mesh, before.mesh]), before.placements, before.tensor_meta
            if (pieces := before.num_shards_map[placement.dim]) > 1:
                placement = _StridedShard(placement.dim, split_factor=pieces)
        copies = (Replicate(),) if isinstance(self.mesh_info, HSDPMeshInfo) else ()
        return DTensorSpec(mesh, (*copies, placement, *earlier), meta)

    def _placement(self, param, placement_fn):
        placement = placement_fn(param) if placement_fn is not None else None
        if placement is None:
            return Shard(0)
        if not isinstance(placement, Shard):
            raise ValueError(f"Invalid shard_placement_fn result: {placement}")
        return Shard(placement.dim + param.ndim) if placement.dim < 0 else placement

    def _padded(self, shard):
        padded = shard.new_zeros(self.padded_sharded_param_size)
        padded.narrow(self.fsdp_placement.dim, 0, shard.size(self.fsdp_placement.dim)).copy_(shard)
        return self._offloaded(padded)

    def _offloaded(self, tensor):
        if not self.offload_to_cpu or tensor.is_meta:
            return tensor
        tensor = tensor.cpu()
        return tensor.pin_memory() if self.pin_memory else tensor

    def _set_shard(self, padded):
        self._sharded_param_data = padded.view(-1)

    def _shard_view(self):
        """The shard within the padded one."""
        dim = self.fsdp_placement.dim
        return self._sharded_param_data.view(self.padded_sharded_param_size).narrow(dim, 0, self.sharded_size[dim])

    def reset_sharded_param(self):
        """Take over what the module holds now, as after `load_state_dict(assign=True)` or `to_empty`."""
        new = getattr(self._module_info.module, self._module_info.param_name)
        if new is not self.sharded_param and new is not self._unsharded_param:
            self.sharded_param = new
        local = self.sharded_param._local_tensor
        own = self._sharded_param_data
        if local.is_meta or (not own.is_meta and local.untyped_storage() is own.untyped_storage()):
            return
        with readtorch.no_grad():
            self._set_shard(self._padded(local))
            self.sharded_param._local_tensor = self._shard_view()

    def init_dtype_attrs(self):
        """What the policy means for this parameter: nothing where dtypes are equal anyway."""
        param, reduce = self.mp_policy.param_dtype, self.mp_policy.reduce_dtype
        if reduce is (param or self.orig_dtype):
            reduce = None
        self.param_dtype = None if param is self.orig_dtype else param
        self.reduce_dtype = reduce

    # ------------------------------------------------------------------------------------------- the whole

    @property
    def all_gather_input(self):
        """What this rank brings: its shard, in one dimension."""
        if self.sharded_state is ShardedState.SHARDED_POST_FORWARD:
            return self._sharded_post_forward_param_data
        data = self._sharded_param_data
        if self.offload_to_cpu:
            data = data.to(self.device, non_blocking=True)
        return _to_dtype_if_needed(data, self.param_dtype)

    def alloc_all_gather_output(self, count):
        """Memory for the whole parameter."""
        if self.all_gather_output is None:
            dtype = self.param_dtype or self.orig_dtype
            self.all_gather_output = empty_returnable(self.device, count, dtype.numpy)
        else:
            alloc_storage(self.all_gather_output)

    def init_unsharded_param(self):
        """The Parameter over that memory, made at the first all-gather."""
        if self._unsharded_param is None:
            whole = self.all_gather_output[: self._orig_size.numel()].view(self._orig_size).detach()
            if self.is_dtensor:
                meta = self._unsharded_dtensor_spec.tensor_meta._replace(dtype=whole.dtype)
                whole = _from_local_no_grad(whole, self._unsharded_dtensor_spec.shallow_copy_with_tensor_meta(meta))
            self._unsharded_param = nn.Parameter(whole, self.sharded_param.requires_grad)

    # ----------------------------------------------------------------------------------------- from one to the other

    def to_sharded(self):
        self._setattr_on_modules(self.sharded_param)
        self.free_unsharded_param()
        self.sharded_state = ShardedState.SHARDED

    def to_sharded_post_forward(self):
        """Keep this rank's part of a whole that a few neighbours share."""
        if self.is_dtensor:
            raise NotImplementedError("Resharding to smaller mesh is not supported for DTensor parameters yet")
        info, whole = self.post_forward_mesh_info, self.all_gather_output
        if whole.numel() % info.shard_mesh_size != 0:
            raise AssertionError(
                f"All-gather output size ({whole.numel()}) must be divisible by the shard "
                f"world size ({info.shard_mesh_size})"
            )
        part = whole.numel() // info.shard_mesh_size
        self._sharded_post_forward_param_data = whole.narrow(0, part * info.shard_mesh_rank, part).clone()
        self._setattr_on_modules(self.sharded_param)
        self.free_unsharded_param()
        self.sharded_state = ShardedState.SHARDED_POST_FORWARD

    def to_unsharded(self):
        if self._unsharded_param.requires_grad != self.sharded_param.requires_grad:
            self._unsharded_param.requires_grad_(self.sharded_param.requires_grad)
        self._setattr_on_modules(self._unsharded_param)
        self._sharded_post_forward_param_data = None
        self.sharded_state = ShardedState.UNSHARDED

    def free_unsharded_param(self):
        if self.all_gather_output is not None:
            free_storage(self.all_gather_output)

    def _setattr_on_modules(self, param):
        """Put a Parameter under the name, past the checks of `Module.__setattr__`."""
        info = self._module_info
        info.module._parameters[info.param_name] = param
        for module, name in zip(info.shared_modules, info.shared_param_names):
            module._parameters[name] = param

    # ------------------------------------------------------------------------------------------- gradients

    def to_sharded_dtensor(self, tensor):
        """A shard, of the parameter or of its gradient, as a DTensor."""
        return _from_local_no_grad(tensor, self._sharding_spec)

    def accumulate_unsharded_grad_if_needed(self):
        """Add the gradient of this backward pass to that of earlier ones, in reduce_dtype."""
        grad = self._unsharded_param.grad if self._unsharded_param is not None else None
        if self.unsharded_accumulated_grad is not None and grad is not None:
            self.unsharded_accumulated_grad += grad
            self._unsharded_param.grad = None

    def to_accumulated_grad_if_needed(self):
        """Keep the gradient of a backward pass without a reduction in reduce_dtype, if that is another one."""
        grad = self._unsharded_param.grad if self._unsharded_param is not None else None
        if self.reduce_dtype is None or grad is None or grad.dtype is self.reduce_dtype:
            return
        self._unsharded_param.grad = None
        self.unsharded_accumulated_grad = grad.to(self.reduce_dtype)

    def take_unsharded_grad(self, or_zeros=False):
        """The gradient that is to be reduced, which leaves the parameter; None if there is none, or zeros for a parameter that is trained."""
        if self.unsharded_accumulated_grad is not None:
            grad, self.unsharded_accumulated_grad = self.unsharded_accumulated_grad, None
        elif self._unsharded_param is None:
            return None
        else:
            grad, self._unsharded_param.grad = self._unsharded_param.grad, None
            if grad is None and or_zeros and self._unsharded_param.requires_grad:
                grad = readtorch.zeros_like(self._unsharded_param)
        return self._inner_grad(grad) if self.is_dtensor and grad is not None else grad

    def _inner_grad(self, grad):
        """What this rank has of a gradient that is placed as the parameter was: what tensor parallelism has left as summands is added."""
        placements = self._unsharded_dtensor_spec.placements
        if grad.placements != placements:
            grad = grad.redistribute(placements=placements)
        return grad._local_tensor

    def __repr__(self):
        return f"FSDPParam(fqn={self._param_fqn}, orig_size={self._orig_size})"


def alloc_storage(tensor):
    """Give a tensor whose storage was emptied its memory again."""
    size = tensor.numel() * tensor.itemsize
    if tensor.untyped_storage().size() != size:
        tensor.untyped_storage().resize_(size)


def free_storage(tensor):
    """Empty a tensor's storage, while Parameters and graphs keep looking at it."""
    if tensor.untyped_storage().size() != 0:
        tensor.untyped_storage().resize_(0)
