"""`DataLoader`, and the iterators that go once through a dataset, without workers and with them.

In PyTorch: `torch/utils/data/dataloader.py`. See the chapter "Dataset, Sampler, DataLoader".
"""

import functools
import itertools
import math
import multiprocessing as python_multiprocessing
import os
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import readtorch
from readtorch import multiprocessing
from readtorch._utils import ExceptionWrapper
from readtorch.autograd.profiler import event_if_observed

from ._utils import MP_STATUS_CHECK_INTERVAL
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from ._utils.pin_memory import PinMemoryThread, pin_memory, wanted_device
from ._utils.worker import WorkerArguments, _IterableDatasetStopIteration, _ResumeIteration, _Worker, get_worker_info
from ._utils.worker_pool import WorkerPool
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")
_collate_fn_t = Callable[[list[_T]], Any]
_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """The sampler of an IterableDataset, which has no use for an index: None for ever."""

    def __iter__(self):
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Goes through a dataset in batches: `for batch in DataLoader(dataset, batch_size=4): …`

    Which samples: shuffle, or sampler (of indices), or batch_sampler (of lists of indices); drop_last leaves
    out a last batch that is too short; generator is where random orders and the workers' seeds come from.
    batch_size=None: samples as they are, without batches.

    What becomes of them: collate_fn(list of samples) -> batch; pin_memory copies it to pinned memory.

    Who fetches: the main process, or num_workers processes, started by multiprocessing_context (a start
    method or a context), each with prefetch_factor batches ahead. worker_init_fn(worker id) runs in each
    first; persistent_workers stay for the next pass; timeout is the longest wait for a worker, in seconds;
    with in_order=False a batch that is ready may overtake others.

    Raises ValueError for arguments that exclude each other. `__len__`: the number of batches; of an
    IterableDataset what it claims.
    """

    __initialized = False

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        # in PyTorch: datapipes are wrapped here, so that they can be pickled
        if isinstance(dataset, IterableDataset):
            _check_stream(shuffle, sampler, batch_sampler)
            self._dataset_kind = _DatasetKind.Iterable
        else:
            self._dataset_kind = _DatasetKind.Map
        shuffle = bool(shuffle)
        _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._default_sampler(shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None  # what the dataset said when `len(loader)` was last asked for
        self._iterator = None  # kept only if its workers are
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle, generator):
        if self._dataset_kind == _DatasetKind.Iterable:
            return _InfiniteConstantSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, attr, val):
        if self.__initialized and attr in _FIXED:
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self):
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context):
        if multiprocessing_context is not None:
            multiprocessing_context = _context(multiprocessing_context, self.num_workers)
        self.__multiprocessing_context = multiprocessing_context

    # ------------------------------------------------------------------------------------------ a pass

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self):
        single, multiple = _iterators
        if self.num_workers == 0:
            return single(self)
        self.check_worker_number_rationality()
        return multiple(self)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        """What a pass asks for indices: lists of them with automatic batching, else one at a time."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # A guess: each worker might make an incomplete batch. The iterator warns if more samples come.
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    # ------------------------------------------------------------------------------- too many workers

    def check_worker_number_rationality(self):
        """Warn if there are more workers than processors that this process may use."""
        if not self.num_workers:
            return
        respects_cpuset = hasattr(os, "sched_getaffinity")
        processors = len(os.sched_getaffinity(0)) if respects_cpuset else os.cpu_count()
        if processors is None or self.num_workers > processors:
            warnings.warn(_too_many_workers(processors, self.num_workers, respects_cpuset), stacklevel=2)


def _too_many_workers(processors, num_workers, respects_cpuset):
    if processors is None:
        advice = "DataLoader is not able to compute a suggested max number of worker in current system."
    else:
        note = "" if respects_cpuset else " (`cpuset` is not taken into account)"
        advice = (
            f"Our suggested max number of worker in current system is {processors}{note}, which is "
            "smaller than what this DataLoader is going to create."
        )
    return (
        f"This DataLoader will create {num_workers} worker processes in total. {advice} Please be aware "
        "that excessive worker creation might get DataLoader running slow or even freeze, lower the "
        "worker number to avoid potential slowness/freeze if necessary."
    )


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
            "None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle, sampler, batch_sampler):
    """Indices mean nothing to an IterableDataset. Said before samplers are checked: it is the more useful
    message."""
    if shuffle not in {False, None}:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    if sampler is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}"
        )
    if batch_sampler is not None:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified batch_sampler option, but "
            f"got batch_sampler={batch_sampler}"
        )


def _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last):
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _context(context, num_workers):
    """A context of multiprocessing, by itself or by the name of its start method."""
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers "
            f"> 0), but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, python_multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


# ---------------------------------------------------------------------------------------- one pass


class _BaseDataLoaderIter:
    """One pass over a loader. Subclasses say where the next batch comes from (`_next_data`)."""

    def __init__(self, loader):
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory_device = wanted_device(loader)
        self._pin_memory = self._pin_memory_device is not None
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        # Drawn even without workers: the random numbers after it are the same with and without them.
        drawn = readtorch.empty((), dtype=readtorch.int64).random_(generator=loader.generator)
        self._base_seed = drawn.item()
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    def _create_fetcher(self, dataset):
        return _DatasetKind.create_fetcher(
            self._dataset_kind, dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def __iter__(self):
        return self

    def _reset(self, loader, first_iter=False):
        """Begin another pass with the same workers."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)  # StopIteration ends the pass

    def _next_data(self):
        raise NotImplementedError

    def __next__(self):
        with event_if_observed("enumerate(DataLoader)#{}.__next__", self):
            data = self._next_data()
            self._num_yielded += 1
            self._warn_if_too_many()
            return data

    def _warn_if_too_many(self):
        promised = self._IterableDataset_len_called
        if promised is None or self._num_yielded <= promised:
            return
        message = (
            f"Length of IterableDataset {self._dataset} was reported to be {promised}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly configuring "
                "the IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
                "examples."
            )
        warnings.warn(message, stacklevel=3)

    def __len__(self):
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        self._dataset_fetcher = self._create_fetcher(self._dataset)

    def _next_data(self):
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory(data, self._pin_memory_device) if self._pin_memory else data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A batch is a task, with a number: 0, 1, 2 … as indices are sent out. `_send_idx` is the next task to be
    sent, `_rcvd_idx` the next one to be returned; in between lie those that are underway.
    """

    # `_utils/record.py` puts those in their place that note what happens when
    _pool_type = WorkerPool
    _pin_memory_thread_type = PinMemoryThread
    _worker_type = _Worker

    def __init__(self, loader):
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        # in PyTorch: `_index_queues`, one for each worker, `_worker_result_queue` of all workers, and `_workers_done_event`;
        # here the pool has a connection to each worker, which serves both ways and says when one side has ended
        self._pool = self._pool_type(loader.multiprocessing_context or multiprocessing, self._worker_arguments(loader))
        self._workers = self._pool.processes
        self._data_queue = self._pool
        if self._pin_memory:
            self._data_queue = self._pin_memory_thread_type(self._pool, self._pin_memory_device)
        self._reset(loader, first_iter=True)

    def _worker_arguments(self, loader):
        create_fetcher = functools.partial(
            _DatasetKind.create_fetcher,
            self._dataset_kind,
            auto_collation=self._auto_collation,
            collate_fn=self._collate_fn,
            drop_last=self._drop_last,
        )
        is_iterable = self._dataset_kind == _DatasetKind.Iterable
        return WorkerArguments(
            create_fetcher,
            self._dataset,
            is_iterable,
            self._base_seed,
            loader.worker_init_fn,
            self._num_workers,
            self._worker_type,
        )

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        self._send_idx = 0
        self._rcvd_idx = 0
        # task -> (worker,), and (worker, batch) once a batch has come before those that are returned before it
        self._task_info = {}
        self._tasks_outstanding = 0  # how many have been sent and not answered
        # whether each may have more: False when its part of an IterableDataset has ended in this pass
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers  # how many each has that were not returned
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._resume_workers()
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _resume_workers(self):
        """The last pass may have been left half-way: what comes before a worker's answer is from then."""
        self._pool.check_all_present()
        for worker_id in range(self._num_workers):
            self._pool.put(worker_id, _ResumeIteration())
        answers = 0
        while answers < self._num_workers:
            answers += isinstance(self._get_data()[0], _ResumeIteration)

    # ------------------------------------------------------------------------------------------ sending tasks

    def _is_working(self, worker_id):
        return self._pool.present[worker_id] and self._workers_status[worker_id]

    def _try_put_index(self):
        """Send the next indices to the next worker, if there are both."""
        if self._tasks_outstanding >= self._prefetch_factor * self._num_workers:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker_id = self._next_worker()
        if worker_id is None:
            return
        self._pool.put(worker_id, (self._send_idx, index))
        self._task_info[self._send_idx] = (worker_id,)
        self._workers_num_tasks[worker_id] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _next_worker(self):
        """Strictly one after the other if the order of batches counts, otherwise one with fewer tasks than its share."""
        working = sum(map(self._is_working, range(self._num_workers)))
        for _ in range(self._num_workers):
            worker_id = next(self._worker_queue_idx_cycle)
            if self._is_working(worker_id):
                share = self._prefetch_factor * self._num_workers // working
                if self._in_order or self._workers_num_tasks[worker_id] < share:
                    return worker_id
        return None

    # ------------------------------------------------------------------------------- receiving batches

    def _next_data(self):
        while self._find_next_task():
            if len(self._task_info[self._rcvd_idx]) == 2:
                return self._process_data(self._rcvd_idx, self._task_info[self._rcvd_idx][1])
            task, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                self._end_of_stream(data.worker_id)
            elif task == self._rcvd_idx or not self._in_order:
                return self._process_data(task, data)
            else:
                self._task_info[task] += (data,)
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _find_next_task(self):
        """Move `_rcvd_idx` to the next task that has been or will be answered. False if there is none."""
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info is not None:
                if len(info) == 2 or self._is_working(info[0]):
                    return True
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1
        return False

    def _end_of_stream(self, worker_id):
        self._workers_status[worker_id] = False
        if not self._persistent_workers:
            self._pool.dismiss(worker_id)
        self._try_put_index()

    def _process_data(self, task, data):
        """Return a batch to the consumer, or raise what was raised in its place."""
        self._workers_num_tasks[self._task_info.pop(task)[0]] -= 1
        if task == self._rcvd_idx:
            self._rcvd_idx += 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _get_data(self):
        """(task, batch) of whatever comes next. Raises RuntimeError after `timeout` seconds, or if workers
        have died."""
        while True:
            message = self._data_queue.get(self._timeout or MP_STATUS_CHECK_INTERVAL)
            if message is not None:
                break
            if self._timeout > 0:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds{self._awaited()}")
        worker_id, answer = message
        return answer

    def _awaited(self):
        """Who has not answered."""
        # in PyTorch: not said
        late = sorted({info[0] for info in self._task_info.values() if len(info) == 1})
        pids = ", ".join(str(self._workers[worker_id].pid) for worker_id in late)
        return f" (waiting for worker pid(s) {pids})"

    # ------------------------------------------------------------------------------------------ ending

    def _shutdown_workers(self):
        """See Note [ How the loader ends ]."""
        self._pool.shutdown()

    def __del__(self):
        if hasattr(self, "_pool"):  # not if a worker could not be started
            self._shutdown_workers()


# without and with workers; `_utils/record.py` puts those in their place that note what happens when
_iterators = _SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter
