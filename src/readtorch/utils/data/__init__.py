"""Data loading: datasets, samplers, the loader.

In PyTorch: `torch/utils/data/__init__.py`. See the chapter "Dataset, Sampler, DataLoader".

    sampler.py       which index comes next
    dataset.py       what can be asked for a sample
    _utils/fetch     from indices to samples
    _utils/collate   from samples to a batch
    dataloader.py    all of it together; with the rest of _utils, in several processes

in PyTorch: `datapipes` as well (IterDataPipe, functional_datapipe and their like), whose development ended.
"""

from .dataloader import DataLoader, _DatasetKind, default_collate, default_convert, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
