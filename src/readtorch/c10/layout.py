"""Layouts: what a tensor stores, elements at strides or indices and values.

In PyTorch: `c10/core/Layout.h`.
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


strided = layout("strided")
sparse_coo = layout("sparse_coo")
