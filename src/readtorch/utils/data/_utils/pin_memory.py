"""Copying batches into memory that a GPU can read by itself: all that the loader knows of devices.

In PyTorch: `torch/utils/data/_utils/pin_memory.py`. See the chapter "Dataset, Sampler, DataLoader".
"""

import collections.abc
import copy
import queue
import threading
import warnings

import readtorch
from readtorch import multiprocessing
from readtorch._utils import ExceptionWrapper

from . import MP_STATUS_CHECK_INTERVAL
from .worker_pool import Ended


def current_accelerator():
    """The type of the device whose memory is meant, "cuda", or None."""
    return "cuda" if readtorch.cuda.is_available() else None


def wanted_device(loader):
    """The device for whose sake the batches of a loader are to be pinned, or None; warns if that cannot
    be."""
    if not loader.pin_memory:
        return None
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=5,
        )
    device = current_accelerator()
    if device is None:
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, "
            "then device pinned memory won't be used.",
            stacklevel=5,
        )
    return device


def pin_memory(data, device=None):
    """`data` with all tensors in pinned memory. What has a method `pin_memory` does it itself."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _pin_mapping(data, device)
    if isinstance(data, tuple):
        pinned = [pin_memory(sample, device) for sample in data]
        return type(data)(*pinned) if hasattr(data, "_fields") else type(data)(pinned)
    if isinstance(data, collections.abc.Sequence):
        return _pin_sequence(data, device)
    return data


def _pin_mapping(data, device):
    pinned = {key: pin_memory(sample, device) for key, sample in data.items()}
    try:
        if not isinstance(data, collections.abc.MutableMapping):
            return type(data)(pinned)
        clone = copy.copy(data)  # may have more to it than its items
        clone.update(pinned)
        return clone
    except TypeError:  # cannot be copied or made of a dict
        return pinned


def _pin_sequence(data, device):
    pinned = [pin_memory(sample, device) for sample in data]
    try:
        if not isinstance(data, collections.abc.MutableSequence):
            return type(data)(pinned)
        clone = copy.copy(data)
        for i, item in enumerate(pinned):
            clone[i] = item
        return clone
    except TypeError:  # cannot be copied or made of a list, as `range`
        return pinned


class PinMemoryThread:
    """Stands between the worker pool and the iterator: takes messages, pins what is in them, and hands them on."""

    def __init__(self, pool, device):
        self._pool, self._device = pool, device
        self._device_index = readtorch.cuda.current_device()
        self._data = queue.SimpleQueue()  # (worker, object), or the error that ended the thread
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        pool.reader = self.thread

    def get(self, timeout):
        """As `WorkerPool.get`."""
        try:
            data = self._data.get(timeout=timeout)
        except queue.Empty:
            if not self.thread.is_alive():
                raise RuntimeError("Pin memory thread exited unexpectedly") from None
            return None
        if isinstance(data, BaseException):
            raise data
        return data

    def _run(self):
        """Ends when the pool hangs up, which wakes it from `get`."""
        readtorch.set_num_threads(1)
        multiprocessing._set_thread_name("pt_data_pin")
        readtorch.cuda.set_device(self._device_index)
        while True:
            try:
                message = self._pool.get(MP_STATUS_CHECK_INTERVAL)
            except Ended:
                return
            except Exception as error:
                message = error
            if message is not None:
                self._data.put(self._pinned(message))
            del message  # keep no batch alive while waiting for the next

    def _pinned(self, message):
        if isinstance(message, Exception) or isinstance(message[1][1], ExceptionWrapper):
            return message
        worker_id, (task, data) = message
        try:
            data = self._pin(task, data)
        except Exception:
            data = ExceptionWrapper(where=f"in pin memory thread for device {self._device_index}")
        return worker_id, (task, data)

    def _pin(self, task, data):
        return pin_memory(data, self._device)
