"""Fully sharded data parallelism: parameters, gradients and optimizer state are spread over the ranks.

Explained in the chapter "Shards: FSDP and DTensor". In PyTorch: `torch/distributed/fsdp/__init__.py`. The first version, `FullyShardedDataParallel`, is a name with its settings, and
refuses: `fully_shard` has taken its place.
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
from .fully_sharded_data_parallel import *  # noqa: F403
from .fully_sharded_data_parallel import __all__ as _first_version

__all__ = [
    *_first_version,
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
