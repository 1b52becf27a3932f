"""Fully sharded data parallelism: parameters, gradients and optimizer state are spread over the ranks.

Explained in the chapter "Shards: FSDP and DTensor". In PyTorch: `torch/distributed/fsdp/__init__.py`. The first version, `FullyShardedDataParallel`, is left out: `fully_shard`
has taken its place.
"""

from ._fully_shard import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
