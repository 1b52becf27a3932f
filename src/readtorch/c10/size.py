"""`Size`: what `tensor.shape` is.

In PyTorch: `torch/csrc/Size.cpp`. Explained in the chapter "Tensor and Storage".
"""

import functools
import math
import operator

from .sym_int import SymInt

_INTS = frozenset({int, SymInt})


class Size(tuple):
    """A tuple of ints with `numel()`."""

    __slots__ = ()

    def __new__(cls, data=()):
        items = tuple(data)
        if not _INTS.issuperset(map(type, items)):
            items = tuple([as_int(item, place) for place, item in enumerate(items)])
        return tuple.__new__(cls, items)

    def numel(self):
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return new_size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, count):
        return new_size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size, (tuple(self),))


new_size = functools.partial(tuple.__new__, Size)  # a Size of what is known to be sizes


def as_int(item, place):
    """What stands for an int at that place as one. Raises TypeError for what does not."""
    if type(item) in _INTS:
        return item
    try:
        return operator.index(item)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is '{type(item).__name__}')") from None
