"""What all iterators of a loader do, and the iterator that fetches in the main process.

In PyTorch: `_BaseDataLoaderIter` and `_SingleProcessDataLoaderIter` in `torch/utils/data/dataloader.py`. See
the chapter "Dataset, Sampler, DataLoader".
"""
import warnings

import readtorch

from . import pin_memory, record
from .fetch import _IterableDatasetFetcher, _MapDatasetFetcher


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


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
        self._pin_memory_device = pin_memory.wanted_device(loader)
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
        return _DatasetKind.create_fetcher(self._dataset_kind, dataset, self._auto_collation,
                                           self._collate_fn, self._drop_last)

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
        # in PyTorch: a range of the profiler around all of it
        if record.events is None:
            data = self._next_data()
        else:
            data = self._recorded_next_data()
        self._num_yielded += 1
        self._warn_if_too_many()
        return data

    def _recorded_next_data(self):
        record.note("main", "wait begin")
        try:
            return self._next_data()
        finally:
            record.note("main", "wait end")

    def _warn_if_too_many(self):
        promised = self._IterableDataset_len_called
        if promised is None or self._num_yielded <= promised:
            return
        message = (f"Length of IterableDataset {self._dataset} was reported to be {promised}"
                   f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. ")
        if self._num_workers > 0:
            message += ("For multiprocessing data-loading, this could be caused by not properly configuring "
                        "the IterableDataset replica at each worker. Please see "
                        "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
                        "examples.")
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
        if record.events is not None:
            return self._recorded_fetch()
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory.pin_memory(data, self._pin_memory_device) if self._pin_memory else data

    def _recorded_fetch(self):
        task = self._num_yielded
        index = self._next_index()
        record.note("main", "fetch begin", task, index=index)
        data = self._dataset_fetcher.fetch(index)
        record.note("main", "fetch end", task)
        if self._pin_memory:
            record.note("main", "pin begin", task)
            data = pin_memory.pin_memory(data, self._pin_memory_device)
            record.note("main", "pin end", task)
        record.note("main", "yield", task)
        return data
