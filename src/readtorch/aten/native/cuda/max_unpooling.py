"""max_unpool2d and max_unpool3d: values at the indices that max pooling gave.

In PyTorch: `aten/src/ATen/native/cuda/MaxUnpooling.cu`.
"""

import math

from readtorch.aten.native.pooling import max_unpooling as unpooling
from readtorch.c10.tensor_impl import type_name

from .fill_kernel import filled
from .pool import check_floating, in_format_of
from .reduce_ops import LONG
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .rows import contiguous
from .scatter_gather_kernel import scatter


def unpooled(name, self, indices, output_size, dims):
    """Zeros of `output_size`, with each element at its index. Indices stay unchecked: to look at them, the
    host would have to wait."""
    if indices._array.dtype != LONG:
        raise RuntimeError(f"elements in indices should be type int64 but got: {type_name(indices)}")
    unpooling.check_length(
        "output_size", output_size, dims, "(height, width)" if dims == 2 else "(depth, height, width)"
    )
    unpooling.check_ndim(self._array, dims)
    unpooling.check_shapes(self, indices, output_size, dims)
    check_floating(name, self)
    result = filled(empty((*self._array.shape[:-dims], *output_size), self._array.dtype), 0)
    if self._array.size and result._array.size:
        planes = math.prod(self._array.shape[:-dims])
        rows = [contiguous(t._array).reshape(planes, -1) for t in (result, indices, self)]
        scatter(rows[0], 1, *rows[1:])
    return result


@cuda_kernel(operator_named("max_unpool2d"))
def max_unpool2d_cuda(self, indices, output_size):
    return in_format_of(self, unpooled("max_unpooling2d_forward_kernel", self, indices, output_size, 2))


@cuda_kernel(operator_named("max_unpool3d"))
def max_unpool3d_cuda(self, indices, output_size, stride, padding):
    unpooling.check_length("stride", stride, 3, "(depth, height, width)", "but got:")
    unpooling.check_length("padding", padding, 3, "(depth, height, width)", "but got:")
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return unpooled("max_unpooling3d_forward_kernel", self, indices, output_size, 3)
