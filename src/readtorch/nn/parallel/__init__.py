"""One model on several devices, or in several processes. In PyTorch: `torch/nn/parallel/__init__.py`."""
from readtorch.nn.parallel.data_parallel import DataParallel, data_parallel
from readtorch.nn.parallel.distributed import DistributedDataParallel
from readtorch.nn.parallel.parallel_apply import parallel_apply
from readtorch.nn.parallel.replicate import replicate
from readtorch.nn.parallel.scatter_gather import gather, scatter

__all__ = ["replicate", "scatter", "parallel_apply", "gather", "data_parallel", "DataParallel",
           "DistributedDataParallel"]
