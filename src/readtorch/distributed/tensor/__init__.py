"""Tensors over the ranks of a mesh. Explained in the chapter "Shards: FSDP and DTensor".

In PyTorch: `torch/distributed/tensor/__init__.py`.
"""

from readtorch.distributed._mesh_layout import _FlatLayout, _MeshLayout
from readtorch.distributed.device_mesh import DeviceMesh, init_device_mesh

from readtorch.serialization import add_safe_globals

from . import _ops
from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from ._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = [
    "DTensor",
    "distribute_tensor",
    "distribute_module",
    "Shard",
    "Replicate",
    "Partial",
    "Placement",
    "ones",
    "empty",
    "full",
    "rand",
    "randn",
    "zeros",
]

for _public in (DTensor, distribute_tensor, distribute_module, ones, empty, full, rand, randn, zeros):
    _public.__module__ = __name__  # where they are documented to be, as in PyTorch

add_safe_globals(
    [
        DeviceMesh,
        _MeshLayout,
        _FlatLayout,
        DTensorSpec,
        TensorMeta,
        ShardOrderEntry,
        DTensor,
        Partial,
        Replicate,
        Shard,
        _StridedShard,
    ]
)
