"""The combinations of the elements of a vector.

In PyTorch: `aten/src/ATen/native/Itertools.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function

from .copy import constant_beside
from .tensor_shape.reshape import view_on_grid

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
