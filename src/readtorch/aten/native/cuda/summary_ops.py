"""bincount and histc.

In PyTorch: `aten/src/ATen/native/cuda/SummaryOps.cu`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.histogram import histogram_range
from readtorch.aten.native.summary_ops import check_bincount
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.c10.scalar_type import int64, op_math_type
from readtorch.c10.tensor_impl import dtype_of

from .fill_kernel import filled
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_kernel, empty, operator_named, owned


@cuda_kernel(operator_named("bincount"))
def bincount_cuda(self, weights, minlength):
    """Atomic additions; of floating-point weights the last digit may differ from call to call."""
    check_bincount(self, weights, minlength, "bincount_cuda", lambda: self.min().item())
    bins = max(minlength, self.max().item() + 1 if self._array.size else 0)
    if weights is None:
        weights = at.ones_like(self, dtype=int64)
    elif weights._array.dtype != np.float32:
        weights = converted(weights, np.dtype(np.float64))
    result = filled(empty((bins,), weights._array.dtype), 0)
    return result.scatter_add_(0, converted(self, LONG), weights)


@cuda_kernel(operator_named("histc"))
def histc_cuda(self, bins, min, max):
    """Elements outside of the range are counted as 0, in some bin. The host waits for the range if none is
    given."""
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise not_implemented("histc_cuda")(dtype)
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    low, high = float(min), float(max)
    if low == high and self._array.size:
        low, high = self.min().item(), self.max().item()
    low, high = histogram_range(self._array[:0], low, high)
    x = self.reshape(-1).to(op_math_type(dtype))
    inside = at.logical_and(x >= low, x <= high)
    places = ((x - low) * (bins / (high - low))).masked_fill(at.logical_not(inside), 0)
    places = places.long().clamp(max=bins - 1)
    result = filled(empty((bins,), self._array.dtype), 0)
    return owned(result.scatter_add_(0, places, inside.to(self.dtype)))
