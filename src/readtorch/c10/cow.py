"""Storages that share their memory until one of them is written to.

Note [ Copy on write ]
`t._lazy_clone()` is a clone that copies nothing at first. Its storage is another one than that of `t`, over the same memory, and both
are marked: by their class, and by the fact COPY_ON_WRITE in the key sets of all tensors over them. Kernels that read need not know. A
kernel that writes gets, in the tables of such key sets, a step before it: `materialize` gives the storage memory of its own, unless by
now nobody else has the memory. Whoever else hands out an address to write to (`data_ptr()`, `numpy()`) calls it, too.

The fact stays in the key sets when a storage is its own again: the step then finds nothing to do.

In PyTorch: `c10/core/impl/COW.cpp`, where the memory's deleter is the mark, and a lock guards against other threads.
Explained in the chapter "The tensor as an object".
"""

import weakref

import numpy as np

from .dispatch_key import COPY_ON_WRITE, CPU_TENSOR
from .move_storage import move_storage, tensors_over
from .storage_impl import StorageImpl
from .tensor_impl import key_set, set_key_set, storage_impl

_sharing = weakref.WeakSet()  # all storages that are marked


class CopyOnWriteStorageImpl(StorageImpl):
    """A StorageImpl whose memory others may have, too."""

    __slots__ = ()
    keys = CPU_TENSOR | COPY_ON_WRITE

    def resize(self, nbytes):
        materialize(self)
        self.resize(nbytes)


def is_copy_on_write(storage):
    return type(storage) is CopyOnWriteStorageImpl


def lazy_clone_storage(storage):
    """A marked StorageImpl over the same memory; the given one is marked, too, and so are all tensors over it.

    None if the memory is not the storage's alone to begin with: from NumPy, shared with other processes, on a GPU.
    In PyTorch: memory on a GPU can be cloned, and memory that `numpy()` has handed out.
    """
    if type(storage) is StorageImpl and storage.resizable and storage.allocator is None:
        for t in tensors_over(storage):
            t._storage_impl = storage
            set_key_set(t, key_set(t) | COPY_ON_WRITE)
        storage.__class__ = CopyOnWriteStorageImpl
        _sharing.add(storage)
    elif not is_copy_on_write(storage):
        return None
    clone = CopyOnWriteStorageImpl(storage.buffer)
    _sharing.add(clone)
    return clone


def materialize(storage):
    """The storage, which has memory of its own from now on; the last one that has the memory keeps it."""
    if is_copy_on_write(storage):
        _sharing.discard(storage)
        if any([other.buffer is storage.buffer for other in _sharing]):
            move_storage(storage, np.empty(storage.nbytes, np.uint8))
        storage.__class__ = StorageImpl
    return storage


def mutable_array(t):
    """`t._array`, to be written to; in PyTorch: `mutable_data_ptr`."""
    if key_set(t) & COPY_ON_WRITE:
        materialize(storage_impl(t))
    return t._array
