"""Sparse tensors: what gradients that touch few rows need of them.

In PyTorch: `aten/src/ATen/native/sparse/`, which also has products, CUDA, and
compressed layouts (CSR and its relatives).
"""
from . import conversions, sparse_tensor, sparse_tensor_math, sparse_unary_ops  # noqa: F401
