"""The distinct values of a tensor, or of its slices: unique, unique_consecutive.

In PyTorch: `aten/src/ATen/native/Unique.cpp`.
"""

import math

import numpy as np

from readtorch.aten.native_function import native_function, python_binding
from readtorch.c10.tensor_impl import dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .reduce_ops.min_max import comparable
from .tensor_iterator import not_implemented

# ----------------------------------------------------------------------------------------------------- unique

unique2 = native_function(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)"
)
unique_dim = native_function(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)"
)
unique_consecutive = native_function(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
    "(Tensor, Tensor, Tensor)",
    "",
)


def nothing():
    return wrap(np.empty(0, np.int64))


def wrap_found(values, inverse, counts, return_inverse, return_counts):
    return (
        wrap(values),
        wrap(inverse.astype(np.int64)) if return_inverse else nothing(),
        wrap(counts.astype(np.int64)) if return_counts else nothing(),
    )


def runs(rows):
    """A bool for each row of a list: whether it differs from the one before."""
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
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    if array.size == 0 and sum(n == 0 for n in array.shape) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")


@unique_dim.kernel
def unique_dim_cpu(self, dim, sorted, return_inverse, return_counts):
    return unique_rows(self, dim, row_order, return_inverse, return_counts)


@unique_consecutive.kernel
def unique_consecutive_cpu(self, return_inverse, return_counts, dim):
    in_place = lambda rows: np.arange(len(rows))
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
    """Of (values, inverse, counts) those that were asked for; values alone are no tuple."""
    values, inverse, counts = found
    wanted = (values, *((inverse,) if return_inverse else ()), *((counts,) if return_counts else ()))
    return wanted if len(wanted) > 1 else values


@python_binding("unique")
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements of `input`, sorted; or its distinct slices along `dim`.

    In PyTorch: `torch.functional`.
    """
    if dim is not None:
        found = unique_dim.call(input, dim, sorted, return_inverse, return_counts)
    else:
        found = unique2.call(input, sorted, return_inverse, return_counts)
    return asked_for(found, return_inverse, return_counts)


@python_binding("unique_consecutive")
def unique_consecutive_binding(input, return_inverse=False, return_counts=False, dim=None):
    """`input` without elements (or slices along `dim`) that equal the one before."""
    return asked_for(unique_consecutive.call(input, return_inverse, return_counts, dim), return_inverse, return_counts)
