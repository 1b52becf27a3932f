"""Sorting and order statistics: sort, argsort, topk, kthvalue, median, mode, quantile.

In PyTorch: `aten/src/ATen/native/Sorting.cpp` and `aten/src/ATen/native/cpu/SortingKernel.cpp`; mode in
`aten/src/ATen/native/TensorCompare.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.functions_manual import evenly_read, gathered
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10.dispatch_key import CPU
from readtorch.c10.scalar_type import BOOL, int64
from readtorch.c10.tensor_impl import dtype_of, type_name, whole_array, wrap, wrap_result
from readtorch.c10.wrap_dim import wrap_dim

from . import return_types
from .copy import constant_beside
from .exact_out import exact_out, keeps_apart
from .reduce_ops.min_max import comparable, evenly_distribute, select_backward
from .reduce_ops_utils import axes_along, check_not_empty, with_indices_meta
from .tensor_iterator import laid_out, not_implemented, wrap_reduced

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


sort = native_function(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", BOTH, out=exact_out()
)
sort_stable = native_function(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    BOTH,
    out=exact_out(),
)


@sort.meta
def sort_meta(self, dim, descending):
    wrap_dim(dim, self._array.ndim)
    return like(self), like(self, int64)


@sort_stable.meta
def sort_stable_meta(self, stable, dim, descending):
    return sort_meta(self, dim, descending)


@sort.kernel
def sort_cpu(self, dim, descending):
    return return_types.sort(*map(wrap, sorted_along(self, dim, descending)))


@sort_stable.kernel
def sort_stable_cpu(self, stable, dim, descending):
    return sort_cpu(self, dim, descending)


def order_backward(grad, dim, indices, self_sym_sizes):
    """The gradient of elements in another order goes to where they came from."""
    return select_backward(grad, dim, indices, self_sym_sizes, True)


@sort.backward
class SortBackward0:
    output_differentiability = [True, False]
    self = order_backward

    def values(self_t, dim, indices):
        return gathered(self_t, dim, indices)


@sort_stable.backward
class SortBackward1:
    output_differentiability = [True, False]
    self = order_backward

    def values(self_t, dim, indices):
        return gathered(self_t, dim, indices)


argsort = native_function("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", BOTH)
argsort_stable = native_function(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", BOTH, out=True
)
argsort.compose(lambda self, dim, descending: sort.call(self.detach(), dim, descending).indices)


@argsort_stable.compose
def argsort_stable_composite(self, stable, dim, descending):
    return sort_stable.call(self.detach(), stable, dim, descending).indices


msort = native_function("msort(Tensor self) -> Tensor", BOTH, out=exact_out())
msort.compose(lambda self: sort.call(self, 0, False).values)

# ------------------------------------------------------------------------------------------------------- topk

topk = native_function(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    BOTH,
    out=exact_out(),
)


def size_along(t, dim):
    """How many elements a dimension has; a tensor without dimensions counts as having one."""
    return t._array.shape[dim] if t._array.ndim else 1


@topk.meta
def topk_meta(self, k, dim, largest, sorted):
    dim = wrap_dim(dim, self._array.ndim)
    if not 0 <= k <= size_along(self, dim):
        raise RuntimeError("selected index k out of range")
    shape = tuple([k if d == dim else n for d, n in enumerate(self._array.shape)])
    return TensorMeta(shape, dtype_of(self)), TensorMeta(shape, int64)


@topk.kernel
def topk_cpu(self, k, dim, largest, sorted):
    x = self._array
    dim = wrap_dim(dim, x.ndim)
    if not 0 <= k <= size_along(self, dim):
        topk_meta(self, k, dim, largest, sorted)
    dtype = dtype_of(self)
    if dtype.is_complex:
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if dtype.category == BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not x.ndim:
        return return_types.topk(wrap(x.copy()), wrap(np.zeros((), np.int64)))
    order = leading_order(x, k, dim, largest)
    return return_types.topk(wrap_reduced(np.take_along_axis(x, order, dim)), wrap_reduced(order))


def leading_order(x, k, dim, descending):
    """The first `k` indices of `sort_order`. For small k only the k elements found by selection are sorted."""
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
    self = order_backward

    def values(self_t, dim, indices):
        return gathered(self_t, dim, indices)


# ------------------------------------------------------------------------------------- kthvalue, median, mode


def one_of_each_row(name, self, dim, keepdim):
    """The outputs of an operator that chooses one element along a dimension."""
    axes = axes_along(self, dim)
    check_not_empty(name, self, axes)
    return with_indices_meta(self, axes, keepdim)


def choose(name, self, dim, keepdim, pick):
    """One element a row: `pick(rows)` gives its index for an array whose last axis is `dim`."""
    x = self._array
    dim = wrap_dim(dim, x.ndim)
    result = getattr(return_types, name)
    if not x.ndim:
        return result(wrap(x.copy()), wrap(np.zeros((), np.int64)))
    indices = np.array(pick(comparable(x).swapaxes(dim, -1))[..., None].swapaxes(dim, -1), order="C")
    values = np.ascontiguousarray(np.take_along_axis(x, indices, dim))
    return result(*[wrap(a if keepdim else a.squeeze(dim)) for a in (values, indices)])


kthvalue = native_function(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    BOTH,
    out=exact_out(
        lambda *_: "output values must be of same type as input",
        lambda *_: "output indices must be of scalar type Long",
    ),
)
keeps_apart(kthvalue)


@kthvalue.meta
def kthvalue_meta(self, k, dim, keepdim):
    outputs, place = one_of_each_row("kthvalue", self, dim, keepdim), wrap_dim(dim, self._array.ndim)
    if not 1 <= k <= size_along(self, place):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {place}")
    return outputs


@kthvalue.kernel
def kthvalue_cpu(self, k, dim, keepdim):
    kthvalue_meta(self, k, dim, keepdim)
    refuse_kinds("cb", self, "kthvalue_cpu")
    return choose("kthvalue", self, dim, keepdim, lambda rows: np.argsort(rows, -1, kind="stable")[..., k - 1])


def refuse_kinds(kinds, t, kernel_name):
    """Raises NotImplementedError for a tensor with dimensions whose dtype is of these kinds (NumPy's letters)."""
    if t._array.dtype.kind in kinds and t._array.ndim:
        raise not_implemented(kernel_name)(dtype_of(t))


def median_index(rows):
    """The lower of the two middle elements; the first nan if there is one."""
    middle = np.argsort(rows, -1, kind="stable")[..., (rows.shape[-1] - 1) // 2]
    unknown = rows != rows
    return np.where(unknown.any(-1), np.argmax(unknown, -1), middle)


def nanmedian_index(rows):
    """The lower of the two middle elements among those that are not nan."""
    known = np.maximum(1, (rows == rows).sum(-1, keepdims=True))
    return np.take_along_axis(np.argsort(rows, -1, kind="stable"), (known - 1) // 2, -1)[..., 0]


def mode_index(rows):
    """The most frequent element, the smallest of several such; of its indices the last."""
    order = np.argsort(rows, -1, kind="stable")
    ranked = np.take_along_axis(rows, order, -1)
    places = np.arange(rows.shape[-1])
    starts = np.where(
        np.concatenate([np.ones_like(ranked[..., :1], bool), ranked[..., 1:] != ranked[..., :-1]], -1), places, 0
    )
    run_length = places - np.maximum.accumulate(starts, -1)
    best = np.argmax(run_length, -1)[..., None]  # the end of the first among the longest runs
    return np.take_along_axis(order, best, -1)[..., 0]


def same_type_as_self(name):
    return lambda out, result, *_: (
        "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
        f"torch.{type_name(out)}Tensor does not equal torch.{type_name(result)}Tensor (while checking arguments for "
        f"{name})"
    )


def must_be_long(name):
    return lambda out, result, *_: (
        "Expected tensor for argument #1 'indices' to have scalar type Long; but got "
        f"torch.{type_name(out)}Tensor instead (while checking arguments for {name})"
    )


def median_operators(name, place):
    """Declare median or nanmedian: of everything, and along a dimension."""
    of_all = native_function(f"{name}(Tensor self) -> Tensor", BOTH)
    of_dim = native_function(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        BOTH,
        out=exact_out(same_type_as_self(name), must_be_long(name)),
    )
    of_all.meta(lambda self: TensorMeta((), dtype_of(self)))

    @of_dim.meta
    def along_meta(self, dim, keepdim):
        return one_of_each_row("median", self, dim, keepdim)

    @of_all.kernel
    def median_of_all(self):
        flat = self._array.reshape(-1)
        if dtype_of(self).is_complex or dtype_of(self).category == BOOL:
            raise not_implemented("median_cpu")(dtype_of(self))
        if not flat.size:
            return wrap(np.full((), np.nan if flat.dtype.kind not in "iu" else np.iinfo(flat.dtype).min, flat.dtype))
        return wrap_result(flat[place(comparable(flat))])

    @of_dim.kernel
    def median_along(self, dim, keepdim):
        along_meta(self, dim, keepdim)
        if dtype_of(self).is_complex or dtype_of(self).category == BOOL:
            raise not_implemented("median_out")(dtype_of(self))
        return choose(name, self, dim, keepdim, place)

    return of_all, of_dim


median, median_dim = median_operators("median", median_index)
nanmedian, nanmedian_dim = median_operators("nanmedian", nanmedian_index)


def expected_for(what):
    return lambda out, result, *_: (
        f"expected scalar type '{type_name(result)}' but got '{type_name(out)}' for {what} output"
    )


mode = native_function(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    BOTH,
    out=exact_out(expected_for("values"), expected_for("indices")),
)


@mode.meta
def mode_meta(self, dim, keepdim):
    return one_of_each_row("mode", self, dim, keepdim)


@mode.kernel
def mode_cpu(self, dim, keepdim):
    mode_meta(self, dim, keepdim)
    refuse_kinds("c", self, "mode_cpu")
    return choose("mode", self, dim, keepdim, mode_index)


@kthvalue.backward
class KthvalueBackward0:
    output_differentiability = [True, False]
    self = select_backward

    def values(self_t, dim, indices, keepdim):
        return gathered(self_t, dim, indices, keepdim)


@mode.backward
class ModeBackward0:
    output_differentiability = [True, False]
    self = select_backward

    def values(self_t, dim, indices, keepdim):
        return gathered(self_t, dim, indices, keepdim)


@median.backward
class MedianBackward0:
    self = evenly_distribute

    def result(self_t, self_p, result):
        return evenly_read(self_t, self_p, result)


@median_dim.backward
class MedianBackward1:
    output_differentiability = [True, False]
    self = select_backward

    def values(self_t, dim, indices, keepdim):
        return gathered(self_t, dim, indices, keepdim)


@nanmedian.backward
class NanmedianBackward0:
    self = evenly_distribute

    def result(self_t, self_p, result):
        return evenly_read(self_t, self_p, result)


@nanmedian_dim.backward
class NanmedianBackward1:
    output_differentiability = [True, False]
    self = select_backward

    def values(self_t, dim, indices, keepdim):
        return gathered(self_t, dim, indices, keepdim)


# --------------------------------------------------------------------------------------------------- quantile

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def check(name, self, q, interpolation):
    if self._array.size == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self._array.dtype.char not in "fd":
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if self._array.dtype != q._array.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if q._keys & CPU and not ((whole_array(q) >= 0) & (whole_array(q) <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def ranks_of(q, ranked, ignores_nan):
    """The fractional rank of each quantile in the sorted rows; in a row with nan, that of the nan."""
    unknown = ranked.isnan()
    if ignores_nan:
        return (q * (unknown.logical_not().sum(-1, True) - 1)).clamp_min(0)
    last = ranked._array.shape[-1] - 1
    return (q * last).expand(*ranked._array.shape[:-1], -1).masked_fill(unknown.any(-1, True), last)


def between(ranked, ranks, interpolation):
    """The elements at those ranks, interpolated as asked."""
    rounded = {"lower": at.floor, "higher": at.ceil, "nearest": at.round}.get(interpolation)
    if rounded is not None:
        ranks = rounded(ranks)
    below = ranks.to(int64)
    values = ranked.gather(-1, below)
    if rounded is not None:
        return values
    weights = at.full_like(ranks, 0.5) if interpolation == "midpoint" else ranks - below
    return at.lerp(values, ranked.gather(-1, ranks.ceil().to(int64)), weights)


def compute_quantile(name, self, q, dim, keepdim, interpolation):
    check(name, self, q, interpolation)
    ndim = self._array.ndim
    shape = self._array.shape
    if dim is None or ndim == 0:
        rows, kept = self.flatten(), (1,) * ndim if keepdim else ()
    else:
        dim = wrap_dim(dim, ndim)
        rows = self if dim == ndim - 1 else self.unsqueeze(-1).transpose(dim, -1)
        kept = (*shape[:dim], *((1,) if keepdim else ()), *shape[dim + 1 :])
    ranked = rows.sort(-1)[0]
    ranked = ranked.view((*kept, ranked._array.shape[-1]))
    values = between(ranked, ranks_of(q.reshape(-1), ranked, name == "nanquantile"), interpolation)
    if not q._array.ndim:
        return values.squeeze_(-1)
    return values.unsqueeze_(0).transpose_(0, -1).squeeze_(-1)


def overloads(name):
    rest = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
    out = exact_out(lambda *_: "quantile() out tensor must be same dtype as the input tensor")
    general = native_function(f"{name}(Tensor self, Tensor q, {rest}", BOTH, out=out)
    of_number = native_function(f"{name}.scalar(Tensor self, float q, {rest}", BOTH, out=out)

    @general.compose
    def quantile_composite(self, q, dim, keepdim, interpolation):
        return compute_quantile(name, self, q, dim, keepdim, interpolation)

    @of_number.compose
    def quantile_of_number(self, q, dim, keepdim, interpolation):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        share = constant_beside(self, np.array(q, self._array.dtype if self._array.dtype.kind == "f" else np.float32))
        return general.call(self, share, dim, keepdim, interpolation)


overloads("quantile")
overloads("nanquantile")
