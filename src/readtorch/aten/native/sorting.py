"""Sorting and choosing by rank: sort, argsort, topk, kthvalue, median, mode.

In PyTorch: `aten/src/ATen/native/Sorting.cpp` and `cpu/SortingKernel.cpp`.
"""
import numpy as np

from ...c10.scalar_type import BOOL
from ...c10.tensor_impl import dtype_of, wrap, wrap_result
from ...c10.wrap_dim import wrap_dim
from ..native_function import native_function
from . import return_types
from .exact_out import exact_out, keeps_apart, type_name
from .extremes import comparable, evenly_distribute, select_backward
from .tensor_iterator import laid_out, not_implemented

BOTH = "function, method"

# ------------------------------------------------------------------------------------------------------- sort


def sort_order(x, dim, descending):
    """The indices that sort `x` along `dim`.

    Equal elements keep their order; nan counts as the largest number.
    """
    x = comparable(x)
    if not descending:
        return np.argsort(x, dim, kind="stable")
    backwards = np.flip(np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
    return x.shape[dim] - 1 - backwards


def sorted_along(self, dim, descending):
    """(values, indices) as arrays."""
    x = self._array
    if x.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    dim = wrap_dim(dim, x.ndim)
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    order = sort_order(x, dim, descending)
    values = np.take_along_axis(x, order, dim)
    return (values, order) if x.flags.c_contiguous else (laid_out(values, x), laid_out(order, x))


sort = native_function("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
                       "indices)", BOTH, out=True)
sort_stable = native_function(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
    "indices)", BOTH, out=True)
for _operator in (sort, sort_stable):
    exact_out(_operator)


@sort.kernel
def sort_cpu(self, dim, descending):
    return return_types.sort(*map(wrap, sorted_along(self, dim, descending)))


@sort_stable.kernel
def sort_stable_cpu(self, stable, dim, descending):
    return return_types.sort(*map(wrap, sorted_along(self, dim, descending)))


@sort.backward
class SortBackward0:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes):
        return select_backward(grad, dim, indices, self_sym_sizes, True)


@sort_stable.backward
class SortBackward1:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes):
        return select_backward(grad, dim, indices, self_sym_sizes, True)


argsort = native_function("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", BOTH)
argsort_stable = native_function("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool "
                                 "descending=False) -> Tensor", BOTH,
                                 out=True)
argsort.compose(lambda self, dim, descending: sort.call(self.detach(), dim, descending).indices)


@argsort_stable.compose
def argsort_stable_composite(self, stable, dim, descending):
    return sort_stable.call(self.detach(), stable, dim, descending).indices


msort = native_function("msort(Tensor self) -> Tensor", BOTH, out=True)
exact_out(msort)
msort.compose(lambda self: sort.call(self, 0, False).values)

# ------------------------------------------------------------------------------------------------------- topk

topk = native_function(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor "
    "indices)", BOTH, out=True)
exact_out(topk)


@topk.kernel
def topk_cpu(self, k, dim, largest, sorted):
    x = self._array
    dim = wrap_dim(dim, x.ndim)
    if not 0 <= k <= (x.shape[dim] if x.ndim else 1):
        raise RuntimeError("selected index k out of range")
    dtype = dtype_of(self)
    if dtype.is_complex:
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if dtype.category == BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not x.ndim:
        return return_types.topk(wrap(x.copy()), wrap(np.zeros((), np.int64)))
    order = leading_order(x, k, dim, largest)
    return return_types.topk(wrap(np.take_along_axis(x, order, dim)), wrap(order))


def leading_order(x, k, dim, descending):
    """The first `k` indices of `sort_order`. Where k is a small part, only the k elements found by selection are sorted."""
    n = x.shape[dim]
    if x.dtype.kind != "f" or 4 * k > n or n < 64 or k == 0:
        return np.take(sort_order(x, dim, descending), range(k), dim)
    parted = np.argpartition(x, n - k if descending else k - 1, dim)  # nan counts as the largest here too
    found = np.take(parted, range(n - k, n) if descending else range(k), dim)
    found.sort(dim)
    order = sort_order(np.take_along_axis(x, found, dim), dim, descending)
    return np.take_along_axis(found, order, dim)


@topk.backward
class TopkBackward0:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes):
        return select_backward(grad, dim, indices, self_sym_sizes, True)


# ------------------------------------------------------------------------------------- kthvalue, median, mode

def choose(self, name, dim, keepdim, pick):
    """One element a row: `pick(rows)` gives its index for an array whose last axis is `dim`."""
    x = self._array
    dim = wrap_dim(dim, x.ndim)
    result = getattr(return_types, name)
    if not x.ndim:
        return result(wrap(x.copy()), wrap(np.zeros((), np.int64)))
    if x.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    if x.dtype.kind == "c":
        raise not_implemented(f"{name}_cpu")(dtype_of(self))
    indices = np.expand_dims(pick(np.moveaxis(comparable(x), dim, -1)), dim)
    values = np.take_along_axis(x, indices, dim)
    values, indices = np.ascontiguousarray(values), np.ascontiguousarray(indices)
    return result(*[wrap(a if keepdim else a.squeeze(dim)) for a in (values, indices)])


kthvalue = native_function("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor "
                           "values, Tensor indices)", BOTH,
                           out=True)
exact_out(kthvalue, lambda *_: "output values must be of same type as input",
          lambda *_: "output indices must be of scalar type Long")
keeps_apart(kthvalue)


@kthvalue.kernel
def kthvalue_cpu(self, k, dim, keepdim):
    x = self._array
    place = wrap_dim(dim, x.ndim)
    if not 1 <= k <= (x.shape[place] if x.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {place}")
    return choose(self, "kthvalue", dim, keepdim, 
                  lambda rows: np.argsort(rows, -1, kind="stable")[..., k - 1])


def median_place(rows):
    """The lower of the two middle elements; the first nan if there is one."""
    middle = np.argsort(rows, -1, kind="stable")[..., (rows.shape[-1] - 1) // 2]
    unknown = rows != rows
    return np.where(unknown.any(-1), np.argmax(unknown, -1), middle)


def nanmedian_place(rows):
    """The lower of the two middle elements among those that are not nan."""
    known = np.maximum(1, (rows == rows).sum(-1, keepdims=True))
    return np.take_along_axis(np.argsort(rows, -1, kind="stable"), (known - 1) // 2, -1)[..., 0]


def mode_place(rows):
    """The most frequent element, the smallest of several such; of its places the last."""
    order = np.argsort(rows, -1, kind="stable")
    ranked = np.take_along_axis(rows, order, -1)
    places = np.arange(rows.shape[-1])
    starts = np.where(np.concatenate([np.ones_like(ranked[..., :1], bool),
                                      ranked[..., 1:] != ranked[..., :-1]], -1), places, 0)
    run_length = places - np.maximum.accumulate(starts, -1)
    best = np.argmax(run_length, -1)[..., None]  # the end of the first among the longest runs
    return np.take_along_axis(order, best, -1)[..., 0]


def same_type_as_self(name):
    return lambda out, result, *_: (
        "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
        f"torch.{type_name(out)}Tensor "
        f"does not equal torch.{type_name(result)}Tensor (while checking arguments for {name})")


def must_be_long(name):
    return lambda out, result, *_: ("Expected tensor for argument #1 'indices' to have scalar type Long; "
                                    "but got "
                                    f"torch.{type_name(out)}Tensor instead (while checking arguments for "
                                    f"{name})")


def median_operators(name, place):
    """Declare median or nanmedian: of everything, and along a dimension."""
    of_all = native_function(f"{name}(Tensor self) -> Tensor", BOTH)
    of_dim = native_function(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
                             "Tensor indices)", BOTH, out=True)
    exact_out(of_dim, same_type_as_self(name), must_be_long(name))

    @of_all.kernel
    def median_of_all(self):
        flat = self._array.reshape(-1)
        if dtype_of(self).is_complex or dtype_of(self).category == BOOL:
            raise not_implemented("median_cpu")(dtype_of(self))
        if not flat.size:
            return wrap(np.full((), np.nan if flat.dtype.kind not in "iu" else np.iinfo(flat.dtype).min,
                                flat.dtype))
        return wrap_result(flat[place(comparable(flat))])

    @of_dim.kernel
    def median_along(self, dim, keepdim):
        if dtype_of(self).category == BOOL:
            raise not_implemented("median_out")(dtype_of(self))
        return choose(self, name, dim, keepdim, place)
    return of_all, of_dim


median, median_dim = median_operators("median", median_place)
nanmedian, nanmedian_dim = median_operators("nanmedian", nanmedian_place)
mode = native_function("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
                       BOTH, out=True)


def expected_for(what):
    return lambda out, result, *_: (f"expected scalar type '{type_name(result)}' but got '{type_name(out)}' "
                                    f"for {what} output")


exact_out(mode, expected_for("values"), expected_for("indices"))
mode.kernel(lambda self, dim, keepdim: choose(self, "mode", dim, keepdim, mode_place))


@kthvalue.backward
class KthvalueBackward0:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes, keepdim):
        return select_backward(grad, dim, indices, self_sym_sizes, keepdim)


@mode.backward
class ModeBackward0:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes, keepdim):
        return select_backward(grad, dim, indices, self_sym_sizes, keepdim)


@median.backward
class MedianBackward0:
    def self(grad, self, result):
        return evenly_distribute(grad, self, result)


@median_dim.backward
class MedianBackward1:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes, keepdim):
        return select_backward(grad, dim, indices, self_sym_sizes, keepdim)


@nanmedian.backward
class NanmedianBackward0:
    def self(grad, self, result):
        return evenly_distribute(grad, self, result)


@nanmedian_dim.backward
class NanmedianBackward1:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes, keepdim):
        return select_backward(grad, dim, indices, self_sym_sizes, keepdim)
