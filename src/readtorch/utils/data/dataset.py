"""Datasets: what can be asked for a sample.

In PyTorch: `torch/utils/data/dataset.py`. See the chapter "Dataset, Sampler, DataLoader".

A map-style dataset answers `dataset[key]`; an `IterableDataset` only `next`. The rest are made of others:

    TensorDataset(a, b)      sample i is (a[i], b[i])
    StackDataset(x, y)       sample i is (x[i], y[i]), or a dict
    ConcatDataset([x, y])    the samples of x, then those of y; x + y
    ChainDataset([x, y])     the same of iterable ones
    Subset(x, indices)       sample i is x[indices[i]]; random_split makes several
"""

import bisect
import itertools
import math
import warnings
from typing import Generic, Iterable, TypeVar

import readtorch
from readtorch.csrc.generator import default_generator

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "ConcatDataset",
    "ChainDataset",
    "Subset",
    "random_split",
]

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """A map from keys to samples. Subclasses write `__getitem__(key)`, and `__len__` for samplers.

    A subclass may have `__getitems__(keys)`, too: a list of samples in one call, which the fetcher prefers.
    """

    # Neither __getitems__ nor __len__ stands here: a fetcher and `list` ask whether a dataset has them.
    # See Note [ No __len__ in a base class ] in sampler.py.

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """A stream of samples. Subclasses write `__iter__`.

    Every worker has a copy of its own and would give the whole stream: `__iter__` (or `worker_init_fn`) asks
    `get_worker_info()` which part is wanted of it.
    """

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple]):
    """Sample i is a tuple of row i of each tensor. Raises AssertionError if their first sizes differ."""

    def __init__(self, *tensors):
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset[_T_co]):
    """Sample i is made of sample i of every dataset: a tuple of them, or a dict if they came with names.

    Raises ValueError for no dataset, for both kinds at once, and if their lengths differ.
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        parts = args or list(kwargs.values())
        self._length = len(parts[0])
        if any(self._length != len(dataset) for dataset in parts):
            raise ValueError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices):
        if isinstance(self.datasets, dict):
            batch = [{} for _ in indices]
            for name, dataset in self.datasets.items():
                for sample, item in zip(batch, _items_of(dataset, indices), strict=True):
                    sample[name] = item
            return batch
        batch = [[] for _ in indices]
        for dataset in self.datasets:
            for sample, item in zip(batch, _items_of(dataset, indices), strict=True):
                sample.append(item)
        return [tuple(sample) for sample in batch]

    def __len__(self):
        return self._length


def _items_of(dataset, indices):
    """A part's samples, in one call if it can."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset[_T_co]):
    """The samples of several map-style datasets, one dataset after the other.

    Raises AssertionError for no dataset and for an `IterableDataset`; ValueError for an index below -len.
    """

    @staticmethod
    def cumsum(sequence):
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets):
        super().__init__()
        self.datasets = list(datasets)
        if len(self.datasets) == 0:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx = len(self) + idx
        dataset_idx = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[dataset_idx - 1] if dataset_idx > 0 else 0
        return self.datasets[dataset_idx][idx - before]

    @property
    def cummulative_sizes(self):
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset):
    """The samples of several iterable datasets, one dataset after the other.

    AssertionError when a dataset of another kind is reached.
    """

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def _parts(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._parts():
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self._parts())


class Subset(Dataset[_T_co]):
    """Some samples of a dataset: sample i is `dataset[indices[i]]`.

    Who overrides `__getitem__` must override `__getitems__`, too, as the fetcher prefers that one:
    NotImplementedError otherwise.
    """

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. "
                "When subclassing Subset and overriding __getitem__, you must also override "
                "__getitems__ to ensure DataLoader works correctly with your custom logic. "
                "A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx):
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices):
        chosen = [self.indices[idx] for idx in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[idx] for idx in chosen]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=default_generator):
    """Subsets that share out a shuffled dataset.

    lengths: numbers of samples, or fractions whose sum is 1; what rounding down leaves over goes round, one
    each from the first. Raises ValueError for a fraction outside [0, 1] and if lengths do not add up.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_from_fractions(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = readtorch.randperm(sum(lengths), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, indices[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def _lengths_from_fractions(size, fractions):
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for i in range(size - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths
