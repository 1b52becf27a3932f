"""Norms of vectors and matrices.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp` (`linalg_norm` and its parts) and `cpu/ReduceOpsKernel.cpp`.
Explained in the chapter "Layers as functions".
"""
import math

import numpy as np

from ...c10 import scalar_type
from ...c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap_result
from ...c10.wrap_dim import wrap_dim, wrap_dims
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out, type_name
from .reduce_ops import unreduce
from .tensor_iterator import WIDENED, cast

_TAIL = "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
vector_norm = native_function(f"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, {_TAIL}", module="linalg",
                              name="vector_norm", out=True)
matrix_norm = native_function(f"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], {_TAIL}", module="linalg",
                              name="matrix_norm", out=True)
matrix_norm_named = native_function(f"linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], {_TAIL}",
                                    module="linalg", name="matrix_norm", out=True)
norm = native_function(f"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, {_TAIL}", module="linalg", name="norm", out=True)
norm_named = native_function(f"linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, {_TAIL}", module="linalg", name="norm",
                             out=True)


# ----------------------------------------------------------------------------------------------- norms of vectors

def norm_array(x, order, axes, keepdims):
    """(Σ |x|ᵖ)^(1/p); 0 counts what is not zero, ±inf are the greatest and the least."""
    if order == 2:
        squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
        return np.sqrt(np.add.reduce(squares, axes, keepdims=keepdims))
    size = np.abs(x)
    if order == 0:
        return np.add.reduce(size != 0, axes, dtype=size.dtype, keepdims=keepdims)
    if order == 1:
        return np.add.reduce(size, axes, keepdims=keepdims)
    if math.isinf(order):
        return (np.maximum if order > 0 else np.minimum).reduce(size, axes, keepdims=keepdims)
    return np.add.reduce(size ** size.dtype.type(order), axes, keepdims=keepdims) ** size.dtype.type(1 / order)


def check_norm_type(name, self, dtype):
    kind = dtype_of(self)
    if kind.category < FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(self)}")
    if dtype is None:
        return
    if dtype.category < FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {SCALAR_TYPE_NAMES[dtype]}")
    if dtype.is_complex != kind.is_complex:
        raise RuntimeError(f"{name}: dtype should be {'complex' if kind.is_complex else 'real'} for {'complex' if kind.is_complex else 'real'} "
                           f"inputs, but got {SCALAR_TYPE_NAMES[dtype]}")
    if scalar_type.promote_types(kind, dtype) is not dtype:
        raise RuntimeError(f"{name}: the dtype of the input ({SCALAR_TYPE_NAMES[kind]}) should be convertible without narrowing to the "
                           f"specified dtype ({SCALAR_TYPE_NAMES[dtype]})")


@vector_norm.kernel
def vector_norm_cpu(self, ord, dim, keepdim, dtype):
    check_norm_type("linalg.vector_norm", self, dtype)
    if isinstance(ord, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    x = self._array
    axes = tuple(wrap_dims(dim, x.ndim)) if dim else tuple(range(x.ndim))
    if x.ndim == 0:
        x, axes = x[None], (0,)
    if (ord < 0 or math.isinf(ord)) and x.size == 0:
        check_identity(x, ord, dim, axes)
    target = (dtype or dtype_of(self)).to_real().numpy
    wide = (dtype or dtype_of(self)).numpy
    x = cast(x, WIDENED.get(wide, wide))
    result = norm_array(x, ord, axes, keepdim and self._array.ndim > 0)
    return wrap_result(np.asarray(result).astype(target, copy=False))


def check_identity(x, order, dim, axes):
    """The greatest of no numbers is nothing: raises RuntimeError if such an element would be asked for."""
    shown = f"{order:g}"
    if not dim:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the operation does not have "
                           "an identity")
    for given, axis in zip(dim, axes):
        if x.shape[axis] == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on the dimension {given} because this dimension is "
                               "empty and the operation does not have an identity")


def zero_where(condition, t):
    return t.masked_fill(condition, 0)


@vector_norm.backward
class LinalgVectorNormBackward0:
    def self(grad, self, ord, result, dim, keepdim):
        """The norm's slope at x is (|x| / norm)^(p-1) in the direction of x. Where the norm is 0 there is none: 0."""
        size = self._array.ndim
        if size and not keepdim:
            grad, result = (unreduce(t, self._array.shape, dim, False) for t in (grad, result))
        if ord == 0:
            return at.zeros_like(self)
        if ord == 1:
            return self.sgn() * grad
        if ord == 2:
            return self * zero_where(result == 0, grad / result)
        if math.isinf(ord):
            return slope_of_extreme(grad, self, result, list(wrap_dims(dim, size)) if dim else list(range(size)))
        if ord < 1:
            scaled = zero_where(self == 0, self.sgn() * self.abs().pow(ord - 1))
            return scaled * grad * result.pow(1 - ord)
        if ord < 2:
            return self.sgn() * self.abs().pow(ord - 1) * zero_where(result == 0, grad / result.pow(ord - 1))
        return self * self.abs().pow(ord - 2) * zero_where(result == 0, grad / result.pow(ord - 1))


def slope_of_extreme(grad, self, result, dims):
    """The greatest elements share the gradient evenly."""
    size = self.abs()
    chosen = (size == result).logical_or(size.isnan().logical_and(result.isnan()))
    count = chosen.sum(dims, True) if dims else chosen.sum()
    return self.sgn() * (grad / count) * chosen


# ---------------------------------------------------------------------------------------------- norms of matrices

def check_matrix_norm(self, dim, dtype):
    if self._array.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    check_norm_type("linalg.matrix_norm", self, dtype)
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
    """1, inf: the greatest column or row sum; 2: the greatest singular value; negative orders: the least instead."""
    rows, columns = check_matrix_norm(self, dim, dtype)
    size = abs(ord)
    if size not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    if size == 2:
        extreme = at.amax if ord > 0 else at.amin
        if dtype is not None:
            self = self.to(dtype)
        return of_singular_values(self, rows, columns, keepdim, lambda s: extreme(s, -1, keepdim))
    if math.isinf(size):
        rows, columns = columns, rows
    sums = vector_norm.call(self, 1, [rows], keepdim, dtype)
    if not keepdim and rows < columns:
        columns -= 1
    return at.amax(sums, columns, keepdim) if ord > 0 else at.amin(sums, columns, keepdim)


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


# -------------------------------------------------------------------------------------------------- linalg.norm

def check_norm_dims(self, ord, dim):
    if dim is not None:
        if len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif ord is not None and self._array.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                           f"{self._array.ndim}D.")


@norm.compose
def norm_composite(self, ord, dim, keepdim, dtype):
    """A matrix norm over two dimensions, a vector norm over any other number; without an order both are the 2-norm."""
    check_norm_dims(self, ord, dim)
    if ord is not None and (len(dim) == 2 if dim is not None else self._array.ndim == 2):
        return matrix_norm.call(self, ord, dim or (0, 1), keepdim, dtype)
    return vector_norm.call(self, 2 if ord is None else ord, dim, keepdim, dtype)


@norm_named.compose
def norm_named_composite(self, ord, dim, keepdim, dtype):
    check_norm_dims(self, ord, dim)
    return matrix_norm_named.call(self, ord, dim or (0, 1), keepdim, dtype)


for _operator in (vector_norm, matrix_norm, matrix_norm_named, norm, norm_named):
    exact_out(_operator)
