"""Reductions and normalizations that leave elements out: those where a boolean mask is False.

A left-out element is replaced by the value that does not change the result, 0 in a sum, minus infinity in a maximum, and
the operator itself knows of no mask. So a row that is left out whole gives that value, and the mean of nothing is nan.

In PyTorch: `torch/masked/_ops.py`.
"""

import math

import readtorch
from readtorch.nn import functional

from .maskedtensor.core import is_masked_tensor
from .maskedtensor.creation import as_masked_tensor

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_REDUCTIONS = {"sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp"}
_NORMALIZATIONS = {"softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"}
_SMALL_INTEGERS = {readtorch.uint8, readtorch.bool, readtorch.int8, readtorch.int16, readtorch.int32}


# ---------------------------------------------------------------------------------------- what a left-out element becomes


def _reduction_identity(op_name, input, *args):
    """The value that changes nothing, as a tensor without dimensions; None where there is no such value (mean, var, std).

    args: the order of `norm`. NotImplementedError if dtypes such as bool have none.
    """
    op_name = op_name.rsplit(".", 1)[-1]
    if op_name in ("mean", "var", "std"):
        return None
    value = _identity(op_name, input, *args)
    if value is None:
        raise NotImplementedError(f"identity of {op_name} on {input.dtype} input")
    dtype = readtorch.float32 if op_name == "median" and not readtorch.is_floating_point(input) else input.dtype
    return readtorch.tensor(value, dtype=dtype, device=input.device)


def _identity(op_name, input, order=2):
    if op_name in ("sum", "cumsum"):
        return 0
    if op_name in ("prod", "cumprod"):
        return 1
    if op_name == "logsumexp" and readtorch.is_complex(input):
        return complex(-math.inf)
    if op_name in ("amax", "argmax", "logaddexp", "logsumexp"):
        return _lowest_or_highest(input, -math.inf, "min")
    if op_name in ("amin", "argmin"):
        return _lowest_or_highest(input, math.inf, "max")
    if op_name == "norm":
        if order == -math.inf and not readtorch.is_floating_point(input):
            raise AssertionError(f"input must be floating point, got {input.dtype}")
        return math.inf if order == -math.inf else 0
    return math.nan if op_name == "median" else None  # nanmedian passes over nan


def _lowest_or_highest(input, infinity, of_integers):
    if readtorch.is_floating_point(input):
        return infinity
    if readtorch.is_signed(input) or input.dtype == readtorch.uint8:
        return getattr(readtorch.iinfo(input.dtype), of_integers)
    return None


# ------------------------------------------------------------------------------------------------------ masks and dims


def _canonical_dim(dim, ndim):
    """The dims as a sorted tuple of numbers that count from the front; None and () are all.

    RuntimeError for one that is given twice, IndexError for one that is not there.
    """
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    dims = []
    for d in (dim,) if isinstance(dim, (int, readtorch.SymInt)) else dim:
        if d in dims:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if d >= ndim or d < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        dims.append(d % ndim)
    return tuple(sorted(dims))


def _input_mask(input, *args, **kwargs):
    """The mask in the shape of the input, as bools.

    A mask of fewer dimensions is broadcast, one of another layout is converted. ValueError without a mask, or for other layouts
    than strided, COO and CSR; IndexError for one with more dimensions.
    """
    if input.layout not in (readtorch.strided, readtorch.sparse_coo, readtorch.sparse_csr):
        raise ValueError(f"_input_mask expects strided or sparse COO or sparse CSR tensor but got {input.layout}")
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = readtorch.broadcast_to(_dense(mask).clone(), input.shape)
    return _dense(mask).to(dtype=readtorch.bool)


def _dense(mask):
    return mask if mask.layout == readtorch.strided else mask.to_dense()


def _output_mask(op, input, *args, **kwargs):
    """Which elements of `op(input, *args, **kwargs)` come of at least one element that is not left out."""
    if not callable(op):
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    if op.__name__ in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    if op.__name__ not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {op.__module__}.{op.__name__})")
    if op.__name__ == "norm":
        args = args[1:]  # the order stands before the dim
    dim = args[0] if args else kwargs.get("dim")
    mask = _input_mask(input, *args, **kwargs)
    return mask.any(dim=_canonical_dim(dim, input.ndim), keepdim=bool(kwargs.get("keepdim", False)))


def _where(mask, input, fill_value):
    """`torch.where`. ValueError for a sparse mask."""
    if mask.layout != readtorch.strided:
        raise ValueError(f"_where expects strided or sparse COO or sparse CSR tensor but got {mask.layout}")
    return readtorch.where(mask, input, fill_value)


def _fill(op, input, mask, *args):
    return (
        input
        if mask is None
        else _where(_input_mask(input, mask=mask), input, _reduction_identity(op.__name__, input, *args))
    )


class _Combine(readtorch.autograd.Function):
    """The same for the data and the mask of a MaskedTensor, whose gradient is one, too."""

    @staticmethod
    def forward(ctx, data, mask, op, args):
        ctx.save_for_backward(mask)
        ctx.mark_non_differentiable(mask)
        return _fill(op, data, mask, *args)

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        data = grad_output.get_data() if is_masked_tensor(grad_output) else grad_output
        return as_masked_tensor(data, mask), None, None, None


def _combine_input_and_mask(op, input, mask, *args):
    """The input with its left-out elements replaced by what changes nothing in `op`: an ordinary tensor.

    The mask of a MaskedTensor is its own. args: the order, for `norm`.
    """
    if is_masked_tensor(input):
        return _Combine.apply(input.get_data(), input.get_mask(), op, args)
    return _fill(op, input, mask, *args)


def _strided(input, what, expected="strided tensor", has_sparse=False):
    """The input. ValueError if it is sparse, NotImplementedError where PyTorch has a way for sparse tensors (has_sparse)."""
    if input.layout == readtorch.strided:
        return input
    if has_sparse:
        raise NotImplementedError(f"masked {what} of a sparse tensor: the layouts COO and CSR are left out")
    raise ValueError(f"masked {what} expects {expected} (got {input.layout} tensor)")


# ----------------------------------------------------------------------------------------------------------- reductions


def _accumulated(dtype, input):
    """What integers of fewer bits are added up and multiplied in."""
    return dtype or (readtorch.int64 if input.dtype in _SMALL_INTEGERS else input.dtype)


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the elements where `mask` is True, along the dimension or dimensions `dim` (None: all).

    mask: bools of a shape that can be broadcast to the input's; IndexError if it has more dimensions. Where nothing is left the
    sum is 0. Integers are added up as int64.
    """
    dtype = _accumulated(dtype, input)
    dims = _canonical_dim(dim, input.ndim)
    filled = _combine_input_and_mask(sum, _strided(input, "sum", has_sparse=True), mask)
    return readtorch.sum(filled, dims, bool(keepdim), dtype=dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product, like `sum`; of nothing, 1."""
    dtype = _accumulated(dtype, input)
    dims = _canonical_dim(dim, input.ndim)
    result = _combine_input_and_mask(prod, _strided(input, "prod", has_sparse=True), mask).to(dtype=dtype)
    for d in reversed(dims):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest of the elements where `mask` is True, like `sum`; of nothing, minus infinity or the lowest integer."""
    filled = _combine_input_and_mask(amax, _strided(input, "amax", has_sparse=True), mask)
    return readtorch.amax(filled, _canonical_dim(dim, filled.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest, like `amax`; of nothing, infinity or the highest integer."""
    filled = _combine_input_and_mask(amin, _strided(input, "amin", has_sparse=True), mask)
    return readtorch.amin(filled, _canonical_dim(dim, filled.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the largest element along `dim` stands (None: in the flattened input), in the input's dtype, unless `dtype` is given."""
    filled = _combine_input_and_mask(argmax, _strided(input, "argmax"), mask)
    return readtorch.argmax(filled, dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the smallest stands, like `argmax`."""
    filled = _combine_input_and_mask(argmin, _strided(input, "argmin"), mask)
    return readtorch.argmin(filled, dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def _count_and_sum(input, dim, keepdim, dtype, mask):
    """How many elements are not left out, and their sum."""
    if mask is None:
        ones = readtorch.ones(input.shape, dtype=readtorch.int64, device=input.device)
        return sum(ones, dim, keepdim=keepdim), sum(input, dim, keepdim=keepdim, dtype=dtype)
    mask = _input_mask(input, mask=mask)
    count = mask.sum(dim=dim, keepdim=bool(keepdim))
    return count, sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean, like `sum`; of nothing, nan. ValueError if the result would be of integers."""
    source = "Input" if dtype is None else "Optional"
    dtype = dtype or input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    _strided(input, "mean", "strided or sparse_csr tensor", has_sparse=input.layout == readtorch.sparse_csr)
    count, total = _count_and_sum(input, dim, keepdim, dtype, mask)
    return total / count


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median along `dim`; of nothing, nan, and for integers a ValueError."""
    dtype = dtype or input.dtype
    d = _canonical_dim(dim, input.ndim)[0]
    is_float = readtorch.is_floating_point(input)
    if not is_float:
        input = input.to(dtype=readtorch.float32)
    filled = _combine_input_and_mask(median, _strided(input, "median"), mask)
    output = readtorch.nanmedian(filled, d, keepdim).values
    if is_float:
        return output
    if readtorch.isnan(output).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return output.to(dtype=dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(x))) along `dim`, without an overflow on the way; of nothing, minus infinity."""
    dims = _canonical_dim(dim, input.ndim)
    filled = _combine_input_and_mask(logsumexp, _strided(input, "logsumexp"), mask)
    return readtorch.logsumexp(filled, dims, keepdim=keepdim).to(dtype=dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(x) + exp(y)) element by element; a left-out element adds nothing."""
    if input.layout != readtorch.strided or other.layout != readtorch.strided:
        raise ValueError(
            f"masked logaddexp expects strided tensors (got {input.layout} tensor for input, {other.layout} for other)"
        )
    x = _combine_input_and_mask(logaddexp, input, input_mask)
    y = _combine_input_and_mask(logaddexp, other, other_mask)
    return readtorch.logaddexp(x, y).to(dtype=dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of that order, as `linalg.vector_norm`; of nothing, 0, and infinity for the order minus infinity."""
    filled = _combine_input_and_mask(norm, _strided(input, "norm"), mask, ord)
    dims = _canonical_dim(dim, input.ndim)
    return readtorch.linalg.vector_norm(filled, ord, dims, bool(keepdim), dtype=dtype or input.dtype)


def _std_var(input, dim, unbiased, correction, keepdim, dtype, mask):
    """The variance. ValueError for a sparse input."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else readtorch.float32
    computed = dtype if dtype.is_floating_point or dtype.is_complex else readtorch.float32
    _strided(input, "std/var")
    count, total = _count_and_sum(input, dim, True, dtype, mask)
    x = readtorch.subtract(input, readtorch.divide(total, count))
    kept = None if mask is None else _input_mask(input, mask=mask)
    total = sum(x * x.conj(), dim, keepdim=keepdim, dtype=computed, mask=kept)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction != 0:
        count = readtorch.subtract(count.to(computed.to_real()), float(correction))
        count = readtorch.maximum(count, count.new_zeros([]))
    return readtorch.divide(total, count).to(dtype=dtype)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements where `mask` is True; of nothing, nan.

    Divided by how many there are minus `correction` (1; `unbiased=False` is 0, and only one of the two may be given:
    AssertionError).
    """
    return _std_var(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation, the root of `var`."""
    return readtorch.sqrt(_std_var(input, dim, unbiased, correction, keepdim, dtype, mask))


# ------------------------------------------------------------------------------------------------------- normalizations


def _along(op, stands_for, input, dim, mask):
    """The dim, and the input with its left-out elements replaced as `stands_for` would have them."""
    d = _canonical_dim(dim, input.ndim)[0]
    return _combine_input_and_mask(stands_for, _strided(input, op.__name__), mask), d


def softmax(input, dim, *, dtype=None, mask=None):
    """exp(x) / sum(exp(x)) along `dim`, of the elements where `mask` is True; the others become 0, or nan in a row of nothing else."""
    filled, d = _along(softmax, amax, input, dim, mask)
    return functional.softmax(filled, d, dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """The logarithm of `softmax`."""
    filled, d = _along(log_softmax, amax, input, dim, mask)
    return functional.log_softmax(filled, d, dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """`softmax` of -x."""
    filled, d = _along(softmin, amin, input, dim, mask)
    return functional.softmin(filled, d, dtype=dtype or input.dtype)


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums along `dim`, to which left-out elements add nothing."""
    filled, d = _along(cumsum, sum, input, dim, mask)
    return readtorch.cumsum(filled, d, dtype=dtype or input.dtype).to(dtype=dtype or input.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products, like `cumsum`."""
    filled, d = _along(cumprod, prod, input, dim, mask)
    return readtorch.cumprod(filled, d, dtype=dtype or input.dtype).to(dtype=dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """x / max(norm(x), eps) along `dim`: vectors of length 1 in the norm of the order `ord`. Left-out elements become 0."""
    filled = _combine_input_and_mask(sum, _strided(input, "normalize"), mask)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return readtorch.divide(filled, readtorch.maximum(length, length.new_full([], eps)))
