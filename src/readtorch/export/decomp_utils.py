"""The table of decompositions that `run_decompositions` takes. In PyTorch: `torch/export/decomp_utils.py`."""

from readtorch._decomp import core_aten_decompositions
from readtorch._ops import ops

__all__ = ["CustomDecompTable"]

aten = ops.aten

# What has a decomposition and is core ATen, or is kept whole for the sake of those who run exported programs.
PRESERVED_ATEN_OPS = (
    *(aten.addmm.default, aten.addmv.default, aten.native_group_norm.default, aten.native_layer_norm.default),
    *(aten._native_batch_norm_legit.no_stats, aten._native_batch_norm_legit_functional.default),
    *(aten._native_batch_norm_legit_no_training.default, aten.var_mean.correction, aten._convolution.default),
    *(aten.upsample_bilinear2d.vec, aten.upsample_nearest2d.vec),
)


class CustomDecompTable(dict):
    """operator -> a function that is traced in its place. `del table[op]` keeps an operator whole; `table[op] = f` puts `f` in its place.

    In PyTorch: operators of libraries that are loaded later come in as well.
    """

    def __init__(self):
        super().__init__({k: v for k, v in core_aten_decompositions().items() if k not in PRESERVED_ATEN_OPS})

    def copy(self):
        new = CustomDecompTable()
        dict.clear(new)
        dict.update(new, self)
        return new

    def materialize(self):
        """A plain dict."""
        return dict(self)
