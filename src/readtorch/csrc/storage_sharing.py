"""How a storage comes into memory that several processes see, and back out of what is known of that memory.

In PyTorch: `torch/csrc/StorageSharing.cpp`. Explained in the chapter "Multiprocessing and TensorBoard".
"""

import os
import sys
import threading

import numpy as np

from readtorch.aten import map_allocator
from readtorch.aten.map_allocator import MapAllocator, RefcountedMapAllocator
from readtorch.c10.cow import materialize
from readtorch.c10.move_storage import move_storage
from readtorch.c10.storage_impl import StorageImpl

if sys.platform == "darwin":
    strategies = {"file_system"}
    strategy = "file_system"
else:
    strategies = {"file_descriptor", "file_system"}
    strategy = "file_descriptor"

_lock = threading.Lock()  # two threads may put the same tensor into queues


def _renew_lock():
    """A thread that held the lock is not there in a forked process."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def set_strategy(name):
    """How CPU tensors are shared from now on: "file_descriptor" or "file_system"."""
    global strategy
    if name not in strategies:
        raise AssertionError(f"invalid sharing strategy {name!r}, expected one of {strategies}")
    if name == "file_system":
        map_allocator.start_tracker()
    strategy = name


def is_shared(storage):
    """Whether other processes may see the StorageImpl's memory."""
    return storage.device.type == "cuda" or storage.allocator is not None


def has_name(storage):
    """Whether the StorageImpl's memory was shared by the strategy file_system."""
    return isinstance(storage.allocator, RefcountedMapAllocator)


def share(storage, only=None):
    """Move a StorageImpl to shared memory, unless it is there."""
    if not is_shared(storage):
        (share_filename if strategy == "file_system" else share_fd)(storage, only)


def share_fd(storage, only=None):
    """The MapAllocator of a storage, which is moved to memory without a name if need be."""
    return _moved(storage, map_allocator.nameless, lambda allocator: allocator.fd is not None, only)


def share_filename(storage, only=None):
    """The RefcountedMapAllocator of a storage, which is moved to memory with a name if need be."""
    return _moved(storage, map_allocator.named, lambda allocator: has_name(storage), only)


def _moved(storage, allocate, fits, only):
    if storage.device.type == "meta":
        raise RuntimeError("_share_fd_: only available on CPU")
    with _lock:
        if storage.allocator is None or not fits(storage.allocator):
            materialize(storage)
            allocator = allocate(storage.nbytes)
            move_storage(storage, np.asarray(allocator), only)
            _lend(storage, allocator)
        return storage.allocator


def new_shared(nbytes):
    """A new StorageImpl in shared memory; what is in it, is undefined."""
    return over(map_allocator.named(nbytes) if strategy == "file_system" else map_allocator.nameless(nbytes))


def new_shared_fd(fd, nbytes):
    """A StorageImpl over the memory of a descriptor, which it closes in the end."""
    return over(MapAllocator(fd, nbytes))


def new_shared_filename(name, nbytes):
    """A StorageImpl over the memory of that name."""
    return over(RefcountedMapAllocator(name, nbytes))


def over(allocator):
    """A new StorageImpl over an allocator's memory."""
    storage = StorageImpl(np.asarray(allocator))
    _lend(storage, allocator)
    return storage


def _lend(storage, allocator):
    storage.allocator = allocator
    storage.resizable = False
