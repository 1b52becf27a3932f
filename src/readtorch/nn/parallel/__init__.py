"""One model on several devices, or in several processes. In PyTorch: `torch/nn/parallel/__init__.py`."""
from readtorch.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
