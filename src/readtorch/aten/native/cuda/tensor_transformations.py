"""flip, rot90 and roll: copies of views.

In PyTorch: `aten/src/ATen/native/cuda/TensorTransformations.cu`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_transformations import flipped, turned
from readtorch.c10.wrap_dim import wrap_dim

from .copy import copy
from .register_dispatch_key import cuda_impl, operator_named


@cuda_impl(operator_named("flip"))
def flip_cuda(self, dims, out):
    copy(flipped(self._array, dims), out._array)


@cuda_impl(operator_named("rot90"))
def rot90_cuda(self, k, dims, out):
    copy(turned(self._array, k, dims), out._array)


@cuda_impl(operator_named("roll"))
def roll_cuda(self, shifts, dims, out):
    source = self if dims else self.reshape(-1)
    for shift, dim in zip(shifts, dims or (0,)):
        size = source._array.shape[wrap_dim(dim, source._array.ndim)]
        if size and shift % size:
            start = size - shift % size
            source = at.cat([source.narrow(dim, start, size - start), source.narrow(dim, 0, start)], dim)
    copy(source._array.reshape(out._array.shape), out._array)
