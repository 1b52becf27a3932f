"""Sparse tensors: what gradients that touch few rows need of them, and products of sparse matrices.

In PyTorch: `aten/src/ATen/native/sparse`, which also has CUDA and compressed layouts (CSR and its relatives).
"""

from . import conversions, sparse_blas, sparse_tensor, sparse_tensor_math, sparse_unary_ops
