"""Arrays as a kernel sees them: every index is checked, and a watched array tells who used which address.

An index below 0 is an error as well. (Compiled by numba it would count from the end, as in Python; in CUDA C
it is out of bounds. No kernel here means it.)
"""

import numpy as np

from .errors import OutOfBounds, kernel_frame, place_of

STATIC_SHARED = 48 * 1024  # bytes that the shared arrays of a kernel may have
LARGEST_SHARED = 227 * 1024  # with dynamic shared memory, on the larger chips


class Array:
    """A checked array of n dimensions. `space` is global, shared, local or constant."""

    __slots__ = ("data", "name", "space", "launch")

    def __init__(self, data, name, space, launch):
        self.data, self.name, self.space, self.launch = data, name, space, launch

    shape = property(lambda self: self.data.shape)
    strides = property(lambda self: self.data.strides)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    itemsize = property(lambda self: self.data.itemsize)
    nbytes = property(lambda self: self.data.nbytes)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        try:
            if min(index) < 0:
                self.refuse(index)
            found = self.data[index]
        except (TypeError, IndexError):
            found = self.data[self.checked(index)]
        return self.part(found) if found.__class__ is np.ndarray else found

    def __setitem__(self, index, value):
        try:
            if min(index) < 0:
                self.refuse(index)
            self.data[index] = value
        except (TypeError, IndexError, OverflowError):
            self.data[self.checked(index)] = self.number(value)

    def part(self, view):
        """A row or a slice of this array."""
        return self.launch.wrap(view, self.name, self.space)

    def number(self, value):
        """`value` as an element; integers wrap around as in a register."""
        from .arithmetic import wrapped

        return value.data if isinstance(value, Array) else wrapped(self.data.dtype, value)

    def checked(self, index):
        """The index as a tuple of Python's numbers and slices; raises OutOfBounds."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) > self.ndim:
            raise OutOfBounds(f"{self.name} has {self.ndim} dimensions, and {len(index)} indices were given")
        for i, length in zip(index, self.shape):
            if not isinstance(i, slice) and not 0 <= i < length:
                self.refuse(index)
        return tuple(i if isinstance(i, slice) else int(i) for i in index)

    def refuse(self, index):
        index = tuple(i if isinstance(i, slice) else int(i) for i in index)
        shown = ", ".join("…:…" if isinstance(i, slice) else str(i) for i in index)
        raise OutOfBounds(
            f"{self.name}[{shown}] is out of bounds: {self.name} has shape {self.shape}. {self.launch.whereabouts()}"
        )

    def update(self, index, function):
        """What an atomic operation does: replace an element by a function of it; returns the old one."""
        index = self.checked(index)
        old = self.data[index]
        self.data[index] = function(old)
        return old


class Vector(Array):
    """One dimension, the common case: nothing but the test for a negative index comes before NumPy."""

    __slots__ = ()

    def __getitem__(self, i):
        try:
            if i < 0:
                self.refuse((i,))
            return self.data[i]
        except (TypeError, IndexError):
            return Array.__getitem__(self, i if isinstance(i, tuple) else (i,))

    def __setitem__(self, i, value):
        try:
            if i < 0:
                self.refuse((i,))
            self.data[i] = value
        except (TypeError, IndexError, OverflowError):
            Array.__setitem__(self, i if isinstance(i, tuple) else (i,), value)


class Matrix(Array):
    """Two dimensions, likewise. Two steps of one index each are faster than one with a tuple."""

    __slots__ = ("rows",)

    def __init__(self, data, name, space, launch):
        super().__init__(data, name, space, launch)
        self.rows = list(data)

    def __getitem__(self, index):
        try:
            i, j = index
            if i < 0 or j < 0:
                self.refuse(index)
            return self.rows[i][j]
        except (TypeError, ValueError, IndexError):
            return Array.__getitem__(self, index if isinstance(index, tuple) else (index,))

    def __setitem__(self, index, value):
        try:
            i, j = index
            if i < 0 or j < 0:
                self.refuse(index)
            self.rows[i][j] = value
        except (TypeError, ValueError, IndexError, OverflowError):
            Array.__setitem__(self, index if isinstance(index, tuple) else (index,), value)


KINDS = {1: Vector, 2: Matrix}  # by their dimensions


class WatchedArray(Array):
    """Tells the launch's watchers of each access: read, write or atomic, where in memory, where in the
    source.
    """

    __slots__ = ("address", "steps")

    def __init__(self, data, name, space, launch):
        super().__init__(data, name, space, launch)
        self.address = data.__array_interface__["data"][0]
        self.steps = tuple(zip(data.shape, data.strides))

    def locate(self, index):
        """(index as a tuple, address of the element), checked."""
        index = index if isinstance(index, tuple) else (index,)
        address = self.address
        for i, (length, stride) in zip(index, self.steps):
            if not 0 <= i < length:
                self.refuse(index)
            address += int(i) * stride
        return self.checked(index) if len(index) > len(self.steps) else index, address

    def __getitem__(self, index):
        if self.is_part(index):
            return self.part(self.data[self.checked(index)])
        index, address = self.locate(index)
        self.launch.watched("read", self, index, address, place_of(kernel_frame()))
        return self.data[index]

    def __setitem__(self, index, value):
        if self.is_part(index):
            self.fill(self.part(self.data[self.checked(index)]), self.number(value))
            return
        index, address = self.locate(index)
        self.launch.watched("write", self, index, address, place_of(kernel_frame()))
        self.data[index] = self.number(value)

    def update(self, index, function):
        location, address = self.locate(index)
        self.launch.watched("atomic", self, location, address, place_of(kernel_frame()))
        return Array.update(self, index, function)

    @staticmethod
    def fill(part, value):
        """Write a slice: one element after the other, as the compiled loop does."""
        for index, element in np.ndenumerate(np.broadcast_to(value, part.shape)):
            part[index] = element

    def is_part(self, index):
        """Is it a row or a slice, rather than an element?"""
        index = index if isinstance(index, tuple) else (index,)
        return len(index) < len(self.steps) or slice in map(type, index)


class SharedMemory:
    """The shared memory of one block: side by side, an array for each place in the source that asks for one."""

    def __init__(self, dynamic):
        self.window = np.empty(LARGEST_SHARED, np.uint8)
        self.address = self.window.__array_interface__["data"][0]
        self.arrays = {}  # as the kernel sees them, by the place that asked
        self.dynamic = dynamic  # bytes given with the launch
        self.static = 0  # bytes taken so far

    def array(self, shape, dtype):
        """New shared memory. Length 0 means the dynamic part: all of it, the same for all who ask so."""
        return self.dynamic_array(dtype) if shape == (0,) else self.new(shape, dtype)

    def new(self, shape, dtype):
        begin = -(-self.static // 16) * 16
        self.static = begin + int(np.prod(shape)) * dtype.itemsize
        if self.static > STATIC_SHARED:
            raise MemoryError(f"shared arrays of {self.static} bytes: a kernel may have {STATIC_SHARED}")
        return spoiled(self.window[begin : self.static]).view(dtype).reshape(shape)

    def dynamic_array(self, dtype):
        end = LARGEST_SHARED
        return self.window[end - self.dynamic : end].view(dtype)


def spoiled(memory):
    """Nobody may count on what lies in fresh memory: floats are nan there, integers -1."""
    memory[...] = 0xFF
    return memory


def shape_of(shape):
    return tuple(map(int, shape)) if isinstance(shape, tuple) else (int(shape),)


def dtype_of(dtype):
    """A NumPy dtype from one of NumPy's or of numba's names for it."""
    name = str(dtype)
    return np.dtype(name if type(dtype).__module__.startswith(("numba", "numba_cuda")) else dtype)
