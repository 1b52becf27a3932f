"""cat and stack: tensors beside each other in one.

In PyTorch: `aten/src/ATen/native/cuda/Shape.cu`.
"""

import numpy as np

from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_shape.cat import cat, stack

from .loops import pointwise
from .register_dispatch_key import cuda_impl


def copy_parts(arrays, dim, out):
    """One after another along a dimension: each is copied to its part of `out`."""
    begin = 0
    for x in arrays:
        end = begin + x.shape[dim]
        pointwise(f.copy, [x], out[(slice(None),) * (dim % out.ndim) + (slice(begin, end),)])
        begin = end


@cuda_impl(cat)
def cat_cuda(tensors, dim, out):
    copy_parts([t._array for t in tensors if t._array.size], dim, out._array)


@cuda_impl(stack)
def stack_cuda(tensors, dim, out):
    copy_parts([np.expand_dims(t._array, dim) for t in tensors], dim, out._array)
