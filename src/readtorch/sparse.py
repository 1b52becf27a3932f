"""Functions of sparse tensors: `torch.sparse`.

In PyTorch: `torch/sparse/__init__.py`, which also has solvers, diagonals and 2:4 sparsity.
Explained in the chapter "torch.optim".
"""

from ._C import _sparse

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "sum"]


def mm(sparse, dense):
    """The product of a sparse (n, m) and a dense (m, k) matrix, which is dense; of two sparse ones, sparse.

    Unlike with `torch.mm`, the gradient of the sparse factor is sparse: only its elements have one. RuntimeError for sizes or
    dtypes that do not fit.
    """
    return _sparse._sparse_mm(sparse, dense)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`beta * mat + alpha * (mat1 @ mat2)` with a sparse `mat1` of shape (n, m) and dense (n, k) and (m, k) matrices."""
    return _sparse._sparse_addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """The sum of all elements, or along the dimension or dimensions `dim`, which go.

    Sparse as long as a sparse dimension is left. The gradient has the elements of `input`.
    """
    if dim is None:
        return _sparse._sparse_sum(input) if dtype is None else _sparse._sparse_sum(input, dtype=dtype)
    return _sparse._sparse_sum(input, dim) if dtype is None else _sparse._sparse_sum(input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """softmax along `dim` of a COO tensor. Elements that it lacks count as minus infinity: those that it has make 1."""
    return _sparse._sparse_softmax(input, dim, dtype=dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`."""
    return _sparse._sparse_log_softmax(input, dim, dtype=dtype)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`beta * input + alpha * (mat1 @ mat2)` at the places of `input`, of the layout CSR; other elements are not computed."""
    return _sparse.sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)
