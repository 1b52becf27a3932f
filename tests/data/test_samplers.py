"""Samplers next to the reference: the same order from the same seed, the same complaints."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
import readtorch.utils.data
from tests.programs import same

SEEDS = st.integers(0, 2**31)
SIZES = st.integers(1, 70)


class Keyed:
    """No list, no Sampler: only what the old protocol of iteration asks for."""

    def __getitem__(self, index):
        if index >= 7:
            raise IndexError
        return index * 10


def same_order(make, seed, own_generator=True):
    """Two passes give the same on both sides, and leave the same random state behind."""

    def two_passes(T):
        T.manual_seed(seed)
        generator = T.Generator().manual_seed(seed + 1) if own_generator else None
        sampler = make(T.utils.data, generator)
        passes = [list(sampler), list(sampler)]
        return len(sampler), passes, T.randint(2**40, (3,), generator=generator).tolist(), T.rand(1).item()

    assert two_passes(readtorch) == two_passes(torch)


@given(SEEDS, SIZES, st.booleans(), st.none() | st.integers(1, 150), st.booleans())
def test_random_sampler(seed, n, replacement, num_samples, own):
    same_order(lambda D, g: D.RandomSampler(range(n), replacement, num_samples, g), seed, own)


@given(SEEDS, st.lists(st.integers() | st.text(max_size=3), max_size=20), st.booleans())
def test_subset_random_sampler(seed, indices, own):
    same_order(lambda D, g: D.SubsetRandomSampler(indices, g), seed, own)


@given(SEEDS, st.lists(st.floats(0.01, 10), min_size=1, max_size=20), st.data(), st.booleans(), st.booleans())
def test_weighted_random_sampler(seed, weights, data, replacement, own):
    num_samples = data.draw(st.integers(1, 40 if replacement else len(weights)))
    same_order(lambda D, g: D.WeightedRandomSampler(weights, num_samples, replacement, g), seed, own)


@given(SIZES, st.integers(1, 12), st.booleans())
def test_batch_sampler(n, batch_size, drop_last):
    def program(T, show):
        D = T.utils.data
        sampler = D.BatchSampler(D.SequentialSampler(range(n)), batch_size, drop_last)
        show(len(sampler), list(sampler), list(sampler))

    same(program)


@given(st.integers(1, 40), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 5), st.integers(0, 9))
def test_distributed_sampler(n, num_replicas, shuffle, drop_last, epoch, seed):
    def program(T, show):
        for rank in range(num_replicas):
            sampler = T.utils.data.DistributedSampler(range(n), num_replicas, rank, shuffle, seed, drop_last)
            sampler.set_epoch(epoch)
            show(len(sampler), list(sampler), sampler.num_samples, sampler.total_size, sampler.epoch)

    same(program)


@given(st.integers(1, 60), st.integers(1, 8))
def test_ranks_share_out_everything(n, num_replicas):
    ranks = [
        list(readtorch.utils.data.DistributedSampler(range(n), num_replicas, rank)) for rank in range(num_replicas)
    ]
    assert len({len(indices) for indices in ranks}) == 1
    assert {i for indices in ranks for i in indices} == set(range(n))


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("later", [0, 3, 9, 25])
def test_distributed_sampler_of_a_dataset_that_changes(drop_last, later):
    def program(T, show):
        dataset = list(range(10))
        sampler = T.utils.data.DistributedSampler(dataset, 4, 1, False, drop_last=drop_last)
        dataset[:] = range(later)
        show.error(lambda: show(list(sampler)))

    same(program)


def test_random_sampler_of_a_dataset_that_grows():
    def program(T, show):
        dataset = [0]
        sampler = T.utils.data.RandomSampler(dataset)
        dataset += [1, 2, 3]
        show(len(sampler), list(sampler), sampler.num_samples)

    same(program)


def test_batches_of_anything_iterable():
    def program(T, show):
        D = T.utils.data
        show(list(D.BatchSampler(Keyed(), 3, False)), list(D.BatchSampler(iter("abcde"), 2, True)))
        nested = D.BatchSampler(D.BatchSampler(range(10), 2, False), 2, False)
        show(list(nested), len(nested))
        show.error(lambda: len(D.BatchSampler(Keyed(), 3, False)))

    same(program)


def test_complaints():
    def program(T, show):
        D = T.utils.data
        data = range(4)
        for replacement in (0, None, "yes"):
            show.error(lambda: D.RandomSampler(data, replacement))
            show.error(lambda: D.WeightedRandomSampler([1.0], 1, replacement))
            show.error(lambda: D.BatchSampler(data, 2, replacement))
        for count in (0, -1, 1.5, "3"):
            show.error(lambda: D.RandomSampler(data, num_samples=count))
        for count in (0, -1, 1.5, True, None):
            show.error(lambda: D.WeightedRandomSampler([1.0], count))
            show.error(lambda: D.BatchSampler(data, count, False))
        show.error(lambda: D.RandomSampler([]))
        show.error(lambda: list(D.RandomSampler([], num_samples=3)))
        show.error(lambda: D.WeightedRandomSampler([[1.0, 2.0]], 1))
        show.error(lambda: list(D.WeightedRandomSampler([1.0, 2.0], 3, replacement=False)))
        show.error(lambda: list(D.WeightedRandomSampler([0.0, 0.0], 3)))
        show.error(lambda: D.DistributedSampler(data, 2, 2))
        show.error(lambda: D.DistributedSampler(data, 2, -1))
        show.error(lambda: D.DistributedSampler(data))
        show.error(lambda: iter(D.Sampler()))
        show.error(lambda: len(D.Sampler()))

    same(program)


def test_attributes_and_subscripts():
    def program(T, show):
        D = T.utils.data
        show(sorted(vars(D.RandomSampler([1, 2], True, 3))), sorted(vars(D.SequentialSampler([]))))
        show(sorted(vars(D.SubsetRandomSampler([]))), sorted(vars(D.BatchSampler([], 1, True))))
        show(sorted(vars(D.DistributedSampler([1], 1, 0))))
        show(D.WeightedRandomSampler([1, 2], 3).weights)
        show([b.__name__ for b in D.BatchSampler.__mro__], D.Sampler[int])

    same(program)
