"""Norms: linalg.vector_norm, dist, and logsumexp, which is a soft maximum.

In PyTorch: `aten/src/ATen/native/{LinearAlgebra,ReduceOps,Distance}.cpp`; `norm_backward` in
`FunctionsManual.cpp`.
"""
import math

import numpy as np

from ...c10 import scalar_type
from ...c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES, op_math_type
from ...c10.tensor_impl import dtype_of
from ..functions import at
from ..native_function import alias_of, native_function, python_face
from .exact_out import exact_out
from .reduce_ops import add_floats, add_up, reduced_axes, unreduce
from .tensor_iterator import cast, conj, wrap_reduced

BOTH = "function, method"

vector_norm = native_function(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor",
    module="linalg", name="vector_norm", out=True)
exact_out(vector_norm)


def norm_array(x, order, axes, keepdim):
    """(sum |x| ** order) ** (1 / order), with its limits for 0, inf and -inf."""
    if order == 0:
        return add_up(x != 0, axes, x.real.dtype, None, keepdim)
    if order == 2:
        return np.sqrt(add_floats("squares", add_squares, x, axes, keepdim))
    size = np.abs(x)
    if order == 1:
        return add_up(size, axes, None, None, keepdim)
    if math.isinf(order):
        if order > 0:
            return np.maximum.reduce(size, axes, None, None, keepdim, 0)
        return np.minimum.reduce(size, axes, None, None, keepdim)
    return add_up(size ** order, axes, None, None, keepdim) ** (1 / order)


def add_squares(x, axes, dtype, out, keepdim):
    squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
    return add_up(squares, axes, dtype, out, keepdim)


def check_norm(self, order, axes, dtype):
    own = dtype_of(self)
    if own.category < FLOAT:
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                           f"{SCALAR_TYPE_NAMES[own]}")
    if (order < 0 or order == math.inf) and any(self._array.shape[a] == 0 for a in axes):
        raise RuntimeError(f"linalg.vector_norm cannot compute the {_shown(order)} norm on an empty tensor "
                           "because the operation "
                           "does not have an identity" if len(axes) == self._array.ndim else
                           f"linalg.vector_norm cannot compute the {_shown(order)} norm on the dimension "
                           f"{axes[0]} because this "
                           "dimension is empty and the operation does not have an identity")
    if dtype is None:
        return
    if dtype.category < FLOAT:
        raise RuntimeError("linalg.vector_norm: dtype should be floating point or complex, but got "
                           f"{SCALAR_TYPE_NAMES[dtype]}")
    if dtype.is_complex != own.is_complex:
        kinds = ("complex", "real") if own.is_complex else ("real", "complex")
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kinds[0]} for {kinds[0]} inputs, but got "
                           f"{SCALAR_TYPE_NAMES[dtype]}")
    if scalar_type.promote_types(own, dtype) is not dtype:
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({SCALAR_TYPE_NAMES[own]}) should be "
                           "convertible without "
                           f"narrowing to the specified dtype ({SCALAR_TYPE_NAMES[dtype]})")


def _shown(order):
    return "inf" if order == math.inf else "-inf" if order == -math.inf else f"{order:g}"


@vector_norm.kernel
def vector_norm_cpu(self, order, dim, keepdim, dtype):
    axes = reduced_axes(self, dim)
    if isinstance(order, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    check_norm(self, order, axes, dtype)
    target = (dtype or dtype_of(self))
    x = cast(self._array, op_math_type(target).numpy)
    return wrap_reduced(norm_array(x, order, axes, keepdim).astype(target.to_real().numpy, copy=False))


def norm_gradient(grad, self, order, norm, dim, keepdim):
    """Derivative of a norm; 0 at 0, and equals share that of the largest. The count of order 0 has none."""
    if order == 0:
        return None
    sizes = self._array.shape
    grad, norm = unreduce(grad, sizes, dim, keepdim), unreduce(norm, sizes, dim, keepdim)
    if order == 1:
        return self.sgn() * grad
    if order == 2:
        return grad * (self / norm).masked_fill(norm == 0, 0)
    if math.isinf(order):
        mask = (self.abs() == norm) | self.isnan()
        return self.sgn() * (grad / mask.sum(dim or (), True) * mask)
    if order < 1:
        return self.sgn() * self.abs().pow(order - 1).masked_fill(self == 0, 0) * grad * norm.pow(1 - order)
    share = (grad / norm.pow(order - 1)).masked_fill(norm == 0, 0)
    if order < 2:
        return self.sgn() * self.abs().pow(order - 1) * share
    return self * self.abs().pow(order - 2) * share


@vector_norm.backward
class LinalgVectorNormBackward0:
    def self(grad, self, ord, result, dim, keepdim):
        return norm_gradient(grad, self, ord, result, dim, keepdim)


@python_face("norm")
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The vector or matrix norm of `input`; p: a number, "fro" or "nuc".

    In PyTorch: `torch.functional.norm`.
    """
    dims = [dim] if isinstance(dim, int) else dim
    if not isinstance(p, str):
        return vector_norm_of(input, 2.0 if p is None else p, dims, keepdim, dtype, out)
    if p == "fro" and (dim is None or isinstance(dim, int) or len(dim) <= 2):
        return vector_norm_of(input, 2, dims, keepdim, dtype, out)
    dims = list(range(input._array.ndim)) if dims is None else dims
    extra = {} if out is None else {"out": out}
    return at.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype, **extra)


def vector_norm_of(input, order, dims, keepdim, dtype, out):
    if out is None:
        return vector_norm.call(input, order, dims, keepdim, dtype)
    return vector_norm.out.call(input, order, dims, keepdim, dtype, out)


dist = native_function("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", BOTH)


def check_norm_type(t):
    if dtype_of(t).category < FLOAT:
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{SCALAR_TYPE_NAMES[dtype_of(t)]} instead.")


@dist.kernel
def dist_cpu(self, other, p):
    difference = at.sub(self, other)
    check_norm_type(difference)
    return vector_norm_cpu(difference, p, None, False, None)


@dist.backward
class DistBackward0:
    def self(grad, self, other, p, result):
        return norm_gradient(grad, self - other, p, result, None, False)

    def other(grad, self, other, p, result):
        return -norm_gradient(grad, self - other, p, result, None, False)


# -------------------------------------------------------------------------------------------------- logsumexp

logsumexp = native_function("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", BOTH,
                            out=True)
alias_of("logsumexp", "logsumexp", module="special")


def logsumexp_array(x, axes, keepdim):
    """log(sum(exp(x))), with the largest element taken out so that no exp overflows."""
    if not x.size:
        return np.log(add_up(np.exp(x), axes, None, None, keepdim))
    largest = np.maximum.reduce(x.real, axes, None, None, True)
    largest = np.where(np.isinf(largest), largest.dtype.type(0), largest)
    total = np.log(add_up(np.exp(x - largest), axes, None, None, keepdim))
    return total + (largest if keepdim else largest.reshape(np.shape(total)))


@logsumexp.kernel
def logsumexp_cpu(self, dim, keepdim):
    dtype = dtype_of(self) if dtype_of(self).category >= FLOAT else scalar_type.get_default_dtype()
    x = cast(self._array, op_math_type(dtype).numpy)
    result = np.asarray(logsumexp_array(x, reduced_axes(self, dim), keepdim))
    return wrap_reduced(result.astype(dtype.numpy, copy=False))


@logsumexp.backward
class LogsumexpBackward0:
    def self(grad, self, result, dim, keepdim):
        sizes = self._array.shape
        return unreduce(grad, sizes, dim, keepdim) * conj((self - unreduce(result, sizes, dim,
                                                                           keepdim)).exp())
