"""`mini.data`: the order and the batches of PyTorch's loader, with and without processes, and none of them left behind."""

import itertools
import multiprocessing
import time

import pytest
import torch

from readtorch.mini import data as mini
from readtorch.mini import random as mini_random

PAIRS = [(i, i * i) for i in range(11)]


def theirs(batch_size, epochs, **options):
    loader = torch.utils.data.DataLoader(PAIRS, batch_size, shuffle=True, **options)
    return [[[column.tolist() for column in batch] for batch in loader] for _ in range(epochs)]


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31])
@pytest.mark.parametrize("batch_size", [1, 4, 11, 20])
def test_epochs_are_pytorchs(seed, batch_size):
    torch.manual_seed(seed)
    mini_random.manual_seed(seed)
    assert [list(mini.load(PAIRS, batch_size)) for _ in range(3)] == theirs(batch_size, 3)


def test_with_processes_the_batches_are_the_same():
    torch.manual_seed(3)
    mini_random.manual_seed(3)
    mini.draw_seed()  # the base seed
    batches = mini.batches_of(mini.shuffled(len(PAIRS)), 2)
    assert [list(mini.load_ahead(PAIRS, batches, count=3))] == theirs(2, 1, num_workers=3)


class Uneven:
    def __getitem__(self, index):
        time.sleep(0.3 if index == 0 else 0.001)
        return (index,)


@pytest.mark.parametrize("in_order", [True, False])
def test_order(in_order):
    batches = mini.batches_of(list(range(12)), 2)
    found = [batch[0] for batch in mini.load_ahead(Uneven(), batches, in_order=in_order)]
    assert sorted(found) == batches
    assert (found == batches) is in_order


@pytest.mark.parametrize("dataset", [PAIRS, [(list(range(100_000)),)] * 11], ids=["small", "more than a pipe holds"])
@pytest.mark.parametrize("taken", [0, 2, 6])
def test_no_process_is_left(taken, dataset):
    before = set(multiprocessing.active_children())
    loader = mini.load_ahead(dataset, mini.batches_of(list(range(11)), 2))
    assert len(list(itertools.islice(loader, taken))) == taken
    del loader
    assert set(multiprocessing.active_children()) == before
