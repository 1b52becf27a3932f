"""What a worker does: fetch the batches whose indices it is sent, until the loader hangs up.

In PyTorch: `torch/utils/data/_utils/worker.py`. See the chapter "Dataset, Sampler, DataLoader".
"""

import dataclasses
import os
import random
import threading
import time

import numpy as np

import readtorch
from readtorch import multiprocessing
from readtorch._utils import ExceptionWrapper
from readtorch.csrc import storage_sharing

from . import MP_STATUS_CHECK_INTERVAL, signal_handling
from .connection import Message

_worker_info = None  # of the worker that this process is; None in the main process


@dataclasses.dataclass(frozen=True, slots=True)
class _RNG:
    random_generator: random.Random
    torch_generator: object
    numpy_generator: object | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What `get_worker_info()` tells a worker about itself.

    id: 0 … num_workers - 1. seed: that of its random numbers; workers that persist keep it in all epochs.
    dataset: its own copy.
    """

    id: int
    num_workers: int
    seed: int
    dataset: object
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


def get_worker_info():
    """The WorkerInfo of the worker that asks, None in the main process."""
    return _worker_info


@dataclasses.dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """In place of a batch: this worker's part of the stream has ended."""

    worker_id: int


@dataclasses.dataclass(frozen=True)
class _ResumeIteration:
    """In place of indices: a new pass begins. The worker sends it back, so that the loader knows what is from
    before."""


@dataclasses.dataclass
class WorkerArguments:
    """What all workers of an iterator get when they start."""

    create_fetcher: object  # (dataset) -> fetcher
    dataset: object
    is_iterable: bool
    base_seed: int
    init_fn: object
    num_workers: int
    worker: type  # `_Worker`, or one that notes what it does


def _worker_loop(arguments, worker_id, connection):
    """The worker's life. Ends when the loader hangs up: see Note [ How the loader ends ]."""
    threading.Thread(target=_watch, args=(connection,), daemon=True).start()
    try:
        _begin(arguments, worker_id)
        arguments.worker(arguments, worker_id, connection).run()
    except (KeyboardInterrupt, EOFError, ConnectionError):
        pass  # of Ctrl-C the main process has heard as well; the others say that there is none any more


def _watch(connection):
    """The dataset's code may take for ever, and the main process be killed meanwhile."""
    # in PyTorch: the worker looks at its parent's pid between two batches
    connection.wait_for_hang_up()
    time.sleep(MP_STATUS_CHECK_INTERVAL)
    os._exit(1)


def _begin(arguments, worker_id):
    global _worker_info
    signal_handling._set_worker_signal_handlers()
    multiprocessing._set_thread_name("pt_data_worker")
    readtorch.set_num_threads(1)
    seed = arguments.base_seed + worker_id
    random.seed(seed)
    readtorch.manual_seed(seed)
    np.random.seed(_generate_state(arguments.base_seed, worker_id))
    _worker_info = WorkerInfo(worker_id, arguments.num_workers, seed, arguments.dataset)
    # its socket takes them along; nobody need remember names if it dies
    storage_sharing.strategy = "file_descriptor"


def _generate_state(base_seed, worker_id):
    """A seed for NumPy: four words that differ in all bits for workers whose seeds differ in one."""
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4)


class _Worker:
    def __init__(self, arguments, worker_id, connection):
        self.arguments = arguments
        self.id = worker_id
        self.where = f"in DataLoader worker process {worker_id}"
        self.connection = connection
        self.fetcher = None
        self.failure = None  # ExceptionWrapper in place of the next batch
        self.exhausted = False  # its part of the stream has ended: the tasks that are here are not done

    def run(self):
        try:
            if self.arguments.init_fn is not None:
                self.arguments.init_fn(self.id)
        except Exception:
            self.failure = ExceptionWrapper(where=self.where)
        else:
            self.begin_pass()
        while not self.connection.is_hung_up():
            message = self.connection.receive().unpack()
            if isinstance(message, _ResumeIteration):
                self.connection.send(Message.pack((message, None)))
                self.begin_pass()
            elif not self.exhausted:
                self.do(*message)

    def begin_pass(self):
        self.exhausted = False
        try:
            self.fetcher = self.arguments.create_fetcher(self.arguments.dataset)
        except Exception:
            self.failure = ExceptionWrapper(where=self.where)

    def do(self, task, index):
        self.connection.send(self.pack(task, self.fetch(index)))

    def fetch(self, index):
        """The batch, or what is sent in its place."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            return failure
        try:
            return self.fetcher.fetch(index)
        except Exception as error:
            if isinstance(error, StopIteration) and self.arguments.is_iterable:
                self.exhausted = True
                return _IterableDatasetStopIteration(self.id)
            return ExceptionWrapper(where=self.where)

    def pack(self, task, data):
        # in PyTorch: a thread pickles; if it cannot, it prints the traceback, and the loader waits for ever
        try:
            return Message.pack((task, data))
        except Exception:
            if isinstance(data, ExceptionWrapper):
                data.exc_type = RuntimeError  # a class that only this process knows
                return Message.pack((task, data))
            return Message.pack((task, ExceptionWrapper(where=self.where)))
