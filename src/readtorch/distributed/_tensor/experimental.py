"""The older name of `distributed.tensor.experimental`.

In PyTorch: an entry in `sys.modules`, made by `torch/distributed/_tensor/__init__.py`.
"""

from readtorch.distributed.tensor.experimental import implicit_replication, local_map, register_sharding

__all__ = ["implicit_replication", "local_map", "register_sharding"]
