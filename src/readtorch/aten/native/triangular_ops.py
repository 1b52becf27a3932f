"""Triangles of matrices: tril, triu, and their indices.

In PyTorch: `aten/src/ATen/native/TriangularOps.cpp`; the indices in `aten/src/ATen/native/TensorFactories.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, int32, int64
from readtorch.c10.tensor_impl import dtype_of

from .exact_out import exact_out
from .tensor_factories import OPTIONS, check_options
from .tensor_iterator import wrap_reduced

# ------------------------------------------------------------------------------------------------- triangles


def triangle(name, part):
    """Declare tril or triu: what lies on one side of a diagonal, and on it; zeros elsewhere."""
    operator = native_function(
        f"{name}(Tensor self, SymInt diagonal=0) -> Tensor", BOTH, inplace=True, out=exact_out(), direct=True
    )

    @operator.meta
    def triangle_meta(self, diagonal):
        if self._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return TensorMeta(self._array.shape, dtype_of(self))

    @operator.kernel
    def triangle_cpu(self, diagonal):
        if self._array.ndim < 2:
            triangle_meta(self, diagonal)
        return wrap_reduced(part(self._array, diagonal))

    @operator.inplace.meta
    def triangle_meta_(self, diagonal):
        triangle_meta(self, diagonal)

    @operator.inplace.kernel
    def triangle_cpu_(self, diagonal):
        """The other side becomes zeros. `self` may be expanded: an element that shows on both sides becomes 0, too."""
        triangle_meta(self, diagonal)
        self._array[..., ~part(np.ones(self._array.shape[-2:], bool), diagonal)] = 0
        return self

    return operator


tril = triangle("tril", np.tril)
triu = triangle("triu", np.triu)


@tril.backward
class TrilBackward0:
    def self(grad, diagonal):
        return grad.tril(diagonal)

    result = "auto_linear"


@triu.backward
class TriuBackward0:
    def self(grad, diagonal):
        return grad.triu(diagonal)

    result = "auto_linear"


def check_rectangle(name, dtype, row, col, layout, device):
    check_options(layout, device)
    if dtype not in (int32, int64):
        raise NotImplementedError(f"\"{name}\" not implemented for '{SCALAR_TYPE_NAMES[dtype]}'")
    if row < 0:
        raise RuntimeError(f"row must be non-negative, got{row}")
    if col < 0:
        raise RuntimeError(f"col must be non-negative, got{col}")


def size_of_tril(row, col, offset):
    """How many elements lie on or below a diagonal: what a triangle of so many rows has, less what would lie outside."""
    triangle = lambda rows: rows * (rows + 1) // 2 if rows > 0 else 0
    return triangle(row + offset) - triangle(offset) - triangle(row + offset - col) + triangle(offset - col)


def triangle_indices(name, size, find):
    """Declare the places of a triangle's elements. size, find: row, col, offset -> how many there are, and where."""
    dtype_first = OPTIONS.replace("=None", "=long", 1)
    operator = native_function(f"{name}(int row, int col, int offset=0, *, {dtype_first}) -> Tensor", "function")

    @operator.meta
    def indices_meta(row, col, offset, dtype, layout, device, pin_memory):
        check_rectangle(name, dtype, row, col, layout, device)
        return TensorMeta((2, size(row, col, offset)), dtype)

    @operator.impl()
    def indices_cpu(row, col, offset, dtype, layout, device, pin_memory, out):
        out._array[...] = find(row, offset, col)


triangle_indices("tril_indices", size_of_tril, np.tril_indices)
triangle_indices("triu_indices", lambda row, col, k: row * col - size_of_tril(row, col, k - 1), np.triu_indices)
