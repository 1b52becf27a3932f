"""Meshes of a sharded model and small functions. In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_common.py`."""

import math
from dataclasses import dataclass
from enum import Enum, auto

import readtorch
from readtorch import Tensor
from readtorch.csrc.autograd.graph_task import get_current_graph_task_id
from readtorch.distributed.device_mesh import DeviceMesh
from readtorch.distributed.tensor import DTensor


@dataclass
class FSDPMeshInfo:
    """The ranks over which parameters are sharded: all of a mesh, or its dimension `shard_mesh_dim`."""

    mesh: DeviceMesh
    shard_mesh_dim: int = 0

    def __post_init__(self):
        self.shard_mesh_size = self.mesh.size(self.shard_mesh_dim)
        self.shard_process_group = self.mesh.get_group(self.shard_mesh_dim)
        self.reduce_scatter_process_group = None  # one of its own, if that is wanted
        self.shard_mesh_rank = self.shard_process_group.rank()


@dataclass
class HSDPMeshInfo(FSDPMeshInfo):
    """A mesh of two dimensions: the rows are copies of one another, and within a row parameters are sharded."""

    replicate_mesh_dim: int = 0

    def __post_init__(self):
        super().__post_init__()
        self.replicate_mesh_size = self.mesh.size(self.replicate_mesh_dim)
        self.replicate_process_group = self.mesh.get_group(self.replicate_mesh_dim)


class TrainingState(Enum):
    """What a module or a group of parameters is in the middle of."""

    FORWARD = auto()
    PRE_BACKWARD = auto()
    POST_BACKWARD = auto()
    IDLE = auto()


def is_bw():
    """Whether this thread runs a backward pass: then a forward pass in it is one of activation checkpointing."""
    return get_current_graph_task_id() != -1


def _get_dim0_padded_size(size, factor):
    """The sizes with the first one rounded up to a multiple of `factor`."""
    return readtorch.Size([math.ceil(size[0] / factor) * factor, *size[1:]])


def _chunk_with_empty(tensor, num_chunks, dim):
    """As `chunk`, with empty ones at the end where there are not enough."""
    chunks = list(readtorch.chunk(tensor, num_chunks, dim=dim))
    return chunks + [chunks[0].narrow(dim, 0, 0)] * (num_chunks - len(chunks))


def _from_local_no_grad(local_tensor, spec):
    """A DTensor without the autograd of `DTensor.from_local`."""
    return DTensor(local_tensor, spec, requires_grad=local_tensor.requires_grad)


def _to_dtype_if_needed(tensor, dtype):
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


def _cast_fp_tensor(dtype, x):
    return x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() and x.dtype is not dtype else x


def apply_to_tensors(function, value):
    """Nested containers with each tensor replaced by `function` of it."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return type(value)((key, apply_to_tensors(function, entry)) for key, entry in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[apply_to_tensors(function, entry) for entry in value])
    if isinstance(value, (list, tuple)):
        return type(value)(apply_to_tensors(function, entry) for entry in value)
    return value


def collect_grad_tensors(value):
    """The tensors in nested containers that need a gradient, in order."""
    found = []

    def look(tensor):
        if tensor.requires_grad:
            found.append(tensor)
        return tensor

    apply_to_tensors(look, value)
    return found


def replace_grad_tensors(value, new):
    """The same containers with those tensors replaced by the next ones of the iterator `new`."""
    return apply_to_tensors(lambda tensor: next(new) if tensor.requires_grad else tensor, value)
