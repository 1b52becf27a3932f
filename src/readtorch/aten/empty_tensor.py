"""New tensors from their description, where nothing else is known of them; among them tensors without memory.

Note [ The Meta device ]
A tensor on the device "meta" has sizes, strides, an offset and a dtype, and no elements. As everywhere here these numbers
live in a NumPy array, whose address no memory stands behind: views are made by the same code as on the CPU, and code that
would read or write an element ends the process instead of computing with nonsense. The dispatcher sees to it that none
does: at the key Meta there are shape rules alone (register_meta.py).

In PyTorch: `aten/src/ATen/EmptyTensor.cpp`. Explained in the chapter "One operator call".
"""

import itertools
import weakref

import numpy as np

from readtorch.c10.device import device
from readtorch.c10.dispatch_key import META_TENSOR, ZEROTENSOR
from readtorch.c10.storage_impl import StorageImpl, array_at, owner_of
from readtorch.c10.sym_int import hint_of, is_symbolic
from readtorch.c10.symbolic_shape_meta import SymbolicArray, needs_symbols
from readtorch.c10.tensor_impl import TensorImpl, contiguous_strides, storage_nbytes, wrap

from .tensor_meta import TensorMeta, reach_of

meta = device("meta")

# Bits 48 to 55 of an address are copies of bit 47 (x86-64) or ignored together with none of these (AArch64): an address
# with this bit alone belongs to no process. Storages stand far enough apart that small ones do not seem to share memory.
NOWHERE = 1 << 54
_places = itertools.count(NOWHERE, 1 << 32)


class _NoMemory:
    """So many bytes that are not there, as NumPy's array interface."""

    def __init__(self, storage, nbytes):
        self.storage = weakref.ref(storage)
        self.__array_interface__ = {"data": (storage.place, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}


class MetaStorageImpl(StorageImpl):
    """The storage of tensors on the Meta device: it has a size and no bytes."""

    # the address that it does not have; where in a checkpoint its bytes are, if `load` left them there
    __slots__ = ("place", "checkpoint_offset")
    keys = META_TENSOR

    def __init__(self, nbytes):
        super().__init__(None, meta)
        self.checkpoint_offset = None
        self.place = next(_places)
        self.resize(nbytes)

    def resize(self, nbytes):
        self.buffer = np.asarray(_NoMemory(self, nbytes))

    def as_strided(self, numpy_dtype, sizes, strides, offset):
        """An array at an offset, which may go past the end: nothing is written there, either."""
        if needs_symbols(sizes, strides, offset):
            return SymbolicArray(self, numpy_dtype, sizes, strides, offset)
        itemsize, within = numpy_dtype.itemsize, self.buffer
        reach = storage_nbytes(sizes, strides, itemsize, offset)
        if reach > within.nbytes:
            within = np.asarray(_NoMemory(self, reach))
        return array_at(within, numpy_dtype, sizes, [s * itemsize for s in strides], offset * itemsize)

    def data_ptr(self):
        return 0

    def host_array(self, array):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def host_bytes(self):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def copy(self):
        return MetaStorageImpl(self.nbytes)

    def __reduce__(self):
        return MetaStorageImpl, (self.nbytes,)


class ZeroStorageImpl(StorageImpl):
    """The storage of a ZeroTensor on the CPU. The system gives it bytes that are 0, and no memory until they are read."""

    # in PyTorch: no bytes at all
    def data_ptr(self):
        return 0


def zero_tensor(shape, numpy_dtype):
    """A tensor all of whose elements are 0, with the key ZeroTensor: see zero_tensor_fallback.py."""
    strides = contiguous_strides(shape)
    storage = ZeroStorageImpl(np.zeros(storage_nbytes(shape, strides, numpy_dtype.itemsize), np.uint8))
    t = wrap(storage.as_strided(numpy_dtype, tuple(shape), strides, 0))
    t._storage_impl = storage
    t._keys |= ZEROTENSOR
    return t


def empty_cpu(output):
    """A new tensor on the CPU as `output`, a TensorMeta, says."""
    if output.strides is None:
        array = np.empty(output.shape, output.dtype.numpy)
        if array.size:
            return wrap(array)
    elif len(output.shape) == 2 and output.strides == (1, output.shape[0]) and 0 not in output.shape:
        return wrap(np.empty(output.shape, output.dtype.numpy, "F"))
    return wrap(over(StorageImpl(np.empty(reach_of(output), np.uint8)), output))


def empty_meta(output):
    """A new tensor on the Meta device as `output`, a TensorMeta, says."""
    storage = MetaStorageImpl(reach_of(of_this_trace(output)))
    return over_nothing(storage, over(storage, output))


def of_this_trace(output):
    """A TensorMeta with numbers for sizes that are left open: as large as this is the storage taken to be."""
    if not is_symbolic(output.shape):
        return output
    strides = output.strides and tuple(map(hint_of, output.strides))
    return TensorMeta(tuple(map(hint_of, output.shape)), output.dtype, strides)


def over(storage, output):
    """The array of a tensor that begins where its storage does."""
    strides = contiguous_strides(output.shape) if output.strides is None else output.strides
    return storage.as_strided(output.dtype.numpy, tuple(output.shape), strides, 0)


def over_nothing(storage, array):
    t = wrap(array)
    t._keys, t._storage_impl = META_TENSOR, storage
    return t


def still_on_meta(results):
    """Results of geometry, which the CPU's kernel wrapped as its own: as tensors on the Meta device."""
    if isinstance(results, TensorImpl):
        return (
            results
            if results._storage_impl is not None
            else over_nothing(_storage_below(results._array), results._array)
        )
    return type(results)(map(still_on_meta, results)) if isinstance(results, (tuple, list)) else results


def _storage_below(array):
    if type(array) is SymbolicArray:
        return array.storage
    owner = owner_of(array).base
    storage = owner.storage() if isinstance(owner, _NoMemory) else None
    if storage is None:
        storage = MetaStorageImpl(array.nbytes)
    return storage
