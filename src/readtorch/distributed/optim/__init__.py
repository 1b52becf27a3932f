"""Optimizers of which each rank has a part. In PyTorch: `torch/distributed/optim/__init__.py`.

Left out: what needs RPC (`DistributedOptimizer`), and the functional forms for TorchScript.
"""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
