"""Embedding of bags: the sum, mean or maximum of several rows of a matrix, without the rows in between.

The bags lie one after the other in `indices`; `offsets` says where each begins.

In PyTorch: `aten/src/ATen/native/EmbeddingBag.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import promote_types
from readtorch.c10.tensor_impl import dtype_of, legacy_type_name, wrap

from .embedding import check_indices, embedding_sparse_backward, gradient_of_rows, sum_of_rows
from .tensor_iterator import WIDENED

SUM, MEAN, MAX = range(3)

_INPUTS = "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq"
_SETTINGS = "=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False"
_RESULTS = "-> (Tensor, Tensor, Tensor, Tensor)"

embedding_bag = native_function(f"embedding_bag({_INPUTS}{_SETTINGS}) {_RESULTS}")
embedding_bag_padding_idx = native_function(
    f"embedding_bag.padding_idx({_INPUTS}, int mode, bool sparse, Tensor? per_sample_weights, "
    f"bool include_last_offset, int? padding_idx) {_RESULTS}"
)
_embedding_bag = native_function(f"_embedding_bag({_INPUTS}{_SETTINGS}, int padding_idx=-1) {_RESULTS}")
_embedding_bag_forward_only = native_function(
    f"_embedding_bag_forward_only({_INPUTS}{_SETTINGS}, int padding_idx=-1) {_RESULTS}"
)
_embedding_bag_backward = native_function(
    "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, "
    "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    "",
)
_embedding_bag_dense_backward = native_function(
    "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, "
    "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    "",
)
_embedding_bag_sparse_backward = native_function(
    "_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
    "Tensor bag_size, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
    "int padding_idx=-1) -> Tensor",
    "",
)
_embedding_bag_per_sample_weights_backward = native_function(
    "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, "
    "Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
    "",
)


@embedding_bag.compose
def embedding_bag_composite(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset
):
    return embedding_bag_padding_idx_composite(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, None
    )


@embedding_bag_padding_idx.compose
def embedding_bag_padding_idx_composite(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    if padding_idx is None:
        padding_idx = -1
    else:
        count = weight._array.shape[0]
        if not -count <= padding_idx < count:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{count} through {count - 1}, "
                f"but got {padding_idx}"
            )
        padding_idx %= count
    needs_grad = weight.requires_grad or per_sample_weights is not None and per_sample_weights.requires_grad
    operator = _embedding_bag if needs_grad else _embedding_bag_forward_only
    return operator.call(
        weight,
        indices.contiguous(),
        offsets.contiguous(),
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


# -------------------------------------------------------------------------------------------------------- forward


@_embedding_bag.meta
@_embedding_bag_forward_only.meta
def embedding_bag_meta(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """In PyTorch, too, the CPU's kernel leaves out some of what it need not compute."""
    check_dims(indices, offsets)
    indices, offsets = of_one_type(indices, offsets)
    check_arguments(weight, indices, offsets, mode, per_sample_weights)
    if include_last_offset and not offsets._array.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    bags, columns = offsets._array.size - int(include_last_offset), weight._array.shape[1]
    kind = dtype_of(offsets)
    return (
        TensorMeta((bags, columns), dtype_of(weight)),
        TensorMeta((indices._array.size,), kind),
        TensorMeta((bags,), kind),
        TensorMeta((bags, columns) if mode == MAX else (bags,), kind),
    )


@_embedding_bag.kernel
def embedding_bag_cpu(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """The result, and for backward: each index's bag, the sizes of the bags, and where the maxima were found."""
    check_dims(indices, offsets)
    indices, offsets = of_one_type(indices, offsets)
    check_arguments(weight, indices, offsets, mode, per_sample_weights)
    check_offsets(offsets._array, indices._array.shape[0], include_last_offset)
    w, numbers = weight._array, indices._array.reshape(-1)
    starts = offsets._array[:-1] if include_last_offset else offsets._array
    is_fast = is_fast_path(w, per_sample_weights, padding_idx) and mode != MAX
    check_numbers(numbers, w.shape[0], is_fast)
    sizes = np.diff(starts, append=numbers.size)
    bags = bag_of_each(sizes).astype(starts.dtype, copy=False)
    sizes, counted = sizes.astype(starts.dtype, copy=False), slice(None)
    if padding_idx >= 0:
        counted = np.flatnonzero(numbers != padding_idx)
        sizes = np.bincount(bags[counted], minlength=sizes.size).astype(starts.dtype)
    elif is_fast and include_last_offset:
        counted = slice(offsets._array[-1])  # the slow path of PyTorch ignores the last offset
    maxima = sizes
    if mode == MAX:
        result, maxima = max_of_bags(w, numbers[counted], bags[counted], starts.size)
    else:
        factors = None if per_sample_weights is None else per_sample_weights._array[counted]
        result = sum_of_rows(starts.size, bags[counted], w, numbers[counted], factors=factors)
    if mode == MEAN:
        result /= np.maximum(sizes, 1)[:, None].astype(result.dtype)
    if mode == SUM:
        sizes = maxima = np.zeros_like(sizes)
        bags = bags[:0] if is_fast else bags
    return wrap(result), wrap(bags), wrap(sizes), wrap(maxima.copy())


@_embedding_bag_forward_only.kernel
def embedding_bag_forward_only_cpu(weight, indices, offsets, *settings):
    result, bags, sizes, maxima = embedding_bag_cpu(weight, indices, offsets, *settings)
    if settings[1] == SUM:  # the sizes are not needed
        sizes, maxima = wrap(np.zeros(offsets._array.shape, sizes._array.dtype)), wrap(np.zeros_like(offsets._array))
    return result, bags, sizes, maxima


def bag_of_each(sizes):
    """The bag that each index belongs to, for bags of these sizes."""
    if sizes.size and sizes.min() < 0:
        raise RuntimeError("embedding_bag: offsets must not decrease")
    return np.repeat(np.arange(sizes.size), sizes)


def max_of_bags(w, numbers, bags, count):
    """The largest elements of each bag and the numbers of the rows that they come from; 0 for an empty bag.

    A later row must be larger to replace an earlier one: a nan stays only if it comes first.
    """
    result = np.zeros((count, w.shape[1]), w.dtype)
    found = np.zeros(result.shape, numbers.dtype)
    used, starts, sizes = np.unique(bags, return_index=True, return_counts=True)
    for place in range(sizes.max(initial=0)):
        still = sizes > place
        bag, number = used[still], numbers[starts[still] + place]
        rows = w[number]
        wins = (rows > result[bag]) if place else np.ones(rows.shape, bool)
        result[bag] = np.where(wins, rows, result[bag])
        found[bag] = np.where(wins, number[:, None], found[bag])
    return result, found


def is_fast_path(w, per_sample_weights, padding_idx):
    """Whether PyTorch would take its vectorized loop, which omits what backward can compute again."""

    def is_dense(a):
        return a.strides[-1] == a.itemsize or a.size < 2

    return (
        w.dtype.name in ("float32", "float16", "bfloat16")
        and padding_idx < 0
        and is_dense(w)
        and (per_sample_weights is None or is_dense(per_sample_weights._array))
    )


# --------------------------------------------------------------------------------------------------------- checks


def check_dims(indices, offsets):
    dims = indices._array.ndim
    if dims not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {dims}")
    if dims == 1 and offsets._array.ndim != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets._array.ndim}")


def of_one_type(indices, offsets):
    common = promote_types(dtype_of(indices), dtype_of(offsets))
    return indices.to(common), offsets.to(common)


def check_arguments(weight, indices, offsets, mode, per_sample_weights):
    check_indices(indices, 1, "embedding_bag")
    check_indices(offsets, 1, "embedding_bag", "offsets")
    if not dtype_of(weight).is_floating_point:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
            f"BFloat16, Float, Double; but got {legacy_type_name(weight)} instead (while checking "
            "arguments for embedding_bag)"
        )
    if per_sample_weights is not None:
        check_per_sample_weights(weight, indices, mode, per_sample_weights)


def check_offsets(starts, length, include_last_offset):
    if starts.size and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    if starts.size and starts[-1] > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {starts[-1]}"
        )
    if include_last_offset and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")


def check_per_sample_weights(weight, indices, mode, per_sample_weights):
    if mode != SUM:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    if per_sample_weights._array.dtype != weight._array.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {legacy_type_name(weight)} does not equal "
            f"{legacy_type_name(per_sample_weights)} (while checking arguments for embedding_bag)"
        )
    for holds, condition in (
        (per_sample_weights._array.ndim == 1, "per_sample_weights.value().dim() == 1"),
        (
            per_sample_weights._array.size == indices._array.size,
            "per_sample_weights.value().numel() == indices.numel()",
        ),
    ):
        if not holds:
            raise RuntimeError(
                f"Expected {condition} to be true, but got false.  (Could this error message be "
                "improved?  If so, please report an enhancement request to PyTorch.)"
            )


def check_numbers(numbers, count, is_fast):
    if not numbers.size or numbers.min() >= 0 and numbers.max() < count:
        return
    wrong = np.flatnonzero((numbers < 0) | (numbers >= count))
    number = numbers[wrong[0]]
    if is_fast:
        raise RuntimeError(
            f"Index {wrong[0]} of input takes value {number} which is not in the valid range [0, {count})"
        )
    raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {number}")


# ------------------------------------------------------------------------------------------------------- backward


@_embedding_bag.backward
class EmbeddingBagBackward0:
    output_differentiability = [True, False, False, False]

    def weight(
        grad,
        indices,
        offsets,
        result1,
        result2,
        result3,
        weight_sym_sizes,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        padding_idx,
    ):
        return _embedding_bag_backward.call(
            grad,
            indices,
            offsets,
            result1,
            result2,
            result3,
            weight_sym_sizes[0],
            scale_grad_by_freq,
            mode,
            sparse,
            per_sample_weights,
            padding_idx,
        )

    def per_sample_weights(grad, weight, indices, offsets, result1, mode, padding_idx):
        return _embedding_bag_per_sample_weights_backward.call(
            grad, weight, indices, offsets, result1, mode, padding_idx
        )


_embedding_bag_per_sample_weights_backward.backward(NOT_IMPLEMENTED)


@_embedding_bag_backward.backward
class EmbeddingBagBackwardBackward0:
    def grad():
        raise NotImplementedError("the derivative for '_embedding_bag_backward' is not implemented.")

    def per_sample_weights():
        raise NotImplementedError("the derivative for '_embedding_bag_backward' is not implemented.")


@_embedding_bag_backward.kernel
@any_device
def embedding_bag_backward(
    grad,
    indices,
    offsets,
    offset2bag,
    bag_size,
    maximum_indices,
    num_weights,
    scale_grad_by_freq,
    mode,
    sparse,
    per_sample_weights,
    padding_idx,
):
    bags = bags_or_again(indices, offsets, offset2bag)
    if sparse:
        return _embedding_bag_sparse_backward.call(
            grad,
            indices,
            offsets,
            bags,
            bag_size,
            num_weights,
            scale_grad_by_freq,
            mode,
            per_sample_weights,
            padding_idx,
        )
    return _embedding_bag_dense_backward.call(
        grad,
        indices,
        bags,
        bag_size,
        maximum_indices,
        num_weights,
        scale_grad_by_freq,
        mode,
        per_sample_weights,
        padding_idx,
    )


@_embedding_bag_sparse_backward.compose
def embedding_bag_sparse_backward_composite(
    grad, indices, offsets, offset2bag, bag_size, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx
):
    """Each row gets its bag's gradient, weighted as the row was in the bag."""
    if mode == MEAN:
        grad = grad / at.clamp(bag_size, min=1).to(grad.dtype).unsqueeze(1)
    picked = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        if mode != SUM:
            raise RuntimeError("embedding_bag_backward: per_sample_weights only supported for mode='sum'")
        picked = picked * per_sample_weights.unsqueeze(1)
    return embedding_sparse_backward.call(picked, indices, num_weights, padding_idx, scale_grad_by_freq)


def bags_or_again(indices, offsets, offset2bag):
    """Each index's bag; the fast path of the forward, which is the CPU's, has not kept them."""
    if offset2bag._array.size or not indices._array.size:
        return offset2bag
    return wrap(bag_of_each(np.diff(offsets._array, append=indices._array.size)))


@_embedding_bag_dense_backward.meta
def embedding_bag_dense_backward_meta(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, *settings):
    return TensorMeta((num_weights, grad._array.shape[1]), dtype_of(grad))


@_embedding_bag_dense_backward.kernel
def embedding_bag_dense_backward_cpu(
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
    g, numbers, bags, sizes = grad._array, indices._array.reshape(-1), offset2bag._array, bag_size._array
    if mode == MAX:
        return wrap(to_maxima(g, sizes, maximum_indices._array, num_weights))
    counted = np.flatnonzero(numbers != padding_idx)
    factors = np.ones(numbers.size) if per_sample_weights is None else per_sample_weights._array.astype(np.float64)
    if scale_grad_by_freq:
        factors = factors / counts_as_in_pytorch(numbers)
    if mode == MEAN:
        factors = factors / np.maximum(sizes[bags], 1)
    # in PyTorch: in the order of the sorted indices, which is not that of the bags where some are equal
    return wrap(gradient_of_rows(num_weights, numbers[counted], g, bags[counted], factors=factors[counted]))


def counts_as_in_pytorch(numbers):
    """What each index's gradient is divided by: how often an index occurs, but not always this one.

    For the i-th distinct number PyTorch looks up the count of the i-th entry of the sorted list, which is the same
    number only as long as none before it was repeated.
    """
    _, nth_distinct, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return counts[np.sort(nth_distinct)[nth_distinct]]


def to_maxima(g, sizes, maxima, num_weights):
    """Each element of the gradient goes to the row where its maximum was found."""
    result = np.zeros((num_weights, g.shape[1]), WIDENED.get(g.dtype, g.dtype))
    filled = np.flatnonzero(sizes)
    np.add.at(result, (maxima[filled], np.arange(g.shape[1])), g[filled].astype(result.dtype))
    return result.astype(g.dtype, copy=False)


@_embedding_bag_per_sample_weights_backward.meta
def per_sample_weights_backward_meta(grad, weight, indices, offsets, offset2bag, mode, padding_idx):
    if mode != SUM:
        raise RuntimeError("embedding_bag_backward: per_sample_weights only supported for mode='sum'")
    return TensorMeta((indices._array.size,), dtype_of(grad))


@_embedding_bag_per_sample_weights_backward.kernel
def per_sample_weights_backward_cpu(grad, weight, indices, offsets, offset2bag, mode, padding_idx):
    """The dot product of each row with its bag's gradient; 0 for padding."""
    per_sample_weights_backward_meta(grad, weight, indices, offsets, offset2bag, mode, padding_idx)
    numbers, bags = indices._array.reshape(-1), bags_or_again(indices, offsets, offset2bag)._array
    wide = WIDENED.get(grad._array.dtype, grad._array.dtype)
    products = np.einsum("ij,ij->i", grad._array[bags].astype(wide), weight._array[numbers].astype(wide))
    return wrap(np.where(numbers == padding_idx, 0, products).astype(grad._array.dtype))
