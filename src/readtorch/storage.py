"""Storages as Python sees them: bytes, or elements of one dtype.

In PyTorch: `torch/storage.py`, `torch/csrc/Storage.cpp`. Explained in the chapter "Tensor and Storage".
"""

import copy
import mmap
import os
import weakref

import numpy as np

from .aten.empty_tensor import MetaStorageImpl
from .c10 import scalar_type
from .c10.device import device as Device
from .c10.dispatch_key import NO_STORAGE
from .c10.scalar_type import dtype_by_name
from .c10.storage_impl import StorageImpl
from .c10.tensor_impl import storage_impl, wrap
from .csrc import storage_sharing


def storage_of_size(nbytes, device):
    """A new StorageImpl on a device, None being the CPU."""
    if device is not None and Device(device).type == "meta":
        return MetaStorageImpl(nbytes)
    return storage_over_elements(np.empty(nbytes, np.uint8), device)


def storage_over_elements(data, device):
    return StorageImpl(data) if device is None else storage_impl(wrap(data).to(device))


class UntypedStorage:
    """A run of bytes. Tensors that share memory share one. Indexing gives and takes ints from 0 to 255."""

    def __init__(self, *args, device=None):
        source = args[0] if args else 0
        if isinstance(source, int):
            self._impl = storage_of_size(source, device)
        else:
            self._impl = storage_over_elements(np.array(list(source), np.uint8), device)
        self._impl._pyobj = weakref.ref(self)

    @property
    def _impl(self):
        """The StorageImpl: Note [ Who keeps a storage's object ]."""
        return self._weak_impl() if self._own_impl is None else self._own_impl

    @_impl.setter
    def _impl(self, impl):
        self._own_impl = impl

    # --------------------------------------------------------------------------------------------- what it is

    def nbytes(self):
        return self._impl.nbytes

    __len__ = size = nbytes

    @property
    def device(self):
        return self._impl.device

    def data_ptr(self):
        """The address of the first byte. Raises RuntimeError for the storage of a wrapper subclass."""
        if self._impl.keys & NO_STORAGE:
            raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")
        return self._impl.data_ptr()

    @property
    def _cdata(self):
        """The address of the StorageImpl: the same for all tensors that share memory."""
        return id(self._impl)

    def element_size(self):
        return 1

    is_cuda = property(lambda self: self.device.type == "cuda")
    is_sparse = False

    def untyped(self):
        return self

    def resizable(self):
        return self._impl.resizable

    def is_pinned(self, device="cuda"):
        return self._impl.pinned

    def is_shared(self):
        """Whether other processes may see the same memory."""
        return storage_sharing.is_shared(self._impl)

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._impl is other._impl

    def __hash__(self):
        return hash(id(self._impl))

    # ----------------------------------------------------------------------------------------------- elements

    def __getitem__(self, index):
        if isinstance(index, slice):
            return untyped(StorageImpl(self._impl.host_bytes()[index]))
        return int(self._impl.host_bytes()[index])

    def __setitem__(self, index, value):
        self._impl.buffer[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._impl.host_bytes().tolist()

    def fill_(self, value):
        self._impl.buffer[...] = value
        return self

    def copy_(self, source, non_blocking=None):
        """Copy the bytes of another storage of the same size. Raises RuntimeError for another size."""
        if source.nbytes() != self.nbytes():
            raise RuntimeError("size does not match")
        self._impl.buffer[...] = source._impl.buffer
        return self

    def clone(self):
        """A storage with a copy of the bytes."""
        return untyped(self._impl.copy())

    def resize_(self, size):
        """Make room for `size` bytes; what fits of the old ones is kept. Raises RuntimeError if that
        cannot be."""
        self._impl.resize(size)
        return self

    def cpu(self):
        return self.to(device="cpu")

    def to(self, *, device, non_blocking=False):
        """The same bytes on another device; the storage itself if that is where they are."""
        if str(device) == str(self.device):
            return self
        data = wrap(self._impl.buffer)
        data._keys, data._storage_impl = self._impl.keys, self._impl
        return untyped(storage_impl(data.to(device, non_blocking=non_blocking)))

    def byteswap(self, dtype):
        """Reverse the bytes of every element of type `dtype`, in place."""
        part = dtype.to_real().itemsize if dtype.is_complex else dtype.itemsize
        words = self._impl.buffer[: self.nbytes() // part * part].view(f"u{part}")
        words.byteswap(inplace=True)

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """A storage whose bytes are those of a file: the first `nbytes`, read when they are needed.

        shared: what is written here goes to the file, which is made long enough; otherwise nothing does.
        Raises RuntimeError if the file is shorter than that.
        """
        mode, access = ("r+b", mmap.ACCESS_WRITE) if shared else ("rb", mmap.ACCESS_COPY)
        with open(filename, "a+b" if shared and not os.path.exists(filename) else mode) as file:
            size = os.fstat(file.fileno()).st_size
            if shared and size < nbytes:
                file.truncate(nbytes)
            elif size < nbytes:
                raise RuntimeError(
                    f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>"
                )
            mapped = mmap.mmap(file.fileno(), nbytes, access=access) if nbytes else bytearray()
        return untyped(StorageImpl(np.frombuffer(mapped, np.uint8), resizable=False))

    # ---------------------------------------------------------------------- memory that other processes see

    def share_memory_(self):
        """Move the bytes to shared memory, and with them all tensors over them. Not resizable afterwards."""
        storage_sharing.share(self._impl)
        return self

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        """A storage of `size` bytes in shared memory."""
        return untyped(storage_sharing.new_shared(size)) if str(device) == "cpu" else cls(size, device=device)

    def _share_fd_cpu_(self):
        """(descriptor, size) of the shared memory; moved there if necessary."""
        return storage_sharing.share_fd(self._impl).fd, self.nbytes()

    @classmethod
    def _new_shared_fd_cpu(cls, fd, size):
        return untyped(storage_sharing.new_shared_fd(os.dup(fd), size))

    def _share_filename_cpu_(self):
        """(manager, name, size) of the shared memory; moved there if necessary."""
        # in PyTorch: the manager is the socket of torch_shm_manager
        return b"", storage_sharing.share_filename(self._impl).name.encode(), self.nbytes()

    @classmethod
    def _new_shared_filename_cpu(cls, manager, name, size):
        return untyped(storage_sharing.new_shared_filename(name.decode(), size))

    def _shared_incref(self):
        """Count a reference to named memory, held by a message that is being sent."""
        self._impl.allocator.incref()

    def _shared_decref(self):
        self._impl.allocator.decref()
        return self

    def __repr__(self):
        rows = _rows(self)
        return f"{rows}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def __deepcopy__(self, memo):
        copied = memo.get(id(self._impl))  # a tensor over these bytes may have been copied before
        if copied is None:
            copied = memo[id(self._impl)] = self._impl.copy()
        return untyped(copied)

    def __reduce__(self):
        if self.is_cuda:
            return (untyped, (self._impl,))
        return (_from_bytes, (self._impl.host_bytes().tobytes(),))


class TypedStorage:
    """A storage whose bytes are read as elements of one dtype: the older interface, kept for old code."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        self.dtype = dtype or dtype_by_name("float32")
        if wrap_storage is None:
            numbers = (
                np.empty(args[0], self.dtype.numpy)
                if args and isinstance(args[0], int)
                else np.array(list(args[0]) if args else [], self.dtype.numpy)
            )
            wrap_storage = untyped(storage_impl(wrap(numbers)))
        self._untyped_storage = wrap_storage

    @property
    def _elements(self):
        return self._untyped_storage._impl.buffer.view(self.dtype.numpy)

    def untyped(self):
        return self._untyped_storage

    def __deepcopy__(self, memo):
        return _typed(copy.deepcopy(self._untyped_storage, memo), self.dtype)

    def __reduce__(self):
        """With its bytes, as if nothing else in the pickle had them: two views pickled together are apart afterwards.

        `save` sees to it that they are not, and so does `copy.deepcopy`. In PyTorch: the bytes of a file that `save` writes.
        """
        rebuild, parts = self._untyped_storage._impl.__reduce__()
        return (_typed_over, (rebuild, parts, self.dtype))

    def _pickle_storage_type(self):
        """The name of the class that stands for this storage in a checkpoint: "FloatStorage"."""
        return CLASS_NAMES[self.dtype]

    @property
    def device(self):
        return self._untyped_storage.device

    def data_ptr(self):
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    def nbytes(self):
        return self._untyped_storage.nbytes()

    def element_size(self):
        return self.dtype.itemsize

    def size(self):
        return self.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def __getitem__(self, index):
        return self._elements[index].item()

    def __setitem__(self, index, value):
        self._elements[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        return self._elements.tolist()

    def fill_(self, value):
        self._elements[...] = value
        return self

    def copy_(self, source, non_blocking=None):
        self._elements[...] = source._elements
        return self

    def clone(self):
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def resize_(self, size):
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def is_shared(self):
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size, *, device=None):
        """A storage of `size` elements of the same dtype in shared memory."""
        nbytes = size * self.dtype.itemsize
        return TypedStorage(
            wrap_storage=UntypedStorage._new_shared(nbytes, device=device or self.device), dtype=self.dtype
        )

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self):
        return hash(self._untyped_storage)

    def __repr__(self):
        rows = _rows(self)
        facts = f"(dtype={self.dtype}, device={self.device})"
        return f"{rows}\n[torch.storage.TypedStorage{facts} of size {len(self)}]"


def _rows(storage):
    """The elements as a repr shows them, one a line."""
    return "..." if storage.device.type == "meta" else "\n".join(f" {element}" for element in storage.tolist())


# Until PyTorch 1.10 each dtype had a class of storages. Checkpoints still use the names.
CLASS_NAMES = {
    getattr(scalar_type, name): f"{kind}Storage"
    for name, kind in {
        "float64": "Double",
        "float32": "Float",
        "float16": "Half",
        "bfloat16": "BFloat16",
        "int64": "Long",
        "int32": "Int",
        "int16": "Short",
        "int8": "Char",
        "uint8": "Byte",
        "bool": "Bool",
        "complex128": "ComplexDouble",
        "complex64": "ComplexFloat",
    }.items()
}
DTYPES_WITH_CLASS = frozenset(CLASS_NAMES)


class _LegacyStorageMeta(type):
    """`isinstance(storage, FloatStorage)` asks a TypedStorage for its dtype: no object is of the class
    itself.
    """

    def __instancecheck__(cls, instance):
        return type(instance) is TypedStorage and instance.dtype is getattr(cls, "dtype", None)


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """`FloatStorage`, `LongStorage` …: called, they make a TypedStorage."""

    def __new__(cls, *args, wrap_storage=None, device=None):
        return TypedStorage(*args, wrap_storage=wrap_storage, device=device, dtype=cls.dtype)


# FloatStorage, LongStorage … by name: names of `readtorch`, as they are names of `torch`.
legacy_classes = {
    name: _LegacyStorageMeta(name, (_LegacyStorage,), {"dtype": dtype, "__module__": "readtorch"})
    for dtype, name in CLASS_NAMES.items()
}


def _get_dtype_from_pickle_storage_type(name):
    """ "FloatStorage" -> float32. Raises KeyError for a name that is not known."""
    return legacy_classes[name].dtype


def untyped(impl):
    """The UntypedStorage of a StorageImpl, the same object each time: Note [ Who keeps a storage's object ]."""
    known = impl._pyobj
    wrapper = known() if isinstance(known, weakref.ref) else known
    if wrapper is None:
        wrapper = object.__new__(UntypedStorage)
        if known is None:
            wrapper._own_impl, wrapper._weak_impl, impl._pyobj = None, weakref.ref(impl), wrapper
        else:
            wrapper._impl, impl._pyobj = impl, weakref.ref(wrapper)
    return wrapper


def _from_bytes(data):
    return untyped(StorageImpl(np.frombuffer(data, np.uint8).copy()))


def _typed(storage, dtype):
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def _typed_over(rebuild, parts, dtype):
    return _typed(untyped(rebuild(*parts)), dtype)
