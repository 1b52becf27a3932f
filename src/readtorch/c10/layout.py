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
