"""Storages as Python sees them: bytes, or elements of one dtype.

In PyTorch: `torch/storage.py`. Explained in the chapter "Tensor and Storage".
"""

import collections.abc
import copy
import functools
import warnings

import numpy as np

from .c10 import scalar_type
from .c10.device import device as Device
from .c10.storage_impl import StorageImpl
from .c10.tensor_impl import storage_impl
from .csrc import storage_sharing
from .csrc.serialization import bytes_of, elements_of
from .csrc.storage_methods import StorageBase, set_untyped_class, untyped
from .csrc.utils.tensor_new import tensor as new_tensor

__all__ = ["TypedStorage", "UntypedStorage"]


class _StorageBase:
    """What UntypedStorage has beside `StorageBase`."""

    is_sparse = False
    is_sparse_csr = False
    _fake_device = None  # where `load` under a FakeTensorMode would have put it

    @property
    def _checkpoint_offset(self):
        """Where its bytes are in the file, if `load(..., map_location="meta")` left them there; else None."""
        return getattr(self._impl, "checkpoint_offset", None)

    @_checkpoint_offset.setter
    def _checkpoint_offset(self, offset):
        self._impl.checkpoint_offset = offset

    def size(self):
        """How many bytes it has."""
        return self.nbytes()

    def type(self, dtype=None, non_blocking=False):
        """The name of its class; or a storage of another class, of as many elements, with a copy of the bytes."""
        if dtype is None:
            return f"{_torch_module(type(self))}.{type(self).__name__}"
        if isinstance(dtype, str):
            dtype = _class_of_name(dtype)
        if dtype is type(self):
            return self
        return dtype(self.size()).copy_(self, non_blocking)

    def get_device(self):
        """The index of its device, None on the CPU."""
        return self.device.index

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    @property
    def is_hpu(self):
        return self.device.type == "hpu"

    def untyped(self):
        return self

    # ------------------------------------------------------------------------------------------------ elements

    def __repr__(self):
        facts = f"[torch.storage.{type(self).__name__}(device={self.device}) of size {len(self)}]"
        return f"{_rows(self)}\n{facts}"

    def __iter__(self):
        return iter([self[i] for i in range(self.size())])

    def tolist(self):
        """The bytes, as a list of ints."""
        return list(self)

    def __sizeof__(self):
        return object.__sizeof__(self) + self.size()

    # -------------------------------------------------------------------------------------------------- copies

    def clone(self):
        """A storage with a copy of the bytes."""
        return untyped(self._impl.copy())

    __copy__ = clone

    def __deepcopy__(self, memo):
        copied = memo.get(id(self._impl))  # a tensor over these bytes may have been copied before
        if copied is None:
            copied = memo[id(self._impl)] = self._impl.copy()
        return untyped(copied)

    def __reduce__(self):
        """With its bytes. In PyTorch: those of a file that `save` writes."""
        if self.is_cuda:
            return (untyped, (self._impl,))
        return (_from_bytes, (self._impl.host_bytes().tobytes(),))

    def _to(self, dtype):
        if not isinstance(dtype, scalar_type.dtype):
            raise TypeError(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        return _apart(bytes_of(self._impl).to(dtype)._typed_storage(), self)

    # ------------------------------------------------------------------------------------------------- devices

    def cpu(self):
        """A copy on the CPU; the storage itself if that is where it is."""
        return self if self.device.type == "cpu" else type(self)(self.size()).copy_(self, False)

    def mps(self):
        return self if self.device.type == "mps" else type(self)(self.size(), device="mps").copy_(self, False)

    def to(self, *, device, non_blocking=False):
        """The same bytes on another device; the storage itself if that is where they are.

        Raises AssertionError for a device of which there is no module, "meta" among them.
        """
        device = Device(device)
        if self.device == device:
            return self
        if device.type not in ("cpu", "cuda"):
            raise AssertionError(f"{device.type.upper()} device module is not loaded")
        return untyped(storage_impl(bytes_of(self._impl).to(device, non_blocking=non_blocking)))

    def cuda(self, device=None, non_blocking=False):
        """A copy on a GPU, by default the current one; the storage itself if that is where it is."""
        return self.to(device=Device("cuda", device) if device else Device("cuda"), non_blocking=non_blocking)

    def hpu(self, device=None, non_blocking=False):
        return self.to(device=Device("hpu", device) if device else Device("hpu"), non_blocking=non_blocking)

    def is_pinned(self, device=None):
        """Whether the memory is locked for copies to an accelerator."""
        return self.device.type == "cpu" and bytes_of(self._impl).is_pinned()

    def pin_memory(self, device=None):
        """A copy in memory that is locked for copies to an accelerator."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.type()}' only CPU memory can be pinned")
        return bytes_of(self._impl).pin_memory().untyped_storage()

    # -------------------------------------------------------------------------- memory that other processes see

    def share_memory_(self):
        """Move the bytes to shared memory, and with them all tensors over them. Not resizable afterwards."""
        storage_sharing.share(self._impl)
        return self

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        """A storage of `size` bytes in shared memory."""
        return untyped(storage_sharing.new_shared(size)) if Device(device).type == "cpu" else cls(size, device=device)

    @classmethod
    def _release_ipc_counter(cls, *args, device=None, **kwargs):
        return cls._release_ipc_counter_cuda(*args, **kwargs)

    def byteswap(self, dtype):
        """Reverse the bytes of every number of type `dtype`, in place; a complex number is two."""
        size = dtype.itemsize
        self._byteswap(max(size // 2, 1) if dtype.is_complex else size)


class UntypedStorage(StorageBase, _StorageBase):
    """A run of bytes. Tensors that share memory share one. Indexing gives and takes ints from 0 to 255."""

    def __getitem__(self, index):
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return StorageBase.__getitem__(self, index)

    @property
    def filename(self):
        """The file that what is written here goes to (`from_file` with shared=True), or None."""
        return self._get_filename()

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and self._impl is other._impl

    def __hash__(self):
        return hash(id(self._impl))


set_untyped_class(UntypedStorage)


# ------------------------------------------------------------------------------------------------------ the warning

_always_warn_typed_storage_removal = False
_has_warned = False


def _get_always_warn_typed_storage_removal():
    return _always_warn_typed_storage_removal


def _set_always_warn_typed_storage_removal(always_warn):
    global _always_warn_typed_storage_removal
    if not isinstance(always_warn, bool):
        raise AssertionError(f"always_warn must be bool, got {type(always_warn).__name__}")
    _always_warn_typed_storage_removal = always_warn


def _reset_warn_typed_storage_removal():
    global _has_warned
    _has_warned = False


def _warn_typed_storage_removal(stacklevel=2):
    """Say, once a process, that TypedStorage is deprecated."""
    global _has_warned
    if _has_warned and not _always_warn_typed_storage_removal:
        return
    _has_warned = True
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def deprecated(method):
    """A method of TypedStorage, with the warning. Those that begin with _ are for our own use: they do not warn."""

    @functools.wraps(method)
    def warns(*args, **kwargs):
        _warn_typed_storage_removal()
        return method(*args, **kwargs)

    return warns


def of_the_bytes(name):
    """The method of that name of the UntypedStorage, with the warning."""

    def method(self, *args, **kwargs):
        return getattr(self._untyped_storage, name)(*args, **kwargs)

    method.__name__, method.__doc__ = name, getattr(UntypedStorage, name).__doc__
    return deprecated(method)


def wrapped(name):
    """The same, for one that returns a storage: as elements of the same dtype."""

    def method(self, *args, **kwargs):
        return self._new_wrapped_storage(getattr(self._untyped_storage, name)(*args, **kwargs))

    method.__name__, method.__doc__ = name, getattr(UntypedStorage, name).__doc__
    return deprecated(method)


def casting(name, dtype):
    def method(self):
        return self._to(dtype)

    method.__name__, method.__doc__ = name, f"A storage with the elements as {dtype}."
    return method


# --------------------------------------------------------------------------------------------------- TypedStorage

_WAYS_TO_MAKE_ONE = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)"
)


class TypedStorage:
    """A storage whose bytes are read as elements of one dtype: the older interface, kept for old code.

    TypedStorage(size or sequence, dtype=, device=) has new memory, TypedStorage(wrap_storage=, dtype=) that of an UntypedStorage.
    What a program may call warns, once a process.
    """

    is_sparse = False
    _fake_device = None

    def __init__(self, *args, device=None, dtype=None, wrap_storage=None, _internal=False):
        if not _internal:
            _warn_typed_storage_removal()
        if wrap_storage is None:
            self.dtype = dtype or scalar_type.get_default_dtype()
            self._untyped_storage = _new_bytes(args, self.dtype, Device("cpu" if device is None else device))
        else:
            _check_wrapped(args, device, dtype, wrap_storage)
            self.dtype, self._untyped_storage = dtype, wrap_storage

    @property
    def _dtype(self):
        return self.dtype

    def _tensor(self):
        """A tensor over all elements."""
        return elements_of(self._untyped_storage._impl, self.dtype)

    def _new_wrapped_storage(self, storage):
        return TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)

    @deprecated
    def untyped(self):
        """The UntypedStorage behind it."""
        return self._untyped_storage

    # ------------------------------------------------------------------------------------------------ elements

    def _size(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def _nbytes(self):
        return self._untyped_storage.nbytes()

    def _element_size(self):
        return self.dtype.itemsize

    size, __len__, nbytes, element_size = map(deprecated, (_size, _size, _nbytes, _element_size))

    def _getitem(self, index):
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        return self._tensor()[self._maybe_wrap_index(index)].item()

    def _maybe_wrap_index(self, index, is_stop=False):
        """An index counted from the beginning. Raises IndexError if it is out of range."""
        size = self._size()
        if index is None:
            return size if is_stop else 0
        if type(index) is not int:
            raise TypeError(f"can't index a {type(self)} with {type(index)}")
        if index > size - (not is_stop) or index < -size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return index if is_stop and index > 0 else index % size

    def _setitem(self, index, value):
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._tensor()[index] = value

    __getitem__, __setitem__ = deprecated(_getitem), deprecated(_setitem)

    @deprecated
    def __iter__(self):
        return iter([self._getitem(i) for i in range(self._size())])

    @deprecated
    def tolist(self):
        """The elements, as a list of numbers."""
        return list(self)

    @deprecated
    def fill_(self, value):
        """Set every element."""
        self._setitem(slice(0, self._size()), value)
        return self

    @deprecated
    def copy_(self, source, non_blocking=None):
        """Copy the bytes of another storage of the same size. Raises RuntimeError for another size."""
        self._untyped_storage.copy_(getattr(source, "_untyped_storage", source), non_blocking)
        return self

    @deprecated
    def __str__(self):
        facts = f"(dtype={self.dtype}, device={self._untyped_storage.device})"
        return f"{_rows(self)}\n[torch.storage.TypedStorage{facts} of size {self._size()}]"

    __repr__ = __str__

    @deprecated
    def __sizeof__(self):
        return object.__sizeof__(self) + self._nbytes()

    # -------------------------------------------------------------------------------------------------- copies

    clone, __copy__ = wrapped("clone"), wrapped("__copy__")

    def _deepcopy(self, memo):
        return self._new_wrapped_storage(copy.deepcopy(self._untyped_storage, memo))

    __deepcopy__ = deprecated(_deepcopy)

    def __reduce__(self):
        """With its bytes, as if nothing else in the pickle had them: two views pickled together are apart afterwards.

        `save` sees to it that they are not, and so does `copy.deepcopy`. In PyTorch: the bytes of a file that `save` writes.
        """
        rebuild, parts = self._untyped_storage._impl.__reduce__()
        return (_typed_over, (rebuild, parts, self.dtype))

    def _to(self, dtype):
        if not isinstance(dtype, scalar_type.dtype):
            raise TypeError(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
        return _apart(self._tensor().to(dtype)._typed_storage(), self._untyped_storage)

    @deprecated
    def type(self, dtype=None, non_blocking=False):
        """The name of its class, such as "torch.FloatStorage"; or a storage of another class with a copy of the bytes."""
        if dtype is not None:
            return self._untyped_storage.type(dtype, non_blocking)
        legacy = self._get_legacy_storage_class()
        return "torch.storage.TypedStorage" if legacy is None else f"{_torch_module(legacy)}.{legacy.__name__}"

    def _get_legacy_storage_class(self):
        """FloatStorage, for float32 on the CPU; None if there is no such class."""
        of_device = {"cpu": legacy_classes, "cuda": legacy_cuda_classes}.get(self.device.type, {})
        return of_device.get(CLASS_NAMES.get(self.dtype))

    def _pickle_storage_type(self):
        """The name of the class that stands for this storage in a checkpoint: "FloatStorage"."""
        if self.dtype not in CLASS_NAMES:
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return CLASS_NAMES[self.dtype]

    pickle_storage_type = deprecated(_pickle_storage_type)

    # ------------------------------------------------------------------------------------------ devices, memory

    device, is_cuda, is_hpu, filename = (
        property(deprecated(lambda self, name=name: getattr(self._untyped_storage, name)))
        for name in ("device", "is_cuda", "is_hpu", "filename")
    )
    get_device, is_pinned, resizable = of_the_bytes("get_device"), of_the_bytes("is_pinned"), of_the_bytes("resizable")
    cpu, cuda, hpu, pin_memory = wrapped("cpu"), wrapped("cuda"), wrapped("hpu"), wrapped("pin_memory")

    @deprecated
    def to(self, *, device, non_blocking=False):
        """The same elements on another device."""
        return self._new_wrapped_storage(self._untyped_storage.to(device=device, non_blocking=non_blocking))

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def _data_ptr(self):
        return self._untyped_storage.data_ptr()

    data_ptr = deprecated(_data_ptr)

    def _resize_(self, size):
        self._untyped_storage.resize_(size * self._element_size())

    resize_ = deprecated(_resize_)

    def _is_shared(self):
        return self._untyped_storage.is_shared()

    is_shared = deprecated(_is_shared)

    def _share_memory_(self):
        self._untyped_storage.share_memory_()
        return self

    share_memory_ = deprecated(_share_memory_)

    def _new_shared(self, size, *, device=None):
        """A storage of `size` elements of the same dtype in shared memory."""
        nbytes = size * self._element_size()
        return self._new_wrapped_storage(UntypedStorage._new_shared(nbytes, device=device or "cpu"))

    def _share_fd_cpu_(self):
        descriptor, nbytes = self._untyped_storage._share_fd_cpu_()
        return descriptor, nbytes // self._element_size()

    def _share_filename_cpu_(self):
        manager, name, nbytes = self._untyped_storage._share_filename_cpu_()
        return manager, name, nbytes // self._element_size()

    def _shared_decref(self):
        self._untyped_storage._shared_decref()
        return self

    # ------------------------------------------------------------------------------------------ files, buffers

    @classmethod
    @deprecated
    def from_buffer(cls, *args, **kwargs):
        """A storage with a copy of elements that lie in a bytes-like object: see `UntypedStorage.from_buffer`."""
        return cls._from_buffer(*args, **kwargs)

    @classmethod
    def _from_buffer(cls, *args, dtype=None, device=None, **kwargs):
        if cls is not TypedStorage:
            for name, given in (("dtype", dtype is not None or len(args) == 5), ("device", device is not None)):
                if given:
                    raise RuntimeError(
                        f"from_buffer: '{name}' can only be specified in UntypedStorage.from_buffer and "
                        "TypedStorage.from_buffer"
                    )
            dtype = cls.dtype
        dtype = scalar_type.get_default_dtype() if dtype is None else dtype
        if device is not None and Device(device).type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {Device(device).type}")
        storage = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    @classmethod
    @deprecated
    def from_file(cls, filename, shared, size):
        """A storage of the first `size` elements of a file, mapped; for FloatStorage and the like."""
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        return cls(wrap_storage=UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize))


_CASTS = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "bfloat16": "bfloat16",
    "complex_double": "complex128",
    "complex_float": "complex64",
    "float8_e5m2": "float8_e5m2",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
}
for _name, _dtype in _CASTS.items():
    _cast = casting(_name, getattr(scalar_type, _dtype))
    setattr(_StorageBase, _name, _cast)
    setattr(TypedStorage, _name, deprecated(_cast))

# What concerns the bytes and warns of nothing.
for _name in ("_weak_ref", "_write_file", "_set_from_file", "_set_cdata", "_share_cuda_", "_shared_incref"):

    def _method(self, *args, _name=_name, **kwargs):
        return getattr(self._untyped_storage, _name)(*args, **kwargs)

    setattr(TypedStorage, _name, _method)
for _name in ("_free_weak_ref", "_expired", "_new_shared_cuda"):
    setattr(TypedStorage, _name, staticmethod(getattr(UntypedStorage, _name)))
TypedStorage._release_ipc_counter = staticmethod(UntypedStorage._release_ipc_counter_cuda)


def _check_wrapped(args, device, dtype, wrap_storage):
    """Raises RuntimeError or TypeError for what goes not together with `wrap_storage`."""
    if args:
        raise RuntimeError(f"{_WAYS_TO_MAKE_ONE}\nNo positional arguments should be given when using 'wrap_storage'")
    if dtype is None:
        raise RuntimeError(f"{_WAYS_TO_MAKE_ONE}\nArgument 'dtype' must be specified")
    if not isinstance(dtype, scalar_type.dtype):
        raise TypeError(f"{_WAYS_TO_MAKE_ONE}\nArgument 'dtype' must be torch.dtype, not {type(dtype)}")
    if device is not None:
        raise RuntimeError(
            f"{_WAYS_TO_MAKE_ONE}\nArgument 'device' should not be specified when 'wrap_storage' is given"
        )
    if not isinstance(wrap_storage, UntypedStorage):
        raise TypeError(
            f"{_WAYS_TO_MAKE_ONE}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
        )


def _new_bytes(args, dtype, device):
    """The UntypedStorage of TypedStorage(size) or TypedStorage(sequence)."""
    if len(args) > 1:
        raise RuntimeError(f"{_WAYS_TO_MAKE_ONE}\nToo many positional arguments")
    if not args or _is_int(args[0]):
        return UntypedStorage(int(args[0]) * dtype.itemsize if args else 0, device=device)
    if isinstance(args[0], collections.abc.Sequence):
        return new_tensor(args[0], dtype=dtype, device=device).untyped_storage()
    raise TypeError(f"{_WAYS_TO_MAKE_ONE}\nArgument type not recognized: {type(args[0])}")


def _is_int(value):
    return isinstance(value, (int, np.integer))


def _apart(storage, other):
    """`storage`, or a copy if it is the memory of the UntypedStorage `other`."""
    return storage.clone() if storage._data_ptr() == other.data_ptr() else storage


def _rows(storage):
    """The elements as a repr shows them, one a line."""
    untyped_storage = getattr(storage, "_untyped_storage", storage)
    return "..." if untyped_storage.device.type == "meta" else " " + "\n ".join(map(str, storage))


# ------------------------------------------------------------------------------------- FloatStorage, LongStorage …

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
    """`isinstance(storage, FloatStorage)` asks a TypedStorage for its dtype and device: no object is of the class
    itself.
    """

    def __instancecheck__(cls, instance):
        return (
            type(instance) is TypedStorage
            and instance.dtype is getattr(cls, "dtype", None)
            and instance._untyped_storage.device.type == _device_of_class(cls)
        )


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """`FloatStorage`, `LongStorage` …: called, they make a TypedStorage."""

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if not _internal:
            _warn_typed_storage_removal()
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        _check_legacy(cls, args, wrap_storage, dtype, device)
        if wrap_storage is None:
            return TypedStorage(*args, dtype=cls.dtype, device=_device_of_class(cls), _internal=True)
        return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype, _internal=True)

    @classmethod
    def _new_shared(cls, size):
        """A storage of `size` elements in shared memory."""
        return cls(wrap_storage=UntypedStorage._new_shared(size * cls.dtype.itemsize))

    @classmethod
    def _new_shared_filename(cls, manager, obj, size):
        return cls(wrap_storage=UntypedStorage._new_shared_filename_cpu(manager, obj, size * cls.dtype.itemsize))


def _check_legacy(cls, args, wrap_storage, dtype, device):
    """Raises RuntimeError or TypeError for what FloatStorage(...) does not take."""
    ways = (
        f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n"
        " * no arguments\n * (int size)\n * (Sequence data)\n * (*, UntypedStorage wrap_storage)"
    )
    for name, given in (("device", device), ("dtype", dtype)):
        if given is not None:
            raise RuntimeError(f"{ways}\nKeyword argument '{name}' cannot be specified")
    if wrap_storage is None:
        if len(args) > 1:
            raise RuntimeError(f"{ways}\nToo many positional arguments")
        if args and not _is_int(args[0]) and not isinstance(args[0], collections.abc.Sequence):
            raise TypeError(f"{ways}\nArgument type not recognized: {type(args[0])}")
        return
    if args:
        raise RuntimeError(f"{ways}\nNo positional arguments should be given when using 'wrap_storage'")
    if not isinstance(wrap_storage, UntypedStorage):
        raise TypeError(f"{ways}\nArgument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
    if wrap_storage.device.type != _device_of_class(cls):
        raise RuntimeError(
            f"{ways}\nDevice of 'wrap_storage' must be {_device_of_class(cls)}, but got {wrap_storage.device.type}"
        )


def _device_of_class(cls):
    return _get_device_from_module(cls.__module__)


def _get_device_from_module(module):
    last_part = module.rpartition(".")[2]
    return last_part if last_part in ("cuda", "hpu") else "cpu"


def _legacy_classes_of(module):
    """FloatStorage, LongStorage … by name, in a module."""
    return {
        name: _LegacyStorageMeta(name, (_LegacyStorage,), {"dtype": dtype, "_dtype": dtype, "__module__": module})
        for dtype, name in CLASS_NAMES.items()
    }


legacy_classes, legacy_cuda_classes = _legacy_classes_of("readtorch"), _legacy_classes_of("readtorch.cuda")
_storage_classes = {UntypedStorage, TypedStorage, *legacy_classes.values(), *legacy_cuda_classes.values()}


def _torch_module(cls):
    return "torch" + cls.__module__.removeprefix("readtorch").removeprefix("torch")


def _class_of_name(name):
    """The class of storages with a full name such as "torch.FloatStorage"."""
    for cls in _storage_classes:
        if f"{_torch_module(cls)}.{cls.__name__}" == name or name == f"torch.{cls.__name__}" == "torch.UntypedStorage":
            return cls
    raise AttributeError(f"module 'torch' has no attribute '{name.removeprefix('torch.')}'")


@functools.cache
def _dtype_to_storage_type_map():
    return CLASS_NAMES


@functools.cache
def _storage_type_to_dtype_map():
    return {name: dtype for dtype, name in CLASS_NAMES.items()}


def _get_dtype_from_pickle_storage_type(pickle_storage_type):
    """ "FloatStorage" -> float32. Raises KeyError for a name that is not known."""
    try:
        return _storage_type_to_dtype_map()[pickle_storage_type]
    except KeyError as error:
        raise KeyError(f'pickle storage type "{pickle_storage_type}" is not recognized') from error


# ------------------------------------------------------------------------------------------------- what pickles name


def _from_bytes(data):
    return untyped(StorageImpl(np.frombuffer(data, np.uint8).copy()))


def _typed_over(rebuild, parts, dtype):
    return TypedStorage(wrap_storage=untyped(rebuild(*parts)), dtype=dtype, _internal=True)
