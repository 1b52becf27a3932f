"""Norms of vectors and matrices: linalg.vector_norm, linalg.matrix_norm, linalg.norm, norm, dist; and the condition
number.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`; norm and dist in `aten/src/ATen/native/ReduceOps.cpp`;
`norm_backward` in `torch/csrc/autograd/FunctionsManual.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_square
from readtorch.aten.native.reduce_ops.sum import add_floats, add_up
from readtorch.aten.native.reduce_ops_utils import reduced_axes, reduction_meta, unreduce
from readtorch.aten.native.tensor_iterator import cast, wrap_reduced
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.register_dispatch_key import any_device
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES, op_math_type
from readtorch.c10.tensor_impl import dtype_of, type_name
from readtorch.c10.wrap_dim import wrap_dim

LINALG = {"module": "linalg", "out": exact_out()}


def linalg_norm_types(out, result, *arguments):
    return f"linalg.norm expected out tensor dtype {type_name(result)} but got: {type_name(out)}"


vector_norm = native_function(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
    "dtype=None) -> Tensor",
    module="linalg",
    name="vector_norm",
    out=exact_out(),
)


@vector_norm.meta
def vector_norm_meta(self, order, dim, keepdim, dtype):
    return reduction_meta(self, axes_of_norm(self, order, dim, dtype), keepdim, (dtype or dtype_of(self)).to_real())


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
    return add_up(size**order, axes, None, None, keepdim) ** (1 / order)


def add_squares(x, axes, dtype, out, keepdim):
    squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
    return add_up(squares, axes, dtype, out, keepdim)


def axes_of_norm(self, order, dim, dtype):
    """The axes that the norm runs over. RuntimeError for orders and dtypes that have none."""
    axes = reduced_axes(self, dim)
    if isinstance(order, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    own = dtype_of(self)
    if own.category < FLOAT:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {SCALAR_TYPE_NAMES[own]}"
        )
    if (order < 0 or order == math.inf) and any(self._array.shape[a] == 0 for a in axes):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {_shown(order)} norm on an empty tensor because the "
            "operation does not have an identity"
            if len(axes) == self._array.ndim
            else f"linalg.vector_norm cannot compute the {_shown(order)} norm on the dimension {axes[0]} "
            "because this dimension is empty and the operation does not have an identity"
        )
    if dtype is not None:
        check_norm_dtype("linalg.vector_norm", own, dtype)
    return axes


def check_norm_dtype(name, own, dtype):
    """Raises RuntimeError unless numbers of the dtype `own` may be converted to `dtype` for a norm."""
    if dtype.category < FLOAT:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {SCALAR_TYPE_NAMES[dtype]}")
    if dtype.is_complex != own.is_complex:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {SCALAR_TYPE_NAMES[dtype]}")
    if scalar_type.promote_types(own, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({SCALAR_TYPE_NAMES[own]}) should be convertible without "
            f"narrowing to the specified dtype ({SCALAR_TYPE_NAMES[dtype]})"
        )


def _shown(order):
    return "inf" if order == math.inf else "-inf" if order == -math.inf else f"{order:g}"


@vector_norm.kernel
def vector_norm_cpu(self, order, dim, keepdim, dtype):
    axes = axes_of_norm(self, order, dim, dtype)
    target = dtype or dtype_of(self)
    x = cast(self._array, op_math_type(target).numpy)
    return wrap_reduced(norm_array(x, order, axes, keepdim).astype(target.to_real().numpy, copy=False))


def norm_gradient(grad, self, order, norm, dim, keepdim):
    """Derivative of a norm; 0 at 0, and equals share that of the largest. The count of order 0 has none."""
    if order == 0:
        return None
    if dim:
        sizes = self._array.shape
        grad, norm = unreduce(grad, sizes, dim, keepdim), unreduce(norm, sizes, dim, keepdim)
    if order == 1:
        return self.sgn() * grad
    if order == 2:
        return grad * (self / norm).masked_fill_(norm == 0, 0)
    if math.isinf(order):
        mask = (self.abs() == norm) | self.isnan()
        return self.sgn() * (grad / mask.sum(dim or (), True) * mask)
    if order < 1:
        return self.sgn() * self.abs().pow(order - 1).masked_fill(self == 0, 0) * grad * norm.pow(1 - order)
    share = (grad / norm.pow(order - 1)).masked_fill(norm == 0, 0)
    if order < 2:
        return self.sgn() * self.abs().pow(order - 1) * share
    return self * self.abs().pow(order - 2) * share


def norm_jvp(self_p, self_t, p, norm, dim, keepdim):
    """The sum of the elements' changes in size, weighted with what each adds to the norm."""
    dim = dim or ()
    p = 2.0 if p is None else float(p)
    change = at.real(self_p.sgn().conj() * self_t)
    if p == 0:
        return at.zeros_like(norm)
    if p == 1:
        return change.sum(dim, keepdim)
    whole = unreduce(norm, self_p._array.shape, dim, keepdim)
    size = self_p.abs()
    if abs(p) == math.inf:
        chosen = (size == whole) | (size.isnan() & whole.isnan())
        return (at.where(chosen, change, 0) / chosen.sum(dim, True)).sum(dim, keepdim)
    weight = size if p == 2 else size.pow(p - 1)
    weight = weight.masked_fill(size == 0, 0) if p < 1 else weight
    scale = norm if p == 2 else norm.pow(p - 1)
    return ((weight * change).sum(dim, keepdim) / scale).masked_fill(norm == 0, 0)


@vector_norm.backward
class LinalgVectorNormBackward0:
    def self(grad, self, ord, result, dim, keepdim):
        return norm_gradient(grad, self, ord, result, dim, keepdim)

    def result(self_p, self_t, ord, result, dim, keepdim):
        return norm_jvp(self_p, self_t, ord, result, dim, keepdim)


@python_binding("norm")
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The vector or matrix norm of `input`; p: a number, "fro" or "nuc".

    In PyTorch: `torch.functional.norm`.
    """
    dims = [dim] if isinstance(dim, int) else dim
    if input._keys & SPARSE_CPU:
        return norm_of_sparse(input, p, dims, keepdim, out, dtype)
    if not isinstance(p, str):
        return vector_norm_of(input, 2.0 if p is None else p, dims, keepdim, dtype, out)
    if p == "fro" and (dim is None or isinstance(dim, int) or len(dim) <= 2):
        return vector_norm_of(input, 2, dims, keepdim, dtype, out)
    dims = list(range(input._array.ndim)) if dims is None else dims
    extra = {} if out is None else {"out": out}
    return at.linalg_matrix_norm(input, p, dims, keepdim, dtype=dtype, **extra)


def vector_norm_of(input, order, dims, keepdim, dtype, out):
    if type(keepdim) is not bool:  # which the parser refuses
        return at.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype)
    if out is None:
        return vector_norm.call(input, order, dims, keepdim, dtype)
    return vector_norm.out.call(input, order, dims, keepdim, dtype, out)


def norm_of_sparse(input, p, dims, keepdim, out, dtype):
    """As `torch.functional.norm` goes on where `linalg.vector_norm` has no kernel: that of `norm` takes whole tensors only."""
    if isinstance(p, str):
        if p not in ("fro", "nuc"):
            raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
        if dtype is not None:
            raise ValueError(f"dtype argument is not supported in {'frobenius' if p == 'fro' else 'nuclear'} norm")
    if p == "fro" and len(dims or ()) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    if p == "nuc":
        return matrix_norm_named.call(input, p, dims or [0, 1], keepdim, None)
    if out is not None:
        return vector_norm.out.call(input, 2, dims, keepdim, dtype, out)  # which refuses, too
    result = p_norm.call(
        input, 2 if p == "fro" else p, list(range(input._array.ndim)) if dims is None else dims, keepdim
    )
    if dtype is not None:
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    return result


dist = native_function("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", BOTH)


def check_norm_type(t):
    if dtype_of(t).category < FLOAT:
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{SCALAR_TYPE_NAMES[dtype_of(t)]} instead."
        )


@dist.kernel
@any_device
def norm_of_difference(self, other, p):
    difference = at.sub(self, other)
    check_norm_type(difference)
    return vector_norm.call(difference, p, None, False, None)


@dist.backward
class DistBackward0:
    def self(grad, self, other, p, result):
        return norm_gradient(grad, self - other, p, result, None, False)

    def other(grad, self, other, p, result):
        return -norm_gradient(grad, self - other, p, result, None, False)

    def result(self_p, self_t, other_p, other_t, p, result):
        return norm_jvp(self_p - other_p, self_t - other_t, p, result, None, False)


# ----------------------------------------------------------------------------------- linalg.norm, matrix_norm

_TAIL = "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
matrix_norm = native_function(
    f"linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], {_TAIL}",
    module="linalg",
    name="matrix_norm",
    out=exact_out(),
)
matrix_norm_named = native_function(
    f"linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], {_TAIL}",
    module="linalg",
    name="matrix_norm",
    out=exact_out(),
)
linalg_norm = native_function(
    f"linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, {_TAIL}",
    module="linalg",
    name="norm",
    out=exact_out(linalg_norm_types),
)
linalg_norm_named = native_function(
    f"linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, {_TAIL}",
    module="linalg",
    name="norm",
    out=exact_out(linalg_norm_types),
)


def check_linalg_norm_type(name, self, dtype):
    kind = dtype_of(self)
    if kind.category < FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {type_name(self)}")
    if dtype is not None:
        check_norm_dtype(name, kind, dtype)


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
    """1, inf: the largest column or row sum; 2: the largest singular value; negative orders: the smallest instead."""
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
    """The largest, or for a negative order the smallest. The largest of no sums is 0."""
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
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    elif ord is not None and self._array.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {self._array.ndim}D."
        )


@linalg_norm.compose
def linalg_norm_composite(self, ord, dim, keepdim, dtype):
    """A matrix norm over two dimensions, a vector norm over any other number; without an order both are the 2-norm."""
    check_norm_dims(self, ord, dim)
    if ord is not None and (len(dim) == 2 if dim is not None else self._array.ndim == 2):
        return matrix_norm.call(self, ord, dim or (0, 1), keepdim, dtype)
    return vector_norm.call(self, 2 if ord is None else ord, dim, keepdim, dtype)


@linalg_norm_named.compose
def linalg_norm_named_composite(self, ord, dim, keepdim, dtype):
    check_norm_dims(self, ord, dim)
    return matrix_norm_named.call(self, ord, dim or (0, 1), keepdim, dtype)


# ------------------------------------------------------------------------------------- torch.norm's operators

# What C++ calls the p-norm; Python's `norm` has become a binding of linalg_vector_norm.
p_norm = native_function("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", "")
p_norm_of_all = native_function("norm.Scalar(Tensor self, Scalar p=2) -> Tensor", "")


@p_norm_of_all.kernel
@any_device
def norm_of_all(self, p):
    return vector_norm.call(self, p, None, False, None)


@p_norm_of_all.backward
class NormBackward0:
    def self(grad, self, p, result):
        return norm_gradient(grad, self, p, result, None, False)

    def result(self_p, self_t, p, result):
        return norm_jvp(self_p, self_t, p, result, None, False)


@p_norm.kernel
@any_device
def norm_along(self, p, dim, keepdim):
    return vector_norm.call(self, 2 if p is None else p, dim, keepdim, None)


@p_norm.backward
class NormBackward1:
    def self(grad, self, p, result, dim, keepdim):
        return norm_gradient(grad, self, p, result, dim, keepdim)

    def result(self_p, self_t, p, result, dim, keepdim):
        return norm_jvp(self_p, self_t, p, result, dim, keepdim)


# ------------------------------------------------------------------------------------------------------- cond

cond = native_function("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", name="cond", **LINALG)
cond_by_name = native_function("linalg_cond.p_str(Tensor self, str p) -> Tensor", name="cond", **LINALG)

# ------------------------------------------------------------------------------------------- condition number


@cond.compose
def cond_composite(self, p):
    """How much errors grow when an equation with this matrix is solved, in the norm p."""
    if self._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or abs(p) == 2:
        return ratio_of_singular_values(self, smallest_first=p == -2)
    if abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    return product_of_norms(self, p, f"linalg.cond(ord={p})")


def ratio_of_singular_values(self, smallest_first):
    if not self._array.size:
        return at.new_zeros(self, self._array.shape[:-2], dtype=dtype_of(self).to_real())
    values = at.linalg_svdvals(self)
    first, last = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
    return (last / first if smallest_first else first / last).squeeze(-1)


def product_of_norms(self, p, name):
    """|A| |A⁻¹|; inf for a singular matrix."""
    check_square(self, name)
    if not self._array.size:
        return at.new_zeros(self, self._array.shape[:-2], dtype=dtype_of(self).to_real())
    inverse, info = at.linalg_inv_ex(self)
    inverse = inverse.masked_fill(info.unsqueeze(-1).unsqueeze(-1) > 0, math.inf)
    return at.linalg_norm(self, p, (-2, -1)) * at.linalg_norm(inverse, p, (-2, -1))


@cond_by_name.compose
def cond_by_name_composite(self, p):
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    return product_of_norms(self, p, f"linalg.cond(ord={p})")
