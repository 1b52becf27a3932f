"""Diagonals: diagonal, diag, diag_embed, diagflat.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of, strided, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .slice import of_input_sizes
from .view import restrided

# -------------------------------------------------------------------------------------------------- diagonal

diagonal = native_function(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", BOTH, direct=True
)


@diagonal.view_kernel
def diagonal_cpu(self, offset, dim1, dim2):
    """Elements whose indices in `dim1` and `dim2` differ by `offset`; a view with one dimension less, the
    diagonal last."""
    array = self._array if self._array.size else strided(self)
    if array.ndim == 0:
        wrap_dim(dim1, 0), wrap_dim(dim2, 0)
    first, second = wrap_dim(dim1, array.ndim), wrap_dim(dim2, array.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    row, column = array.strides[first], array.strides[second]
    rows, columns = array.shape[first], array.shape[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = (offset * column if offset >= 0 else -offset * row) if length else 0
    kept = [d for d in range(array.ndim) if d not in (first, second)]
    return restrided(
        self, [*[array.shape[d] for d in kept], length], [*[array.strides[d] for d in kept], row + column], start
    )


@diagonal.backward
class DiagonalBackward0:
    def self(grad, self_sym_sizes, offset, dim1, dim2):
        return at.diagonal_backward(grad, self_sym_sizes, offset, dim1, dim2)

    result = "auto_linear"


diagonal_backward = native_function(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor", "function"
)

diagonal_backward.meta(of_input_sizes)


@diagonal_backward.kernel
def diagonal_backward_cpu(grad_output, input_sizes, offset, dim1, dim2):
    result = wrap(np.zeros(input_sizes, grad_output._array.dtype))
    diagonal_cpu(result, offset, dim1, dim2)[...] = grad_output._array
    return result


@diagonal_backward.backward
class DiagonalBackwardBackward0:
    def grad_output(grad, offset, dim1, dim2):
        return grad.diagonal(offset, dim1, dim2)

    result = "auto_linear"


diag_embed = native_function(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", BOTH, direct=True
)


@diag_embed.meta
def diag_embed_meta(self, offset, dim1, dim2):
    """The last dimension becomes the diagonal of a new matrix, which lies in `dim1` and `dim2`."""
    shape = self._array.shape
    first, second = wrap_dim(dim1, len(shape) + 1), wrap_dim(dim2, len(shape) + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    wrap_dim(-1, len(shape))
    size = (shape[-1] if shape else 1) + abs(offset)
    sizes = list(shape[:-1])
    for d in sorted((first, second)):
        sizes.insert(d, size)
    return TensorMeta(tuple(sizes), dtype_of(self))


@diag_embed.kernel
def diag_embed_cpu(self, offset, dim1, dim2):
    result = wrap(np.zeros(diag_embed_meta(self, offset, dim1, dim2).shape, self._array.dtype))
    diagonal_cpu(result, offset, dim1, dim2)[...] = self._array
    return result


@diag_embed.backward
class DiagEmbedBackward0:
    def self(grad, offset, dim1, dim2):
        return grad.diagonal(offset, dim1, dim2)

    result = "auto_linear"


diag = native_function("diag(Tensor self, int diagonal=0) -> Tensor", BOTH, out=exact_out(), direct=True)


@diag.compose
def diag_composite(self, offset):
    """The diagonal of a matrix, or the matrix with this diagonal."""
    ndim = self._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return at.diag_embed(self, offset) if ndim == 1 else at.diagonal_copy(self, offset)


diagflat = native_function("diagflat(Tensor self, int offset=0) -> Tensor", BOTH)


@diagflat.compose
def diagflat_composite(self, offset):
    """The elements, one after the other, as the diagonal of a matrix."""
    return at.diag_embed(self.contiguous().view(-1), offset)


linalg_diagonal = native_function(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    module="linalg",
    name="diagonal",
)

linalg_diagonal.compose(lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2))
