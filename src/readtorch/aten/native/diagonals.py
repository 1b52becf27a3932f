"""Diagonals and triangles: diagonal, diag, diag_embed, diagflat, fill_diagonal_, tril, triu.

In PyTorch: `aten/src/ATen/native/{TensorShape,TriangularOps,TensorFactories}.cpp`.
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES, int32, int64
from ...c10.tensor_impl import view as view_of, wrap
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out
from .exact_out import exact_out
from .tensor_factories import OPTIONS, check_options
from .views import restrided

BOTH = "function, method"

# -------------------------------------------------------------------------------------------------- diagonal

diagonal = native_function(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", BOTH, direct=True)


@diagonal.kernel
def diagonal_cpu(self, offset, dim1, dim2):
    """Elements whose indices in `dim1` and `dim2` differ by `offset`; a view with one dimension less, the
    diagonal last."""
    array = self._array
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
    return view_of(self, restrided(self, [*[array.shape[d] for d in kept], length],
                                   [*[array.strides[d] for d in kept], row + column], start))


@diagonal.backward
class DiagonalBackward0:
    def self(grad, self_sym_sizes, offset, dim1, dim2):
        return at.diagonal_backward(grad, self_sym_sizes, offset, dim1, dim2)


diagonal_backward = native_function(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> "
    "Tensor", "function")


@diagonal_backward.kernel
def diagonal_backward_cpu(grad_output, input_sizes, offset, dim1, dim2):
    result = wrap(np.zeros(input_sizes, grad_output._array.dtype))
    diagonal_cpu(result, offset, dim1, dim2)._array[...] = grad_output._array
    return result


@diagonal_backward.backward
class DiagonalBackwardBackward0:
    def grad_output(grad, offset, dim1, dim2):
        return grad.diagonal(offset, dim1, dim2)


diag_embed = native_function(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", BOTH, direct=True)


@diag_embed.kernel
def diag_embed_cpu(self, offset, dim1, dim2):
    """The last dimension becomes the diagonal of a new matrix of zeros, which lies in `dim1` and `dim2`."""
    shape = self._array.shape
    first, second = wrap_dim(dim1, len(shape) + 1), wrap_dim(dim2, len(shape) + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    wrap_dim(-1, len(shape))
    size = (shape[-1] if shape else 1) + abs(offset)
    sizes = list(shape[:-1])
    for d in sorted((first, second)):
        sizes.insert(d, size)
    result = wrap(np.zeros(sizes, self._array.dtype))
    diagonal_cpu(result, offset, first, second)._array[...] = self._array
    return result


@diag_embed.backward
class DiagEmbedBackward0:
    def self(grad, offset, dim1, dim2):
        return grad.diagonal(offset, dim1, dim2)


diag = native_function("diag(Tensor self, int diagonal=0) -> Tensor", BOTH, out=True, direct=True)


@diag.compose
def diag_composite(self, offset):
    """The diagonal of a matrix, or the matrix with this diagonal."""
    ndim = self._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return at.diag_embed(self, offset) if ndim == 1 else at.diagonal_copy(self, offset)


diagonal_copy = native_function(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", "function", out=True)


@diagonal_copy.kernel
def diagonal_copy_cpu(self, offset, dim1, dim2):
    return wrap(diagonal_cpu(self, offset, dim1, dim2)._array.copy())


@diagonal_copy.backward
class DiagonalBackward0_copy:
    def self(grad, self_sym_sizes, offset, dim1, dim2):
        return at.diagonal_backward(grad, self_sym_sizes, offset, dim1, dim2)


exact_out(diag)
exact_out(diagonal_copy)
diagflat = native_function("diagflat(Tensor self, int offset=0) -> Tensor", BOTH)


@diagflat.compose
def diagflat_composite(self, offset):
    """The elements, one after the other, as the diagonal of a matrix."""
    return at.diag_embed(self.contiguous().view(-1), offset)


fill_diagonal_ = native_function(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", "method")


@fill_diagonal_.compose
def fill_diagonal_composite(self, fill_value, wrap):
    """Through a view of the diagonal. wrap: in a tall matrix another begins below where the last has ended."""
    sizes, strides, offset = self.shape, self.stride(), self.storage_offset()
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    length, step = min(sizes[:2]), sum(strides)
    self.as_strided((length,), (step,), offset).fill_(fill_value)
    if wrap and len(sizes) == 2 and sizes[0] > sizes[1] + 1:
        round_ = sizes[1] + 1  # from one element of the diagonal to the next, counted along the rows
        rest = -(-self.numel() // round_) - length
        self.as_strided((rest,), (step,), offset + strides[0] * round_).fill_(fill_value)
    return self


# ------------------------------------------------------------------------------------------------- triangles

tril = native_function("tril(Tensor self, SymInt diagonal=0) -> Tensor", BOTH, inplace=True, out=True,
direct=True)
triu = native_function("triu(Tensor self, SymInt diagonal=0) -> Tensor", BOTH, inplace=True, out=True,
direct=True)


def check_matrix(self, name):
    if self._array.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


exact_out(tril)
exact_out(triu)


@tril.kernel
def tril_cpu(self, diagonal):
    """What lies on or below a diagonal; zeros elsewhere."""
    check_matrix(self, "tril")
    return wrap(np.tril(self._array, diagonal))


@tril.backward
class TrilBackward0:
    def self(grad, diagonal):
        return grad.tril(diagonal)


@triu.kernel
def triu_cpu(self, diagonal):
    check_matrix(self, "triu")
    return wrap(np.triu(self._array, diagonal))


@triu.backward
class TriuBackward0:
    def self(grad, diagonal):
        return grad.triu(diagonal)


tril_indices = native_function(
    f"tril_indices(int row, int col, int offset=0, *, {OPTIONS.replace('=None', '=long', 1)}) -> Tensor",
    "function")
triu_indices = native_function(
    f"triu_indices(int row, int col, int offset=0, *, {OPTIONS.replace('=None', '=long', 1)}) -> Tensor",
    "function")


def check_rectangle(name, dtype, row, col, layout, device):
    check_options(layout, device)
    if dtype not in (int32, int64):
        raise NotImplementedError(f'"{name}" not implemented for \'{SCALAR_TYPE_NAMES[dtype]}\'')
    if row < 0:
        raise RuntimeError(f"row must be non-negative, got{row}")
    if col < 0:
        raise RuntimeError(f"col must be non-negative, got{col}")


@tril_indices.kernel
def tril_indices_cpu(row, col, offset, dtype, layout, device, pin_memory):
    check_rectangle("tril_indices", dtype, row, col, layout, device)
    return wrap(np.stack(np.tril_indices(row, offset, col)).astype(dtype.numpy))


@triu_indices.kernel
def triu_indices_cpu(row, col, offset, dtype, layout, device, pin_memory):
    check_rectangle("triu_indices", dtype, row, col, layout, device)
    return wrap(np.stack(np.triu_indices(row, offset, col)).astype(dtype.numpy))
