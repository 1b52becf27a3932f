"""Stores: a small dictionary that all ranks see, through which they find one another.

In PyTorch: `torch/csrc/distributed/c10d/Store.cpp` and `HashStore.cpp`, `FileStore.cpp`, `PrefixStore.cpp` beside it. `TCPStore` is in
`tcp_store.py`.
"""

import contextlib
import fcntl
import os
import struct
import threading
import time
from datetime import timedelta

from .exception import DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = timedelta(seconds=300)


class Store:
    """Keys are str, values bytes (a str is stored as its UTF-8). `get` and `wait` block until a key is there.

    A kind of store says how to `update` the dictionary atomically and how to wait until something changed;
    all operations are made of these two.
    """

    def __init__(self, timeout=DEFAULT_TIMEOUT):
        self.timeout = timeout

    def update(self, change):
        """`change(entries)` on the dictionary from key to bytes, while nobody else looks; returns its result."""
        raise RuntimeError(f"{type(self).__name__} has no entries")

    def pause(self, deadline):
        """Wait a while for a change, at most until `deadline` (of time.monotonic)."""
        time.sleep(min(0.01, max(0, deadline - time.monotonic())))

    def timed_out(self, keys, timeout):
        """The error that `wait` raises."""
        return DistStoreError("Wait timeout")

    # ------------------------------------------------------------------------- operations

    def set(self, key, value):
        """Store `value` under `key`."""
        value = _bytes(value)
        self.update(lambda entries: entries.__setitem__(key, value))

    def get(self, key):
        """The value under `key`, once it is there; DistStoreError after `timeout`."""
        self.wait([key])
        return self.update(lambda entries: entries[key])

    def add(self, key, amount):
        """Add to the counter under `key` (0 at first); returns the sum."""

        def change(entries):
            total = int(entries.get(key, b"0")) + amount
            entries[key] = str(total).encode()
            return total

        return self.update(change)

    def compare_set(self, key, expected_value, desired_value):
        """Store `desired_value` if `expected_value` is there, or if nothing is and that is expected ("").
        Returns what is there afterwards; the expected value if nothing is.
        """
        expected, desired = _bytes(expected_value), _bytes(desired_value)

        def change(entries):
            if entries.get(key, b"") == expected:
                entries[key] = desired
            return entries.get(key, expected)

        return self.update(change)

    def append(self, key, value):
        """Put `value` behind what is under `key`."""
        value = _bytes(value)
        self.update(lambda entries: entries.__setitem__(key, entries.get(key, b"") + value))

    def wait(self, keys, timeout=None):
        """Block until all `keys` are there; DistStoreError after `timeout` (a timedelta, by default the
        store's).
        """
        timeout = self.timeout if timeout is None else timeout
        deadline = time.monotonic() + timeout.total_seconds()
        while not self.check(keys):
            if time.monotonic() >= deadline:
                raise self.timed_out(keys, timeout)
            self.pause(deadline)

    def check(self, keys):
        """Whether all `keys` are there now."""
        return self.update(lambda entries: all(key in entries for key in keys))

    def delete_key(self, key):
        """Forget `key`; whether it was there."""
        return self.update(lambda entries: entries.pop(key, None) is not None)

    def num_keys(self):
        """How many keys there are."""
        return self.update(len)

    def list_keys(self):
        """All keys."""
        return self.update(list)

    def multi_get(self, keys):
        """The values under `keys`."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        """Store each value under its key, all at once."""
        pairs = [(key, _bytes(value)) for key, value in zip(keys, values, strict=True)]
        self.update(lambda entries: entries.update(pairs))

    # Queues: values of a key with numbers behind it, taken in the order in which they were put.

    def queue_push(self, key, value):
        """Put `value` at the end of the queue `key`."""
        value = _bytes(value)

        def change(entries):
            first, end = _queue_ends(entries, key)
            entries[f"{key}/{end}"] = value
            entries[key + "/ends"] = struct.pack("<qq", first, end + 1)

        self.update(change)

    def queue_pop(self, key, block=True):
        """Take the first value from the queue `key`; wait for one, or with block=False raise QueueEmptyError."""
        deadline = time.monotonic() + self.timeout.total_seconds()
        while True:
            value = self.update(lambda entries: _pop(entries, key))
            if value is not None:
                return value
            if not block:
                raise QueueEmptyError("queue is empty")
            if time.monotonic() >= deadline:
                raise self.timed_out([key], self.timeout)
            self.pause(deadline)

    def queue_len(self, key):
        """How many values the queue `key` holds."""
        return self.update(lambda entries: _queue_ends(entries, key)[1] - _queue_ends(entries, key)[0])

    # ------------------------------------------------------------------------- options

    def set_timeout(self, timeout):
        """How long `get` and `wait` block."""
        self.timeout = timeout

    def has_extended_api(self):
        """Whether there are append, multi_get, multi_set and the queues."""
        return True

    def clone(self):
        """Another handle on the same entries."""
        return self


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def _queue_ends(entries, key):
    return struct.unpack("<qq", entries.get(key + "/ends", bytes(16)))


def _pop(entries, key):
    first, end = _queue_ends(entries, key)
    if first == end:
        return None
    entries[key + "/ends"] = struct.pack("<qq", first + 1, end)
    return entries.pop(f"{key}/{first}")


class HashStore(Store):
    """Entries in this process: for ranks that are threads."""

    def __init__(self):
        super().__init__()
        self._entries = {}
        self._changed = threading.Condition()

    def update(self, change):
        with self._changed:
            result = change(self._entries)
            self._changed.notify_all()
            return result

    def pause(self, deadline):
        with self._changed:
            self._changed.wait(min(0.05, max(0, deadline - time.monotonic())))


class FileStore(Store):
    """Entries in a file that all processes can open, also over a network file system that can lock.

    The file is a log: each write appends (key, value) or (key, gone), and a reader goes on where it stopped.
    With a `world_size` the last of that many stores to go away removes the file.
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path = file_name
        self.world_size = world_size
        self._entries = {}
        self._position = 0
        self._mutex = threading.Lock()
        with self._locked():
            pass  # the file is there from now on
        self.add(_USERS, 1)

    @contextlib.contextmanager
    def _locked(self):
        with self._mutex, open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def update(self, change):
        with self._locked() as file:
            self._catch_up(file)
            before = dict(self._entries)
            result = change(self._entries)
            for key in before.keys() | self._entries.keys():
                if before.get(key) != self._entries.get(key):
                    file.write(_record(key, self._entries.get(key)))
            file.flush()
            self._position = file.seek(0, os.SEEK_END)
            return result

    def _catch_up(self, file):
        """Read what others appended."""
        file.seek(self._position)
        while header := file.read(_LENGTHS.size):
            key_length, value_length = _LENGTHS.unpack(header)
            key = file.read(key_length).decode()
            if value_length < 0:
                self._entries.pop(key, None)
            else:
                self._entries[key] = file.read(value_length)

    def timed_out(self, keys, timeout):
        return DistStoreError(f"Timeout waiting for key: {keys[0]} after {timeout / timedelta(milliseconds=1):.0f} ms")

    def __del__(self):
        with contextlib.suppress(Exception):  # the file or the interpreter may be gone already
            left = self.add(_USERS, -1)
            if self.world_size > 0 and left == 0:
                os.remove(self.path)


_USERS = "refcount/"
_LENGTHS = struct.Struct("<iq")  # of the key and of the value; -1 says that the key is gone


def _record(key, value):
    name = key.encode()
    return _LENGTHS.pack(len(name), -1 if value is None else len(value)) + name + (value or b"")


class PrefixStore(Store):
    """Another store, with `prefix/` before every key: so that users of one store do not meet each other's
    keys.
    """

    def __init__(self, prefix, store):
        super().__init__(store.timeout)
        self.prefix = prefix
        self.underlying_store = store

    def update(self, change):
        raise RuntimeError("a PrefixStore has no entries of its own")

    def _full(self, key):
        return f"{self.prefix}/{key}"

    def set(self, key, value):
        self.underlying_store.set(self._full(key), value)

    def get(self, key):
        self.wait([key])
        return self.underlying_store.get(self._full(key))

    def add(self, key, amount):
        return self.underlying_store.add(self._full(key), amount)

    def compare_set(self, key, expected_value, desired_value):
        return self.underlying_store.compare_set(self._full(key), expected_value, desired_value)

    def append(self, key, value):
        self.underlying_store.append(self._full(key), value)

    def wait(self, keys, timeout=None):
        self.underlying_store.wait([self._full(key) for key in keys], self.timeout if timeout is None else timeout)

    def check(self, keys):
        return self.underlying_store.check([self._full(key) for key in keys])

    def delete_key(self, key):
        return self.underlying_store.delete_key(self._full(key))

    def num_keys(self):
        return self.underlying_store.num_keys()  # in PyTorch: counts the other users' keys as well

    def list_keys(self):
        full = self._full("")
        return [key.removeprefix(full) for key in self.underlying_store.list_keys() if key.startswith(full)]

    def multi_set(self, keys, values):
        self.underlying_store.multi_set([self._full(key) for key in keys], values)

    def queue_push(self, key, value):
        self.underlying_store.queue_push(self._full(key), value)

    def queue_pop(self, key, block=True):
        return self.underlying_store.queue_pop(self._full(key), block)

    def queue_len(self, key):
        return self.underlying_store.queue_len(self._full(key))

    def has_extended_api(self):
        return self.underlying_store.has_extended_api()

    def clone(self):
        return PrefixStore(self.prefix, self.underlying_store.clone())


for _store in (Store, HashStore, FileStore, PrefixStore):
    _store.__module__ = "readtorch.distributed"
