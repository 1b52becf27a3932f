"""histogram, histogramdd and histc: how many elements, or rows, fall into each bin.

In PyTorch: `aten/src/ATen/native/Histogram.cpp` and `aten/src/ATen/native/cpu/HistogramKernel.cpp`.
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of, wrap

from . import return_types
from .exact_out import c_name, exact_out
from .range_factories import even_steps
from .reduce_ops.min_max import comparable
from .tensor_iterator import not_implemented

_WEIGHTS = "Tensor? weight=None, bool density=False"
_PAIR = "(Tensor hist, Tensor bin_edges)"


def same_type_as_input(what, ending=""):
    return lambda out, result, *_: (
        f"torch.histogram: input tensor and {what} tensor should have the same dtype, but got "
        f"input {c_name(result)} and {what} {c_name(out)}{ending}"
    )


_PAIR_OUT = exact_out(same_type_as_input("hist"), same_type_as_input("bin_edges", " for dimension 0"))
histogram_at = native_function(
    f"histogram.bins_tensor(Tensor self, Tensor bins, *, {_WEIGHTS}) -> {_PAIR}", BOTH, out=_PAIR_OUT
)
histogram = native_function(
    f"histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, {_WEIGHTS}) -> {_PAIR}", BOTH, out=_PAIR_OUT
)
edges_of = native_function(
    f"_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, {_WEIGHTS}) -> Tensor[]"
)
from_counts = native_function(
    f"_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, {_WEIGHTS}) -> Tensor"
)
from_edges = native_function(f"_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, {_WEIGHTS}) -> Tensor")
_REST = "float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)"
histogramdd = native_function(f"histogramdd(Tensor self, int[] bins, {_REST}")
histogramdd_of_one = native_function(f"histogramdd.int_bins(Tensor self, int bins, {_REST}")
histogramdd_at = native_function(f"histogramdd.TensorList_bins(Tensor self, Tensor[] bins, {_REST}")

# ----------------------------------------------------------------------------------------------------- checks


def fail(text):
    raise RuntimeError(f"torch.histogramdd: {text}")


def check_points(x, count):
    if x._array.ndim < 2:
        fail("input tensor should have at least 2 dimensions")
    if count != x._array.shape[-1]:
        fail(
            f"expected {x._array.shape[-1]} sequences of bin edges for a {x._array.shape[-1]}-dimensional histogram "
            f"but got {count}"
        )


def check_weight(x, weight):
    if weight is None:
        return
    if dtype_of(weight) is not dtype_of(x):
        fail(
            "if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({c_name(x)}), and weight({c_name(weight)})"
        )
    if weight._array.shape != x._array.shape[:-1]:
        fail(
            "if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got input with shape {list(x._array.shape)} and weight with shape "
            f"{list(weight._array.shape)}"
        )


def check_edges(x, bins):
    for d, edges in enumerate(bins):
        if dtype_of(edges) is not dtype_of(x):
            fail(
                "input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{c_name(x)} and bins for dimension {d} with dtype {c_name(edges)}"
            )
        if edges._array.ndim != 1:
            fail(
                f"bins tensor should have one dimension, but got {edges._array.ndim} dimensions in the bins tensor for "
                f"dimension {d}"
            )
        if not edges._array.size:
            fail(f"bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension {d}")


def check_type(x):
    if x._array.dtype.char not in "fd":
        raise not_implemented("histogramdd")(dtype_of(x))


# -------------------------------------------------------------------------------------------------- bin edges


def outer_edges(points, d, given):
    """The range along one dimension: as given, else the data's, widened where it is a single point."""
    if given is not None:
        low, high = given[2 * d : 2 * d + 2]
    elif len(points):
        low, high = points[:, d].min(), points[:, d].max()
    else:
        low, high = 0.0, 1.0
    if not (np.isfinite(low) and np.isfinite(high)):
        fail(f"dimension {d}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        fail(f"min should not exceed max, but got min {low:g} max {high:g} for dimension {d}")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def even_edges(x, bins, given):
    """Edges of bins of equal width for each dimension of the points."""
    check_type(x)
    count = x._array.shape[-1]
    if given is not None and len(given) != 2 * count:
        fail(f"for a {count}-dimensional histogram range should have {2 * count} elements, but got {len(given)}")
    for d, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {d}")
    points = x._array.reshape(-1, count)
    return [
        wrap(even_steps(*map(float, outer_edges(points, d, given)), n + 1, dtype_of(x))) for d, n in enumerate(bins)
    ]


# --------------------------------------------------------------------------------------------------- counting


def bin_of(values, edges):
    """The bin of each value, -1 outside; the last bin includes its right edge."""
    place = np.searchsorted(edges, values, "right") - 1
    place[values == edges[-1]] = len(edges) - 2
    place[~((values >= edges[0]) & (values <= edges[-1]))] = -1
    return place


def count(x, bins, weight, density):
    """The histogram of points (…, D) as an array of D dimensions."""
    check_type(x)
    edges = [b._array for b in bins]
    shape = tuple([len(e) - 1 for e in edges])
    points = x._array.reshape(-1, x._array.shape[-1])
    places = (
        np.stack([bin_of(points[:, d], e) for d, e in enumerate(edges)]) if edges else np.empty((0, len(points)), int)
    )
    inside = (places >= 0).all(0)
    flat = np.ravel_multi_index(tuple(places[:, inside]), shape)
    weights = None if weight is None else weight._array.reshape(-1)[inside]
    size = int(np.prod(shape))
    result = np.bincount(flat, weights, size).reshape(shape).astype(x._array.dtype)
    if density:
        result = result / result.sum()
        for d, e in enumerate(edges):
            result = result / np.diff(e).reshape([-1 if i == d else 1 for i in range(len(edges))])
    return wrap(result.astype(x._array.dtype))


@from_edges.kernel
def histogram_from_edges(self, bins, weight, density):
    check_points(self, len(bins))
    check_weight(self, weight)
    check_edges(self, bins)
    return count(self, bins, weight, density)


@edges_of.kernel
def bin_edges_cpu(self, bins, range, weight, density):
    check_points(self, len(bins))
    return even_edges(self, bins, range)


@from_counts.kernel
def histogram_from_counts(self, bins, range, weight, density):
    check_points(self, len(bins))
    check_weight(self, weight)
    return count(self, even_edges(self, bins, range), weight, density)


def as_points(self):
    """Single numbers as points of one dimension."""
    return wrap(self._array.reshape(-1, 1))


def flat_weight(self, weight):
    if weight is None or weight._array.shape != self._array.shape:
        return weight
    return wrap(weight._array.reshape(-1))


@histogram_at.kernel
def histogram_at_cpu(self, bins, weight, density):
    hist = histogram_from_edges(as_points(self), [bins], flat_weight(self, weight), density)
    return return_types.histogram(hist, wrap(bins._array.copy()))


@histogram.kernel
def histogram_cpu(self, bins, range, weight, density):
    points = as_points(self)
    check_weight(points, flat_weight(self, weight))
    edges = even_edges(points, [bins], range)
    return return_types.histogram(count(points, edges, flat_weight(self, weight), density), edges[0])


@histogramdd.compose
def histogramdd_composite(self, bins, range, weight, density):
    if len(bins) != self._array.shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    edges = edges_of.call(self, bins, range, weight, density)
    return return_types.histogramdd(from_counts.call(self, bins, range, weight, density), tuple(edges))


@histogramdd_of_one.compose
def histogramdd_of_one_composite(self, bins, range, weight, density):
    return histogramdd_composite(self, (bins,) * self._array.shape[-1], range, weight, density)


@histogramdd_at.compose
def histogramdd_at_composite(self, bins, range, weight, density):
    return return_types.histogramdd(from_edges.call(self, bins, weight, density), tuple(bins))


for _operator in (histogram_at, histogram):
    _operator.backward(NOT_IMPLEMENTED)


# ------------------------------------------------------------------------------------------------------ histc

histc = native_function(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    BOTH,
    out=exact_out(
        lambda out, result, *_: (
            "torch.histogram: input tensor and hist tensor should have the same dtype, "
            f"but got input {c_name(result)} and hist {c_name(out)}"
        )
    ),
)


@histc.meta
def histc_meta(self, bins, min, max):
    if bins <= 0:
        raise RuntimeError(f"histc(): bins must be > 0, but got {bins}")
    return TensorMeta((bins,), dtype_of(self))


@histc.kernel
def histc_cpu(self, bins, min, max):
    x, dtype = self._array, dtype_of(self)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = histogram_range(x, float(min), float(max))
    if not dtype.is_floating_point:
        raise not_implemented("histogram_cpu")(dtype)
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
