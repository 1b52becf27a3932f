"""Samplers: who says which index comes next.

In PyTorch: `torch/utils/data/sampler.py`. See the chapter "Dataset, Sampler, DataLoader".
"""

import itertools
from typing import Generic, TypeVar

import readtorch

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """An iterable over indices, or over lists of them. Subclasses write `__iter__`; `__len__` if they can.

    Note [ No __len__ in a base class ]

    A base class must not promise a length that its subclass may not have. Neither stand-in works: with
    `return NotImplemented` a call of `len` complains about a NotImplementedType, and NotImplementedError goes
    right through `list(sampler)`, which asks for a length hint and only takes a TypeError for "has none".
    Without any `__len__` Python itself raises that TypeError.
    """

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, … len(data_source) - 1."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices of `data_source` in random order: a permutation, or independent draws (`replacement`).

    num_samples: how many, by default as many as there are; more than that without replacement are several
    permutations in a row. generator: if None, each pass has its own, its seed drawn from the default one.
    Raises TypeError if `replacement` is not a bool, ValueError if `num_samples` is not a positive int.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self):
        """Asked anew each time: the dataset may grow."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        generator = _own_generator() if self.generator is None else self.generator
        if self.replacement:
            for some in _shares(self.num_samples, 32):
                yield from readtorch.randint(n, (some,), dtype=readtorch.int64, generator=generator).tolist()
        else:
            for some in _shares(self.num_samples, n):
                yield from readtorch.randperm(n, generator=generator).tolist()[:some]

    def __len__(self):
        return self.num_samples


def _own_generator():
    """One draw of the default generator a pass, however long that is: the other random numbers stay put."""
    seed = int(readtorch.empty((), dtype=readtorch.int64).random_().item())
    generator = readtorch.Generator()
    generator.manual_seed(seed)
    return generator


def _shares(total, size):
    """`total` as whole shares of `size`, and the rest, be it 0: it draws random numbers all the same."""
    return itertools.chain(itertools.repeat(size, total // size), [total % size])


class SubsetRandomSampler(Sampler[int]):
    """The given indices, shuffled."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in readtorch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices; index i comes with probability proportional to `weights[i]`.

    Raises ValueError for what is not a positive int, a bool, one-dimensional weights.
    """

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _check_count("num_samples", num_samples)
        _check_bool("replacement", replacement)
        weights_tensor = readtorch.as_tensor(weights, dtype=readtorch.double)
        if len(weights_tensor.shape) != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(weights_tensor.shape)}"
            )
        self.weights = weights_tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = readtorch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of `batch_size` indices of another sampler; `drop_last` leaves out a last list that is shorter.

    sampler: any iterable, `__getitem__` alone included. ValueError for what is no positive int, no bool.
    """

    def __init__(self, sampler, batch_size, drop_last):
        _check_count("batch_size", batch_size)
        _check_bool("drop_last", drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        sampler_iter = iter(self.sampler)
        if self.drop_last:
            # one iterator, batch_size times: zip stops when a round cannot be filled
            for batch in zip(*[sampler_iter] * self.batch_size):
                yield [*batch]
        else:
            while batch := [*itertools.islice(sampler_iter, self.batch_size)]:
                yield batch

    def __len__(self):
        if self.drop_last:
            return len(self.sampler) // self.batch_size
        return (len(self.sampler) + self.batch_size - 1) // self.batch_size


def _check_count(name, value):
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _check_bool(name, value):
    if not isinstance(value, bool):
        raise ValueError(f"{name} should be a boolean value, but got {name}={value}")
