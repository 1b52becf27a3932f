"""Views, shapes and joins: operators that move sizes and strides, or whole tensors, but compute nothing.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

from . import as_strided, cat, diagonal, reshape, slice, split, view, view_scatter
