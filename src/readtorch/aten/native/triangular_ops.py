"""Triangles of matrices: tril, triu, and their indices.

In PyTorch: `aten/src/ATen/native/TriangularOps.cpp`; the indices in `aten/src/ATen/native/TensorFactories.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, int32, int64
from readtorch.c10.tensor_impl import dtype_of, wrap

from .exact_out import exact_out
from .tensor_factories import OPTIONS, check_options
from .tensor_iterator import wrap_reduced

# ------------------------------------------------------------------------------------------------- triangles

tril = native_function("tril(Tensor self, SymInt diagonal=0) -> Tensor", BOTH, inplace=True, out=True, direct=True)
triu = native_function("triu(Tensor self, SymInt diagonal=0) -> Tensor", BOTH, inplace=True, out=True, direct=True)


def triangle_meta(name):
    def describe(self, diagonal):
        if self._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return TensorMeta(self._array.shape, dtype_of(self))

    return describe


tril_meta, triu_meta = tril.meta(triangle_meta("tril")), triu.meta(triangle_meta("triu"))
exact_out(tril)
exact_out(triu)


@tril.kernel
def tril_cpu(self, diagonal):
    """What lies on or below a diagonal; zeros elsewhere."""
    if self._array.ndim < 2:
        tril_meta(self, diagonal)
    return wrap_reduced(np.tril(self._array, diagonal))


@tril.backward
class TrilBackward0:
    def self(grad, diagonal):
        return grad.tril(diagonal)


@triu.kernel
def triu_cpu(self, diagonal):
    if self._array.ndim < 2:
        triu_meta(self, diagonal)
    return wrap_reduced(np.triu(self._array, diagonal))


@triu.backward
class TriuBackward0:
    def self(grad, diagonal):
        return grad.triu(diagonal)


tril_indices = native_function(
    f"tril_indices(int row, int col, int offset=0, *, {OPTIONS.replace('=None', '=long', 1)}) -> Tensor", "function"
)
triu_indices = native_function(
    f"triu_indices(int row, int col, int offset=0, *, {OPTIONS.replace('=None', '=long', 1)}) -> Tensor", "function"
)


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


@tril_indices.meta
def tril_indices_meta(row, col, offset, dtype, layout, device, pin_memory):
    check_rectangle("tril_indices", dtype, row, col, layout, device)
    return TensorMeta((2, size_of_tril(row, col, offset)), dtype)


@triu_indices.meta
def triu_indices_meta(row, col, offset, dtype, layout, device, pin_memory):
    check_rectangle("triu_indices", dtype, row, col, layout, device)
    return TensorMeta((2, row * col - size_of_tril(row, col, offset - 1)), dtype)


@tril_indices.kernel
def tril_indices_cpu(row, col, offset, dtype, layout, device, pin_memory):
    check_rectangle("tril_indices", dtype, row, col, layout, device)
    return wrap(np.stack(np.tril_indices(row, offset, col)).astype(dtype.numpy))


@triu_indices.kernel
def triu_indices_cpu(row, col, offset, dtype, layout, device, pin_memory):
    check_rectangle("triu_indices", dtype, row, col, layout, device)
    return wrap(np.stack(np.triu_indices(row, offset, col)).astype(dtype.numpy))
