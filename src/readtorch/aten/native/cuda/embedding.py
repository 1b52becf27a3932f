"""embedding: rows of a table picked by integers, and the sum of gradients into the table.

Grid: (columns / 128, rows); block: 128 threads along a row. The backward pass adds atomically: no order of
the rows is fixed. (In PyTorch: the indices are sorted, and each block sums the rows of one index.)

In PyTorch: `aten/src/ATen/native/cuda/Embedding.cu`.
"""

from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native import embedding as native
from readtorch.c10.cuda.cuda_device_assertion import cuda_kernel_assert
from readtorch.c10.cuda.launch import launch
from readtorch.c10.scalar_type import int64

from .fill_kernel import filled
from .register_dispatch_key import cuda_impl, cuda_kernel, empty
from .rows import flat, matrix
from .softmax import wide

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
        launch(
            backward,
            grid(indices.size, columns),
            THREADS,
            matrix(grad, columns),
            flat(indices),
            padding_idx,
            grad_weight,
        )


def grid(rows, columns):
    return -(-columns // THREADS), min(rows, 65535)


def forward(weight, indices, out):
    c = cuda.grid(1)
    if c < out.shape[1]:
        for r in range(cuda.blockIdx.y, out.shape[0], cuda.gridDim.y):
            row = indices[r]
            cuda_kernel_assert(0 <= row < weight.shape[0])
            out[r, c] = weight[row, c]


def backward(grad, indices, padding_idx, grad_weight):
    c = cuda.grid(1)
    if c < grad.shape[1]:
        for r in range(cuda.blockIdx.y, grad.shape[0], cuda.gridDim.y):
            row = indices[r]
            if row != padding_idx:
                cuda_kernel_assert(0 <= row < grad_weight.shape[0])
                cuda.atomic.add(grad_weight, (row, c), grad[r, c])


@cuda_impl(native.embedding)
def embedding_cuda(weight, indices, padding_idx, scale_grad_by_freq, sparse, out):
    embedding(weight._array, indices._array, out._array)


@cuda_impl(native.embedding_dense_backward)
def embedding_dense_backward_cuda(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq, out):
    if scale_grad_by_freq:
        ones = filled(empty((num_weights,), grad_output._array.dtype), 0)
        row = indices.reshape(-1).to(int64)
        ones.scatter_add_(0, row, at.ones_like(row, dtype=grad_output.dtype))
        grad_output = grad_output / ones[row].reshape((*indices._array.shape, 1))
    embedding_backward(grad_output._array, indices._array, padding_idx, filled(out, 0)._array)


@cuda_kernel(native.embedding_renorm_)
def embedding_renorm_cuda_(self, indices, max_norm, norm_type):
    """Shortens in place those of the picked rows whose norm is above max_norm."""
    native.embedding_renorm_meta(self, indices, max_norm, norm_type)
    scalars = at._unique2(indices)[0]
    rows = self.index_select(0, scalars)
    norms = at.linalg_vector_norm(wide(rows), norm_type, (1,), True)
    factors = at.where(norms > max_norm, max_norm / (norms + 1e-7), at.ones_like(norms)).to(self.dtype)
    return at.index_copy_(self, 0, scalars.to(int64), rows * factors)
