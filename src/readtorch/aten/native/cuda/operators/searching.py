"""Searching and counting: searchsorted, kthvalue, median, mode, unique, repeat_interleave, bincount.

In PyTorch: `aten/src/ATen/native/cuda/{Bucketization,Sorting,TensorModeKernel,UniqueCub,Unique,Repeat,
SummaryOps}.cu`.
"""

import math

import numpy as np

from .....c10.scalar_type import BOOL, FLOAT, int64
from .....c10.tensor_impl import dtype_of
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ... import return_types
from ...unique import check_rows
from ...bucketization import check_search
from ...tensor_iterator import not_implemented, result_type
from ...tensor_iterator import scalar_tensor as weak
from .. import ordered as kernels
from ..rows import contiguous
from .copies import clone_cuda
from .factories import filled
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import cuda_kernel, empty, here, owned

INT = np.dtype(np.int32)

# ------------------------------------------------------------------------------------ searchsorted, bucketize


@cuda_kernel(operator_named("searchsorted.Tensor"))
def searchsorted_cuda(sorted_sequence, self, out_int32, right, side, sorter):
    """The sorter's numbers stay unchecked: to look at them, the host would have to wait."""
    check_search(sorted_sequence._array, self._array, right, side, None)
    common = result_type(sorted_sequence, self).numpy
    result = empty(self._array.shape, INT if out_int32 else LONG)
    rows = math.prod(sorted_sequence._array.shape[:-1])
    if result._array.size:
        sequence, values, out = (
            contiguous(t._array).reshape(rows, -1)
            for t in (converted(sorted_sequence, common), converted(self, common), result)
        )
        order = None if sorter is None else contiguous(sorter._array).reshape(rows, -1)
        kernels.search(sequence, order, values, right or side == "right", out)
    return result


@cuda_kernel(operator_named("searchsorted.Scalar"))
def searchsorted_number_cuda(sorted_sequence, self, out_int32, right, side, sorter):
    value = on_device(self, result_type(sorted_sequence, weak(self)))
    return searchsorted_cuda(sorted_sequence, value, out_int32, right, side, sorter)


def on_device(number, dtype):
    return filled(empty((), dtype.numpy), number)


@cuda_kernel(operator_named("bucketize.Tensor"))
def bucketize_cuda(self, boundaries, out_int32, right):
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted_cuda(boundaries, self, out_int32, right, None, None)


@cuda_kernel(operator_named("bucketize.Scalar"))
def bucketize_number_cuda(self, boundaries, out_int32, right):
    value = on_device(self, result_type(boundaries, weak(self)))
    return bucketize_cuda(value, boundaries, out_int32, right)


# ------------------------------------------------------------------------------------- kthvalue, median, mode


def picked(name, self, dim, keepdim, rank, *numbers):
    """(values, indices): of each row one element, named by its rank (../ordered.py)."""
    shape = list(self._array.shape)
    dim = wrap_dim(dim, len(shape))
    if shape:
        if not shape[dim]:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        shape[dim:dim + 1] = [1] if keepdim else []
    values, indices = empty(shape, self._array.dtype), empty(shape, LONG)
    kernels.pick(rank, self._array, dim, values._array, indices._array, numbers or (0,))
    return getattr(return_types, name)(values, indices)


@cuda_kernel(operator_named("kthvalue"))
def kthvalue_cuda(self, k, dim, keepdim):
    shape, place = self._array.shape, wrap_dim(dim, self._array.ndim)
    if not 1 <= k <= (shape[place] if shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {place}")
    return picked("kthvalue", self, dim, keepdim, kernels.kth, k - 1)


@cuda_kernel(operator_named("mode"))
def mode_cuda(self, dim, keepdim):
    return picked("mode", self, dim, keepdim, kernels.mode)


def median_operators(name, rank):
    @cuda_kernel(operator_named(f"{name}.dim"))
    def along(self, dim, keepdim):
        if dtype_of(self).category == BOOL:
            raise not_implemented("median_out")(dtype_of(self))
        return picked(name, self, dim, keepdim, rank)

    @cuda_kernel(operator_named(name))
    def of_all(self):
        dtype = self._array.dtype
        if dtype_of(self).is_complex or dtype_of(self).category == BOOL:
            raise not_implemented("median")(dtype_of(self))
        if not self._array.size:
            return filled(empty((), dtype), math.nan if dtype.kind not in "iu" else np.iinfo(dtype).min)
        return along(self.reshape(-1), 0, False)[0]


median_operators("median", kernels.median)
median_operators("nanmedian", kernels.nanmedian)

# ----------------------------------------------------------------------------------------------------- unique


def grouped(ranked, order, is_new, return_inverse, return_counts):
    """(first row of each run, run of each row, lengths of the runs). ranked: the rows in `order`; is_new: does
    a run begin here?"""
    runs = is_new.cumsum(0) - 1
    inverse = counts = empty((0,), LONG)
    if return_inverse:
        inverse = at.scatter(empty(order._array.shape, LONG), 0, order, runs)
    values = ranked[is_new]
    if return_counts:
        counts = filled(empty(values._array.shape[:1], LONG), 0)
        counts.scatter_add_(0, runs, at.ones_like(runs))
    return values, inverse, counts


def begins_of(different):
    """Whether a run begins with each row, from whether each but the first differs from the one before."""
    return at.cat([at.ones((1,), dtype=different.dtype, device=here()), different])


def numbers_to(n):
    return at.arange(n, device=here())


def unique_elements(self, is_sorted, return_inverse, return_counts):
    flat = self.reshape(-1)
    if not flat._array.size:
        inverse = empty(self._array.shape if return_inverse else (0,), LONG)
        return clone_cuda(flat, None), inverse, empty((0,), LONG)
    ranked, order = (flat, numbers_to(flat._array.size)) if is_sorted else at.sort(flat)
    is_new = begins_of(at.ne(ranked[1:], ranked[:-1]))
    values, inverse, counts = grouped(ranked, order, is_new, return_inverse, return_counts)
    return values, owned(inverse.view(self._array.shape)) if return_inverse else inverse, counts


def unique_rows(self, dim, is_sorted, return_inverse, return_counts):
    dim = wrap_dim(dim, self._array.ndim)
    check_rows(self._array, dim)
    rows = self.movedim(dim, 0).contiguous()
    count = rows._array.shape[0]
    if not count:
        return clone_cuda(self, None), empty((0,), LONG), empty((0,), LONG)
    words = rows.view(count, -1)
    order = numbers_to(count) if is_sorted else order_of_words(words)
    ranked = words[order]
    is_new = begins_of(at.ne(ranked[1:], ranked[:-1]).any(1))
    _, inverse, counts = grouped(order, order, is_new, return_inverse, return_counts)
    values = rows.index_select(0, order[is_new]).movedim(0, dim)
    return owned(values), inverse, counts


def order_of_words(words):
    """A sorting network has a power of two of places; what fills them up comes last."""
    count = words._array.shape[0]
    order = numbers_to(kernels.power_of_two(count))
    kernels.word_order(words._array, order._array)
    return order[:count]


@cuda_kernel(operator_named("_unique2"))
def unique2_cuda(self, sorted, return_inverse, return_counts):
    return unique_elements(self, False, return_inverse, return_counts)


@cuda_kernel(operator_named("unique_dim"))
def unique_dim_cuda(self, dim, sorted, return_inverse, return_counts):
    return unique_rows(self, dim, False, return_inverse, return_counts)


@cuda_kernel(operator_named("unique_consecutive"))
def unique_consecutive_cuda(self, return_inverse, return_counts, dim):
    if dim is None:
        return unique_elements(self, True, return_inverse, return_counts)
    return unique_rows(self, dim, True, return_inverse, return_counts)


# ------------------------------------------------------------------------------------------- repeats, counts


@cuda_kernel(operator_named("repeat_interleave.Tensor"))
def repeat_interleave_cuda(repeats, output_size):
    """The host waits for the size of the result, unless the caller tells it."""
    counts = repeats._array
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.dtype not in (LONG, INT):
        raise not_implemented("repeat_interleave_cuda")(dtype_of(repeats))
    if not counts.size:
        return empty((0,), counts.dtype)
    ends = repeats.cumsum(0)
    if output_size is None:
        if not at.ge(repeats, 0).all().item():
            raise RuntimeError("repeats can not be negative")
        output_size = ends[-1].item()
    result = empty((output_size,), counts.dtype)
    kernels.repeat_indices(ends._array, result._array)
    return result


@cuda_kernel(operator_named("bincount"))
def bincount_cuda(self, weights, minlength):
    """Atomic additions; of floating-point weights the last digit may differ from call to call."""
    x, dtype = self._array, dtype_of(self)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if dtype.category in (BOOL, FLOAT) or dtype.is_complex:
        raise not_implemented("bincount_cuda")(dtype)
    if x.ndim != 1 or (x.size and self.min().item() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    bins = max(minlength, self.max().item() + 1 if x.size else 0)
    if weights is None:
        weights = at.ones_like(self, dtype=int64)
    elif weights._array.dtype != np.float32:
        weights = converted(weights, np.dtype(np.float64))
    result = filled(empty((bins,), weights._array.dtype), 0)
    return result.scatter_add_(0, converted(self, LONG), weights)
