"""Embedding: rows of a matrix, picked by number.

In PyTorch: `aten/src/ATen/native/Embedding.cpp`. Explained in the chapter "Layers".
"""
import numpy as np

from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import native_function
from .tensor_iterator import WIDENED

embedding = native_function(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor",
    out=True, direct=True)
embedding_dense_backward = native_function(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, "
    "bool scale_grad_by_freq) -> Tensor")


def check_indices(indices, function):
    if indices._array.dtype.name not in ("int64", "int32"):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar "
                           "types: Long, Int; but got "
                           f"torch.{SCALAR_TYPE_NAMES[dtype_of(indices)]}Tensor instead (while checking "
                           f"arguments for {function})")


@embedding.kernel
def embedding_cpu(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    w, rows = weight._array, indices._array
    if w.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    check_indices(indices, "embedding")
    if rows.size and (rows.min() < 0 or rows.max() >= w.shape[0]):
        raise IndexError("index out of range in self")
    return wrap(w.take(rows, 0))


@embedding.backward
class EmbeddingBackward0:
    def weight(grad, indices, weight_sym_sizes, padding_idx, scale_grad_by_freq):
        """In PyTorch: with `sparse=True` the gradient is a sparse tensor."""
        return embedding_dense_backward.call(
            grad, indices, weight_sym_sizes[0], padding_idx, scale_grad_by_freq
        )


@embedding_dense_backward.kernel
def embedding_dense_backward_cpu(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """Adds each row of the gradient to the row of the weight that it came from; `padding_idx` gets none."""
    g, rows = grad_output._array, indices._array.reshape(-1)
    width = g.shape[-1]
    g = g.reshape(-1, width)
    result = np.zeros((num_weights, width), WIDENED.get(g.dtype, g.dtype))
    counted = rows != padding_idx
    if not counted.all():
        g, rows = g[counted], rows[counted]
    if rows.size:
        order = np.argsort(rows, kind="stable")
        used, starts, counts = np.unique(rows[order], return_index=True, return_counts=True)
        sums = np.add.reduceat(g[order].astype(result.dtype, copy=False), starts, axis=0)
        result[used] = sums / counts[:, None].astype(result.dtype) if scale_grad_by_freq else sums
    return wrap(result.astype(grad_output._array.dtype, copy=False))


@embedding_dense_backward.backward
class EmbeddingDenseBackwardBackward0:
    def grad_output(grad, indices, padding_idx):
        """Picks the rows again; the padding row passes nothing on."""
        picked = grad.index_select(0, indices.reshape(-1))
        if padding_idx >= 0:
            picked = picked.masked_fill((indices == padding_idx).reshape(-1, 1), 0)
        return picked.view((*indices.shape, grad.shape[1]))
