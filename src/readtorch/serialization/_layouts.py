"""How layouts are pickled: by name.

In PyTorch: `_get_layout` of `torch/serialization.py`.
"""

import copyreg

from readtorch.c10.layout import layout, sparse_coo, strided


def _get_layout(name):
    """The layout that is called "torch.strided". Raises KeyError for an unknown name."""
    return {str(known): known for known in (strided, sparse_coo)}[name]


copyreg.pickle(layout, lambda obj: (_get_layout, (str(obj),)))
