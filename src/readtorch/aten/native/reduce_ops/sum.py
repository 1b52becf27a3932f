"""Sums and what is made in their way: sum, nansum, mean, prod, logsumexp, trace.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp` and `aten/src/ATen/native/cpu/SumKernel.cpp`;
derivatives in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import functools
import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.gen_python_functions import MISSING, given, table_for
from readtorch.aten.native.binary_ops.arithmetic import div_scalar
from readtorch.aten.native.exact_out import expected
from readtorch.aten.native.functions_manual import logsumexp_jvp
from readtorch.aten.native.reduce_ops_utils import reduced_axes, reduction_meta, sum_type, unreduce, without_imaginary
from readtorch.aten.native.tensor_iterator import (
    F4,
    F8,
    WIDENED,
    cast,
    conj,
    float_result_type,
    not_implemented,
    wrap_reduced,
)
from readtorch.aten.native.tensor_shape.view import sizes_binding
from readtorch.aten.native.vectorized import FROM_SIZE, are_flat, as_blocks, reduce_blocks, reduce_one
from readtorch.aten.native_function import BOTH, alias_of, binding_maker, native_function, packets
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.register_dispatch_key import any_device, out_kernel
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.torch_function import Overridden
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import META, NO_STORAGE
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.memory_format import fastest_first
from readtorch.c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES, op_math_type
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, wrap, wrap_result
from readtorch.c10.wrap_dim import wrap_dim, wrap_dims

add_up = np.add.reduce


# -------------------------------------------------------------------------------------------------------- sum

sum_all = native_function("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True)
sum_dim = native_function(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True
)


def computes_in_type_of_out(operator):
    """Let the `out=` form compute in the type of `out`, which must be the one asked for by `dtype`, the last argument."""

    write = out_kernel(operator)

    @operator.out.kernel
    @any_device
    def into_out(*arguments_and_out):
        *arguments, dtype, out = arguments_and_out
        if dtype not in (None, dtype_of(out)):
            raise RuntimeError(expected(dtype, out))
        return write(*arguments, dtype_of(out), out)


@sum_all.meta
def sum_all_meta(self, dtype):
    return TensorMeta((), sum_type(self._array, dtype))


@sum_dim.meta
def sum_dim_meta(self, dim, keepdim, dtype):
    return reduction_meta(self, reduced_axes(self, dim), keepdim, sum_type(self._array, dtype))


def sum_array(array, axes, keepdim, dtype):
    """The sum over `axes`; 16-bit floats add up in float32."""
    if dtype is None and (array.dtype is F4 or array.dtype is F8):
        return add_floats("sum", add_up, array, axes, keepdim)
    target = sum_type(array, dtype)
    wide = op_math_type(target).numpy
    return add_up(_as_type(array, wide), axes, wide, None, keepdim).astype(target.numpy, copy=False)


def add_floats(name, function, array, axes, keepdim):
    """`function(array, axes, …)`, or the compiled loops `name` where they serve."""
    axes = axes and sorted(axes)
    blocks = as_blocks(array, axes) if array.size >= FROM_SIZE else None
    if blocks is None:
        if array.size >= FROM_SIZE and array.dtype is F4 and not array.flags.c_contiguous:
            return add_strided(name, function, array, axes, keepdim)
        return function(array, axes and tuple(axes), None, None, keepdim)
    axes = range(array.ndim) if axes is None else axes
    sizes = [1 if d in axes else n for d, n in enumerate(array.shape) if keepdim or d not in axes]
    return reduce_blocks(name, blocks).reshape(sizes)


def add_strided(name, function, array, axes, keepdim):
    """The same for many float32 that do not lie row by row.

    With its dimensions in the order of memory the array may be one that the loops serve. Else NumPy adds up neighbours in memory in
    pairs, but rows one after the other, for which float64 is taken.
    """
    order = fastest_first(array.shape, array.strides)[::-1]
    axes = range(array.ndim) if axes is None else axes
    blocks = as_blocks(array.transpose(order), sorted([order.index(d) for d in axes]))
    if blocks is None:
        of_rows = order[-1] not in axes
        return function(array, tuple(axes), F8 if of_rows else None, None, keepdim).astype(F4, copy=False)
    kept = [d for d in order if d not in axes]
    result = reduce_blocks(name, blocks).reshape([array.shape[d] for d in kept])
    sizes = [1 if d in axes else n for d, n in enumerate(array.shape) if keepdim or d not in axes]
    return result.transpose([kept.index(d) for d in sorted(kept)]).reshape(sizes)


def _as_type(array, wide):
    """Complex numbers and 16-bit floats are converted before they are added: NumPy would not do it by itself, or one by one."""
    if array.dtype in WIDENED and wide is F4:
        return cast(array, wide)
    return without_imaginary(array, wide) if array.dtype.kind in "cV" or wide.kind in "biu" else array


# A NumPy reduction takes 0.8 µs to begin with; this many numbers are added more quickly by Python, in double precision.
FEW = 16


@sum_all.kernel
def sum_all_cpu(self, dtype):
    x = self._array
    if dtype is None and x.dtype is F4:
        if x.ndim == 1 and x.size <= FEW:
            return wrap(np.array(sum(x.tolist()), F4))
        if x.size >= FROM_SIZE:
            if are_flat(x):
                return wrap(reduce_one("sum", x.reshape(-1)))
            return wrap_result(add_floats("sum", add_up, x, None, False))
        return wrap(add_up(x, None, None, np.empty((), F4)))
    return wrap_result(sum_array(x, None, False, dtype))


@sum_all.backward
class SumBackward0:
    def self(grad, self_sym_sizes):
        return grad.expand(self_sym_sizes)

    result = "auto_linear"


@sum_dim.kernel
def sum_dim_cpu(self, dim, keepdim, dtype):
    if not keepdim and self._array.ndim == 1 and dim is not None and len(dim) == 1:
        wrap_dim(dim[0], 1)
        return sum_all_cpu(self, dtype)
    value = sum_array(self._array, reduced_axes(self, dim), keepdim, dtype)
    return wrap_reduced(value) if value.ndim > 1 else wrap_result(value)


@sum_dim.backward
class SumBackward1:
    def self(grad, self_sym_sizes, dim, keepdim):
        return unreduce(grad, self_sym_sizes, dim, keepdim).expand(self_sym_sizes)

    result = "auto_linear"


def total_or_dim_binding(name, of_all, of_dim):
    """The Python binding of sum and mean: the two plain ways to call them go straight to their operators."""

    @binding_maker(name, BOTH)
    def make(public):
        total, along = table_for(of_all, public), table_for(of_dim, public)
        parse = make_parser(packets["torch", name], False, public)

        def binding(input=MISSING, dim=MISSING, /, *args, **kwargs):
            try:
                if not args and not kwargs and isinstance(input, TensorImpl):
                    if dim is MISSING:
                        return total[input._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](input, None)
                    if type(dim) is int:
                        return along[input._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](
                            input, (dim,), False, None
                        )
                return parse((*given((input, dim)), *args), kwargs)
            except Overridden:
                pass
            return public.override((*given((input, dim)), *args), kwargs)

        binding.__name__ = binding.__qualname__ = name
        return binding


total_or_dim_binding("sum", sum_all, sum_dim)
computes_in_type_of_out(sum_all)
computes_in_type_of_out(sum_dim)

sum_to_size = native_function("sum_to_size(Tensor self, SymInt[] size) -> Tensor", "method")
sizes_binding("sum_to_size", sum_to_size)


# BLAS adds up rows, as a product with ones, several times faster than a NumPy reduction begins; up to so many
# numbers: `ones` are kept for the next call.
MANY = 1 << 20


@functools.lru_cache(maxsize=8)
def ones(count):
    return np.ones(count, F4)


@sum_to_size.kernel
def sum_to_size_cpu(self, size):
    """Without a graph, the gradient of a bias is one reduction, over the dimensions that the bias did not have."""
    x = self._array
    added = x.ndim - len(size)
    if added > 0 and x.shape[added:] == tuple(size):
        if x.dtype is F4 and x.ndim == 2 and added == 1 and 0 < x.size <= MANY:
            return wrap(ones(len(x)).dot(x))
        return wrap_reduced(sum_array(x, tuple(range(added)), False, None))
    return sum_to_size_composite(self, size)


@sum_to_size.compose
def sum_to_size_composite(self, size):
    shape = self._array.shape
    added = len(shape) - len(size)
    if added < 0 or any(n not in (1, m) for n, m in zip(size, shape[added:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    if not size:
        return sum_all.call(self, None)
    dims = [d for d in range(len(shape)) if d < added or (size[d - added] == 1 and shape[d] != 1)]
    result = sum_dim.call(self, dims, True, None) if dims else self
    return result.view(size) if added else result


nansum = native_function(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True
)


nansum.meta(sum_dim_meta)


@nansum.kernel
def nansum_cpu(self, dim, keepdim, dtype):
    x = self._array
    if x.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    kept = x if x.dtype.kind in "biu" else np.where(np.isnan(x), x.dtype.type(0), x)
    return wrap_reduced(sum_array(kept, reduced_axes(self, dim), keepdim, dtype))


def must_be_floating(i, out, result, inputs):
    """The out= forms of nansum and nanmean compute in the type of `out`, for which there must be a kernel."""
    if inputs[0]._array.dtype.kind not in "biu" and out._array.dtype.kind in "biu" and not out._keys & META:
        raise not_implemented("nansum_cpu")(dtype_of(out))


nansum.out_check = must_be_floating


@nansum.backward
class NansumBackward0:
    def self(grad, self, dim, keepdim):
        sizes = self._array.shape
        return unreduce(grad.to(self.dtype), sizes, dim, keepdim).expand(sizes) * ~self.isnan()

    def result(self_p, self_t, dim, keepdim, dtype):
        return at.where(self_p.isnan(), 0, self_t).sum(dim, keepdim, dtype=dtype)


# ------------------------------------------------------------------------------------------------------- mean

mean_all = native_function("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True)
mean_dim = native_function(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True
)


@mean_dim.meta
def mean_dim_meta(self, dim, keepdim, dtype):
    target = dtype or dtype_of(self)
    if target.category < FLOAT:
        kind = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {kind} dtype must be either a floating point or "
            f"complex dtype. Got: {SCALAR_TYPE_NAMES[target]}"
        )
    return reduction_meta(self, reduced_axes(self, dim), keepdim, target)


@mean_all.meta
def mean_all_meta(self, dtype):
    return mean_dim_meta(self, None, False, dtype)


def mean_array(array, axes, keepdim, dtype):
    target = dtype or scalar_type.by_numpy[array.dtype]
    wide = op_math_type(target).numpy
    if dtype is None and array.dtype is F4:
        total = sum_array(array, axes, keepdim, None)
    else:
        total = add_up(_as_type(array, wide), axes, wide, None, keepdim)
    count = array.size if axes is None else math.prod([array.shape[d] for d in axes])
    return (total / wide.type(count)).astype(target.numpy, copy=False)


@mean_all.kernel
def mean_all_cpu(self, dtype):
    x = self._array
    if dtype is None and x.dtype is F4 and x.ndim == 1 and 0 < x.size <= FEW:
        return wrap(np.array(sum(x.tolist()) / x.size, F4))
    if dtype is not None or x.dtype is not F4:
        mean_all_meta(self, dtype)
    return wrap_result(mean_array(x, None, False, dtype))


@mean_all.backward
class MeanBackward0:
    def self(grad, self_sym_sizes):
        return div_scalar.call(grad.expand(self_sym_sizes), math.prod(self_sym_sizes))

    result = "auto_linear"


@mean_dim.kernel
def mean_dim_cpu(self, dim, keepdim, dtype):
    if not keepdim and self._array.ndim == 1 and dim is not None and len(dim) == 1:
        wrap_dim(dim[0], 1)
        return mean_all_cpu(self, dtype)
    if dtype is not None or self._array.dtype is not F4:
        mean_dim_meta(self, dim, keepdim, dtype)
    return wrap_reduced(mean_array(self._array, reduced_axes(self, dim), keepdim, dtype))


def reduced_count(sizes, dim):
    """How many elements go into one element of the result."""
    return math.prod([sizes[d] for d in wrap_dims(dim, len(sizes))] if dim else sizes) if sizes else 1


@mean_dim.backward
class MeanBackward1:
    def self(grad, self_sym_sizes, dim, keepdim):
        grad = unreduce(grad, self_sym_sizes, dim, keepdim).expand(self_sym_sizes)
        return div_scalar.call(grad, max(1, reduced_count(self_sym_sizes, dim)))

    result = "auto_linear"


total_or_dim_binding("mean", mean_all, mean_dim)

nanmean = native_function(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True
)
nanmean.out_check = must_be_floating


@nanmean.compose
def nanmean_composite(self, dim, keepdim, dtype):
    if self.dtype.category < FLOAT:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {SCALAR_TYPE_NAMES[self.dtype]}"
        )
    counts = (~at.isnan(self.detach())).sum(dim, keepdim)
    return at.nansum(self, dim, keepdim, dtype=dtype).div(counts)


# ------------------------------------------------------------------------------------------------------- prod

prod_all = native_function("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True)
prod_dim = native_function(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", BOTH, out=True
)

prod_all.meta(sum_all_meta)


@prod_dim.meta
def prod_dim_meta(self, dim, keepdim, dtype):
    return sum_dim_meta(self, (dim,), keepdim, dtype)


def prod_array(array, axes, keepdim, dtype):
    target = sum_type(array, dtype)
    wide = op_math_type(target).numpy
    product = np.multiply.reduce(_as_type(array, wide), axes, wide, None, keepdim)
    return product.astype(target.numpy, copy=False)


@prod_all.kernel
def prod_all_cpu(self, dtype):
    return wrap_result(prod_array(self._array, None, False, dtype))


@prod_dim.kernel
def prod_dim_cpu(self, dim, keepdim, dtype):
    return wrap_reduced(prod_array(self._array, reduced_axes(self, (dim,)), keepdim, dtype))


computes_in_type_of_out(prod_all)
computes_in_type_of_out(prod_dim)


def prod_gradient(grad, input, result, dim):
    """grad * result / input, without the division where an input is 0: there, the product of all others along `dim`."""
    if not may_have_zeros(input):
        return grad * conj(result / input)
    return grad * conj(product_of_others(input, dim))


def may_have_zeros(t):
    """On the Meta device, and under function transforms, all that have elements."""
    return bool(t._array.size) if t._keys & (META | NO_STORAGE) else bool(at.eq(t, 0).any())


def product_of_others(input, dim):
    """For each element the product of all other elements along `dim`: what comes before it times what comes after it."""
    size = input._array.shape[dim]
    one = at.ones_like(input.narrow(dim, 0, 1))
    before = at.cat([one, input.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = at.cat([one, input.narrow(dim, 1, size - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return before * after


@prod_all.backward
class ProdBackward0:
    def self(grad, self, result):
        input = self.to(grad.dtype)
        if not input._array.ndim:
            return grad * at.ones_like(input)
        return prod_gradient(grad, input.reshape(-1), result, 0).reshape(input._array.shape)

    def result(self_p, self_t, result):
        factors = ProdBackward0.self(at.ones_like(result), self_p, result)
        return (factors * self_t.conj()).sum().conj()


@prod_dim.backward
class ProdBackward1:
    def self(grad, self, result, dim, keepdim):
        input = self.to(grad.dtype)
        if not input._array.ndim:
            return grad * at.ones_like(input)
        dim = wrap_dim(dim, input._array.ndim)
        if not keepdim:
            grad, result = grad.unsqueeze(dim), result.unsqueeze(dim)
        return prod_gradient(grad, input, result, dim)

    def result(self_p, self_t, result, dim, keepdim):
        factors = ProdBackward1.self(at.ones_like(result), self_p, result, dim, keepdim)
        return (factors * self_t.conj()).sum((dim,), keepdim).conj()


# ------------------------------------------------------------------------------------------------------ trace

trace = native_function("trace(Tensor self) -> Tensor", BOTH)


@trace.meta
def trace_meta(self):
    if self._array.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self._array.ndim}")
    return TensorMeta((), sum_type(self._array))


@trace.kernel
def trace_cpu(self):
    x, target = self._array, sum_type(self._array).numpy
    if x.ndim != 2:
        trace_meta(self)
    return wrap(np.asarray(np.trace(x, dtype=WIDENED.get(x.dtype, target)), target))


@trace.backward
class TraceBackward0:
    def self(grad, self_sym_sizes):
        return grad * at.eye(*self_sym_sizes, dtype=grad.dtype, device=grad.device)

    result = "auto_linear"


# -------------------------------------------------------------------------------------------------- logsumexp

logsumexp = native_function("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", BOTH, out=True)
alias_of("logsumexp", "logsumexp", module="special")


def logsumexp_array(x, axes, keepdim, rounded):
    """log(sum(exp(x))), with the largest element taken out so that no exp overflows. rounded: what a step's result becomes."""
    if not x.size:
        return np.log(add_up(np.exp(x), axes, None, None, keepdim))
    largest = np.maximum.reduce(x.real, axes, None, None, True)
    largest = np.where(np.isinf(largest), largest.dtype.type(0), largest)
    exponentials = rounded(np.exp(rounded(x - largest)))
    total = rounded(np.log(rounded(add_up(exponentials, axes, None, None, keepdim))))
    return total + (largest if keepdim else largest.reshape(np.shape(total)))


@logsumexp.meta
def logsumexp_meta(self, dim, keepdim):
    return reduction_meta(self, reduced_axes(self, dim), keepdim, float_result_type(self))


@logsumexp.kernel
def logsumexp_cpu(self, dim, keepdim):
    dtype = dtype_of(self) if dtype_of(self).category >= FLOAT else scalar_type.get_default_dtype()
    wide = op_math_type(dtype).numpy
    rounded = np.asarray if wide == dtype.numpy else lambda array: np.asarray(array).astype(dtype.numpy).astype(wide)
    result = np.asarray(logsumexp_array(cast(self._array, wide), reduced_axes(self, dim), keepdim, rounded))
    return wrap_reduced(result.astype(dtype.numpy, copy=False))


@logsumexp.backward
class LogsumexpBackward0:
    def self(grad, self, result, dim, keepdim):
        sizes = self._array.shape
        return unreduce(grad, sizes, dim, keepdim) * conj((self - unreduce(result, sizes, dim, keepdim)).exp())

    def result(self_p, self_t, dim, keepdim):
        return logsumexp_jvp(self_p, self_t, dim, keepdim)
