"""Batches in pinned memory, for simulated devices."""

import collections
import gc
import warnings

import pytest

import readtorch as rt
from readtorch import cuda
from readtorch.utils.data import DataLoader, TensorDataset

Pair = collections.namedtuple("Pair", "x y")


@pytest.fixture(autouse=True)
def devices():
    cuda.simulate(2, "64MiB")
    yield
    gc.collect()
    cuda.simulate(0)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_pinned(workers):
    data = TensorDataset(rt.arange(10.0).view(5, 2), rt.arange(5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = list(DataLoader(data, batch_size=2, num_workers=workers, pin_memory=True))
    assert all(t.is_pinned() for batch in batches for t in batch)
    assert rt.cat([x for x, _ in batches]).tolist() == rt.arange(10.0).view(5, 2).tolist()
    assert batches[0][0].cuda(non_blocking=True).cpu().equal(batches[0][0])


class Custom:
    def __init__(self, items):
        self.items, self.is_mine = items, False

    def pin_memory(self):
        self.is_mine = True
        return self


@pytest.mark.parametrize(
    "collate, check",
    [
        (lambda items: {"a": rt.stack(items), "b": ["text"]}, lambda b: b["a"].is_pinned() and b["b"] == ["text"]),
        (lambda items: Pair(rt.stack(items), 1), lambda b: type(b) is Pair and b.x.is_pinned()),
        (lambda items: [items, range(2)], lambda b: b[0][0].is_pinned() and list(b[1]) == [0, 1]),
        (Custom, lambda b: b.is_mine),
    ],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_tensors_are_found_in_anything(collate, check, workers):
    loader = DataLoader(list(rt.arange(4.0)), batch_size=2, num_workers=workers, pin_memory=True, collate_fn=collate)
    assert all(check(batch) for batch in loader)


class Unpinnable:
    def pin_memory(self):
        raise KeyError("stuck")


def test_an_error_while_pinning_arrives():
    loader = DataLoader([1, 2], num_workers=1, pin_memory=True, collate_fn=lambda items: Unpinnable())
    with pytest.raises(KeyError, match="(?s)Caught KeyError in pin memory thread for device 0.*stuck"):
        list(loader)


def test_the_thread_works_for_the_device_that_was_current():
    cuda.set_device(1)
    iterator = iter(DataLoader(rt.arange(8), num_workers=1, pin_memory=True))
    next(iterator)
    assert iterator._data_queue._device_index == 1
    cuda.set_device(0)
