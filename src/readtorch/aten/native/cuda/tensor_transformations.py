"""flip, roll and rot90: copies of views.

In PyTorch: `aten/src/ATen/native/cuda/TensorTransformations.cu`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_transformations import check_rot90
from readtorch.c10.memory_format import dense_strides
from readtorch.c10.wrap_dim import wrap_dim, wrap_dims

from .copy import clone_cuda
from .copy import copy as copy_kernel
from .register_dispatch_key import cuda_kernel, empty, operator_named, owned


@cuda_kernel(operator_named("flip"))
def flip_cuda(self, dims):
    """A copy from a view with negative strides, which only kernels see."""
    array = self._array
    axes = tuple(wrap_dims(dims, array.ndim))
    result = empty(array.shape, array.dtype, dense_strides(array))
    copy_kernel(np.flip(array, axes) if array.ndim else array, result._array)
    return result


@cuda_kernel(operator_named("roll"))
def roll_cuda(self, shifts, dims):
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return owned(roll_cuda(self.reshape(-1), shifts, (0,)).view(self._array.shape))
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for shift, dim in zip(shifts, dims):
        size = self._array.shape[wrap_dim(dim, self._array.ndim)]
        if size and shift % size:
            start = size - shift % size
            self = at.cat([self.narrow(dim, start, size - start), self.narrow(dim, 0, start)], dim)
    return at.clone(self)


@cuda_kernel(operator_named("rot90"))
def rot90_cuda(self, k, dims):
    """`k` quarter turns in the plane of two dimensions: a quarter is a flip and a transposition."""
    ndim = self._array.ndim
    check_rot90(ndim, dims)
    first, second = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if k % 4 == 0:
        return clone_cuda(self, None)
    if k % 4 == 2:
        return flip_cuda(self, dims)
    return owned(flip_cuda(self, (second if k % 4 == 1 else first,)).transpose(first, second))
