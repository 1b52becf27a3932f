"""`StorageBase`: what a storage of bytes can do before Python adds the rest.

In PyTorch: `torch/csrc/Storage.cpp`, `torch/csrc/StorageMethods.cpp`, the methods of `torch/csrc/StorageSharing.cpp`. Explained
in the chapter "Tensor and Storage".
"""

import ctypes
import os
import sys
import weakref

import numpy as np

from readtorch.aten.empty_tensor import MetaStorageImpl
from readtorch.aten.functions import at
from readtorch.aten.functorch.batched_tensor_impl import WrappedImpl
from readtorch.aten.map_allocator import FileStorageImpl, map_file
from readtorch.c10 import scalar_type
from readtorch.c10.cow import materialize
from readtorch.c10.device import device as Device
from readtorch.c10.dispatch_key import NO_STORAGE
from readtorch.c10.storage_impl import StorageImpl
from readtorch.c10.tensor_impl import storage_impl, wrap

from . import storage_sharing
from .serialization import bytes_of, read_file_raw, write_file_raw

_NAME = "torch.UntypedStorage"
_weak_references = {}  # number -> weak reference to a StorageImpl


class StorageBase:
    """A run of bytes. Only its subclass UntypedStorage has objects."""

    def __init__(self, *args, **kwargs):
        if type(self) is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        self._impl = _new_impl(*args, **kwargs)
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
        """How many bytes it has."""
        return self._impl.nbytes

    __len__ = nbytes

    @property
    def device(self):
        return self._impl.device

    def data_ptr(self):
        """The address of the first byte. Raises RuntimeError for the storage of a wrapper subclass."""
        if self._impl.keys & NO_STORAGE:
            raise RuntimeError("Attempted to access the data pointer on an invalid python storage.")
        materialize(self._impl)
        return self._impl.data_ptr()

    @property
    def _cdata(self):
        """The address of the StorageImpl: the same for all tensors that share memory."""
        return id(self._impl)

    def _set_cdata(self, new_cdata):
        """Be the storage of the StorageImpl at that address."""
        if not isinstance(new_cdata, int):
            raise RuntimeError(
                f"given an invalid argument to _set_cdata - expected an int or long, but got {type(new_cdata).__name__}"
            )
        self._impl = ctypes.cast(new_cdata, ctypes.py_object).value
        return self

    def element_size(self):
        return 1

    def resizable(self):
        """Whether `resize_` may give it other memory."""
        return self._impl.resizable

    # ----------------------------------------------------------------------------------------------- elements

    def __getitem__(self, index):
        if isinstance(index, slice):
            return untyped(part_of(self._impl, *_one_by_one(index, len(self))))
        if not _is_int(index):
            raise TypeError(f"can't index a {_NAME} with {type(index).__name__}")
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"index {place} out of range for storage of size {len(self)}")
        return int(self._impl.host_bytes()[place])

    def __setitem__(self, index, value):
        if not _is_int(value):
            raise RuntimeError(f"can only set storage content with a int types, but got {type(value).__name__} instead")
        if isinstance(index, slice):
            start, stop = _one_by_one(index, len(self))
        elif not _is_int(index):
            raise RuntimeError(f"can't index a {_NAME} with {type(index).__name__}")
        elif not 0 <= index < len(self):
            raise RuntimeError("out of bounds")
        else:
            start, stop = index, index + 1
        self._fill(slice(start, max(start, stop)), value)

    def fill_(self, value):
        """Set every byte. Raises RuntimeError for what is no int."""
        if not _is_int(value):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        self._fill(slice(None), value)
        return self

    def _fill(self, part, value):
        materialize(self._impl)
        if self.device.type == "cpu":
            self._impl.buffer[part] = value & 0xFF
        else:
            bytes_of(self._impl)[part] = value & 0xFF

    def copy_(self, src, non_blocking=None):
        """Copy the bytes of another storage of the same size. Raises RuntimeError for another size."""
        source = getattr(src, "_untyped_storage", src)
        if not isinstance(source, StorageBase):
            raise TypeError(f"copy_(): argument 'src' (position 1) must be torch.Storage, not {type(src).__name__}")
        if source.nbytes() != self.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        materialize(self._impl)
        if self.device.type == source.device.type == "cpu":
            self._impl.buffer[...] = source._impl.buffer
        else:
            at.copy_(bytes_of(self._impl), bytes_of(source._impl), bool(non_blocking))
        return self

    def new(self):
        """A storage without bytes on the same device."""
        return type(self)(device=self.device)

    def resize_(self, size):
        """Make room for `size` bytes; what fits of the old ones is kept. Raises RuntimeError if that cannot be."""
        if not _is_int(size):
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        _refuse_negative(size)
        self._impl.resize(size)
        return self

    def _byteswap(self, elem_size):
        """Reverse the bytes of every element of so many bytes, in place."""
        if not _is_int(elem_size):
            raise RuntimeError("_byteswap(): arg must be an 'int'")
        if elem_size not in (1, 2, 4, 8):
            raise RuntimeError("elem_size must be 1, 2, 4, or 8")
        if self.nbytes() % elem_size:
            raise RuntimeError(f"the length of data is not a multiple of {elem_size}")
        materialize(self._impl)
        self._impl.buffer.view(f"u{elem_size}").byteswap(inplace=True)

    def _swap_data_ptr_(self, other):
        """Exchange the memory of two storages."""
        a, b = self._impl, other._impl
        a.buffer, b.buffer = b.buffer, a.buffer

    @staticmethod
    def from_buffer(buffer, byte_order=None, count=-1, offset=0, dtype=None):
        """A storage with a copy of elements of type `dtype` that lie in a bytes-like object.

        byte_order: "big", "little" or "native", needed for elements of more than one byte.
        """
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        if not isinstance(dtype, scalar_type.dtype):
            raise RuntimeError("argument 'dtype' must be of type torch.dtype")
        swaps = _swaps(dtype, byte_order)
        data = np.frombuffer(memoryview(buffer).cast("B"), np.uint8)
        data = data[_extent(len(data), count, offset, dtype.itemsize)].copy()
        if swaps:
            part = dtype.itemsize // (2 if dtype.is_complex else 1)
            data.view(f"u{part}").byteswap(inplace=True)
        if dtype is scalar_type.bool:
            data[...] = data != 0
        return untyped(StorageImpl(data))

    # -------------------------------------------------------------------------------------------------- files

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """A storage whose bytes are those of a file: the first `nbytes`, read when they are needed.

        shared: what is written here goes to the file, which is made long enough; otherwise nothing does.
        Raises RuntimeError if the file is shorter than that.
        """
        if not isinstance(filename, str):
            raise TypeError(f"argument 1 must be str, not {type(filename).__name__}")
        return untyped(map_file(filename, shared, nbytes))

    def _get_filename(self):
        """The file that what is written here goes to, or None."""
        return getattr(self._impl, "filename", None)

    def _write_file(self, file, is_real_file, save_size, element_size):
        """Write the bytes, if `save_size` with the number of elements before them."""
        write_file_raw(self._impl, file, save_size, element_size)

    @staticmethod
    def _new_with_file(file, element_size):
        """A storage of what `_write_file` wrote."""
        return untyped(read_file_raw(file, None, element_size))

    def _set_from_file(self, file, offset, is_real_file, element_size):
        """Read what `_write_file` wrote into this storage, at that offset of the file or where it stands."""
        if offset is not None:
            if not is_real_file:
                raise RuntimeError("_set_from_file: offset is NYI for filelike objects")
            file.seek(offset)
        read_file_raw(file, self._impl, element_size)
        return self

    # ---------------------------------------------------------------------- memory that other processes see

    def is_shared(self):
        """Whether other processes may see the same memory. Of a mapped file that is said in any case."""
        return storage_sharing.is_shared(self._impl) or isinstance(self._impl, FileStorageImpl)

    def _share_fd_cpu_(self):
        """(descriptor, size) of the shared memory; moved there if necessary."""
        return storage_sharing.share_fd(self._impl).fd, self.nbytes()

    def _get_shared_fd(self):
        allocator = self._impl.allocator
        if getattr(allocator, "fd", None) is None:
            raise RuntimeError("couldn't retrieve a shared file descriptor")
        return allocator.fd

    @classmethod
    def _new_using_fd_cpu(cls, size):
        return untyped(storage_sharing.over(storage_sharing.map_allocator.nameless(size)))

    @classmethod
    def _new_shared_fd_cpu(cls, fd, size):
        return untyped(storage_sharing.new_shared_fd(os.dup(fd), size))

    def _share_filename_cpu_(self):
        """(manager, name, size) of the shared memory; moved there if necessary."""
        # in PyTorch: the manager is the socket of torch_shm_manager
        return b"", storage_sharing.share_filename(self._impl).name.encode(), self.nbytes()

    @classmethod
    def _new_using_filename_cpu(cls, size):
        return untyped(storage_sharing.over(storage_sharing.map_allocator.named(size)))

    @classmethod
    def _new_shared_filename_cpu(cls, manager, name, size):
        return untyped(storage_sharing.new_shared_filename(name.decode(), size))

    def _shared_incref(self):
        """Count a reference to named memory, held by a message that is being sent."""
        self._impl.allocator.incref()

    def _shared_decref(self):
        self._impl.allocator.decref()
        return self

    # in PyTorch: memory of a GPU goes to other processes by CUDA's own handles

    def _share_cuda_(self):
        raise RuntimeError("CUDA is not available")

    @staticmethod
    def _new_shared_cuda(*args):
        raise RuntimeError("CUDA is not available")

    @staticmethod
    def _release_ipc_counter_cuda(*args):
        raise RuntimeError("CUDA is not available")

    # -------------------------------------------------------------------------------------- weak references

    def _weak_ref(self):
        """A number that stands for the StorageImpl without keeping it, until `_free_weak_ref`."""
        number = id(self._impl)
        _weak_references[number] = weakref.ref(self._impl)
        return number

    @staticmethod
    def _free_weak_ref(weak_ref):
        _weak_references.pop(weak_ref, None)

    @staticmethod
    def _expired(weak_ref):
        """Whether the StorageImpl behind the number is gone."""
        return _weak_references[weak_ref]() is None

    @classmethod
    def _new_with_weak_ptr(cls, weak_ref):
        """The storage behind the number, or None."""
        impl = _weak_references[weak_ref]()
        return None if impl is None else untyped(impl)

    def _fix_weakref(self):
        """in PyTorch: makes sure that the Python object lives as long as the memory; here it does."""


untyped_class = None  # UntypedStorage, once there is one


def set_untyped_class(cls):
    global untyped_class
    untyped_class = cls


def untyped(impl):
    """The UntypedStorage of a StorageImpl, the same object each time: Note [ Who keeps a storage's object ]."""
    if isinstance(impl, WrappedImpl):
        raise NotImplementedError(f"Cannot access storage of {impl.name}")
    known = impl._pyobj
    wrapper = known() if isinstance(known, weakref.ref) else known
    if wrapper is None:
        wrapper = object.__new__(untyped_class)
        if known is None:
            wrapper._own_impl, wrapper._weak_impl, impl._pyobj = None, weakref.ref(impl), wrapper
        else:
            wrapper._impl, impl._pyobj = impl, weakref.ref(wrapper)
    return wrapper


# ----------------------------------------------------------------------------------------------------- new storages


def _new_impl(*args, **kwargs):
    """UntypedStorage(), UntypedStorage(size), UntypedStorage(sequence), with `device` or `allocator`."""
    named = dict(kwargs)
    allocator, device = named.pop("allocator", None), named.pop("device", None)
    source = args[0] if args else named.pop("size", named.pop("sequence", 0))
    if named or len(args) > 1:
        raise TypeError(_invalid_arguments(args, kwargs))
    if allocator is not None and device is not None:
        raise RuntimeError(f"{_NAME}(): only one or neither of 'allocator' or 'device' can be given, but not both")
    device = Device("cpu" if device is None else device)
    if _is_int(source):
        _refuse_negative(source)
        return _of_size(int(source), device)
    return _over_elements(_bytes_of_sequence(source), device)


def _of_size(nbytes, device):
    return MetaStorageImpl(nbytes) if device.type == "meta" else _over_elements(np.empty(nbytes, np.uint8), device)


def _over_elements(data, device):
    return StorageImpl(data) if device.type == "cpu" else storage_impl(wrap(data).to(device))


def _bytes_of_sequence(source):
    if not hasattr(source, "__getitem__") or not hasattr(source, "__len__") or hasattr(source, "_array"):
        shown = "Tensor" if hasattr(source, "_array") else type(source).__name__
        raise RuntimeError(f"{_NAME}(): Expected a sequence type, but got {shown}")
    odd = next((item for item in source if not _is_int(item)), None)
    if odd is not None:
        raise RuntimeError(
            f"{_NAME}(): tried to construct a storage from a sequence ({type(source).__name__}), "
            f"but one of the items was of type {type(odd).__name__} instead of int"
        )
    return np.array([int(item) & 0xFF for item in source], np.uint8)


def _invalid_arguments(args, kwargs):
    given = ", ".join(type(arg).__name__ for arg in args)
    named = "".join(f"{name}={type(value).__name__}, " for name, value in kwargs.items())
    return (
        f"{_NAME}() received an invalid combination of arguments - got ({', '.join(filter(None, [given, named]))}), "
        "but expected one of:\n * (*, int allocator = None, torch.device device = None)\n"
        " * (int size, *, int allocator = None, torch.device device = None)\n"
        " * (object sequence, *, int allocator = None, torch.device device = None)\n"
    )


def _refuse_negative(nbytes):
    if nbytes < 0:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called with "
            f"negative number: {nbytes + (1 << 64)}"
        )


def _is_int(value):
    return isinstance(value, (int, np.integer))


def _one_by_one(part, length):
    """(start, stop) of a slice of step 1."""
    start, stop, step = part.indices(length)
    if step != 1:
        raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
    return start, stop


def part_of(impl, start, stop):
    """A StorageImpl over some bytes of another, which they keep alive."""
    if impl.device.type == "cpu":
        return StorageImpl(impl.buffer[start:stop], resizable=False)
    if impl.device.type == "meta":
        return MetaStorageImpl(max(stop - start, 0))
    return _over_elements(impl.host_bytes()[start:stop], impl.device)  # in PyTorch: shared, too


def _swaps(dtype, byte_order):
    """Whether elements in that byte order have to be turned round for this machine."""
    if dtype.itemsize == 1 and dtype is not scalar_type.bool:
        return False
    if byte_order is None:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in ("big", "little", "native"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    if dtype in (scalar_type.uint16, scalar_type.uint32, scalar_type.uint64):
        raise RuntimeError(f"Unknown type: {str(dtype)[6:].replace('ui', 'UI')}")
    return dtype.itemsize > 1 and byte_order not in ("native", sys.byteorder)


def _extent(length, count, offset, item):
    """The slice of a buffer in which the elements lie."""
    if not 0 <= offset <= length:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({offset}) , but got {length}")
    if count < 0:
        if (length - offset) % item:
            raise ValueError(f"buffer size ({length}) must be a multiple of element size ({item})")
        count = (length - offset) // item
    if offset + count * item > length:
        raise ValueError(
            f"buffer has only {length - offset} elements after offset {offset}, but specified a size of {count}"
        )
    return slice(offset, offset + count * item)
