"""linalg.norm and the norms of matrices; vectors have theirs in `norms.py`.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp` (`linalg_norm` and its parts).
Explained in the chapter "Layers, functional, init".
"""
import math

from ...c10 import scalar_type
from ...c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out, type_name
from .norms import vector_norm

_TAIL = "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
matrix_norm = native_function(f"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], "
                              f"{_TAIL}", module="linalg",
                              name="matrix_norm", out=True)
matrix_norm_named = native_function(f"linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] "
                                    f"dim=[-2,-1], {_TAIL}",
                                    module="linalg", name="matrix_norm", out=True)
linalg_norm = native_function(f"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, "
                       f"{_TAIL}", module="linalg", name="norm", out=True)
linalg_norm_named = native_function(f"linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, "
                             f"{_TAIL}", module="linalg", name="norm",
                             out=True)


def check_linalg_norm_type(name, self, dtype):
    kind = dtype_of(self)
    if kind.category < FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                           f"{type_name(self)}")
    if dtype is None:
        return
    if dtype.category < FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got "
                           f"{SCALAR_TYPE_NAMES[dtype]}")
    if dtype.is_complex != kind.is_complex:
        raise RuntimeError(f"{name}: dtype should be {'complex' if kind.is_complex else 'real'} for "
                           f"{'complex' if kind.is_complex else 'real'} "
                           f"inputs, but got {SCALAR_TYPE_NAMES[dtype]}")
    if scalar_type.promote_types(kind, dtype) is not dtype:
        raise RuntimeError(f"{name}: the dtype of the input ({SCALAR_TYPE_NAMES[kind]}) should be "
                           f"convertible without narrowing to the "
                           f"specified dtype ({SCALAR_TYPE_NAMES[dtype]})")


# ------------------------------------------------------------------------------------------ norms of matrices

def check_matrix_norm(self, dim, dtype):
    if self._array.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    check_linalg_norm_type("linalg.matrix_norm", self, dtype)
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    rows, columns = (wrap_dim(d, self._array.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    return rows, columns


def matrices_last(self, rows, columns):
    """The order of dimensions that puts `rows` and `columns` at the end, and the order that undoes it."""
    order = [d for d in range(self._array.ndim) if d not in (rows, columns)] + [rows, columns]
    return order, [order.index(d) for d in range(len(order))]


def of_singular_values(self, rows, columns, keepdim, reduce):
    """`reduce(singular values)`, with the matrix dimensions kept in their places if asked."""
    order, back = matrices_last(self, rows, columns)
    result = reduce(at.linalg_svdvals(self.permute(order)))
    return result.unsqueeze(-1).permute(back) if keepdim else result


@matrix_norm.compose
def matrix_norm_composite(self, ord, dim, keepdim, dtype):
    """1, inf: the greatest column or row sum; 2: the greatest singular value; negative orders: the least
    instead."""
    rows, columns = check_matrix_norm(self, dim, dtype)
    size = abs(ord)
    if size not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    if size == 2:
        if dtype is not None:
            self = self.to(dtype)
        return of_singular_values(self, rows, columns, keepdim, lambda s: extreme(s, ord, -1, keepdim))
    if math.isinf(size):
        rows, columns = columns, rows
    sums = vector_norm.call(self, 1, [rows], keepdim, dtype)
    if not keepdim and rows < columns:
        columns -= 1
    return extreme(sums, ord, columns, keepdim)


def extreme(sums, ord, dim, keepdim):
    """The greatest, or for a negative order the least. The greatest of no sums is 0."""
    if ord < 0:
        return at.amin(sums, dim, keepdim)
    if sums.shape[dim]:
        return at.amax(sums, dim, keepdim)
    return at.zeros_like(sums.sum(dim, keepdim).detach())


@matrix_norm_named.compose
def matrix_norm_named_composite(self, ord, dim, keepdim, dtype):
    rows, columns = check_matrix_norm(self, dim, dtype)
    if ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return vector_norm.call(self, 2, [rows, columns], keepdim, dtype)
    if dtype is not None:
        self = self.to(dtype)
    return of_singular_values(self, rows, columns, keepdim, lambda s: at.sum(s, -1, keepdim))


# ------------------------------------------------------------------------------------------------ linalg.norm

def check_norm_dims(self, ord, dim):
    if dim is not None:
        if len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                               f"{list(dim)}")
    elif ord is not None and self._array.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                           f"{self._array.ndim}D.")


@linalg_norm.compose
def linalg_norm_composite(self, ord, dim, keepdim, dtype):
    """A matrix norm over two dimensions, a vector norm over any other number; without an order both are the
    2-norm."""
    check_norm_dims(self, ord, dim)
    if ord is not None and (len(dim) == 2 if dim is not None else self._array.ndim == 2):
        return matrix_norm.call(self, ord, dim or (0, 1), keepdim, dtype)
    return vector_norm.call(self, 2 if ord is None else ord, dim, keepdim, dtype)


@linalg_norm_named.compose
def linalg_norm_named_composite(self, ord, dim, keepdim, dtype):
    check_norm_dims(self, ord, dim)
    return matrix_norm_named.call(self, ord, dim or (0, 1), keepdim, dtype)


def linalg_norm_types(out, result, *arguments):
    return f"linalg.norm expected out tensor dtype {type_name(result)} but got: {type_name(out)}"


exact_out(linalg_norm, linalg_norm_types)
exact_out(linalg_norm_named, linalg_norm_types)
exact_out(matrix_norm)
exact_out(matrix_norm_named)
