"""Layouts and memory formats: names for how sizes and strides relate.

In PyTorch: `c10/core/Layout.h`, `c10/core/MemoryFormat.h`.
"""


class layout:
    """How elements are stored. readtorch's tensors are `strided`."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


class memory_format:
    """The order in which a dense tensor's dimensions lie in memory."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


strided = layout("strided")
sparse_coo = layout("sparse_coo")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def suggest_memory_format(shape, strides):
    """The format in which an operator should give its result: channels_last if the operand lies so, else contiguous.

    Channels are the fastest dimension, then the last, … up to the first. Sizes of 1 fit anywhere, so that a tensor with
    nothing but channels counts as contiguous.
    """
    if len(shape) not in (4, 5) or 0 in shape or strides[1] == 0:
        return contiguous_format
    least = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[dim] < least or (dim == 0 and least == strides[1]):
            return contiguous_format
        least = strides[dim] * shape[dim]
    return channels_last if len(shape) == 4 else channels_last_3d
