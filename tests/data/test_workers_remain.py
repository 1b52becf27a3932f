"""What the other files of this folder leave out of the life of a worker: its signals, its share of the work, a death that is told twice."""

import multiprocessing
import os
import signal

import pytest

from readtorch.utils.data import DataLoader, Dataset, get_worker_info


class Signals(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return [signal.getsignal(number) == signal.SIG_DFL for number in (signal.SIGCHLD, signal.SIGTERM)]


def test_a_worker_has_no_handlers_of_the_parent_s():
    before = signal.signal(signal.SIGTERM, lambda *arguments: None)
    try:
        assert list(DataLoader(Signals(), batch_size=None, num_workers=1)) == [[True, True]]
    finally:
        signal.signal(signal.SIGTERM, before)


class Blocked(Dataset):
    """The first worker waits until it may go on."""

    def __init__(self, go_on):
        self.go_on = go_on

    def __len__(self):
        return 8

    def __getitem__(self, index):
        worker = get_worker_info().id
        if worker == 0:
            self.go_on.wait(30)
        return f"{worker}: {index}"


def test_out_of_order_the_others_do_the_work_of_one_that_waits():
    go_on = multiprocessing.Event()
    batches = iter(
        DataLoader(Blocked(go_on), batch_size=None, num_workers=2, prefetch_factor=1, in_order=False, timeout=10)
    )
    assert [next(batches) for _ in range(7)] == [f"1: {index}" for index in range(1, 8)]
    go_on.set()
    assert list(batches) == ["0: 0"]


class Dies(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 1:
            os._exit(3)
        return index


def test_a_dead_worker_is_told_of_in_each_epoch():
    loader = DataLoader(Dies(), batch_size=None, num_workers=2, persistent_workers=True)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"DataLoader worker.* exited unexpectedly"):
            list(loader)
