"""segment_reduce: sum, product, mean or extreme of stretches of a tensor, given by their lengths or offsets.

In PyTorch: `aten/src/ATen/native/SegmentReduce.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import alias_of, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

NAMES = {"max": "amax", "min": "amin"}
REDUCTIONS = {
    "sum": (np.add, 0.0),
    "mean": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "amax": (np.maximum, -np.inf),
    "amin": (np.minimum, np.inf),
}

segment_reduce = native_function(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int "
    "axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor"
)
backward = native_function(
    "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, "
    "Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor"
)
alias_of("_segment_reduce", "segment_reduce")


def how_to_reduce(reduce):
    """Its name among REDUCTIONS."""
    how = NAMES.get(reduce, reduce)
    if how not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return how


@segment_reduce.meta
def segment_reduce_meta(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    shape, axis = data._array.shape, wrap_dim(axis, data._array.ndim)
    how_to_reduce(reduce)
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    count = lengths._array.shape[-1] if offsets is None else offsets._array.shape[-1] - 1
    if offsets is None and lengths._array.shape != (*shape[:axis], count):
        raise RuntimeError(
            "segment_reduce(): Expected lengths to be of shape data.shape[:axis] with one dimension more."
        )
    return TensorMeta((*shape[:axis], count, *shape[axis + 1 :]), dtype_of(data))


@backward.meta
def segment_reduce_backward_meta(grad, output, data, reduce, lengths, offsets, axis, initial):
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    return TensorMeta(data._array.shape, dtype_of(data))


def check_lengths(lengths, size):
    if lengths.size and lengths.min() < 0:
        raise RuntimeError("lengths contains negative value!")
    if (lengths.sum(-1) != size).any():
        raise RuntimeError(WRONG_SUMS)


WRONG_SUMS = (
    "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
)


def edges_of(lengths, offsets):
    """Where the segments begin and where the last one ends, along the last dimension."""
    if offsets is not None:
        return offsets._array
    zero = np.zeros((*lengths._array.shape[:-1], 1), np.int64)
    return np.concatenate([zero, lengths._array.cumsum(-1)], -1)


def check_edges(edges, size):
    """Raises RuntimeError for a segment that ends before it begins, or lies outside. (In PyTorch: the latter is not
    checked.)"""
    if (np.diff(edges) < 0).any():
        raise RuntimeError(
            "Expected segment_length >= 0 to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if edges.size and (edges.min() < 0 or edges.max() > size):
        raise RuntimeError(
            f"segment_reduce(): a segment reaches from {edges.min()} to {edges.max()}, but there are {size} elements."
        )


def segments(edges):
    """(row before the axis, segment number, begin, end) of each segment."""
    for row in np.ndindex(edges.shape[:-1]):
        for i, (begin, end) in enumerate(zip(edges[row][:-1], edges[row][1:])):
            yield row, i, begin, end


@segment_reduce.impl()
def segment_reduce_cpu(data, reduce, lengths, indices, offsets, axis, unsafe, initial, out):
    x, result = data._array, out._array
    axis, kind = wrap_dim(axis, x.ndim), how_to_reduce(reduce)
    if offsets is None and not unsafe:
        check_lengths(lengths._array, x.shape[axis])
    edges = edges_of(lengths, offsets)
    check_edges(edges, x.shape[axis])
    ufunc, neutral = REDUCTIONS[kind]
    start = neutral if initial is None else initial
    wide = x.astype(op_math_type(dtype_of(data)).numpy)
    for row, i, begin, end in segments(edges):
        value = ufunc.reduce(wide[row][begin:end], 0, initial=start)
        if kind == "mean":
            value = value / (end - begin) if end > begin else np.nan if initial is None else value
        result[row][i] = value


@backward.impl()
def segment_reduce_backward_cpu(grad, output, data, reduce, lengths, offsets, axis, initial, out):
    """Each segment's gradient, shared out: to all, in equal parts, among those that reached the extreme, or
    times the product of the others.
    """
    x, axis, kind, result = data._array, wrap_dim(axis, data._array.ndim), NAMES.get(reduce, reduce), out._array
    result[...] = 0
    edges = edges_of(lengths, offsets)
    check_edges(edges, x.shape[axis])
    for row, i, begin, end in segments(edges):
        if end > begin:
            result[row][begin:end] = share(kind, grad._array[row][i], output._array[row][i], x[row][begin:end], initial)


def share(kind, g, y, x, initial):
    if kind == "sum":
        return np.broadcast_to(g, x.shape)
    if kind == "mean":
        return np.broadcast_to(g / len(x), x.shape)
    if kind == "prod":
        return g * products_of_others(x, 1 if initial is None else initial)
    wins = (x == y) | np.isnan(x)
    return g * wins / np.maximum(wins.sum(0), 1)


def products_of_others(x, start):
    result = np.empty_like(x)
    for k in range(len(x)):
        result[k] = np.delete(x, k, 0).prod(0) * start
    return result


@segment_reduce.backward
class SegmentReduceBackward0:
    def data(grad, result, data, reduce, lengths, offsets, axis, initial):
        return backward.call(grad, result, data, reduce, lengths, offsets, axis, initial)
