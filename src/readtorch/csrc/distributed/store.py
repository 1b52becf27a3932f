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
from collections import defaultdict, deque
from datetime import timedelta

from .exception import DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = timedelta(seconds=300)


class Store:
    """Keys are str, values bytes (a str is stored as its UTF-8). `get` and `wait` block until a key is there.

    A class of a program's own defines what it can do (`set`, `get`, `add`, `compare_set` …); the rest raises. `PrefixStore` finds
    other ways for what such a store lacks.
    """

    def __init__(self):
        self._timeout = DEFAULT_TIMEOUT

    # ------------------------------------------------------------------------- operations

    def set(self, key, value):
        """Store `value` under `key`."""
        raise RuntimeError("Not implemented.")

    def get(self, key):
        """The value under `key`, once it is there; DistStoreError after `timeout`."""
        raise RuntimeError("Not implemented.")

    def add(self, key, amount):
        """Add to the counter under `key` (0 at first); returns the sum."""
        raise _pure_virtual("add")

    def compare_set(self, key, expected_value, desired_value):
        """Store `desired_value` if `expected_value` is there, or if nothing is and that is expected ("").
        Returns what is there afterwards; the expected value if nothing is.
        """
        raise RuntimeError("Not implemented.")

    def wait(self, keys, timeout=None):
        """Block until all `keys` are there; DistStoreError after `timeout` (a timedelta, by default the store's)."""
        raise _pure_virtual("wait")

    def check(self, keys):
        """Whether all `keys` are there now."""
        raise _pure_virtual("check")

    def delete_key(self, key):
        """Forget `key`; whether it was there."""
        raise _pure_virtual("deleteKey")

    def num_keys(self):
        """How many keys there are."""
        raise _pure_virtual("getNumKeys")

    def list_keys(self):
        """All keys."""
        raise NotImplementedError("listKeys support is not implemented.")

    def barrier(self, key, world_size, timeout=None):
        """Block until `world_size` callers have come to `key`; DistStoreError after `timeout`."""
        timeout = self._timeout if timeout is None else timeout
        if self.add(key, 1) == world_size:
            self.set(f"{key}/passed", "")
        try:
            self.wait([f"{key}/passed"], timeout)
        except RuntimeError as error:
            raise DistStoreError(f"barrier timeout after {milliseconds(timeout)}ms, key: {key}") from error

    # The extended part, which `has_extended_api` is asked for.

    def has_extended_api(self):
        """Whether there are append, multi_get, multi_set and the queues."""
        return False

    def append(self, key, value):
        """Put `value` behind what is under `key`."""
        raise RuntimeError("Not implemented.")

    def multi_get(self, keys):
        """The values under `keys`."""
        raise RuntimeError("Not implemented.")

    def multi_set(self, keys, values):
        """Store each value under its key, all at once."""
        raise RuntimeError("Not implemented.")

    def queue_push(self, key, value):
        """Put `value` at the end of the queue `key`, which has nothing to do with the key of that name."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key, block=True):
        """Take the first value from the queue `key`; wait for one, or with block=False raise QueueEmptyError."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key):
        """How many values the queue `key` holds."""
        raise NotImplementedError("queue support is not implemented.")

    # ------------------------------------------------------------------------- options

    @property
    def timeout(self):
        """How long `get` and `wait` block, a timedelta."""
        return self._timeout

    def set_timeout(self, timeout):
        """How long `get` and `wait` block."""
        self._timeout = timeout

    def clone(self):
        """Another handle on the same entries."""
        raise _pure_virtual("clone")


def _pure_virtual(name):
    return RuntimeError(f'Tried to call pure virtual function "::c10d::Store::{name}"')


def _bytes(value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"a store holds str and bytes, not {type(value).__name__}")


def milliseconds(timeout):
    return round(timeout / timedelta(milliseconds=1))


class DictionaryStore(Store):
    """A store made of two things: how to change its dictionary atomically, and how to wait until something changed.

    in PyTorch: each kind of store spells out all operations.
    """

    def update(self, change):
        """`change(entries)` on the dictionary from key to bytes, while nobody else looks; returns its result."""
        raise NotImplementedError

    def pause(self, deadline):
        """Wait a while for a change, at most until `deadline` (of time.monotonic)."""
        time.sleep(min(0.01, max(0, deadline - time.monotonic())))

    def timed_out(self, keys, timeout):
        """The error that `get` raises, and `wait` unless a kind of store has another one."""
        return DistStoreError("Wait timeout")

    late_to_wait = timed_out

    def set(self, key, value):
        value = _bytes(value)
        self.update(lambda entries: entries.__setitem__(key, value))

    def get(self, key):
        self._wait([key], self._timeout, self.timed_out)
        return self.update(lambda entries: entries[key])

    def add(self, key, amount):
        def change(entries):
            total = int(entries.get(key, b"0")) + amount
            entries[key] = str(total).encode()
            return total

        return self.update(change)

    def compare_set(self, key, expected_value, desired_value):
        expected, desired = _bytes(expected_value), _bytes(desired_value)

        def change(entries):
            if entries.get(key, b"") == expected:
                entries[key] = desired
            return entries.get(key, expected)

        return self.update(change)

    def wait(self, keys, timeout=None):
        self._wait(keys, self._timeout if timeout is None else timeout, self.late_to_wait)

    def _wait(self, keys, timeout, late):
        deadline = time.monotonic() + timeout.total_seconds()
        while not self.check(keys):
            if time.monotonic() >= deadline:
                raise late(keys, timeout)
            self.pause(deadline)

    def check(self, keys):
        return self.update(lambda entries: all(key in entries for key in keys))

    def delete_key(self, key):
        return self.update(lambda entries: entries.pop(key, None) is not None)

    def num_keys(self):
        return self.update(len)

    def list_keys(self):
        return self.update(list)

    def append(self, key, value):
        value = _bytes(value)
        self.update(lambda entries: entries.__setitem__(key, entries.get(key, b"") + value))

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        pairs = [(key, _bytes(value)) for key, value in zip(keys, values)]
        self.update(lambda entries: entries.update(pairs))

    def clone(self):
        return self


class HashStore(DictionaryStore):
    """Entries in this process: for ranks that are threads."""

    def __init__(self):
        super().__init__()
        self._entries = {}
        self._queues = defaultdict(deque)
        self._changed = threading.Condition()

    def update(self, change):
        with self._changed:
            result = change(self._entries)
            self._changed.notify_all()
            return result

    def pause(self, deadline):
        with self._changed:
            self._changed.wait(min(0.05, max(0, deadline - time.monotonic())))

    def has_extended_api(self):
        return True

    def queue_push(self, key, value):
        with self._changed:
            self._queues[key].append(_bytes(value))
            self._changed.notify_all()

    def queue_pop(self, key, block=True):
        deadline = time.monotonic() + self._timeout.total_seconds()
        while True:
            with self._changed:
                if self._queues.get(key):
                    return self._queues[key].popleft()
            if not block:
                raise QueueEmptyError("queue is empty")
            if time.monotonic() >= deadline:
                raise self.timed_out([key], self._timeout)
            self.pause(deadline)

    def queue_len(self, key):
        with self._changed:
            return len(self._queues.get(key, ()))


class FileStore(DictionaryStore):
    """Entries in a file that all processes can open, also over a network file system that can lock.

    The file is a log: each write appends (key, value) or (key, gone), and a reader goes on where it stopped.
    With a `world_size` the last of that many stores to go away removes the file.
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self._path = file_name
        self.world_size = world_size
        self._entries = {}
        self._position = 0
        self._mutex = threading.Lock()
        with self._locked():
            pass  # the file is there from now on
        self.add(_USERS, 1)

    @property
    def path(self):
        """The file's name."""
        return self._path

    @contextlib.contextmanager
    def _locked(self):
        with self._mutex, open(self._path, "a+b") as file:
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
        return DistStoreError(f"Timeout waiting for key: {keys[0]} after {milliseconds(timeout)} ms")

    def late_to_wait(self, keys, timeout):
        return DistStoreError("Wait timeout")

    def __del__(self):
        with contextlib.suppress(Exception):  # the file or the interpreter may be gone already
            left = self.add(_USERS, -1)
            if self.world_size > 0 and left == 0:
                os.remove(self._path)


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
        if store is None:
            raise ValueError("store argument cannot be None")
        super().__init__()
        self.prefix = prefix
        self._underlying = store

    @property
    def underlying_store(self):
        """The store behind this one, which may be a PrefixStore, too."""
        return self._underlying

    @property
    def _underlying_non_prefix_store(self):
        store = self._underlying
        while isinstance(store, PrefixStore):
            store = store._underlying
        return store

    def _full(self, key):
        return f"{self.prefix}/{key}"

    def set(self, key, value):
        self._underlying.set(self._full(key), _bytes(value))

    def get(self, key):
        return self._underlying.get(self._full(key))

    def add(self, key, amount):
        return self._underlying.add(self._full(key), amount)

    def compare_set(self, key, expected_value, desired_value):
        return self._underlying.compare_set(self._full(key), _bytes(expected_value), _bytes(desired_value))

    def wait(self, keys, timeout=None):
        self._underlying.wait([self._full(key) for key in keys], self.timeout if timeout is None else timeout)

    def check(self, keys):
        return self._underlying.check([self._full(key) for key in keys])

    def delete_key(self, key):
        return self._underlying.delete_key(self._full(key))

    def num_keys(self):
        return self._underlying.num_keys()  # in PyTorch: counts the other users' keys as well

    def list_keys(self):
        full = self._full("")
        return [key.removeprefix(full) for key in self._underlying.list_keys() if key.startswith(full)]

    @property
    def timeout(self):
        return self._underlying.timeout

    def set_timeout(self, timeout):
        self._underlying.set_timeout(timeout)

    def has_extended_api(self):
        return self._underlying.has_extended_api()

    # A store that lacks one of these three has simpler ones of which it can be made.

    def append(self, key, value):
        if defines(self._underlying, "append") or not defines(self._underlying, "compare_set"):
            self._underlying.append(self._full(key), _bytes(value))
            return
        before = self.compare_set(key, b"", b"")
        # who appends the same at the same time cannot be told from us, in PyTorch as well
        while (after := self.compare_set(key, before, before + _bytes(value))) != before + _bytes(value):
            before = after

    def multi_get(self, keys):
        if defines(self._underlying, "multi_get") or not defines(self._underlying, "get"):
            return self._underlying.multi_get([self._full(key) for key in keys])
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        if defines(self._underlying, "multi_set") or not defines(self._underlying, "set"):
            self._underlying.multi_set([self._full(key) for key in keys], [_bytes(value) for value in values])
            return
        for key, value in zip(keys, values):
            self.set(key, value)

    def queue_push(self, key, value):
        self._underlying.queue_push(self._full(key), _bytes(value))

    def queue_pop(self, key, block=True):
        return self._underlying.queue_pop(self._full(key), block)

    def queue_len(self, key):
        return self._underlying.queue_len(self._full(key))

    def clone(self):
        return PrefixStore(self.prefix, self._underlying.clone())


def defines(store, name):
    """Whether a kind of store has an operation of its own."""
    return getattr(type(store), name) is not getattr(Store, name)


for _store in (Store, HashStore, FileStore, PrefixStore):
    _store.__module__ = "readtorch.distributed"


def test_python_store(store):
    """Call the operations of a store of a program's own, in the way of PyTorch's C++: values are bytes."""
    through = PrefixStore("", store)
    through._full = lambda key: key
    for key, amount in (("key", 1), ("key", 2), ("key", 3), ("key3", 1), ("key3", 2), ("key3", 3), ("key3", 4)):
        through.add(key, amount)
    for key in ("key0", "key1", "key2"):
        through.set(key, key.replace("key", "value"))
    for key, value in (("key", b"6"), ("key0", b"value0"), ("key1", b"value1"), ("key2", b"value2"), ("key3", b"10")):
        if through.get(key) != value:
            raise RuntimeError(f"unexpected value of {key}")
