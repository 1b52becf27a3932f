"""Layouts: what a tensor stores, elements at strides or indices and values.

In PyTorch: `c10/core/Layout.h`.
"""


class layout:
    """How elements are stored: `strided`, or as indices and values. `jagged` is that of nested tensors. `_mkldnn` is a name to compare
    with, and who asks for a tensor of it is refused.
    """

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name

    def in_words(self):
        """As C++ prints it: Strided, Sparse, SparseCsr …"""
        return self.name.removesuffix("_coo").title().replace("_", "")


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
_mkldnn = layout("_mkldnn")
jagged = layout("jagged")
