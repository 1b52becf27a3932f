"""Numbers in a row: arange, linspace, logspace.

In PyTorch: `aten/src/ATen/native/RangeFactories.cpp`. Explained in the chapter "Tensor and Storage".
"""
import math

import numpy as np

from ...c10 import scalar_type
from ...c10.tensor_impl import TensorImpl, wrap
from ..native_function import native_function
from .tensor_factories import OPTIONS, check_options, numpy_type

arange_end = native_function(f"arange(Scalar end, *, {OPTIONS}) -> Tensor", "function")
arange_start = native_function(f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor", "function")
arange = native_function(f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor", "function", out=True)


@arange_end.compose
def arange_end_composite(end, dtype, layout, device, pin_memory):
    return arange.call(0, end, 1, dtype, layout, device, pin_memory)


@arange_start.compose
def arange_start_composite(start, end, dtype, layout, device, pin_memory):
    return arange.call(start, end, 1, dtype, layout, device, pin_memory)


def check_range(start, end, step):
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end >= start) and start != end:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


@arange.kernel
def arange_cpu(start, end, step, dtype, layout, device, pin_memory):
    """`start + i * step` for i = 0, 1, …; integers if all three are, else the default dtype."""
    check_options(layout, device)
    if dtype is None:
        floats = any(isinstance(v, float) for v in (start, end, step))
        dtype = scalar_type.get_default_dtype() if floats else scalar_type.int64
    check_range(start, end, step)
    if dtype.category < scalar_type.FLOAT:
        return wrap(np.arange(int(start), int(end), int(step), dtype.numpy))
    length = math.ceil((end - start) / step)
    wide = np.float64 if dtype is scalar_type.float64 else np.float32
    # In PyTorch too each element is computed from its place, in double precision, and rounded once.
    return wrap((start + np.arange(length, dtype=np.float64) * step).astype(wide).astype(dtype.numpy))
