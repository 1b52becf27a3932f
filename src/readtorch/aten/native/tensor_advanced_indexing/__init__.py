"""Indexing by tensors: index and index_put, gather and scatter, masks.

In PyTorch: `aten/src/ATen/native/TensorAdvancedIndexing.cpp`.
"""

from . import index, masked, scatter_gather
