"""`fully_shard`, part by part. In PyTorch: `torch/distributed/fsdp/_fully_shard/__init__.py`.

    _fully_shard        the function, and the methods that a module gets
    _fsdp_init          which modules and parameters belong to a call; on which ranks
    _fsdp_state         the hooks of a module: before and after forward and backward
    _fsdp_param_group   parameters that are gathered and reduced together, and when
    _fsdp_param         one parameter: its shard, its whole, and the change between them
    _fsdp_collectives   the all-gather and the reduce-scatter of a group
    _fsdp_api, _fsdp_common   policies; words that all use

Note [ One step of a sharded model ]

    forward     each group: all-gather the whole parameters, compute, free them (reshard)
    backward    each group: all-gather them again, compute gradients, free the parameters,
                reduce-scatter the gradients: each rank keeps the mean of its shard
    step        the optimizer sees shards alone: parameters, gradients and state are 1/N of the model each

While one group computes, the next one's all-gather and the last one's reduce-scatter are under way on streams of their own.
So a rank holds its shards and at most two groups' whole parameters.
"""

from ._fsdp_api import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._fully_shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
