"""`Size`: what `tensor.shape` is.

In PyTorch: `torch/csrc/Size.cpp`. Explained in the chapter "Tensor and Storage".
"""

import math


class Size(tuple):
    """A tuple of ints with `numel()`."""

    __slots__ = ()

    def numel(self):
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self):
        return (Size, (tuple(self),))
