"""embedding: rows of a table picked by integers, and the sum of gradients into the table.

Grid: (columns / 128, rows); block: 128 threads along a row. The backward pass adds atomically: no order of
the rows is fixed. (In PyTorch: the indices are sorted, and each block sums the rows of one index.)

In PyTorch: `aten/src/ATen/native/cuda/Embedding.cu`.
"""
from numba import cuda

from ....c10.cuda.launch import launch
from .rows import flat, matrix

THREADS = 128


def embedding(weight, indices, out):
    """weight (V, D), indices of any shape, out (*indices, D)."""
    if out.size:
        columns = weight.shape[1]
        launch(forward, grid(indices.size, columns), THREADS, weight, flat(indices), matrix(out, columns))


def embedding_backward(grad, indices, padding_idx, grad_weight):
    """grad (*indices, D) is added to grad_weight (V, D), which begins as zeros. padding_idx: -1 for none."""
    if grad.size:
        columns = grad_weight.shape[1]
        launch(backward, grid(indices.size, columns), THREADS, matrix(grad, columns), flat(indices),
               padding_idx,
               grad_weight)


def grid(rows, columns):
    return -(-columns // THREADS), min(rows, 65535)


def forward(weight, indices, out):
    c = cuda.grid(1)
    if c < out.shape[1]:
        for r in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
            out[r, c] = weight[indices[r], c]


def backward(grad, indices, padding_idx, grad_weight):
    c = cuda.grid(1)
    if c < grad.shape[1]:
        for r in range(cuda.blockIdx.y, grad.shape[0], cuda.gridDim.y):
            if indices[r] != padding_idx:
                cuda.atomic.add(grad_weight, (indices[r], c), grad[r, c])
