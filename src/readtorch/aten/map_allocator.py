"""Memory that several processes see: files that are mapped into the address space, not read.

In PyTorch: `aten/src/ATen/MapAllocator.cpp`. Explained in the chapter "Multiprocessing and TensorBoard".

Note [ Who frees shared memory ]
Shared memory outlives the process that made it, so somebody must know when the last user is gone: even if one
of them was killed. There are two ways, which `multiprocessing` calls strategies.

file_descriptor: the memory has no name. A user must be given a descriptor, which travels in a message
between the processes. The kernel counts all references: descriptors, mappings, and messages that nobody has
received yet. It drops those of a dead process itself. So nothing is left behind, in whatever order the processes end.
Each piece of memory costs a descriptor in each process, and those are limited (`ulimit -n`).

file_system: the memory is a file with a name in /dev/shm, and the name travels. No descriptor stays open, but
the kernel does not know who will use a name. So the first bytes of the file count: one for each process
that has it mapped, one for each message underway. Whoever counts down to zero removes the name (the memory
itself lives until the last mapping is gone). A lock on the file guards the count. A process that is killed
cannot count down; so the names of all files are also reported to multiprocessing's resource tracker, a process
that does nothing but wait until the program has ended and then removes the names that are still there. In
PyTorch: the tracker is a program of its own, torch_shm_manager, one for each run.
"""

import ctypes
import fcntl
import itertools
import mmap
import multiprocessing.resource_tracker
import multiprocessing.util
import os
import secrets
import tempfile
import weakref

import numpy as np

from readtorch.c10.storage_impl import StorageImpl

_COUNT_BYTES = 64  # what stands in a named file before the data: keeps the data on a cache line of its own
_HAS_DEV_SHM = os.path.isdir("/dev/shm")
_DIRECTORY = "/dev/shm" if _HAS_DEV_SHM else tempfile.gettempdir()
_serial = itertools.count()

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED = ctypes.c_void_p(-1).value

# New memory is about to be filled, and to get its pages takes longer than the copy itself: all at once, for a
# few megabytes, a quarter less than each at its first touch. in PyTorch: each at its first touch
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)


class MapAllocator:
    """A mapped file, lent to NumPy: `np.asarray(allocator)` is its bytes. Unmapped when no array refers to it.

    fd: the file's descriptor, which stays open with the mapping.
    """

    # Not the module `mmap`: its objects keep a second descriptor each.
    __slots__ = ("fd", "address", "length", "__array_interface__", "__weakref__")

    def __init__(self, fd, nbytes):
        self.fd = fd
        self._map(fd, nbytes, 0)

    def _map(self, fd, nbytes, offset, flags=0):
        """Lend the `nbytes` bytes that begin at `offset`."""
        length = max(offset + nbytes, 1)  # nothing cannot be mapped
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        address = _libc.mmap(None, length, protection, mmap.MAP_SHARED | flags, fd, 0)
        if address == _MAP_FAILED:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        self.address, self.length = address, length
        self.__array_interface__ = {
            "data": (address + offset, False),
            "shape": (nbytes,),
            "typestr": "|u1",
            "version": 3,
        }

    def close_fd(self):
        """Keep the memory, but close the descriptor, so that nobody else can map it."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def __del__(self):
        try:
            if hasattr(self, "address"):
                _libc.munmap(self.address, self.length)
        finally:  # also if Ctrl-C comes just now
            self.close_fd()


def nameless(nbytes):
    """New memory of the strategy file_descriptor."""
    allocator = MapAllocator.__new__(MapAllocator)
    allocator.fd = _nameless_file()
    os.ftruncate(allocator.fd, max(nbytes, 1))
    allocator._map(allocator.fd, nbytes, 0, _POPULATE)
    return allocator


def _nameless_file():
    # in PyTorch: shm_open, and shm_unlink at once
    if hasattr(os, "memfd_create"):
        return os.memfd_create("readtorch", os.MFD_CLOEXEC)
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


class RefcountedMapAllocator(MapAllocator):
    """A mapped file that has a name and counts its users: see Note [ Who frees shared memory ]."""

    __slots__ = ("name", "counted_in")

    def __init__(self, name, nbytes, create=False):
        """Map the file of that name; with `create`, make it. Raises FileNotFoundError if there is none."""
        self.fd = None
        self.name = name
        fd = os.open(_path(name), os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
        try:
            if create:
                _watch(name)
                os.ftruncate(fd, _COUNT_BYTES + nbytes)
            self._map(fd, nbytes, _COUNT_BYTES, _POPULATE if create else 0)
            _count(fd, 1)
        finally:
            os.close(fd)
        self.counted_in = os.getpid()
        _counted.add(self)

    def incref(self):
        """A message is on its way that mentions the name."""
        _change_count(self.name, 1)

    def decref(self):
        """The message has arrived."""
        _change_count(self.name, -1)

    def close(self):
        """This process does not count any more. In a process forked from one that does, nothing happens."""
        # in PyTorch: a forked process counts down all the same
        if self.counted_in == os.getpid():
            self.counted_in = None
            self.decref()

    def __del__(self):
        if hasattr(self, "counted_in"):
            self.close()
        super().__del__()


_counted = weakref.WeakSet()


def _close_at_exit(*_):
    """The processes of `multiprocessing` end without deleting their objects."""
    multiprocessing.util.Finalize(None, _close_all, exitpriority=0)


def _close_all():
    for allocator in list(_counted):
        allocator.close()


_close_at_exit()
multiprocessing.util.register_after_fork(_counted, _close_at_exit)


def named(nbytes):
    """New memory of the strategy file_system."""
    name = f"/readtorch_{os.getpid()}_{secrets.token_hex(4)}_{next(_serial)}"
    return RefcountedMapAllocator(name, nbytes, create=True)


def _path(name):
    return _DIRECTORY + name


def _change_count(name, change):
    fd = os.open(_path(name), os.O_RDWR)
    if _count(fd, change) == 0:
        os.unlink(_path(name))
        _forget(name)
    os.close(fd)


def _count(fd, change):
    """Add to the number at the start of the file; returns it."""
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        count = int.from_bytes(os.pread(fd, 8, 0), "little") + change
        os.pwrite(fd, count.to_bytes(8, "little"), 0)
        return count
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a mapping would hold the lock longer than the descriptor


def start_tracker():
    """Processes that are started later use this process's tracker, which outlives them."""
    if _HAS_DEV_SHM:
        multiprocessing.resource_tracker.ensure_running()


def _watch(name):
    if _HAS_DEV_SHM:
        multiprocessing.resource_tracker.register(name, "shared_memory")


def _forget(name):
    if _HAS_DEV_SHM:
        multiprocessing.resource_tracker.unregister(name, "shared_memory")


class FileStorageImpl(StorageImpl):
    """The bytes of a file, mapped."""

    __slots__ = ("filename",)  # None if what is written does not go to the file


def map_file(filename, shared, nbytes):
    """A FileStorageImpl over the first `nbytes` of a file."""
    mapped = bytearray()
    if nbytes > 0:
        mode, access = ("r+b", mmap.ACCESS_WRITE) if shared else ("rb", mmap.ACCESS_COPY)
        with _opened(filename, "a+b" if shared and not os.path.exists(filename) else mode) as file:
            size = os.fstat(file.fileno()).st_size
            if shared and size < nbytes:
                file.truncate(nbytes)  # in PyTorch: and the file's first byte becomes 0
            elif size < nbytes:
                raise RuntimeError(
                    f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>"
                )
            mapped = mmap.mmap(file.fileno(), nbytes, access=access)
    impl = FileStorageImpl(np.frombuffer(mapped, np.uint8), resizable=False)
    impl.filename = filename if shared else None
    return impl


def _opened(filename, mode):
    try:
        return open(filename, mode)
    except OSError as error:
        how = "read-write" if mode != "rb" else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {how} mode: {error.strerror} ({error.errno})"
        ) from None
