"""The iterator with workers: which batch is where, and which comes next.

In PyTorch: `_MultiProcessingDataLoaderIter` in `torch/utils/data/dataloader.py`. See the chapter "Dataset,
Sampler, DataLoader".
"""
import functools
import itertools

from readtorch import multiprocessing
from readtorch._utils import ExceptionWrapper

from . import MP_STATUS_CHECK_INTERVAL, record
from .base_iter import _BaseDataLoaderIter, _DatasetKind
from .crew import Crew
from .pin_memory import PinMemoryThread
from .worker import Orders, _IterableDatasetStopIteration, _ResumeIteration


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """A batch is a task, with a number: 0, 1, 2 … as indices are sent out. `_send_idx` is the next task to be
    sent, `_rcvd_idx` the next one to be returned; in between lie those that are underway.
    """

    def __init__(self, loader):
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._crew = Crew(loader.multiprocessing_context or multiprocessing, self._orders(loader))
        self._source = self._crew
        if self._pin_memory:
            self._source = PinMemoryThread(self._crew, self._pin_memory_device)
        self._reset(loader, first_iter=True)

    def _orders(self, loader):
        create_fetcher = functools.partial(
            _DatasetKind.create_fetcher, self._dataset_kind, auto_collation=self._auto_collation,
            collate_fn=self._collate_fn, drop_last=self._drop_last)
        is_iterable = self._dataset_kind == _DatasetKind.Iterable
        return Orders(create_fetcher, self._dataset, is_iterable, self._base_seed,
                      loader.worker_init_fn, self._num_workers, record.events is not None)

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        self._send_idx = 0
        self._rcvd_idx = 0
        self._worker_of = {}  # task -> the worker that has it, until its batch is returned
        self._arrived = {}  # task -> batch that came before its turn
        self._tasks_outstanding = 0  # how many have been sent and not answered
        self._exhausted = [False] * self._num_workers  # whose part of the stream has ended in this pass
        self._workers_num_tasks = [0] * self._num_workers  # how many each has that were not returned
        self._turns = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._resume_workers()
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _resume_workers(self):
        """The last pass may have been left half-way: what comes before a worker's answer is from then."""
        self._crew.check_all_present()
        for worker_id in range(self._num_workers):
            self._crew.put(worker_id, _ResumeIteration())
        answers = 0
        while answers < self._num_workers:
            answers += isinstance(self._get_data()[0], _ResumeIteration)

    # ------------------------------------------------------------------------------------------ sending tasks

    def _is_working(self, worker_id):
        return self._crew.present[worker_id] and not self._exhausted[worker_id]

    def _try_put_index(self):
        """Send the next indices to the worker whose turn it is, if there are both."""
        if self._tasks_outstanding >= self._prefetch_factor * self._num_workers:
            raise AssertionError("Number of outstanding tasks exceeded maximum allowed tasks")
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker_id = self._next_worker()
        if worker_id is None:
            return
        if record.events is not None:
            record.note("main", "send", self._send_idx, worker_id, index)
        self._crew.put(worker_id, (self._send_idx, index))
        self._worker_of[self._send_idx] = worker_id
        self._workers_num_tasks[worker_id] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _next_worker(self):
        """Strictly by turns if the order of batches counts, otherwise one with fewer tasks than its share."""
        working = sum(map(self._is_working, range(self._num_workers)))
        for _ in range(self._num_workers):
            worker_id = next(self._turns)
            if self._is_working(worker_id):
                share = self._prefetch_factor * self._num_workers // working
                if self._in_order or self._workers_num_tasks[worker_id] < share:
                    return worker_id
        return None

    # ------------------------------------------------------------------------------- receiving batches

    def _next_data(self):
        while self._find_next_task():
            if self._rcvd_idx in self._arrived:
                return self._process_data(self._rcvd_idx, self._arrived.pop(self._rcvd_idx))
            task, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                self._end_of_stream(data.worker_id)
            elif task == self._rcvd_idx or not self._in_order:
                return self._process_data(task, data)
            else:
                self._arrived[task] = data
        if not self._persistent_workers:
            self._shutdown_workers()
        raise StopIteration

    def _find_next_task(self):
        """Move `_rcvd_idx` to the next task that has been or will be answered. False if there is none."""
        while self._rcvd_idx < self._send_idx:
            worker_id = self._worker_of.get(self._rcvd_idx)
            if worker_id is not None:
                if self._rcvd_idx in self._arrived or self._is_working(worker_id):
                    return True
                del self._worker_of[self._rcvd_idx]
            self._rcvd_idx += 1
        return False

    def _end_of_stream(self, worker_id):
        self._exhausted[worker_id] = True
        if not self._persistent_workers:
            self._crew.dismiss(worker_id)
        self._try_put_index()

    def _process_data(self, task, data):
        """Return a batch to the consumer, or raise what was raised in its place."""
        self._workers_num_tasks[self._worker_of.pop(task)] -= 1
        if task == self._rcvd_idx:
            self._rcvd_idx += 1
        self._try_put_index()
        if record.events is not None:
            record.note("main", "yield", task)
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _get_data(self):
        """(task, batch) of whatever comes next. Raises RuntimeError after `timeout` seconds, or if workers
        have died."""
        while True:
            message = self._source.get(self._timeout or MP_STATUS_CHECK_INTERVAL)
            if message is not None:
                break
            if self._timeout > 0:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds{self._awaited()}")
        worker_id, (task, data) = message
        if record.events is not None:
            record.note("main", "receive", task, worker_id)
        return task, data

    def _awaited(self):
        """Who has not answered."""
        # in PyTorch: not said
        late = sorted({worker_id for task, worker_id in self._worker_of.items() if task not in self._arrived})
        pids = ", ".join(str(self._crew.processes[worker_id].pid) for worker_id in late)
        return f" (waiting for worker pid(s) {pids})"

    # ------------------------------------------------------------------------------------------ ending

    def _shutdown_workers(self):
        """See Note [ How the loader ends ]."""
        self._crew.shutdown()

    def __del__(self):
        if hasattr(self, "_crew"):  # not if a worker could not be started
            self._shutdown_workers()
