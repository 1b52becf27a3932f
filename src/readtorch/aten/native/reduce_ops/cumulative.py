"""Scans: a running sum, product, maximum or minimum along a dimension; and diff, the inverse of cumsum.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp` and `aten/src/ATen/native/cpu/ReduceOpsKernel.cpp`;
derivatives in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten import parallel
from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.binary_ops.floating_point import logaddexp_array
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.reduce_ops_utils import sum_type, without_imaginary
from readtorch.aten.native.tensor_iterator import cast, conj, not_implemented
from readtorch.aten.native.vectorized import FROM_SIZE, GRAIN, reductions
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT, op_math_type
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .sum import computes_in_type_of_out, may_have_zeros


def scan(self, dim, dtype, ufunc):
    """`ufunc` accumulated along `dim`; a 0-dimensional tensor counts as one element."""
    x = self._array
    dim = wrap_dim(dim, x.ndim)
    target = sum_type(x, dtype)
    if ufunc is np.add and target is scalar_type.float32 and x.size >= FROM_SIZE and (x.ndim == 1 or dim == x.ndim - 1):
        return wrap(cumsum_rows(x))
    wide = without_imaginary(x, op_math_type(target).numpy)
    result = ufunc.accumulate(wide, dim) if x.ndim else wide
    return wrap(np.array(result, target.numpy, copy=True if result is x else None, order="C"))


def cumsum_rows(x):
    """Running float32 sums along the last dimension, as a compiled loop."""
    rows = np.ascontiguousarray(x, np.float32).reshape(-1, x.shape[-1])
    out = np.empty_like(rows)
    grain = max(1, GRAIN // max(1, x.shape[-1]))
    parallel.parallel_for(0, len(rows), grain, lambda b, e: reductions().cumsum_rows(rows[b:e], out[b:e]))
    return out.reshape(x.shape)


def scan_operator(name, ufunc):
    operator = native_function(
        f"{name}(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", BOTH, inplace=True, out=True
    )
    operator.kernel(lambda self, dim, dtype: scan(self, dim, dtype, ufunc))

    @operator.meta
    def scan_meta(self, dim, dtype):
        wrap_dim(dim, self._array.ndim)
        return TensorMeta(self._array.shape, sum_type(self._array, dtype))

    computes_in_type_of_out(operator)
    return operator


def reversed_cumsum(t, dim):
    """For each element the sum from it to the end."""
    return t.flip(dim).cumsum(dim).flip(dim)


# -------------------------------------------------------------------------------------------- cumsum, cumprod

cumsum = scan_operator("cumsum", np.add)
cumprod = scan_operator("cumprod", np.multiply)


@cumsum.backward
class CumsumBackward0:
    def self(grad, self_scalar_type, dim):
        grad = grad.to(self_scalar_type)
        return reversed_cumsum(grad, dim) if grad._array.ndim and grad._array.size > 1 else grad

    result = "auto_linear"


def cumprod_jvp(self_t, self_p, result, dim):
    """result * (the sum of self_t / self_p so far); from the first zero on it is the zero's tangent times all others."""
    usual = (self_t / self_p).cumsum(dim) * result
    is_zero = self_p == 0
    if not self_p._array.ndim:
        return at.where(is_zero, self_t, usual)
    first_zero = is_zero & (is_zero.cumsum(dim) == 1)
    without_it = at.where(first_zero, self_t, self_p).cumprod(dim)
    return at.where(first_zero.cumsum(dim) > 0, without_it, usual)


@cumprod.backward
class CumprodBackward0:
    def self(grad, self, dim, result):
        return cumprod_gradient(grad.to(self.dtype), self, wrap_dim(dim, self._array.ndim), result)

    def result(self_p, self_t, dim, dtype, result):
        tangent = cumprod_jvp(self_t, self_p, result, dim)
        return tangent if dtype is None else tangent.to(dtype)


def cumprod_gradient(grad, input, dim, result):
    """Note [ Derivative of cumprod ]

    Output j is the product of the inputs 0 … j, so input k gets from every j >= k: grad_j times that product
    without input k. Where no input is 0 this is result_j / input_k, and one reversed sum does it. Else the
    products without input k are formed for each k: those before it, times a new cumprod of those after it.
    """
    if input._array.size <= 1:
        return grad
    if input._array.shape[dim] == 1:
        return grad
    if not may_have_zeros(input):
        return reversed_cumsum(conj(result) * grad, dim) / conj(input)
    size = input._array.shape[dim]
    one = at.ones_like(input.narrow(dim, 0, 1))
    columns = []
    for k in range(size):
        before = input.narrow(dim, 0, k).prod(dim, True)
        after = at.cat([one, input.narrow(dim, k + 1, size - k - 1).cumprod(dim)], dim)
        columns.append((grad.narrow(dim, k, size - k) * conj(before * after)).sum(dim))
    return at.stack(columns, dim)


# --------------------------------------------------------------------------------------------- cummax, cummin


def expected_scalar(out, result, *_):
    return f"expected scalar_type {type_name(result)} but found {type_name(out)}"


def running_extreme(name, ufunc):
    """Declare cummax or cummin: the extreme so far and where it was last met; after a nan all is nan."""
    operator = native_function(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        BOTH,
        out=exact_out(expected_scalar, expected_scalar),
    )
    result = getattr(return_types, name)

    @operator.meta
    def scan_meta(self, dim):
        wrap_dim(dim, self._array.ndim)
        return TensorMeta(self._array.shape, dtype_of(self)), TensorMeta(self._array.shape, scalar_type.int64)

    @operator.kernel
    def scan_with_indices(self, dim):
        x = self._array
        dim = wrap_dim(dim, x.ndim)
        if x.dtype.kind == "c":
            raise not_implemented(f"{name}_cpu")(dtype_of(self))
        if not x.ndim:
            return result(wrap(x.copy()), wrap(np.zeros((), np.int64)))
        values = ufunc.accumulate(x, dim)
        met = (x == values) | (x != x)
        places = np.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.ndim)])
        indices = np.maximum.accumulate(np.where(met, places, 0), dim)
        return result(*(wrap(np.ascontiguousarray(array)) for array in (values, indices)))

    return operator


cummax = running_extreme("cummax", np.maximum)
cummin = running_extreme("cummin", np.minimum)


def collect(grad, self, indices, dim):
    """Each output's gradient goes to the element it was taken from."""
    if self._array.size == 0:
        return at.zeros_like(self)
    return at.zeros(self._array.shape, dtype=grad.dtype, device=grad.device).scatter_add(dim, indices, grad)


@cummax.backward
class CummaxBackward0:
    output_differentiability = [True, False]
    self = collect

    def values(self_t, dim, indices):
        return self_t.gather(dim, indices)


@cummin.backward
class CumminBackward0:
    output_differentiability = [True, False]
    self = collect

    def values(self_t, dim, indices):
        return self_t.gather(dim, indices)


# ----------------------------------------------------------------------------------------------- logcumsumexp

logcumsumexp = native_function("logcumsumexp(Tensor self, int dim) -> Tensor", BOTH, out=exact_out(expected_scalar))


@logcumsumexp.meta
def logcumsumexp_meta(self, dim):
    wrap_dim(dim, self._array.ndim)
    return TensorMeta(self._array.shape, dtype_of(self))


@logcumsumexp.kernel
def logcumsumexp_cpu(self, dim):
    x = self._array
    dim = wrap_dim(dim, x.ndim)
    dtype = dtype_of(self)
    if dtype.category < FLOAT:
        raise not_implemented("logcumsumexp_out_cpu")(dtype)
    if not x.ndim:
        return wrap(x.copy())
    x = cast(x, op_math_type(dtype).numpy)
    result = accumulate(logaddexp_array, x, dim) if x.dtype.kind == "c" else np.logaddexp.accumulate(x, dim)
    return wrap(result.astype(dtype.numpy, order="C", copy=False))


def accumulate(function, x, dim):
    """`function` accumulated along `dim`, for a function that is not a ufunc."""
    result = np.moveaxis(x.copy(), dim, 0)
    for i in range(1, len(result)):
        result[i] = function(result[i - 1], result[i])
    return np.moveaxis(result, 0, dim)


@logcumsumexp.backward
class LogcumsumexpBackward0:
    def self(grad, self, result, dim):
        if not self._array.ndim or not self._array.size:
            return grad
        if self._array.dtype.kind == "c":
            return conj((reversed_logcumsumexp(grad.conj().log() - result, dim) + self).exp())
        nothing = at.full((), np.finfo(op_math_type(grad.dtype).numpy).min.item(), dtype=grad.dtype, device=grad.device)
        positive, negative = [at.where(sign, grad.abs().log(), nothing) for sign in (grad > 0, grad < 0)]
        return (reversed_logcumsumexp(positive - result, dim) + self).exp() - (
            reversed_logcumsumexp(negative - result, dim) + self
        ).exp()

    def result(self_p, self_t, dim):
        """The mean of the tangents so far, weighted with the exponentials; these are taken relative to the largest."""
        if not self_p.numel():
            return self_t.clone()
        largest = at.amax(at.real(self_p) if self_p.dtype.is_complex else self_p, (dim,), True)
        largest = largest.masked_fill(largest.abs() == float("inf"), 0)
        weights = (self_p - largest).exp()
        return (weights * self_t).cumsum(dim) / (
            weights.cumsum(dim) + 1e-13
        )  # all of the first may be 0 next to the largest


def reversed_logcumsumexp(t, dim):
    return t.flip(dim).logcumsumexp(dim).flip(dim)


# ------------------------------------------------------------------------------------------------------- diff


def exact_copy(operator):
    """With n = 0 the result is a copy, whose dtype `out` must have; else a difference, which is cast."""
    names = exact_out(expected_scalar)(operator)
    check = operator.out_check
    operator.out_check = lambda i, out, result, arguments: arguments[1] or check(i, out, result, arguments)
    return names


diff = native_function(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor", BOTH, out=exact_copy
)


@diff.compose
def diff_composite(self, n, dim, prepend, append):
    if self._array.ndim < 1:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for extra in (prepend, append):
        if extra is not None:
            check_fits_beside(self, extra, wrap_dim(dim, self._array.ndim))
    if n == 0:
        return at.empty_like(self).copy_(self)
    parts = [t for t in (prepend, self, append) if t is not None]
    t = at.cat(parts, dim) if len(parts) > 1 else self
    for _ in range(min(n, t._array.shape[dim])):
        t = neighbour_differences(t, dim)
    return t


def check_fits_beside(self, extra, dim):
    """RuntimeError unless `extra` can be put before or behind `self` along `dim`."""
    if extra._array.ndim != self._array.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (size, given) in enumerate(zip(self._array.shape, extra._array.shape)):
        if i != dim and given != size:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({i}) = {size}, but got tensor.size({i}) = {given}"
            )


def neighbour_differences(t, dim):
    size = t._array.shape[dim]
    later, earlier = t.narrow(dim, min(1, size), max(0, size - 1)), t.narrow(dim, 0, max(0, size - 1))
    return at.logical_xor(later, earlier) if t.dtype is scalar_type.bool else later - earlier
