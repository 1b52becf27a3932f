"""What happened when, in the main process and in the workers: for the worker timeline of the chapter "Dataset, Sampler,
DataLoader". While it is wanted, loaders make the iterators of this file; else nothing here runs.

PyTorch has no such file: there `torch.profiler` sees `__next__` as one range.
"""

import contextlib
import dataclasses
import time
from typing import NamedTuple

from readtorch.utils.data import dataloader

from .connection import Message
from .pin_memory import PinMemoryThread, pin_memory
from .worker import _Worker
from .worker_pool import WorkerPool


class Event(NamedTuple):
    """One thing that happened.

    what: in the order of a task's life "send", "fetch begin", "fetch end", "put", "receive", "pin begin",
    "pin end", "yield"; of the consumer, "wait begin" and "wait end" of a call of `__next__`; of a worker,
    "start".
    """

    time: float  # seconds, the same clock in all processes
    who: str | int  # "main", "pin" or the number of a worker
    what: str
    task: int | None = None  # which batch of this pass, in the order in which indices were sent
    worker: int | None = None  # of "send" and "receive": which
    index: object = None  # of "send", and of "fetch begin" without workers: what the sampler gave


events = None  # where events of this process go; None: nowhere


def note(who, what, task=None, worker=None, index=None):
    if events is not None:
        events.append(Event(time.monotonic(), who, what, task, worker, index))


@contextlib.contextmanager
def recording():
    """`with recording() as events:` a list of Events of all loaders whose iterators are made and used inside."""
    global events
    previous = events, dataloader._iterators
    events, dataloader._iterators = [], (RecordedSingleProcessIter, RecordedMultiProcessingIter)
    try:
        yield events
    finally:
        events, dataloader._iterators = previous


@contextlib.contextmanager
def waiting():
    note("main", "wait begin")
    try:
        yield
    finally:
        note("main", "wait end")


class RecordedSingleProcessIter(dataloader._SingleProcessDataLoaderIter):
    def _next_data(self):
        task = self._num_yielded
        with waiting():
            index = self._next_index()
            note("main", "fetch begin", task, index=index)
            data = self._dataset_fetcher.fetch(index)
            note("main", "fetch end", task)
            if self._pin_memory:
                note("main", "pin begin", task)
                data = pin_memory(data, self._pin_memory_device)
                note("main", "pin end", task)
            note("main", "yield", task)
            return data


@dataclasses.dataclass(frozen=True)
class Recorded:
    """In place of a batch: events of a worker."""

    events: list


class RecordedWorker(_Worker):
    def run(self):
        global events
        events = []
        note(self.id, "start")
        super().run()

    def do(self, task, index):
        note(self.id, "fetch begin", task)
        data = self.fetch(index)
        note(self.id, "fetch end", task)
        message = self.pack(task, data)
        note(self.id, "put", task)
        self.connection.send(Message.pack((None, Recorded(events))))
        events.clear()
        self.connection.send(message)


class RecordedWorkerPool(WorkerPool):
    def put(self, worker_id, obj):
        if isinstance(obj, tuple):
            task, index = obj
            note("main", "send", task, worker_id, index)
        super().put(worker_id, obj)

    def get(self, timeout):
        while (message := super().get(timeout)) is not None and isinstance(message[1][1], Recorded):
            if events is not None:
                events.extend(message[1][1].events)
        return message


class RecordedPinMemoryThread(PinMemoryThread):
    def _pin(self, task, data):
        note("pin", "pin begin", task)
        data = super()._pin(task, data)
        note("pin", "pin end", task)
        return data


class RecordedMultiProcessingIter(dataloader._MultiProcessingDataLoaderIter):
    _pool_type = RecordedWorkerPool
    _pin_memory_thread_type = RecordedPinMemoryThread
    _worker_type = RecordedWorker

    def _next_data(self):
        with waiting():
            return super()._next_data()

    def _get_data(self):
        task, data = super()._get_data()
        note("main", "receive", task, *self._task_info.get(task, ())[:1])
        return task, data

    def _process_data(self, task, data):
        try:
            return super()._process_data(task, data)
        finally:
            note("main", "yield", task)
