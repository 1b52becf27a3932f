"""embedding_bag: of several rows of a matrix the sum, the mean or the largest elements, without the rows in
between.

Grid: (blocks of 256 columns, bags). A thread goes along its bag for one column.

In PyTorch: `aten/src/ATen/native/cuda/EmbeddingBag.cu`.
"""

import functools

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native import embedding_bag as native
from readtorch.aten.native.embedding_bag import MAX, MEAN
from readtorch.c10.cuda.cuda_device_assertion import cuda_kernel_assert
from readtorch.c10.cuda.launch import launch
from readtorch.c10.scalar_type import int64

from .copy import copy_elements
from .embedding import embedding_backward, grid
from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import converted
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, here
from .rows import flat
from .softmax import wide


def reduce_bags(weight, indices, offsets, factors, takes_max, takes_mean, padding_idx, out, sizes, maxima):
    """out (bags, columns), sizes (bags): of the bags without padding. factors: one for each index, or None.
    maxima: the row that each largest element comes from. The results begin as zeros."""
    if out.size:
        indices = flat(indices)
        rest = (factors, maxima) if takes_max else (factors, out)
        rest = tuple(indices if a is None else flat(a) if a is factors else a for a in rest)
        kernel = max_kernel if takes_max else sum_kernel(factors is not None, takes_mean)
        launch(
            kernel,
            grid(out.shape[0], out.shape[1]),
            THREADS,
            weight,
            indices,
            flat(offsets),
            padding_idx,
            *rest,
            out,
            sizes,
        )


def end_of(b, offsets, count):
    """Where a bag ends: the offset of the next, if there is one."""
    return offsets[b + 1] if b + 1 < offsets.size else count


@functools.cache
def sum_kernel(has_factors, takes_mean):
    def sums(weight, indices, offsets, padding_idx, factors, _, out, sizes):
        c = cuda.grid(1)
        if c < out.shape[1]:
            for b in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
                total, size = weight.dtype.type(0), 0
                for i in range(offsets[b], end_of(b, offsets, indices.size)):
                    row = indices[i]
                    if row != padding_idx:
                        cuda_kernel_assert(0 <= row < weight.shape[0])
                        x = weight[row, c]
                        total += x * factors[i] if has_factors else x
                        size += 1
                out[b, c] = total / weight.dtype.type(max(size, 1)) if takes_mean else total
                if c == 0:
                    sizes[b] = size

    return sums


def max_kernel(weight, indices, offsets, padding_idx, _, maxima, out, sizes):
    """A later row must be greater to win: a nan stays only in first place."""
    c = cuda.grid(1)
    if c < out.shape[1]:
        for b in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
            largest, size, row = weight.dtype.type(0), 0, 0
            for i in range(offsets[b], end_of(b, offsets, indices.size)):
                picked = indices[i]
                if picked != padding_idx:
                    cuda_kernel_assert(0 <= picked < weight.shape[0])
                    x = weight[picked, c]
                    if size == 0 or x > largest:
                        largest, row = x, picked
                    size += 1
            out[b, c], maxima[b, c] = largest, row
            if c == 0:
                sizes[b] = size


def bag_of_each(indices, offsets, include_last_offset=False):
    """Which bag each index is in: the last whose offset is not beyond it."""
    places = at.arange(indices._array.size, dtype=offsets.dtype, device=here())
    starts = offsets[:-1] if include_last_offset else offsets
    return at.searchsorted(starts, places, right=True).sub_(1).to(offsets.dtype)


@cuda_impl(native._embedding_bag, native._embedding_bag_forward_only)
def embedding_bag_cuda(
    weight,
    indices,
    offsets,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    include_last_offset,
    padding_idx,
    result,
    bags,
    sizes,
    maxima,
):
    indices, offsets = native.of_one_type(indices, offsets)
    copy_elements(bag_of_each(indices, offsets, include_last_offset), bags)
    w = wide(weight)
    sums = result if w is weight else empty(result._array.shape, w._array.dtype)
    for t in (sums, sizes, maxima):
        filled(t, 0)
    factors = None if per_sample_weights is None else wide(per_sample_weights)._array
    reduce_bags(
        w._array,
        indices._array,
        offsets._array,
        factors,
        mode == MAX,
        mode == MEAN,
        padding_idx,
        sums._array,
        sizes._array,
        maxima._array if mode == MAX else None,
    )
    if sums is not result:
        copy_elements(sums, result)


@cuda_kernel(native._embedding_bag_dense_backward)
def embedding_bag_dense_backward_cuda(
    grad,
    indices,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    per_sample_weights,
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
    embedding_backward(wide(picked)._array, indices._array, padding_idx, result._array)
    return converted(result, grad._array.dtype)


@cuda_kernel(native._embedding_bag_per_sample_weights_backward)
def per_sample_weights_backward_cuda(grad, weight, indices, offsets, offset2bag, mode, padding_idx):
    """The dot product of each picked row with its bag's gradient; 0 for padding."""
    native.per_sample_weights_backward_meta(grad, weight, indices, offsets, offset2bag, mode, padding_idx)
    products = (grad.index_select(0, offset2bag) * weight.index_select(0, indices)).sum(1)
    return products.masked_fill(indices == padding_idx, 0)
