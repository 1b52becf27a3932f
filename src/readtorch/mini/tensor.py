"""Written in the chapter "Tensor and Storage": its cells are this file, put together by `tools/mini.py`."""

import math
from itertools import zip_longest

import numpy as np


class Storage:
    """Bytes. What they mean is for a tensor to say."""

    def __init__(self, nbytes):
        self.bytes = np.zeros(nbytes, np.uint8)


class Tensor:
    """A type, a shape, strides and an offset over a storage."""

    def __init__(self, storage, dtype, shape, strides, offset=0):
        self.storage, self.dtype = storage, np.dtype(dtype)
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.offset = offset

    def places(self):
        """Where in the storage each element lies."""
        where = np.array(self.offset)
        for size, stride in zip(self.shape, self.strides):
            where = where[..., None] + np.arange(size) * stride
        return where

    def read(self):
        elements = self.storage.bytes.view(self.dtype)
        return elements[self.places()]

    def write(self, values):
        elements = self.storage.bytes.view(self.dtype)
        elements[self.places()] = values
        return self

    @classmethod
    def empty(cls, shape, dtype=np.float32):
        """A new tensor over a new storage."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        strides = contiguous_strides(shape)
        return cls(Storage(nbytes), dtype, shape, strides)

    @classmethod
    def of(cls, data, dtype=None):
        """A copy of numbers in lists or in an array."""
        array = np.asarray(data, dtype)
        if array.dtype == float and not hasattr(data, "dtype"):
            array = array.astype(dtype or np.float32)
        return cls.empty(array.shape, array.dtype).write(array)

    def tolist(self):
        return self.read().tolist()

    def __repr__(self):
        return (f"{self.tolist()}, shape {self.shape}, "
                f"strides {self.strides}, offset {self.offset}")

    def as_strided(self, shape, strides, offset=None):
        """Other numbers over the same storage: any view."""
        offset = self.offset if offset is None else offset
        numbers = [offset, *shape, *strides]
        if len(shape) != len(strides) or min(numbers) < 0:
            raise RuntimeError(f"no tensor has {numbers}")
        steps = [(n - 1) * s for n, s in zip(shape, strides)]
        needed = (offset + sum(steps) + 1) * self.dtype.itemsize
        if 0 not in shape and needed > len(self.storage.bytes):
            raise RuntimeError(f"needs {needed} bytes of storage")
        return type(self)(self.storage, self.dtype,
                          shape, strides, offset)

    def permute(self, *dims):
        if sorted(dims) != list(range(len(self.shape))):
            raise RuntimeError(f"{dims} do not order dimensions")
        return self.as_strided([self.shape[d] for d in dims],
                               [self.strides[d] for d in dims])

    def transpose(self, a, b):
        dims = list(range(len(self.shape)))
        dims[a], dims[b] = dims[b], dims[a]
        return self.permute(*dims)

    def select(self, dim, index):
        shape, strides = list(self.shape), list(self.strides)
        size, stride = shape.pop(dim), strides.pop(dim)
        if not -size <= index < size:
            raise IndexError(f"{index} in a dimension of {size}")
        offset = self.offset + index % size * stride
        return self.as_strided(shape, strides, offset)

    def narrow(self, dim, start, length, step=1):
        shape, strides = list(self.shape), list(self.strides)
        size = shape[dim]
        if step < 1:
            raise ValueError("step must be greater than zero")
        if length < 0:
            raise RuntimeError(f"{length} elements")
        if not -size <= start <= size:
            raise IndexError(f"start {start} of {size} elements")
        start = start + size if start < 0 else start
        if start + (length - 1) * step >= size:
            raise RuntimeError(f"more than {size} elements")
        offset = self.offset + start * strides[dim]
        shape[dim] = length
        strides[dim] *= step
        return self.as_strided(shape, strides, offset)

    def unfold(self, dim, size, step):
        """Windows of `size`, in a new last dimension."""
        shape, strides = list(self.shape), list(self.strides)
        if size > shape[dim] or step < 1:
            raise RuntimeError(f"windows of {size} do not fit")
        stride = strides[dim]
        shape[dim] = (shape[dim] - size) // step + 1
        strides[dim] *= step
        return self.as_strided([*shape, size], [*strides, stride])

    def __getitem__(self, index):
        view, dim = self, 0
        for i in index if isinstance(index, tuple) else (index,):
            if isinstance(i, slice):
                p = range(view.shape[dim])[i]
                view = view.narrow(dim, p.start, len(p), p.step)
                dim += 1
            else:
                view = view.select(dim, i)
        return view

    def __setitem__(self, index, value):
        is_tensor = isinstance(value, Tensor)
        self[index].write(value.read() if is_tensor else value)

    def view(self, *shape):
        strides = compute_stride(self.shape, self.strides, shape)
        if strides is None:
            raise RuntimeError("view size is not compatible")
        return self.as_strided(shape, strides)

    def is_contiguous(self):
        fresh = contiguous_strides(self.shape)
        steps = zip(self.shape, self.strides, fresh)
        equal = all(n == 1 or a == b for n, a, b in steps)
        return equal or 0 in self.shape

    def clone(self):
        return type(self).of(self.read())

    def contiguous(self):
        return self if self.is_contiguous() else self.clone()

    def reshape(self, *shape):
        strides = compute_stride(self.shape, self.strides, shape)
        copied = self.clone() if strides is None else self
        return copied.view(*shape)

    def expand(self, *shape):
        """A size of 1 becomes any size, with a stride of 0."""
        if infer_size(self.shape, shape) != shape:
            raise RuntimeError(f"{self.shape} is not {shape}")
        new = (0,) * (len(shape) - len(self.shape))
        kept = zip(self.shape, shape[len(new):], self.strides)
        strides = [s if n == m else 0 for n, m, s in kept]
        return self.as_strided(shape, [*new, *strides])

    def __add__(self, b):
        return type(self).of(elementwise(np.add, self, b))

    def __mul__(self, b):
        return type(self).of(elementwise(np.multiply, self, b))

    def __iadd__(self, b):
        return self._update(elementwise(np.add, self, b))

    def __imul__(self, b):
        return self._update(elementwise(np.multiply, self, b))

    def _update(self, values):
        if values.shape != self.shape:
            raise RuntimeError(f"{values.shape} for {self.shape}")
        return self.write(values)


def contiguous_strides(shape):
    """Strides of a fresh tensor, the last dimension fastest."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def chunks(shape, strides):
    """(elements, stride) of each run of dimensions that merge."""
    runs = [(1, strides[-1])]
    for size, stride in zip(reversed(shape), reversed(strides)):
        numel, base = runs[-1]
        if size == 1 or stride == numel * base:
            runs[-1] = numel * size, base
        else:
            runs.append((size, stride))
    return runs


def compute_stride(shape, strides, new):
    """Strides for the sizes `new`; None if there are none."""
    numel = math.prod(shape)
    if math.prod(new) != numel:
        raise RuntimeError(f"shape '{list(new)}' is invalid "
                           f"for input of size {numel}")
    if not shape or not numel:
        same = shape == new
        return strides if same else contiguous_strides(new)
    left, result = list(new), []
    for numel, base in chunks(shape, strides):
        filled = 1
        while left and (filled < numel or left[-1] == 1):
            result.insert(0, filled * base)
            filled *= left.pop()
        if filled != numel:
            return None
    return tuple(result)


def infer_size(a, b):
    """The shape to which two shapes broadcast."""
    sizes = []
    both = zip_longest(reversed(a), reversed(b), fillvalue=1)
    for m, n in both:
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match "
                f"the size of tensor b ({n})")
        sizes.insert(0, n if m == 1 else m)
    return tuple(sizes)


def elementwise(f, a, b):
    """f of the elements of `a` and `b`, lined up: an array."""
    if not isinstance(b, Tensor):
        b = Tensor.of(b, np.result_type(a.dtype, b))
    if a.dtype != b.dtype:
        raise TypeError(f"{a.dtype} and {b.dtype}: not in mini")
    shape = infer_size(a.shape, b.shape)
    return f(a.expand(*shape).read(), b.expand(*shape).read())
