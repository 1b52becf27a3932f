"""Giving a storage other memory while tensors use it.

In PyTorch: `StorageImpl::set_data_ptr` in `c10/core/StorageImpl.h` is enough, since a tensor asks its storage for the
address whenever a kernel runs.

Note [ Tensors over a storage ]
Here each tensor keeps its address in a NumPy array, so whoever moves a storage must find all tensors over it. No list
of them is kept: it would cost each new tensor something, and storages are seldom moved. Nearly always there is only one
tensor, as reference counts show. Otherwise we look through all objects that the garbage collector knows, which takes
some milliseconds.
"""

import gc
from sys import getrefcount

import numpy as np

from .storage_impl import address_of, array_at, is_placed, owner_of
from .tensor_impl import TensorImpl, storage_impl, strides_of, wrap


def move_storage(storage, buffer, only=None):
    """Copy the bytes of a StorageImpl to `buffer`, which it and all tensors over it use from now on.

    only: a tensor over it, if there may be no other: see Note [ Tensors over a storage ].
    """
    buffer[:] = storage.buffer
    tensors = [only] if only is not None and _is_alone(only) else tensors_over(storage)
    start = address_of(storage.buffer)
    for t in tensors:
        old = t._array
        offset = address_of(old) - start if old.size or is_placed(old) else 0
        t._array = array_at(buffer, old.dtype, old.shape, [s * old.itemsize for s in strides_of(t)], offset)
    storage.buffer = buffer


def tensors_over(storage):
    """All tensors that look at a StorageImpl: Note [ Tensors over a storage ]."""
    owner = owner_of(storage.buffer)
    return [t for t in gc.get_objects() if issubclass(type(t), TensorImpl) and _looks_at(t, storage, owner)]


def _looks_at(t, storage, owner):
    """A tensor finds its storage when first asked for it, so most have only the memory's owner in common."""
    if not hasattr(t, "_array"):
        return False  # is being made
    return t._storage_impl is storage if t._storage_impl is not None else owner_of(t._array) is owner


def _is_alone(t):
    return t._base is None and _holders(t) in _HOLDERS_OF_ONE_TENSOR


def _holders(t):
    """How many references there are to the arrays of which other tensors over the storage would have one."""
    buffer = t._storage_impl.buffer
    if owner_of(buffer) is not owner_of(t._array):
        return None
    return getrefcount(buffer), getrefcount(owner_of(buffer)), getrefcount(t._array)


def _holders_of_fresh(array):
    t = wrap(array)
    storage_impl(t)
    del array
    return _holders(t)


# A tensor's array owns the memory, or it is a view of the array that does.
_HOLDERS_OF_ONE_TENSOR = {_holders_of_fresh(np.empty(1)), _holders_of_fresh(np.empty(2)[1:])}
