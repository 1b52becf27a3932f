"""index_reduce: slices of a source multiplied into, averaged with, or compared with slices of a tensor.

In PyTorch: `aten/src/ATen/native/TensorAdvancedIndexing.cpp`; derivative in `FunctionsManual.cpp`.
"""

import numpy as np

from ...c10.tensor_impl import dtype_of
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out
from .indexing import check_index_vector, check_places, slices_along, writes_elements
from .tensor_iterator import not_implemented


def lowest(dtype):
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def highest(dtype):
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.inf


REDUCTIONS = {"prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}
# What an element starts with that does not count itself.
NEUTRAL = {"prod": lambda dtype: 1, "mean": lambda dtype: 0, "amax": lowest, "amin": highest}

index_reduce = native_function(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) "
    "-> Tensor",
    "function, method",
    inplace=True,
    out=True,
)
exact_out(index_reduce)


def check_index_reduce(self, dim, index, source, reduce):
    if reduce not in REDUCTIONS:
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        )
    dim = check_index_vector(self, dim, index, source, "index_reduce_")
    own, other = self._array.shape, source._array.shape
    count = other[dim] if other else 1
    if (*own[:dim], *own[dim + 1 :]) != (*other[:dim], *other[dim + 1 :]) or len(own) != len(other):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(own)} source.shape = {list(other)}"
        )
    if count != index._array.size:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index._array.size}) should be equal to "
            f"source.size(dim): ({count}), for dim: {dim}"
        )
    dtype = dtype_of(self)
    if dtype.is_complex or self._array.dtype.kind == "b":
        raise not_implemented("index_func_")(dtype)
    return dim


@writes_elements(index_reduce)
def index_reduce_cpu(self, dim, index, source, reduce, include_self):
    """`self[…, index[i], …] = reduce(self[…, index[i], …], source[…, i, …])`, i counting along `dim`."""
    dim = check_index_reduce(self, dim, index, source, reduce)
    places = index._array.reshape(-1)
    target = slices_along(self, dim)
    check_places(places, target.shape[0], "index out of range in self")
    values = slices_along(source, dim)
    if not include_self:
        target[places] = NEUTRAL[reduce](target.dtype)
    REDUCTIONS[reduce].at(target, places, values)
    if reduce == "mean":
        counts = np.full(len(target), int(include_self))
        np.add.at(counts, places, 1)
        counts = np.maximum(counts, 1).reshape(-1, *[1] * (target.ndim - 1)).astype(target.dtype)
        target[...] = target // counts if target.dtype.kind in "iu" else target / counts


@index_reduce.backward
class IndexReduceBackward0:
    def self__source(grad, self, dim, index, source, reduce, include_self, result):
        formula = {"prod": of_product, "mean": of_mean}.get(reduce, of_extreme)
        of_self, of_source = formula(grad, self, dim, index, source, reduce, include_self, result)
        return of_self if include_self else of_self.index_fill(dim, index, 0), of_source


def of_product(grad, self, dim, index, source, reduce, include_self, result):
    """The product of all others: result / own. A zero counts as 1 while its own gradient is worked out, if no
    other one of the source meets it.
    """
    without_zero = self.masked_fill(self == 0, 1)
    product = index_reduce.call(without_zero, dim, index, source, reduce, include_self)
    of_self = grad * product / without_zero
    zero = source == 0
    zeros = at.zeros_like(self).index_add(dim, index, zero.to(self.dtype)).index_select(dim, index)
    single = zero.logical_and(zeros == 1)
    with_ones = index_reduce.call(self, dim, index, source.masked_fill(single, 1), reduce, include_self)
    others = (grad * result).index_select(dim, index) / source.masked_fill(zero, 1)
    return of_self, at.where(single, (grad * with_ones).index_select(dim, index), others)


def of_mean(grad, self, dim, index, source, reduce, include_self, result):
    count = at.ones_like(grad) if include_self else at.zeros_like(grad)
    count = count.index_add(dim, index, at.ones_like(source))
    count = count.masked_fill(count == 0, 1)
    return grad / count, grad.index_select(dim, index) / count.index_select(dim, index)


def of_extreme(grad, self, dim, index, source, reduce, include_self, result):
    """All that reach the extreme share the gradient evenly."""
    own = (self == result).to(grad.dtype)
    wins = (source == result.index_select(dim, index)).to(grad.dtype)
    share = grad / own.index_add(dim, index, wins)
    return own * share, wins * share.index_select(dim, index)
