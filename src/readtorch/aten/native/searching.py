"""Searching and counting: unique, searchsorted, bucketize, bincount, histc.

In PyTorch: `aten/src/ATen/native/{Unique,Bucketization,SummaryOps}.cpp`, `cpu/HistogramKernel.cpp`.
"""
import math

import numpy as np

from ...c10.scalar_type import BOOL, FLOAT, SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap, wrap_result
from ...c10.wrap_dim import wrap_dim
from ..native_function import any_device, native_function, python_face, write_out
from .exact_out import c_name, exact_out
from .extremes import comparable
from .tensor_iterator import not_implemented, scalar_tensor

BOTH = "function, method"

# ----------------------------------------------------------------------------------------------------- unique

unique2 = native_function(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)")
unique_dim = native_function(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) "
    "-> "
    "(Tensor, Tensor, Tensor)")
unique_consecutive = native_function(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
    "(Tensor, Tensor, Tensor)",
    "")


def nothing():
    return wrap(np.empty(0, np.int64))


def wrap_found(values, inverse, counts, return_inverse, return_counts):
    return (wrap(values), wrap(inverse.astype(np.int64)) if return_inverse else nothing(),
            wrap(counts.astype(np.int64)) if return_counts else nothing())


def runs(rows):
    """Where in a list of rows a new one begins: a bool for each."""
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    return new


def group(rows, order):
    """(first row of each run, run number of each row, run lengths) of the rows taken in `order`."""
    new = runs(comparable(rows)[order])
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    return rows[order][starts], inverse, np.diff(np.append(starts, len(rows)))


@unique2.kernel
def unique2_cpu(self, sorted, return_inverse, return_counts):
    x = self._array
    if x.dtype.kind == "c":
        raise not_implemented("unique")(dtype_of(self))
    flat = x.reshape(-1)
    values, inverse, counts = group(flat, np.argsort(comparable(flat), kind="stable"))
    return wrap_found(values, inverse.reshape(x.shape), counts, return_inverse, return_counts)


def row_order(rows):
    """The order that sorts rows as words in a dictionary."""
    flat = comparable(rows).reshape(len(rows), math.prod(rows.shape[1:]))
    return np.lexsort(flat.T[::-1]) if flat.size else np.arange(len(rows))


def unique_rows(self, dim, order_of, return_inverse, return_counts):
    dim = wrap_dim(dim, self._array.ndim)
    rows = np.moveaxis(self._array, dim, 0)
    check_rows(self._array, dim)
    values, inverse, counts = group(rows, order_of(rows))
    return wrap_found(np.moveaxis(values, 0, dim), inverse, counts, return_inverse, return_counts)


def check_rows(array, dim):
    if array.size == 0 and array.shape[dim] != 0:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                           "applied")
    if array.size == 0 and sum(n == 0 for n in array.shape) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")


@unique_dim.kernel
def unique_dim_cpu(self, dim, sorted, return_inverse, return_counts):
    return unique_rows(self, dim, row_order, return_inverse, return_counts)


@unique_consecutive.kernel
def unique_consecutive_cpu(self, return_inverse, return_counts, dim):
    in_place = lambda rows: np.arange(len(rows))  # noqa: E731
    if dim is not None:
        return unique_rows(self, dim, in_place, return_inverse, return_counts)
    flat = self._array.reshape(-1)
    values, inverse, counts = group(flat, in_place(flat))
    return wrap_found(values, inverse.reshape(self._array.shape), counts, return_inverse, return_counts)


def no_derivative(name):
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


@unique2.backward
class Unique2Backward0:
    output_differentiability = [True, False, False]

    def self(grad):
        no_derivative("_unique2")


@unique_dim.backward
class UniqueDimBackward0:
    output_differentiability = [True, False, False]

    def self(grad):
        no_derivative("unique_dim")


@unique_consecutive.backward
class UniqueConsecutiveBackward0:
    output_differentiability = [True, False, False]

    def self(grad):
        no_derivative("unique_consecutive")


def asked_for(found, return_inverse, return_counts):
    """Of (values, inverse, counts) what the caller wants: a lone tensor if that is the values."""
    values, inverse, counts = found
    wanted = (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))
    return wanted if len(wanted) > 1 else values


@python_face("unique")
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements of `input`, sorted; or its different slices along `dim`.

    In PyTorch: `torch.functional`.
    """
    if dim is not None:
        found = unique_dim.call(input, dim, sorted, return_inverse, return_counts)
    else:
        found = unique2.call(input, sorted, return_inverse, return_counts)
    return asked_for(found, return_inverse, return_counts)


@python_face("unique_consecutive")
def unique_consecutive_face(input, return_inverse=False, return_counts=False, dim=None):
    """`input` without elements (or slices along `dim`) that equal the one before."""
    return asked_for(unique_consecutive.call(input, return_inverse, return_counts, dim), return_inverse,
                     return_counts)


# ------------------------------------------------------------------------------------ searchsorted, bucketize

searchsorted = native_function(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
    "str? side=None, "
    "Tensor? sorter=None) -> Tensor", out=True)
searchsorted_number = native_function(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
    "str? side=None, "
    "Tensor? sorter=None) -> Tensor", out=True)
bucketize = native_function(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
                            out=True)
bucketize_number = native_function(
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
                                   out=True)


def check_found_type(operator):
    """The out= form writes int64, or int32 if asked to."""
    @operator.out.kernel
    @any_device
    def compute_then_copy(*arguments):
        result, out = operator.call(*arguments[:-1]), arguments[-1]
        if result._array.dtype != out._array.dtype:
            raise RuntimeError(
                "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or "
                "Long(int64) depending on whether "
                "out_int32 flag is True, but we got output tensor's dtype "
                f"{SCALAR_TYPE_NAMES[dtype_of(out)]} and out_int32 flag is "
                f"{result._array.itemsize == 4}")
        return write_out(result, (out,))


for _operator in (searchsorted, searchsorted_number, bucketize, bucketize_number):
    check_found_type(_operator)


def check_search(sequence, values, right, side, sorter):
    where = "torch.searchsorted(): "
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{where}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{where}side and right can't be set to opposites, got side of left while right "
                           "was True")
    if sequence.ndim == 0:
        raise RuntimeError(f"{where}boundaries tensor should have positive dimension, but got 0 dimension")
    if values.ndim == 0 and sequence.ndim != 1:
        raise RuntimeError(f"{where}input value can be a scalar only when boundaries tensor dimension is 1, "
                           "but we got boundaries "
                           f"tensor dim({sequence.ndim}) and input value's dim({values.ndim}) "
                           f"numel({values.size})")
    if sequence.ndim != 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(f"{where}boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                           "boundaries tensor and input "
                           f"value tensor must match, but we got boundaries tensor {list(sequence.shape)} "
                           "and input value tensor "
                           f"{list(values.shape)}")
    if sorter is not None:
        check_sorter(sequence, sorter, where)


def check_sorter(sequence, sorter, where):
    if sorter._array.shape != sequence.shape:
        raise RuntimeError(f"{where}boundary and sorter must have the same size, but got boundary tensor "
                           f"{list(sequence.shape)}and got "
                           f"sorter tensor {list(sorter._array.shape)}")
    if sorter._array.dtype != np.int64:
        raise RuntimeError(f"{where}sorter must be a tensor of long dtype but got dtype "
                           f"{SCALAR_TYPE_NAMES[dtype_of(sorter)]}")
    if sorter._array.size and not (0 <= sorter._array.min() and sorter._array.max() < sequence.shape[-1]):
        raise RuntimeError(f"{where}sorter index out of range")


@searchsorted.kernel
def searchsorted_cpu(sorted_sequence, self, out_int32, right, side, sorter):
    sequence, values = sorted_sequence._array, self._array
    check_search(sequence, values, right, side, sorter)
    side = side or ("right" if right else "left")
    dtype = np.int32 if out_int32 else np.int64
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter._array, -1)
    sequence, values = comparable(sequence), comparable(values)
    if sequence.ndim == 1:
        return wrap_result(np.asarray(np.searchsorted(sequence, values, side)).astype(dtype))
    found = np.empty(values.shape, dtype)
    for row in np.ndindex(sequence.shape[:-1]):
        found[row] = np.searchsorted(sequence[row], values[row], side)
    return wrap(found)


@searchsorted_number.kernel
def searchsorted_number_cpu(sorted_sequence, self, out_int32, right, side, sorter):
    return searchsorted_cpu(sorted_sequence, scalar_tensor(self), out_int32, right, side, sorter)


@bucketize.kernel
def bucketize_cpu(self, boundaries, out_int32, right):
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted_cpu(boundaries, self, out_int32, right, None, None)


@bucketize_number.kernel
def bucketize_number_cpu(self, boundaries, out_int32, right):
    return bucketize_cpu(scalar_tensor(self), boundaries, out_int32, right)


# ------------------------------------------------------------------------------------------- bincount, histc

bincount = native_function("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor", BOTH)


@bincount.kernel
def bincount_cpu(self, weights, minlength):
    x, dtype = self._array, dtype_of(self)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if dtype.category in (BOOL, FLOAT) or dtype.is_complex:
        raise not_implemented("bincount_cpu")(dtype)
    if x.ndim != 1 or (x.size and x.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(x, minlength=minlength))
    if weights._array.shape != x.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    target = np.float32 if weights._array.dtype == np.float32 else np.float64
    return wrap(np.bincount(x, comparable(weights._array), minlength).astype(target))


histc = native_function("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", BOTH,
                        out=True)
exact_out(histc, lambda out, result, *_: ("torch.histogram: input tensor and hist tensor should have the "
                                          "same dtype, but got input "
                                          f"{c_name(result)} and hist {c_name(out)}"))


@histc.kernel
def histc_cpu(self, bins, min, max):
    x, dtype = self._array, dtype_of(self)
    if not dtype.is_floating_point:
        raise not_implemented("histogram_cpu")(dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = histogram_range(x, float(min), float(max))
    x = comparable(x)
    inside = x[(x >= low) & (x <= high)]
    places = ((inside - low) * (bins / (high - low))).astype(np.int64)
    return wrap(np.bincount(np.minimum(places, bins - 1), minlength=bins).astype(dtype.numpy))


def histogram_range(x, low, high):
    """The outer edges: as given; those of the data if both are the same; never of width 0."""
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return (low - 1, high + 1) if low == high else (low, high)
