"""max_unpool2d and max_unpool3d: values at the indices that max pooling gave.

In PyTorch: `aten/src/ATen/native/cuda/MaxUnpooling.cu`.
"""

import math

from .fill_kernel import filled
from .pool import check_floating, in_wide
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .scatter_gather_kernel import scatter
from .softmax import wide


def unpooling(dims):
    @cuda_impl(operator_named(f"max_unpool{dims}d"))
    def unpool(self, indices, output_size, *rest):
        """Zeros, with each element at its index. Indices stay unchecked: to look at them, the host would have to wait."""
        check_floating(f"max_unpooling{dims}d_forward_kernel", self)
        with in_wide(rest[-1], row_major=True) as out:
            filled(out, 0)
            if self._array.size and out._array.size:
                count = math.prod(self._array.shape[:-dims])
                rows = [contiguous(t._array).reshape(count, -1) for t in (out, indices, wide(self))]
                scatter(rows[0], 1, *rows[1:])


unpooling(2)
unpooling(3)
