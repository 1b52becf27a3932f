"""Embedding: rows of a matrix, looked up by index.

In PyTorch: `aten/src/ATen/native/Embedding.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.parallel import parallel_for
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of, legacy_type_name, wrap

from .sparse.sparse_tensor import _sparse_coo_tensor_unsafe
from .tensor_iterator import WIDENED, refuse_overlap

embedding = native_function(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor",
    out=True,
    direct=True,
)
embedding_backward = native_function(
    "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq, bool sparse) -> Tensor",
    "",
)
embedding_dense_backward = native_function(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    out=True,
)
embedding_sparse_backward = native_function(
    "embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, "
    "bool scale_grad_by_freq) -> Tensor",
    "",
)
embedding_renorm_ = native_function(
    "embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)"
)

INDEX_TYPES = (np.dtype(np.int64), np.dtype(np.int32))
COMPILED = (np.dtype(np.float32), np.dtype(np.float64))
# Below this many elements NumPy is as fast as a compiled loop, and numba need not be loaded.
MANY = 4096


@functools.cache
def loops():
    from .cpu import embedding

    return embedding


def check_indices(indices, place, function, name="indices"):
    if indices._array.dtype not in INDEX_TYPES:
        raise RuntimeError(
            f"Expected tensor for argument #{place} '{name}' to have one of the following scalar types: Long, Int; "
            f"but got {legacy_type_name(indices)} instead (while checking arguments for {function})"
        )


@embedding.meta
def embedding_meta(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(indices, 1, "embedding")
    return TensorMeta((*indices._array.shape, weight._array.shape[1]), dtype_of(weight))


@embedding.kernel
def embedding_cpu(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    w, numbers = weight._array, indices._array
    if w.ndim != 2 or numbers.dtype not in INDEX_TYPES:
        embedding_meta(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    if numbers.size and np.minimum.reduce(numbers, None) < 0:
        raise IndexError("index out of range in self")
    try:
        return wrap(w.take(numbers, 0) if numbers.size * w.shape[1] < SHARED else take_together(w, numbers))
    except IndexError:
        raise IndexError("index out of range in self") from None


# From this many elements on several threads share the work.
SHARED = 500_000


def take_together(w, numbers):
    """w[numbers], by several threads."""
    width = w.shape[1]
    out, flat = np.empty((numbers.size, width), w.dtype), numbers.reshape(-1)
    if flat.max() >= w.shape[0]:
        raise IndexError
    parallel_for(
        0, flat.size, SHARED // (2 * width) + 1, lambda begin, end: w.take(flat[begin:end], 0, out[begin:end], "clip")
    )
    return out.reshape(*numbers.shape, width)


@embedding.backward
class EmbeddingBackward0:
    def weight(grad, indices, weight_sym_sizes, padding_idx, scale_grad_by_freq, sparse):
        return embedding_backward.call(grad, indices, weight_sym_sizes[0], padding_idx, scale_grad_by_freq, sparse)

    result = "auto_linear"


@embedding_backward.compose
def embedding_backward_composite(grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse):
    backward = embedding_sparse_backward if sparse else embedding_dense_backward
    return backward.call(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


# -------------------------------------------------------------------------------------------- sparse gradient


@embedding_sparse_backward.compose
def embedding_sparse_backward_composite(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    """A row that was looked up has the gradient that arrived for it: nothing is computed, only listed.

    A row that was looked up twice is listed twice: the values of one index add up, see Note [ Sparse tensors ].
    """
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    if padding_idx != -1:
        counted = indices != padding_idx
        indices, grad = indices[counted], grad[counted]
    width = grad.shape[-1]
    return _sparse_coo_tensor_unsafe.call(
        indices.reshape(1, -1).long(),
        grad.reshape(indices._array.size, width),
        (num_weights, width),
        None,
        None,
        None,
        None,
        None,
    )


# ------------------------------------------------------------------------------------------------- dense gradient


@embedding_dense_backward.meta
def embedding_dense_backward_meta(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    check_indices(indices, 2, "embedding_backward")
    return TensorMeta((num_weights, grad_output._array.shape[-1]), dtype_of(grad_output))


@embedding_dense_backward.kernel
def embedding_dense_backward_cpu(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """Adds each row of the gradient to the row of the weight that it came from; `padding_idx` gets none."""
    embedding_dense_backward_meta(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
    g, numbers = grad_output._array, indices._array.reshape(-1)
    g = g.reshape(numbers.size, g.shape[-1])
    factors = 1 / np.bincount(numbers, minlength=1)[numbers] if scale_grad_by_freq else None
    return wrap(gradient_of_rows(num_weights, numbers, g, np.arange(numbers.size), padding_idx, factors))


# Note [ Which sums are rounded at each step ]
# Many numbers may be added to one element. In 16 bits it matters where the sum is kept meanwhile. scatter_add and its relatives add in
# float32 and round once. The gradients of embedding and embedding_bag, index_put, put, and index_add where it is not a scatter_add, add
# to the 16-bit element itself: from 256 on a bfloat16 does not grow by 1 any more.
def gradient_of_rows(count, targets, rows, sources, skipped=-1, factors=None):
    """`sum_of_rows`, but each sum of 16-bit numbers is rounded. Note [ Which sums are rounded at each step ]"""
    if rows.dtype not in WIDENED:
        return sum_of_rows(count, targets, rows, sources, skipped, factors)
    result, counted = np.zeros((count, rows.shape[1]), rows.dtype), targets != skipped
    picked = rows[sources[counted]]
    if (
        factors is not None
    ):  # in PyTorch: where a row is long, whole vectors of it are not rounded between product and sum
        picked = picked * factors[counted, None].astype(rows.dtype)
    np.add.at(result, targets[counted], picked)
    return result


def sum_of_rows(count, targets, rows, sources, skipped=-1, factors=None):
    """A matrix of `count` rows: row t is the sum of all factors[i] * rows[sources[i]] with targets[i] == t.

    skipped: a row that stays 0.
    """
    result = np.zeros((count, rows.shape[1]), WIDENED.get(rows.dtype, rows.dtype))
    if skipped >= 0 and factors is not None:
        counted = targets != skipped
        targets, sources, factors = targets[counted], sources[counted], factors[counted]
    if factors is not None:
        factors = factors.astype(result.dtype, copy=False)
    if targets.size * rows.shape[1] < MANY or result.dtype not in COMPILED:
        add_few_rows(result, targets, rows[sources].astype(result.dtype, copy=False), skipped, factors)
    else:
        add_many_rows(result, targets, np.ascontiguousarray(rows, result.dtype), sources, skipped, factors)
    return result.astype(rows.dtype, copy=False)


def add_few_rows(result, targets, picked, skipped, factors):
    if factors is not None:
        picked = picked * factors[:, None]
    elif skipped >= 0:
        counted = targets != skipped
        targets, picked = targets[counted], picked[counted]
    np.add.at(result, targets, picked)


def add_many_rows(result, targets, rows, sources, skipped, factors):
    """The same by a compiled loop. Threads share the columns: two rows may have one target."""
    if factors is None:

        def loop(begin, end):
            loops().add_rows(result, targets, rows, sources, skipped, begin, end)
    else:

        def loop(begin, end):
            loops().add_scaled_rows(result, targets, rows, sources, factors, begin, end)

    parallel_for(0, result.shape[1], max(16, SHARED // (2 * targets.size)), loop)


@embedding_dense_backward.backward
class EmbeddingDenseBackwardBackward0:
    def grad_output(grad, indices, padding_idx):
        """Looks the rows up again; the padding row has no gradient."""
        picked = grad.index_select(0, indices.reshape(-1))
        if padding_idx >= 0:
            picked = picked.masked_fill((indices == padding_idx).reshape(-1, 1), 0)
        return picked.view((*indices.shape, grad.shape[1]))

    result = "auto_linear"


# ------------------------------------------------------------------------------------------------------ max_norm


@embedding_renorm_.meta
def embedding_renorm_meta(self, indices, max_norm, norm_type):
    if self._array.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {self._array.ndim}-dimensional tensor for argument #1 "
            "'self' (while checking arguments for embedding_renorm_)"
        )
    check_indices(indices, 2, "embedding_renorm_")


@embedding_renorm_.kernel
def embedding_renorm_cpu_(self, indices, max_norm, norm_type):
    """Scales in place those rows, among the ones looked up, whose norm is above max_norm."""
    embedding_renorm_meta(self, indices, max_norm, norm_type)
    w, numbers = self._array, np.unique(indices._array)
    wrong = numbers[(numbers < 0) | (numbers >= w.shape[0])]
    if wrong.size:
        raise IndexError(f"select(): index {wrong[0]} out of range for tensor of size {list(w.shape)} at dimension 0")
    rows = w[numbers].astype(WIDENED.get(w.dtype, w.dtype), copy=False)
    norms = np.linalg.norm(rows, norm_type, axis=1).astype(w.dtype).astype(np.float64)
    too_long = norms > max_norm
    if too_long.any():
        refuse_overlap(self)
    scale = (max_norm / (norms[too_long] + 1e-7)).astype(w.dtype)
    w[numbers[too_long]] *= scale[:, None]
    return self


@embedding_renorm_.backward
class EmbeddingRenormBackward0:
    def self():
        raise NotImplementedError("the derivative for 'embedding_renorm' is not implemented.")
