"""What stands in the place of a tensor's NumPy array where sizes are left open: sizes, strides and offset as expressions, no elements.

`t._array` of such a tensor is a `SymbolicArray`. Kernels of views and shape rules ask it what they ask an array, `shape`, `strides`,
`size`, and it makes views of itself. What NumPy is asked to do with it, NumPy does with an array of this trace's sizes (`__array__`), which
are settled by guards then.

In PyTorch: `c10/core/SymbolicShapeMeta.h`.
"""

import math
import sys
from contextlib import contextmanager
from functools import cached_property

from .sym_int import is_symbolic
from .torch_dispatch_mode_tls import _TorchDispatchModeKey, mode_tls, set_mode, set_mode_pre_dispatch, unset_mode

PROXY = _TorchDispatchModeKey.PROXY


@contextmanager
def untraced():
    """Inside, arithmetic with sizes is not recorded in a graph."""
    above = set_mode_pre_dispatch(None) if mode_tls.pre_dispatch is not None else None
    below = unset_mode(PROXY)
    try:
        yield
    finally:
        if below is not None:
            set_mode(below, PROXY)
        if above is not None:
            set_mode_pre_dispatch(above)


class _Flags:
    """NumPy's `array.flags`: what is not asked needs no guard."""

    writeable = True

    def __init__(self, array):
        self.array = array

    @cached_property
    def c_contiguous(self):
        with untraced():
            return _is_contiguous(zip(reversed(self.array.shape), reversed(self.array.steps)))

    @cached_property
    def f_contiguous(self):
        with untraced():
            return _is_contiguous(zip(self.array.shape, self.array.steps))

    @property
    def forc(self):
        return self.c_contiguous or self.f_contiguous


class SymbolicArray:
    """The sizes, strides and offset, counted in elements, of a tensor over `storage`, which has no bytes."""

    def __init__(self, storage, dtype, shape, steps, start):
        self.storage, self.dtype = storage, dtype
        self.shape, self.steps, self.start = tuple(shape), tuple(steps), start

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def itemsize(self):
        return self.dtype.itemsize

    @cached_property
    def size(self):
        with untraced():
            return math.prod(self.shape)

    @cached_property
    def strides(self):
        """In bytes, as NumPy's are."""
        with untraced():
            return tuple([step * self.itemsize for step in self.steps])

    @property
    def nbytes(self):
        with untraced():
            return self.size * self.itemsize

    @property
    def base(self):
        return self.storage.buffer

    @cached_property
    def flags(self):
        return _Flags(self)

    def is_contiguous_or_false(self):
        """Whether the elements lie row by row, where that can be seen without a guard."""
        with untraced():
            return all(map(is_same, self.steps, row_major(self.shape)))

    def __len__(self):
        return int(self.shape[0])

    def __array__(self, dtype=None, copy=None):
        """An array of this trace's sizes: from here on they are fixed."""
        shape, steps = map(int, self.shape), map(int, self.steps)
        return self.storage.as_strided(self.dtype, tuple(shape), tuple(steps), int(self.start))

    # ------------------------------------------------------------------------------------------------------ views

    def seen(self, shape, steps, start=None):
        return self.storage.as_strided(self.dtype, tuple(shape), tuple(steps), self.start if start is None else start)

    def transpose(self, *dims):
        dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        dims = [int(d) for d in dims] or range(self.ndim)[::-1]
        if sorted(d % self.ndim for d in dims) != list(range(self.ndim)):
            raise ValueError("axes don't match array")
        return self.seen([self.shape[d] for d in dims], [self.steps[d] for d in dims])

    T = property(transpose)

    def swapaxes(self, dim0, dim1):
        for d in (dim0, dim1):
            range(self.ndim)[d]  # IndexError
        dims = list(range(self.ndim))
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
        return self.transpose(dims)

    def reshape(self, *sizes):
        """Of elements that lie row by row. ValueError for others, and where a size is to be inferred."""
        sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        with untraced():
            if not self.flags.c_contiguous or any(n < 0 for n in sizes) or math.prod(sizes) != self.size:
                raise ValueError(f"cannot reshape array of size {self.size} into shape {tuple(sizes)}")
            return self.seen(sizes, row_major(sizes))

    def squeeze(self, dims=None):
        """Without dimensions of size 1: those that are named, or all."""
        dims = (dims,) if isinstance(dims, int) else dims
        dropped = [d for d, n in enumerate(self.shape) if n == 1] if dims is None else [d % self.ndim for d in dims]
        kept = [d for d in range(self.ndim) if d not in dropped]
        return self.seen([self.shape[d] for d in kept], [self.steps[d] for d in kept])

    def view(self, dtype):
        if dtype.itemsize != self.itemsize:
            raise ValueError("an array of open sizes is viewed as a type of the same size alone")
        return type(self)(self.storage, dtype, self.shape, self.steps, self.start)

    def __getitem__(self, index):
        """A view by numbers, slices, None and `...`."""
        index = index if isinstance(index, tuple) else (index,)
        taken = sum(part is not None and part is not Ellipsis for part in index)
        if taken > self.ndim:
            raise IndexError("too many indices for array")
        if Ellipsis not in [part for part in index if part is Ellipsis]:
            index = (*index, Ellipsis)
        shape, steps, start, d = [], [], self.start, 0
        with untraced():
            for part in index:
                if part is None:
                    shape, steps = [*shape, 1], [*steps, 0]
                elif part is Ellipsis:
                    after = d + self.ndim - taken
                    shape, steps, d = [*shape, *self.shape[d:after]], [*steps, *self.steps[d:after]], after
                else:
                    begin, rest = _part_of(part, self.shape[d])
                    start = start + begin * self.steps[d]
                    if rest is not None:
                        shape, steps = [*shape, rest[0]], [*steps, rest[1] * self.steps[d]]
                    d += 1
            return self.seen(shape, steps, start)


def _part_of(part, size):
    """(where a number or a slice begins, (how many elements a slice has, its step), or None for a number)"""
    if not isinstance(part, slice):
        if part >= size or part < -size:
            raise IndexError(f"index {part} is out of bounds for axis with size {size}")
        return (part + size if part < 0 else part), None
    step = 1 if part.step is None else part.step
    begin = _clamped(0 if part.start is None else part.start, size)
    end = size if part.stop is None else _clamped(part.stop, size)
    if begin is end or end <= begin:
        return begin, (0, step)
    return begin, ((end - begin + (step - 1)) // step, step)


def _clamped(place, size):
    """A slice's end within 0 … size."""
    if type(place) is int and place in (0, sys.maxsize):
        return size if place else 0
    if place < 0:
        place = place + size
    return 0 if place < 0 else size if place > size else place


def _is_contiguous(pairs):
    """Whether dimensions (size, stride), the fastest first, lie without gaps. Equal expressions need no guard."""
    step, gap = 1, False
    for size, stride in pairs:
        if not is_same(stride, step) and size != 1 and stride != step:
            gap = True
        step = step * size
    return not gap or step == 0


def is_same(a, b):
    """Whether two sizes are equal for all values of their symbols, as far as can be seen without a guard."""
    a, b = (getattr(n, "node", n) for n in (a, b))
    return a == b if type(a) is type(b) is int else getattr(a, "expr", None) == getattr(b, "expr", 0)


def row_major(sizes):
    """Strides without gaps."""
    steps, step = [], 1
    for size in reversed(sizes):
        steps.append(step)
        step = step * size
    return tuple(reversed(steps))


def needs_symbols(shape, strides, offset):
    return is_symbolic(shape) or is_symbolic(strides) or is_symbolic((offset,))
