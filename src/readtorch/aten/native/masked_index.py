"""Indexing where a mask says which places count, and combinations.

The `_unsafe` operators are for compilers, which see to the bounds: a place that does not count may lie
outside.
In PyTorch: `aten/src/ATen/native/{TensorAdvancedIndexing,Itertools}.cpp`.
"""

import numpy as np

from ..functions import at
from ..native_function import below_autograd, native_function
from .copy import constant_beside
from .tensor_shape import view_on_grid

masked_index = native_function(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor"
)
masked_index_put = native_function(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> "
    "Tensor"
)


def inside(self, indices):
    """The indices moved to the next place there is."""
    return [i if i is None else at.clamp(i, -n, n - 1) for i, n in zip(indices, self._array.shape)]


@masked_index.kernel
def masked_index_cpu(self, mask, indices, fill):
    with below_autograd():
        if not self._array.size:
            return at.new_full(self, mask._array.shape, fill)
        return self[tuple([slice(None) if i is None else i for i in inside(self, indices)])].masked_fill(
            at.logical_not(mask), fill
        )


@masked_index.backward
class UnsafeMaskedIndexBackward0:
    def self(grad, self_sym_sizes, mask, indices):
        return masked_index_put.call(at.new_zeros(grad, self_sym_sizes), mask, indices, grad)


@masked_index_put.kernel
def masked_index_put_cpu(self, mask, indices, values):
    with below_autograd():
        if not self._array.size:
            return self.clone()
        return at.index_put(self, inside(self, indices), values.masked_fill(at.logical_not(mask), 0), True)


@masked_index_put.backward
class UnsafeMaskedIndexPutAccumulateBackward0:
    def self(grad):
        return grad

    def values(grad, mask, indices):
        return masked_index.call(grad, mask, indices, 0)


# ----------------------------------------------------------------------------------------------- combinations

combinations = native_function(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", "function, method"
)


@combinations.compose
def combinations_composite(self, r, with_replacement):
    """All ways to choose r elements, one a row, in the order of `itertools.combinations`."""
    if self._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return at.new_empty(self, (0,))
    places = np.indices((self._array.size,) * r)
    ascending = places[:-1] <= places[1:] if with_replacement else places[:-1] < places[1:]
    mask = constant_beside(self, ascending.all(0) if r > 1 else np.ones(places.shape[1:], bool))
    return at.stack([grid.masked_select(mask) for grid in view_on_grid([self] * r)], 1)
