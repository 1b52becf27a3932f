"""How layouts are pickled: by name.

In PyTorch: `_get_layout` of `torch/serialization.py`.
"""

import copyreg

from readtorch.c10.layout import layout, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided


def _get_layout(name):
    """The layout that is called "torch.strided". Raises KeyError for an unknown name."""
    return {str(known): known for known in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)}[name]


copyreg.pickle(layout, lambda obj: (_get_layout, (str(obj),)))
