"""`DataLoader`: what it is asked for, and whether that fits together.

In PyTorch: `torch/utils/data/dataloader.py`. See the chapter "Dataset, Sampler, DataLoader". What happens
in a pass is told by the iterators: `_utils/base_iter.py` without workers, `_utils/multiprocess_iter.py`
with workers.
"""
import math
import multiprocessing as python_multiprocessing
import os
import warnings
from typing import Generic, TypeVar

from readtorch import multiprocessing

from ._utils.base_iter import _BaseDataLoaderIter, _DatasetKind, _SingleProcessDataLoaderIter  # noqa: F401
from ._utils.collate import default_collate, default_convert
from ._utils.multiprocess_iter import _MultiProcessingDataLoaderIter
from ._utils.worker import get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

_T_co = TypeVar("_T_co", covariant=True)
_FIXED = frozenset({"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"})


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

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None,
                 multiprocessing_context=None, generator=None, *, prefetch_factor=None,
                 persistent_workers=False, pin_memory_device="", in_order=True):
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
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is "
                             "initialized")
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
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

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
        advice = (f"Our suggested max number of worker in current system is {processors}{note}, which is "
                  "smaller than what this DataLoader is going to create.")
    return (f"This DataLoader will create {num_workers} worker processes in total. {advice} Please be aware "
            "that excessive worker creation might get DataLoader running slow or even freeze, lower the "
            "worker number to avoid potential slowness/freeze if necessary.")


def _check_workers(num_workers, timeout, prefetch_factor, persistent_workers):
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable "
                         "multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError("prefetch_factor option could only be specified in multiprocessing."
                         "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                         "None.")
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle, sampler, batch_sampler):
    """Indices mean nothing to an IterableDataset. Said before samplers are checked: it is the more useful
    message."""
    if shuffle not in {False, None}:
        raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle option, but got "
                         f"shuffle={shuffle}")
    if sampler is not None:
        raise ValueError("DataLoader with IterableDataset: expected unspecified sampler option, but got "
                         f"sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError("DataLoader with IterableDataset: expected unspecified batch_sampler option, but "
                         f"got batch_sampler={batch_sampler}")


def _check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last):
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                             "and drop_last")
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with "
                         "drop_last")


def _context(context, num_workers):
    """A context of multiprocessing, by itself or by the name of its start method."""
    if num_workers == 0:
        raise ValueError("multiprocessing_context can only be used with multi-process loading (num_workers "
                         f"> 0), but got num_workers={num_workers}")
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError("multiprocessing_context option should specify a valid start method in "
                             f"{methods!r}, but got multiprocessing_context={context!r}")
        return multiprocessing.get_context(context)
    if not isinstance(context, python_multiprocessing.context.BaseContext):
        raise TypeError("multiprocessing_context option should be a valid context object or a string "
                        f"specifying the start method, but got multiprocessing_context={context}")
    return context
