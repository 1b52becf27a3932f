"""The table of decompositions that `run_decompositions` takes. In PyTorch: `torch/export/decomp_utils.py`."""

import functools

from readtorch._C import _dispatch_get_registrations_for_dispatch_key
from readtorch._decomp import core_aten_decompositions
from readtorch._ops import OpOverload, ops
from readtorch.aten.tags import Tag

__all__ = ["CustomDecompTable"]

aten = ops.aten

# What has a decomposition and is core ATen, or is kept whole for the sake of those who run exported programs.
PRESERVED_ATEN_OPS = (
    *(aten.addmm.default, aten.addmv.default, aten.native_group_norm.default, aten.native_layer_norm.default),
    *(aten._native_batch_norm_legit.no_stats, aten._native_batch_norm_legit_functional.default),
    *(aten._native_batch_norm_legit_no_training.default, aten.var_mean.correction, aten._convolution.default),
    *(aten.upsample_bilinear2d.vec, aten.upsample_nearest2d.vec),
)


# Further decompositions: our compilers have no use for them, but what is left is core ATen.


def _parts_of(split_size, size):
    return [min(split_size, size - start) for start in range(0, size, split_size)] if size else [0]


def split(self, split_size, dim=0):
    return aten.split_with_sizes.default(self, _parts_of(split_size, self.shape[dim]), dim)


def safe_softmax(self, dim, dtype=None):
    """Zeros where all numbers are -inf."""
    out = aten._softmax.default(self, dim, False)
    all_masked = aten.logical_not.default(
        aten.any.dim(aten.logical_not.default(aten.eq.Scalar(self, float("-inf"))), dim, True)
    )
    return aten.where.self(all_masked, aten.full_like.default(out, 0), out)


FURTHER = {
    aten.sum.default: lambda self, *, dtype=None: aten.sum.dim_IntList(self, [], False, dtype=dtype),
    aten.zeros.default: lambda size, **options: aten.full.default(size, 0, **options),
    aten.ones.default: lambda size, **options: aten.full.default(size, 1, **options),
    aten.zeros_like.default: lambda self, **options: aten.full_like.default(self, 0, **options),
    aten.ones_like.default: lambda self, **options: aten.full_like.default(self, 1, **options),
    aten._unsafe_view.default: lambda self, size: aten.view.default(self, size),
    aten.lift_fresh_copy.default: lambda self: aten.clone.default(self),
    aten.split.Tensor: split,
    aten.unsafe_split.Tensor: split,
    aten.clamp_min.default: lambda self, low: aten.clamp.default(self, low),
    aten.isnan.default: lambda self: aten.ne.Tensor(self, self),
    aten._safe_softmax.default: safe_softmax,
}


def is_preservable_composition(op):
    """Whether an operator is made of others, and neither writes nor looks: one that can stay whole in a graph without writes.

    The schemas of some do not say what they do: `dropout` returns its input in eval mode, `batch_norm` writes to the running statistics.
    """
    if not (isinstance(op, OpOverload) and op.namespace == "aten" and op._can_decompose()):
        return False
    may_write = Tag.maybe_aliasing_or_mutating in op.tags
    return not may_write and not any(a.type.alias for a in op._operator.schema.arguments)


@functools.cache
def compositions():
    """{operator: what it is made of} of all that can stay whole."""
    names = [name.split("::") for name in _dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")]
    names = [name.partition(".") for namespace, name in names if namespace == "aten"]
    found = [getattr(getattr(aten, name), overload or "default") for name, _, overload in names]
    return {op: op.decompose for op in found if is_preservable_composition(op)}


class CustomDecompTable(dict):
    """operator -> a function that is traced in its place. `del table[op]` keeps an operator whole; `table[op] = f` puts `f` in its place.

    In PyTorch: operators of libraries that are loaded later come in as well.
    """

    def __init__(self):
        table = compositions() | core_aten_decompositions() | FURTHER
        super().__init__({k: v for k, v in table.items() if k not in PRESERVED_ATEN_OPS})

    def copy(self):
        new = CustomDecompTable()
        dict.clear(new)
        dict.update(new, self)
        return new

    def materialize(self):
        """A plain dict."""
        return dict(self)
