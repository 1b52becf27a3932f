"""The bytes behind tensors.

In PyTorch: `c10/core/StorageImpl.h`. Explained in the chapter "Tensor and Storage".
"""

import mmap
import weakref

import numpy as np

from .device import cpu
from .dispatch_key import CPU_TENSOR


class StorageImpl:
    """A run of bytes on a device. Tensors that share memory share one StorageImpl."""

    __slots__ = ("buffer", "device", "resizable", "allocator", "_pyobj", "__weakref__")
    keys = CPU_TENSOR  # the dispatch keys of tensors over these bytes

    def __init__(self, buffer, device=cpu, resizable=True):
        self.buffer = buffer  # one-dimensional uint8 array over all bytes
        self.device = device
        self.resizable = resizable  # False when others use the memory, too, as after from_numpy or numpy()
        self.allocator = None  # whose memory other processes see; None for memory of this process alone
        self._pyobj = None  # the UntypedStorage that Python sees, or a weak reference to it, made at its first use

    def __del__(
        self, ref=weakref.ref
    ):  # bound early: when the interpreter ends, modules are emptied before objects die
        """Note [ Who keeps a storage's object ]

        `t.untyped_storage()` is the same object each time, and a weak reference to it lives as long as the memory. So
        the StorageImpl keeps its UntypedStorage, which refers to it weakly. When the last tensor is gone while somebody
        holds the UntypedStorage, it is the other way round: the UntypedStorage keeps the StorageImpl from then on.
        In PyTorch: `THPStorage_tryPreserve` in `torch/csrc/Storage.cpp`, which turns them round as often as it takes.
        """
        wrapper = getattr(self, "_pyobj", None)
        if wrapper is None or isinstance(wrapper, ref):
            return
        self._pyobj = ref(wrapper)
        wrapper._impl = self

    @property
    def nbytes(self):
        return self.buffer.nbytes

    def data_ptr(self):
        """The address of the first byte."""
        return address_of(self.buffer) if self.buffer.nbytes else 0

    def host_array(self, array):
        """The elements of `array`, which looks at these bytes, where the host can read them: itself, or a copy."""
        return array

    def host_bytes(self):
        """The bytes where the host can read them."""
        return self.buffer

    def as_strided(self, numpy_dtype, sizes, strides, offset):
        """A NumPy array over these bytes; strides and offset count elements. Raises ValueError if it leaves them."""
        item = numpy_dtype.itemsize
        return array_at(self.buffer, numpy_dtype, sizes, [s * item for s in strides], offset * item)

    def resize(self, nbytes):
        """Make room for `nbytes`, keeping what is there. Arrays made before keep the old memory.

        Raises RuntimeError if others use the memory, since they would not see the new one.
        """
        if not self.resizable:
            raise RuntimeError("Trying to resize storage that is not resizable")
        grown = np.empty(nbytes, np.uint8)
        kept = min(nbytes, self.buffer.nbytes)
        grown[:kept] = self.buffer[:kept]
        self.buffer = grown

    def copy(self):
        """A StorageImpl of its own with the same bytes, on the same device."""
        return StorageImpl(self.buffer.copy())

    def __reduce__(self):
        return (_rebuild, (self.buffer.tobytes(),))


class ReturnableStorageImpl(StorageImpl):
    """Bytes whose memory goes back to the system with `resize(0)` and comes again with `resize(n)`.

    Note [ Memory that comes back to the same place ]

    In PyTorch a tensor finds its bytes by way of the storage each time, so a storage that was emptied and filled again serves
    all tensors that look at it, also those that a graph has saved. Ours keep an array, which knows an address. So these bytes
    are pages of their own, mapped at one address for good: emptied, they are pages that the system has taken back
    (`MADV_DONTNEED`) and that read as zeros until somebody writes to them. `fully_shard` frees whole parameters in this way.
    """

    __slots__ = ("pages",)

    def __init__(self, nbytes, device=cpu):
        self.pages = mmap.mmap(-1, max(nbytes, 1))
        super().__init__(np.frombuffer(self.pages, np.uint8)[:nbytes], device)

    def resize(self, nbytes):
        whole = np.frombuffer(self.pages, np.uint8)
        if nbytes > whole.nbytes:
            raise RuntimeError("Trying to resize storage that is not resizable")
        if nbytes == 0 and hasattr(mmap, "MADV_DONTNEED"):
            self.pages.madvise(mmap.MADV_DONTNEED)
        self.buffer = whole[:nbytes]


def _rebuild(data):
    """A StorageImpl from its pickled bytes."""
    return StorageImpl(np.frombuffer(bytearray(data), np.uint8))


def address_of(array):
    return array.__array_interface__["data"][0]


def owner_of(array):
    """The array that owns the memory `array` looks at."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return owner_of(array.base.buffer) if type(array.base) is _Place else array


def array_at(buffer, numpy_dtype, shape, strides, start):
    """The bytes of `buffer` from `start` on as an array; strides count bytes, too.

    Raises ValueError if the elements do not lie within the buffer: Note [ Where no elements lie ].
    """
    if 0 in shape:
        return np.asarray(_Place(buffer, numpy_dtype, shape, strides, start)).view(numpy_dtype)
    return np.ndarray(shape, numpy_dtype, buffer, start, strides)


class _Place:
    """Note [ Where no elements lie ]

    A view without elements has strides and an offset like any other, and its offset may be behind the end of the storage:
    `torch.zeros(2, 3)[2:, 3:].storage_offset()` is 9. NumPy has its own opinion of such arrays. A new one has strides of 0,
    an empty slice begins where the whole array does, and none may begin behind the end of its buffer. So the arrays of
    empty views are made by `array_at`, which gives NumPy an address (this object is NumPy's array interface to it), and
    kernels that make views take `strided(self)` for `self._array` if it is empty.

    How `strides_of` tells a new array's strides of 0 from those of an expanded view: `is_placed`.
    """

    def __init__(self, buffer, numpy_dtype, shape, strides, start):
        self.buffer = buffer  # keeps the address
        self.__array_interface__ = {
            "data": (address_of(buffer) + start, False),
            "shape": tuple(shape),
            "strides": tuple(strides),
            "typestr": f"|V{numpy_dtype.itemsize}",
            "version": 3,
        }


def is_placed(array):
    """Whether strides and address of an empty array are those of a tensor: Note [ Where no elements lie ]."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return type(array.base) is _Place


def storage_of(array):
    """A new StorageImpl over all the memory of the array that `array` looks at."""
    return storage_over(owner_of(array))


def storage_over(array):
    """A new StorageImpl from the first byte of `array` to its last."""
    contiguous = array.flags.c_contiguous or array.flags.f_contiguous
    return StorageImpl(np.ndarray((array.nbytes,), np.uint8, array) if contiguous else np.asarray(_Span(array)))


class _Span:
    """The bytes from an array's first element to its last, whatever lies between, as NumPy's array interface."""

    def __init__(self, array):
        self.array = array  # keeps the memory alive
        last = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides))
        length = last + array.itemsize if array.size else 0
        self.__array_interface__ = {
            "data": (address_of(array), not array.flags.writeable),
            "shape": (length,),
            "typestr": "|u1",
            "version": 3,
        }
