"""Data loading: datasets, samplers, the loader.

In PyTorch: `torch/utils/data`. See chapter 13.

    sampler.py       which index comes next
    dataset.py       what can be asked for a sample
    _utils/fetch     from indices to samples
    _utils/collate   from samples to a batch

in PyTorch: `datapipes` as well (IterDataPipe, functional_datapipe and their like), whose development ended.
"""
from ._utils.collate import default_collate, default_convert
from .dataset import (ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset,
                      TensorDataset, random_split)
from .distributed import DistributedSampler
from .sampler import (BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler,
                      WeightedRandomSampler)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "Dataset", "DistributedSampler", "IterableDataset",
    "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler",
    "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert", "random_split",
]
