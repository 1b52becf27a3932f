"""The bytes of a storage to a file and back: how many elements there are, then the elements.

In PyTorch: `torch/csrc/serialization.cpp`. Explained in the chapter "state_dict, save and load".

Numbers are little endian in the file, on every machine.
"""

import sys

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.storage_impl import StorageImpl
from readtorch.c10.tensor_impl import wrap

MOST_AT_ONCE = 1 << 20  # so many bytes are set aside before the file has shown that it holds them
_SIZE = 8


def write_file_raw(storage, file, save_size, element_size):
    """Write a StorageImpl's bytes. save_size: with the number of elements before them."""
    data = storage.host_bytes()
    if save_size:
        file.write((len(data) // element_size).to_bytes(_SIZE, "little"))
    file.write(memoryview(_little_endian(data, element_size)))


def read_file_raw(file, storage, element_size):
    """Fill a StorageImpl, or make a new one if it is None, from the next bytes of a file.

    Raises RuntimeError if they are for a storage of another size, or fewer than they say.
    """
    size = int.from_bytes(_exactly(file, _SIZE), "little", signed=True)
    nbytes = size * element_size
    if size < 0:
        raise RuntimeError(f"a storage of {size} elements")
    if storage is not None and storage.nbytes != nbytes:
        # as PyTorch says it: the two numbers do not get into their places
        raise RuntimeError(f"storage has wrong byte size: expected %ld got %ld{nbytes}{storage.nbytes}")
    if storage is None or storage.device.type != "cpu":
        data = _little_endian(np.frombuffer(_exactly(file, nbytes), np.uint8), element_size)
        if storage is None:
            return StorageImpl(data)
        at.copy_(bytes_of(storage), wrap(data))
        return storage
    _read_into(file, storage.buffer)
    storage.buffer[...] = _little_endian(storage.buffer, element_size)
    return storage


def bytes_of(storage):
    """A tensor over all bytes of a StorageImpl, on its device."""
    t = wrap(storage.buffer)
    t._keys, t._storage_impl = storage.keys, storage
    return t


def elements_of(storage, dtype):
    """A tensor over all elements of a StorageImpl that are whole."""
    t = wrap(storage.as_strided(dtype.numpy, (storage.nbytes // dtype.itemsize,), (1,), 0))
    t._keys, t._storage_impl = storage.keys, storage
    return t


def _little_endian(data, element_size):
    return data if sys.byteorder == "little" else data.view(f"u{element_size}").byteswap().view(np.uint8)


def _read_into(file, buffer):
    view, at_byte = memoryview(buffer), 0
    while at_byte < len(view):
        part = view[at_byte:]
        if hasattr(file, "readinto"):
            count = file.readinto(part)
        else:
            data = file.read(min(len(part), MOST_AT_ONCE))
            count = len(data)
            part[:count] = data
        if not count:
            raise _too_short(len(part))
        at_byte += count


def _exactly(file, count):
    """The next `count` bytes, as a bytearray that grows as they come."""
    found = bytearray()
    while len(found) < count:
        data = file.read(min(count - len(found), MOST_AT_ONCE))
        if not data:
            raise _too_short(count - len(found))
        found += data
    return found


def _too_short(missing):
    return RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
