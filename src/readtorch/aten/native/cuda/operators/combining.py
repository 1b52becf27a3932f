"""scatter with a reduction, rows of an embedding that are too long, and bags of rows.

In PyTorch: `aten/src/ATen/native/cuda/{ScatterGatherKernel,Embedding,EmbeddingBag}.cu`.
"""

from .....c10.scalar_type import int64
from ....functions import at
from ...embedding import check_indices
from ...embedding_bag import MAX, MEAN, SUM, check_dims, check_per_sample_weights, of_one_type
from ...tensor_advanced_indexing.scatter_gather import check_index, neutral, reduction
from .. import bags as bag_kernels
from .. import embedding as embedding_kernels
from .. import indexing
from ..combining import combine
from ..rows import contiguous
from .choosing import source_of, window
from .copies import clone_cuda, copy_elements
from .factories import filled
from .normalization import wide
from .pointwise import operator_named
from .reductions import LONG, converted, wide_enough
from .registration import cuda_kernel, empty, here

# ---------------------------------------------------------------------------------------------- scatter_reduce

HOW = {"add": "sum", "multiply": "prod"}


def reduce_into(self, dim, index, src, reduce, include_self=True):
    """`self`, each place combined with what `src` sends there."""
    dim = check_index(self, dim, index, "scatter")
    if hasattr(src, "_array") and src._array.dtype != self._array.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    shape, own = index._array.shape, self._array.dtype
    if not index._array.size:
        return self
    work = converted(self, wide_enough(own))
    number = work._array.dtype
    source = window(contiguous(source_of(self, index, src)), shape)
    if source.dtype != number:
        source = converted_array(source, number)
    if not include_self:
        start = filled(empty((), number), neutral(reduce, number))
        copy_elements(at.where(arrivals(work, dim, index) > 0, start, work), work)
    if reduce in ("sum", "mean"):
        indexing.scatter_add(work._array, dim, index._array, source)
    else:
        combine(reduce, work._array, dim, index._array, source)
    if reduce == "mean":
        work = divided_by_counts(work, dim, index, include_self)
    if work is not self:
        copy_elements(work, self)
    return self


def converted_array(array, numpy_dtype):
    from ..copy import copy

    result = empty(array.shape, numpy_dtype)
    copy(array, result._array)
    return result._array


def arrivals(work, dim, index):
    """How many elements are sent to each place."""
    zeros = filled(empty(work._array.shape, LONG), 0)
    return at.scatter_add(zeros, dim, index, at.ones_like(index, dtype=int64))


def divided_by_counts(work, dim, index, include_self):
    counts = (arrivals(work, dim, index) + int(include_self)).clamp(min=1)
    if work._array.dtype.kind in "iu":
        return at.div(work, counts, rounding_mode="floor").to(work.dtype)
    return work / counts.to(work.dtype)


def combining(name, call, allowed):
    operator = operator_named(name)

    def kernel(self, *arguments):
        return in_place(clone_cuda(self, None), *arguments)

    def in_place(self, dim, index, src, reduce, *include_self):
        reduction(reduce, allowed)  # or an error
        return reduce_into(self, dim, index, src, call(reduce), *include_self)

    def kernel_(self, *arguments):
        in_place(self, *arguments)
        self._counter[0] += 1
        return self

    cuda_kernel(operator)(kernel)
    cuda_kernel(operator.inplace)(kernel_)


combining("scatter.reduce", HOW.get, ("add", "multiply"))
combining("scatter.value_reduce", HOW.get, ("add", "multiply"))
combining("scatter_reduce.two", str, ("sum", "mean", "prod", "amax", "amin"))

# ---------------------------------------------------------------------------------------------------- max_norm


@cuda_kernel(operator_named("embedding_renorm_"))
def embedding_renorm_cuda_(self, indices, max_norm, norm_type):
    """Shortens in place those of the picked rows whose norm is above max_norm."""
    if self._array.ndim != 2:
        raise RuntimeError(f"Expected 2-dimensional tensor, but got {self._array.ndim}-dimensional tensor for argument "
                           "#1 'self' (while checking arguments for embedding_renorm_)")
    check_indices(indices, 2, "embedding_renorm_")
    numbers = at._unique2(indices)[0]
    rows = self.index_select(0, numbers)
    norms = at.linalg_vector_norm(wide(rows), norm_type, (1,), True)
    factors = at.where(norms > max_norm, max_norm / (norms + 1e-7), at.ones_like(norms)).to(self.dtype)
    return at.index_copy_(self, 0, numbers.to(int64), rows * factors)


# -------------------------------------------------------------------------------------------------------- bags


def bag_of_each(indices, offsets, include_last_offset=False):
    """Which bag each index is in: the last whose offset is not beyond it."""
    places = at.arange(indices._array.size, dtype=offsets.dtype, device=here())
    starts = offsets[:-1] if include_last_offset else offsets
    return at.searchsorted(starts, places, right=True).sub_(1).to(offsets.dtype)


@cuda_kernel(operator_named("_embedding_bag"), operator_named("_embedding_bag_forward_only"))
def embedding_bag_cuda(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """The result, and for backward: each index's bag, the sizes of the bags, and where the maxima were found."""
    check_dims(indices, offsets)
    indices, offsets = of_one_type(indices, offsets)
    check_indices(indices, 1, "embedding_bag")
    if per_sample_weights is not None:
        check_per_sample_weights(weight, indices, mode, per_sample_weights)
    if include_last_offset and not offsets._array.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    count = offsets._array.size - int(include_last_offset)
    bags = bag_of_each(indices, offsets, include_last_offset)
    w, columns = wide(weight), weight._array.shape[1]
    result = filled(empty((count, columns), w._array.dtype), 0)
    sizes = filled(empty((count,), offsets._array.dtype), 0)
    maxima = filled(empty((count, columns) if mode == MAX else (count,), offsets._array.dtype), 0)
    factors = None if per_sample_weights is None else wide(per_sample_weights)._array
    bag_kernels.reduce_bags(w._array, indices._array, offsets._array, factors, mode == MAX, mode == MEAN, padding_idx,
                            result._array, sizes._array, maxima._array if mode == MAX else None)
    return converted(result, weight._array.dtype), bags, sizes, maxima


@cuda_kernel(operator_named("_embedding_bag_backward"))
def embedding_bag_backward_cuda(
    grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
    per_sample_weights, padding_idx,
):
    if sparse:
        return at._embedding_bag_sparse_backward(
            grad, indices, offsets, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights,
            padding_idx)
    return at._embedding_bag_dense_backward(
        grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
        per_sample_weights, padding_idx)


@cuda_kernel(operator_named("_embedding_bag_dense_backward"))
def embedding_bag_dense_backward_cuda(
    grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights,
    padding_idx,
):
    """Each row that was picked gets its bag's gradient, weighted as the row was in the bag."""
    result = filled(empty((num_weights, grad._array.shape[1]), wide(grad)._array.dtype), 0)
    if mode == MAX:
        grad = grad.masked_fill((bag_size == 0).unsqueeze(1), 0)
        result = result.scatter_add_(0, maximum_indices.to(int64), wide(grad))
        return converted(result, grad._array.dtype)
    if mode == MEAN:
        grad = grad / at.clamp(bag_size, min=1).to(grad.dtype).unsqueeze(1)
    picked = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        picked = picked * per_sample_weights.unsqueeze(1)
    if scale_grad_by_freq:
        picked = picked / at.bincount(indices)[indices].to(grad.dtype).unsqueeze(1)
    embedding_kernels.embedding_backward(wide(picked)._array, indices._array, padding_idx, result._array)
    return converted(result, grad._array.dtype)


@cuda_kernel(operator_named("_embedding_bag_per_sample_weights_backward"))
def per_sample_weights_backward_cuda(grad, weight, indices, offsets, offset2bag, mode, padding_idx):
    """The dot product of each picked row with its bag's gradient; 0 for padding."""
    if mode != SUM:
        raise RuntimeError("embedding_bag_backward: per_sample_weights only supported for mode='sum'")
    products = (grad.index_select(0, offset2bag) * weight.index_select(0, indices)).sum(1)
    return products.masked_fill(indices == padding_idx, 0)
