"""The first FSDP, which readtorch leaves out: `fully_shard` has taken its place.

In PyTorch: `torch/distributed/fsdp/fully_sharded_data_parallel.py`. Programs ask whether a module is one, and none is.
"""

from enum import Enum, auto

from readtorch import nn

from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class OptimStateKeyType(Enum):
    """What an optimizer's state is keyed by."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(nn.Module):
    """Raises NotImplementedError: use `readtorch.distributed.fsdp.fully_shard`."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError("readtorch has no FullyShardedDataParallel: use torch.distributed.fsdp.fully_shard")
