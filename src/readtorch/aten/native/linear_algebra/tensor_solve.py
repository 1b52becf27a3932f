"""Tensors taken as matrices: tensorinv, tensorsolve.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`.
"""

import math

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import native_function

tensorinv = native_function(
    "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    module="linalg",
    name="tensorinv",
    out=exact_out(row_major=True),
)
tensorsolve = native_function(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    module="linalg",
    name="tensorsolve",
    out=exact_out(),
)

# ----------------------------------------------------------------------------------- tensors seen as matrices


@tensorinv.compose
def tensorinv_composite(self, ind):
    """The inverse of the matrix whose rows are the first `ind` dimensions and whose columns are the others."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = self._array.shape[:ind], self._array.shape[ind:]
    n = math.prod(columns)
    if n != math.prod(rows):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but "
            f"got {n} != {math.prod(rows)}"
        )
    return at.linalg_inv(self.reshape((n, n))).reshape((*columns, *rows))


@tensorsolve.compose
def tensorsolve_composite(self, other, dims):
    """X in tensordot(self, X, X.ndim) = other; `dims` of self are moved to its end first."""
    ndim = self._array.ndim
    if dims is not None:
        self = self.movedim(tuple(dims), tuple(range(ndim - len(dims), ndim)))
    shape = self._array.shape[other._array.ndim :]
    rows = math.prod(self._array.shape[: other._array.ndim])
    if math.prod(shape) != rows:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {rows}"
        )
    return at.linalg_solve(self.reshape((rows, rows)), other.flatten()).reshape(shape)
