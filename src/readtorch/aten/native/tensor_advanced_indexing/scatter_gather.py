"""One index for each element: gather, scatter and their relatives; take and put.

In PyTorch: `aten/src/ATen/native/TensorAdvancedIndexing.cpp`, `aten/src/ATen/native/ScatterGatherChecks.h`,
`aten/src/ATen/native/cpu/ScatterGatherKernel.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out, keeps_apart
from readtorch.aten.native.sparse.sparse_tensor import _sparse_coo_tensor_unsafe
from readtorch.aten.native.tensor_iterator import WIDENED, cast
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.memory_format import strides_in_format
from readtorch.c10.overflows import number_as
from readtorch.c10.tensor_impl import dtype_of, host_array, type_name, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .index import INT, LONG, add_at, at_least_1d, row_major, writes_elements

# -------------------------------------------------------------------------------------------------- gather

gather = native_function(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    BOTH,
    out=exact_out(),
    direct=True,
)


def one_for_each(places, dim):
    """The index arrays that name, for each of `places`, the element there along `dim`, elsewhere at its own position."""
    shape, after = places.shape, places.ndim - 1
    grid = [np.arange(n).reshape((n, *(1,) * (after - d))) for d, n in enumerate(shape)]
    grid[dim] = places
    return tuple(grid)


def check_bounds(places, size, dim):
    if places.size and not (0 <= places.min() and places.max() < size):
        outside = places[(places < 0) | (places >= size)][0]
        raise RuntimeError(f"index {outside} is out of bounds for dimension {dim} with size {size}")


def check_index(self, dim, index, name):
    """The dimension, wrapped. Raises RuntimeError for an index of the wrong type or number of dimensions."""
    dim = wrap_dim(dim, self._array.ndim)
    places = index._array
    if places.size and places.dtype not in (LONG, INT):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if places.size and max(places.ndim, 1) != max(self._array.ndim, 1):
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as {} tensor".format(
                "input" if name == "gather" else "self"
            )
        )
    return dim


keeps_apart(gather, grows=True)


@gather.meta
def gather_meta(self, dim, index, sparse_grad):
    dim, places = check_index(self, dim, index, "gather"), index._array
    for d, (n, m) in enumerate(zip(places.shape, self._array.shape) if places.size else ()):
        if d != dim and n > m:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(places.shape)} to be no "
                f"larger than self {list(self._array.shape)} apart from dimension {dim}"
            )
    return TensorMeta(places.shape, dtype_of(self))


@gather.kernel
def gather_cpu(self, dim, index, sparse_grad):
    """`result[i][j] = self[index[i][j]][j]` for dim 0, and so on: the index replaces the coordinate along `dim`."""
    gather_meta(self, dim, index, sparse_grad)
    own, places = at_least_1d(self._array), at_least_1d(index._array)
    if places.size == 0:
        return wrap(np.empty(index._array.shape, own.dtype))
    dim = wrap_dim(dim, own.ndim)
    check_bounds(places, own.shape[dim], dim)
    return wrap(np.ascontiguousarray(own[one_for_each(places, dim)]).reshape(index._array.shape))


@gather.backward
class GatherBackward0:
    def self(grad, self_sym_sizes, dim, index, sparse_grad):
        if sparse_grad:
            return gather_sparse_backward(grad, self_sym_sizes, dim, index)
        return at.scatter_add(at.new_zeros(grad, self_sym_sizes), dim, index, grad)

    result = "auto_linear"


def gather_sparse_backward(grad, size, dim, index):
    """Lists where each element was taken from and its gradient (`_gather_sparse_backward`)."""
    rows = list(np.indices(index._array.shape or (1,), LONG))
    rows[dim] = host_array(index)
    places = np.stack([row.reshape(-1) for row in rows]) if size else np.empty((0, index._array.size), LONG)
    return _sparse_coo_tensor_unsafe.call(wrap(places), grad.reshape(-1), size, None, None, None, None, None)


# -------------------------------------------------------------------------------------------------- scatter

scatter = native_function(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", BOTH, inplace=True, out=exact_out()
)
scatter_reduce_src = native_function(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
)
scatter_value = native_function(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", BOTH, inplace=True, out=exact_out()
)
scatter_reduce_value = native_function(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
)
scatter_add = native_function(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
    direct=True,
)
scatter_reduce = native_function(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
)


@scatter.meta
@scatter_value.meta
@scatter_add.meta
def scatter_meta(self, dim, index, src):
    """src: a tensor with an element for each of `index`, or a number for all."""
    dim, places = check_index(self, dim, index, "scatter"), index._array
    values = getattr(src, "_array", None)
    if values is not None and values.dtype != self._array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if places.size:
        check_scatter_sizes(at_least_1d(self._array), dim, at_least_1d(places), values)
    return row_major(self)


def check_scatter_sizes(own, dim, places, values):
    """Raises RuntimeError for an index that is larger than what is written to, or read from."""
    if values is not None and max(values.ndim, 1) != own.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d, n in enumerate(places.shape):
        if d != dim and n > own.shape[d] or values is not None and n > at_least_1d(values).shape[d]:
            raise RuntimeError(
                f"Expected index {list(places.shape)} to be no larger than self {list(own.shape)} apart from dimension "
                f"{dim}" + ("" if values is None else f" and to be no larger size than src {list(values.shape)}")
            )


@scatter_reduce_src.meta
@scatter_reduce_value.meta
def scatter_add_or_multiply_meta(self, dim, index, src, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return scatter_meta(self, dim, index, src)


@scatter_reduce.meta
def scatter_reduce_meta(self, dim, index, src, reduce, include_self):
    if reduce not in _NEUTRAL:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return scatter_meta(self, dim, index, src)


def targets(self, dim, index, src=None):
    """(array to write, its index, values to write), one element of `self` and one of `src` for each of `index`."""
    own, places = at_least_1d(self._array), at_least_1d(index._array)
    if places.size == 0:
        return None
    dim = wrap_dim(dim, own.ndim)
    check_bounds(places, own.shape[dim], dim)
    values = None if src is None else at_least_1d(src._array)[tuple([slice(n) for n in places.shape])]
    return own, one_for_each(places, dim), values


_REDUCTIONS = {
    "add": add_at,
    "multiply": np.multiply.at,
    "sum": add_at,
    "mean": add_at,
    "prod": np.multiply.at,
    "amax": np.maximum.at,
    "amin": np.minimum.at,
}


def reduce_at(reduce, own, where, values):
    """Each element of `own` and all values that come to it, reduced: 16-bit numbers in float32, and rounded once.

    Note [ Which sums are rounded at each step ]
    """
    wide = cast(own, WIDENED.get(own.dtype, own.dtype))
    _REDUCTIONS[reduce](wide, where, values)
    if wide is not own:
        own[...] = wide


@writes_elements(scatter)
def scatter_cpu(self, dim, index, src):
    """`self[index[i][j]][j] = src[i][j]` for dim 0: the inverse of gather."""
    found = targets(self, dim, index, src)
    if found:
        own, where, values = found
        own[where] = values


@writes_elements(scatter_value)
def scatter_value_cpu(self, dim, index, value):
    found = targets(self, dim, index)
    if found:
        found[0][found[1]] = number_as(value, dtype_of(self))


@writes_elements(scatter_reduce_src)
def scatter_reduce_src_cpu(self, dim, index, src, reduce):
    found = targets(self, dim, index, src)
    if found:
        reduce_at(reduce, *found)


@writes_elements(scatter_reduce_value)
def scatter_reduce_value_cpu(self, dim, index, value, reduce):
    found = targets(self, dim, index)
    if found:
        reduce_at(reduce, found[0], found[1], number_as(value, dtype_of(self)))


@writes_elements(scatter_add)
def scatter_add_cpu(self, dim, index, src):
    found = targets(self, dim, index, src)
    if found:
        reduce_at("add", *found)


@scatter.backward
class ScatterBackward0:
    def self(grad, dim, index):
        return grad.scatter(dim, index, 0)

    def src(grad, dim, index):
        return grad.gather(dim, index)

    def result(self_t, dim, index, src_t):
        return self_t.scatter(dim, index, src_t)


@scatter_value.backward
class ScatterBackward1:
    def self(grad, dim, index):
        return grad.scatter(dim, index, 0)

    def result(self_t, dim, index):
        return self_t.scatter(dim, index, 0)


@scatter_reduce_src.backward
class ScatterBackward2:
    def self__src(grad):
        raise RuntimeError("derivative for aten::scatter.reduce is not implemented")


@scatter_reduce_value.backward
class ScatterBackward3:
    def self(grad):
        raise RuntimeError("derivative for aten::scatter.value_reduce is not implemented")


@scatter_add.backward
class ScatterAddBackward0:
    def self(grad):
        return grad

    def src(grad, dim, index):
        return grad.gather(dim, index)

    def result(self_t, dim, index, src_t):
        return self_t.scatter_add(dim, index, src_t)


# -------------------------------------------------------------------------------------------- scatter_reduce

_NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


def neutral(reduce, dtype):
    """What a reduction starts from when `self`'s own elements do not count."""
    value = _NEUTRAL[reduce]
    if dtype.kind in "iu" and value not in (0, 1):
        limits = np.iinfo(dtype)
        return limits.min if value < 0 else limits.max
    return dtype.type(value > 0) if dtype.kind == "b" else value


@writes_elements(scatter_reduce)
def scatter_reduce_cpu(self, dim, index, src, reduce, include_self):
    """Each element of `self` becomes the reduction of what `src` sends there, and of itself if `include_self`."""
    found = targets(self, dim, index, src)
    if not found:
        return
    own, where, values = found
    if not include_self:
        own[where] = neutral(reduce, own.dtype)
    reduce_at(reduce, own, where, values)
    if reduce == "mean":
        count = np.full(own.shape, int(include_self), LONG)
        np.add.at(count, where, 1)
        count = np.maximum(count, 1)
        own[...] = own // count if own.dtype.kind in "iub" else own / count.astype(own.dtype)


@scatter_reduce.backward
class ScatterReduceBackward0:
    def self__src(grad, self, dim, index, src, reduce, include_self, result, grad_input_mask):
        return scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, result)

    def result(self_p, self_t, dim, index, src_p, src_t, reduce, include_self, result):
        if reduce in ("sum", "mean"):
            return at.scatter_reduce(self_t, dim, index, src_t, reduce, include_self=include_self)
        if reduce == "prod":
            # in PyTorch: there is no tangent, as if it were zero
            of_self, of_src = product_backward(at.ones_like(result), self_p, dim, index, src_p, include_self, result)
            of_self = of_self if include_self else of_self.scatter(dim, index, 0)
            return at.scatter_add(of_self * self_t, dim, index, of_src * src_t)
        return mean_of_chosen(self_p, self_t, dim, index, src_p, src_t, include_self, result)


def mean_of_chosen(self, self_t, dim, index, src, src_t, include_self, result):
    """The tangent of a greatest or least element: the mean of the tangents of all that are as great or as small."""
    of_self, of_src = self == result, src == result.gather(dim, index)
    counts = of_self.to(self_t.dtype).scatter_reduce(
        dim, index, of_src.to(self_t.dtype), "sum", include_self=include_self
    )
    zero = at.zeros((), dtype=self_t.dtype, device=self_t.device)
    total = at.where(of_self, self_t, zero).scatter_reduce(
        dim, index, at.where(of_src, src_t, zero), "sum", include_self=include_self
    )
    return total / counts


def scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, result):
    """(gradient of self, gradient of src)."""
    if reduce == "sum":
        of_self, of_src = grad, grad.gather(dim, index)
    elif reduce == "prod":
        of_self, of_src = product_backward(grad, self, dim, index, src, include_self, result)
    elif reduce == "mean":
        ones = at.ones_like(src)
        count = at.scatter_add(at.ones_like(grad) if include_self else at.zeros_like(grad), dim, index, ones)
        count = at.where(count == 0, at.ones_like(count), count)
        of_self, of_src = grad / count, (grad / count).gather(dim, index)
    else:
        of_self, of_src = extreme_backward(grad, self, dim, index, src, include_self, result)
    if not include_self:
        of_self = of_self.scatter(dim, index, 0)
    return of_self, of_src


def product_backward(grad, self, dim, index, src, include_self, result):
    """Product of all the others: result / own. A factor that is zero counts as 1 while its own gradient is
    worked out, if no other one of src is zero."""
    without_zero = self.masked_fill(self == 0, 1)
    product = at.scatter_reduce(without_zero, dim, index, src, "prod", include_self=include_self)
    of_self = grad * product / without_zero
    src_zero = src == 0
    zeros = at.scatter_add(at.zeros_like(self), dim, index, src_zero.to(self.dtype)).gather(dim, index)
    single = src_zero.logical_and(zeros == 1)
    with_ones = at.scatter_reduce(self, dim, index, src.masked_fill(single, 1), "prod", include_self=include_self)
    divisor = src.masked_fill(src_zero, 1)
    of_src = at.where(single, (grad * with_ones).gather(dim, index), (grad * result).gather(dim, index) / divisor)
    return of_self, of_src


def extreme_backward(grad, self, dim, index, src, include_self, result):
    """The elements that reached the maximum share the gradient evenly."""
    values = result.gather(dim, index)
    own_wins = (self == result).to(grad.dtype)
    src_wins = (src == values).to(grad.dtype)
    start = own_wins if include_self else at.zeros_like(self)
    winners = at.scatter_add(start, dim, index, src_wins)
    share = grad / at.where(winners == 0, at.ones_like(winners), winners)
    of_self = own_wins * share
    return of_self, src_wins * share.gather(dim, index)


# ---------------------------------------------------------------------------------------------- take and put

take = native_function(
    "take(Tensor self, Tensor index) -> Tensor",
    BOTH,
    out=exact_out(
        lambda out, result, *_: (
            f"take(): self and out expected to have the same dtype, but got self.dtype = {type_name(result)} and "
            f"out.dtype = {type_name(out)}"
        )
    ),
    direct=True,
)
keeps_apart(take)
put = native_function(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", BOTH, inplace=True
)
take_along_dim = native_function(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", BOTH, out=exact_out()
)


def check_flat_index(index, name):
    if index._array.dtype != LONG:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {type_name(index)}")


def check_flat_places(places, size):
    """An index into all elements counted in order; negative numbers count from the end."""
    outside = places[(places < -size) | (places >= size)]
    if outside.size:
        raise IndexError("out of range: tried to access index {} on a tensor of {} elements.".format(outside[0], size))
    return places


@take.meta
def take_meta(self, index):
    check_flat_index(index, "take")
    if index._array.size and not self._array.size:
        raise IndexError("take(): tried to take from an empty tensor")
    return TensorMeta(index._array.shape, dtype_of(self))


@take.kernel
def take_cpu(self, index):
    """Elements of `self` counted as if it were flat, in the shape of `index`."""
    array, places = self._array, index._array
    if places.dtype != LONG or not array.size:
        take_meta(self, index)
    return wrap(np.asarray(array.reshape(-1)[check_flat_places(places, array.size)]))


@take.backward
class TakeBackward0:
    def self(grad, self_sym_sizes, index):
        return at.put(at.new_zeros(grad, self_sym_sizes), index, grad, True)

    result = "auto_linear"


@put.meta
def put_meta(self, index, source, accumulate):
    check_flat_index(index, "put_")
    if source._array.dtype != self._array.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{type_name(self)} and source.dtype = {type_name(source)}"
        )
    if source._array.size != index._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source._array.size}, index.numel() = {index._array.size}"
        )
    if index._array.size and not self._array.size:
        raise IndexError("put_(): tried to put elements into an empty tensor")
    return TensorMeta(self._array.shape, dtype_of(self), strides_in_format(self._array))


@writes_elements(put)
def put_cpu(self, index, source, accumulate):
    places = check_flat_places(index._array, self._array.size)
    shape = self._array.shape
    where = np.unravel_index(places.reshape(-1) % max(self._array.size, 1), shape) if shape else (...,)
    values = source._array.reshape(-1)
    if accumulate:
        add_at(self._array, where, values if self._array.ndim else values.sum())
    elif places.size:
        self._array[where] = values if self._array.ndim else values[-1]


@put.backward
class PutBackward0:
    def self(grad, index, source, accumulate):
        return grad if accumulate else at.put(grad, index, at.zeros_like(source), False)

    def source(grad, index, source_sym_sizes):
        return grad.take(index).reshape(source_sym_sizes)

    def result(self_t, index, source_t, accumulate):
        return self_t.put(index, source_t, accumulate)


@take_along_dim.compose
def take_along_dim_composite(self, indices, dim):
    """gather, after `self` and `indices` were broadcast in all dimensions but `dim`."""
    if indices._array.dtype != LONG:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {type_name(indices)}")
    if dim is None:
        return self.reshape((-1,)).gather(0, from_the_front(indices.reshape((-1,)), self._array.size))
    own, other = self._array.shape, indices._array.shape
    if len(own) != len(other):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {len(own)} dimensions for input, and {len(other)} dimensions for indices"
        )
    dim = wrap_dim(dim, len(own))
    common = np.broadcast_shapes((*own[:dim], *own[dim + 1 :]), (*other[:dim], *other[dim + 1 :]))
    return self.expand((*common[:dim], own[dim], *common[dim:])).gather(
        dim, from_the_front(indices.expand((*common[:dim], other[dim], *common[dim:])), own[dim])
    )


def from_the_front(indices, size):
    """Negative indices, which count from the end, as counted from the start."""
    return at.where(indices < 0, indices + size, indices)
