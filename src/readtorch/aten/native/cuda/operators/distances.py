"""Distances between rows, and reductions of stretches of rows: cdist, pdist, segment_reduce.

In PyTorch: `aten/src/ATen/native/cuda/{DistanceKernel,SegmentReduce}.cu`.
"""

import math

from .....c10.scalar_type import op_math_type
from .....c10.tensor_impl import dtype_of, type_name
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ...distance import check_cdist
from ...segment_reduce import NAMES, REDUCTIONS
from ...tensor_iterator import not_implemented
from .. import distances as kernels
from .. import segments
from ..rows import as_rows, contiguous
from .factories import filled
from .pointwise import operator_named
from .reductions import LONG, converted
from .registration import broadcast_shape, cuda_kernel, empty

# -------------------------------------------------------------------------------------------------- distances


def batches(x1, x2):
    """Both as (batch, rows, columns), and the sizes of the batch dimensions."""
    batch = broadcast_shape(x1._array.shape[:-2], x2._array.shape[:-2])
    count = math.prod(batch)
    arrays = [contiguous(x.expand((*batch, *x._array.shape[-2:]))._array) for x in (x1, x2)]
    return [a.reshape(count, *a.shape[-2:]) for a in arrays], batch


@cuda_kernel(operator_named("_cdist_forward"))
def cdist_cuda(x1, x2, p, compute_mode):
    check_cdist(x1, x2, p)
    if dtype_of(x1).itemsize == 2:
        raise not_implemented("cdist_cuda")(dtype_of(x1))
    if x1._array.dtype != x2._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(x1)} but found {type_name(x2)}")
    (a, b), batch = batches(x1, x2)
    result = filled(empty((*batch, a.shape[1], b.shape[1]), a.dtype), 0)
    if a.shape[2]:
        kernels.cdist(a, b, p, result._array.reshape(len(a), a.shape[1], b.shape[1]))
    return result


@cuda_kernel(operator_named("_cdist_backward"))
def cdist_backward_cuda(grad, x1, x2, p, cdist):
    (a, b), batch = batches(x1, x2)
    result = filled(empty((*batch, *a.shape[1:]), a.dtype), 0)
    if p != 0 and a.size and b.size:
        g, lengths = (contiguous(t._array).reshape(len(a), a.shape[1], b.shape[1]) for t in (grad, cdist))
        kernels.cdist_backward(g, a, b, p, lengths, result._array.reshape(a.shape))
    return result


@cuda_kernel(operator_named("_euclidean_dist"))
def euclidean_dist_cuda(x1, x2):
    """√(|a|² - 2 a·b + |b|²) as one product: (-2 a, |a|², 1) · (b, 1, |b|²)."""
    norm1, norm2 = (at.sum(x.pow(2), (-1,), True) for x in (x1, x2))
    left = at.cat([x1.mul(-2), norm1, at.ones_like(norm1)], -1)
    right = at.cat([x2, at.ones_like(norm2), norm2], -1)
    return left.matmul(right.transpose(-2, -1)).clamp_min_(0).sqrt_()


def check_pdist(self):
    if self._array.dtype.name not in ("float32", "float64"):
        raise not_implemented("pdist_cuda")(dtype_of(self))


@cuda_kernel(operator_named("_pdist_forward"))
def pdist_cuda(self, p):
    check_pdist(self)
    n = self._array.shape[0]
    result = filled(empty((n * (n - 1) // 2,), self._array.dtype), 0)
    if self._array.size:
        kernels.pdist(self._array, p, result._array)
    return result


@cuda_kernel(operator_named("_pdist_backward"))
def pdist_backward_cuda(grad, self, p, pdist):
    result = filled(empty(self._array.shape, self._array.dtype), 0)
    if p != 0:
        kernels.pdist_backward(grad._array, self._array, p, pdist._array, result._array)
    return result


# --------------------------------------------------------------------------------------------------- segments


def edges_of(lengths, offsets):
    """Where the segments begin and where the last one ends, along the last dimension; int64, a matrix."""
    if offsets is None:
        zero = filled(empty((*lengths._array.shape[:-1], 1), LONG), 0)
        offsets = at.cat([zero, lengths.cumsum(-1)], -1)
    array = contiguous(converted(offsets, LONG)._array)
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def check_lengths(data, lengths, axis, unsafe):
    """The host waits for the sums unless it is told not to look."""
    shape, before = lengths._array.shape, lengths._array.ndim - 1
    if shape[:-1] != data._array.shape[:before] or before != axis:
        raise RuntimeError(
            "segment_reduce(): Expected lengths to be of shape data.shape[:axis] with one dimension more."
        )
    if unsafe or not lengths._array.size:
        return
    if lengths.min().item() < 0:
        raise RuntimeError("lengths contains negative value!")
    if at.ne(lengths.sum(-1), data._array.shape[axis]).any().item():
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to "
                           "data.size(lengths.dim()-1) when !unsafe.")


def how_and_start(reduce, initial):
    how = NAMES.get(reduce, reduce)
    if how not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return how, REDUCTIONS[how][1] if initial is None else initial


@cuda_kernel(operator_named("segment_reduce"))
def segment_reduce_cuda(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    axis = wrap_dim(axis, data._array.ndim)
    how, start = how_and_start(reduce, initial)
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if offsets is None:
        check_lengths(data, lengths, axis, unsafe)
    edges, x = edges_of(lengths, offsets), converted(data, op_math_type(dtype_of(data)).numpy)
    shape = data._array.shape
    result = empty((*shape[:axis], edges.shape[1] - 1, *shape[axis + 1:]), x._array.dtype)
    number = x._array.dtype.type
    segments.reduce(how, as_rows(x._array, axis), edges, number(start), as_rows(result._array, axis),
                    number(math.nan if initial is None else initial))
    return converted(result, data._array.dtype)


@cuda_kernel(operator_named("_segment_reduce_backward"))
def segment_reduce_backward_cuda(grad, output, data, reduce, lengths, offsets, axis, initial):
    axis = wrap_dim(axis, data._array.ndim)
    how, start = how_and_start(reduce, initial)
    wide = op_math_type(dtype_of(data)).numpy
    g, y, x = (as_rows(converted(t, wide)._array, axis) for t in (grad, output, data))
    result = filled(empty(data._array.shape, wide), 0)
    edges = edges_of(lengths, offsets)
    segments.reduce_backward(how, g, y, x, edges, wide.type(start), as_rows(result._array, axis))
    return converted(result, data._array.dtype)
