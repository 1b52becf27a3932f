"""arange, range, linspace and logspace: evenly spaced scalars.

Grid: blocks of 256 threads with a grid-stride loop.

In PyTorch: `aten/src/ATen/native/cuda/RangeFactories.cu`.
"""

import math

import numpy as np
from numba import cuda

from readtorch.aten.dispatcher import registry
from readtorch.aten.functions import at
from readtorch.aten.native import range_factories as ranges
from readtorch.aten.native.tensor_factories import check_options
from readtorch.c10 import scalar_type
from readtorch.c10.cuda.launch import blocks_of, launch, strided
from readtorch.c10.scalar_type import FLOAT, op_math_type

from .loops import THREADS
from .reduce_ops import converted
from .register_dispatch_key import cuda_kernel, empty, operator_named


def arange(out, start, step):
    """out[i] = start + i step, computed as a float64, or as an int64 if `start` is one."""
    if out.size:
        flat = strided(out, (out.size,), (out.itemsize,))
        launch(arange_kernel, blocks_of(out.size, THREADS), THREADS, flat, start, step)


def linspace(out, start, end):
    """From `start` to `end` in even steps: the first half counted up, the second down. start, end: in the
    dtype to compute in."""
    if out.size:
        step = (end - start) / type(start)(max(out.size - 1, 1))
        launch(linspace_kernel, blocks_of(out.size, THREADS), THREADS, out, start, end, step)


def arange_kernel(out, start, step):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = start + i * step


def linspace_kernel(out, start, end, step):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        up = i < out.size // 2 or out.size == 1
        out[i] = start + step * type(step)(i) if up else end - step * type(step)(out.size - 1 - i)


@cuda_kernel(ranges.arange)
def arange_cuda(start, end, step, dtype, layout, device, pin_memory):
    """From `start` up to but without `end`; integers if all three are, else the default dtype."""
    check_options(layout, device)
    ranges.check_range(start, end, step)
    if dtype is None:
        floats = any(isinstance(v, float) for v in (start, end, step))
        dtype = scalar_type.get_default_dtype() if floats else scalar_type.int64
    ranges.check_computable(dtype, "arange_cuda")
    if dtype is scalar_type.int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:  # it was a fraction
            raise ValueError("step must be nonzero")
    result = empty((math.ceil((end - start) / step),), dtype.numpy)
    number = np.int64 if dtype.category < FLOAT else np.float64
    arange(result._array, number(start), number(step))
    return result


@cuda_kernel(
    *[registry[f"aten::linspace{form}"] for form in ("", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor")]
)
def linspace_cuda(start, end, steps, dtype, layout, device, pin_memory):
    check_options(layout, device)
    start, end = ranges.bound(start, "start", "linspace"), ranges.bound(end, "end", "linspace")
    dtype = ranges.series_type("linspace", start, end, dtype, steps)
    result = empty((steps,), dtype.numpy)
    if dtype.category < FLOAT:
        linspace(result._array, np.float64(int(start)), np.float64(int(end)))
    else:
        number = op_math_type(dtype).numpy.type
        linspace(result._array, number(start), number(end))
    return result


@cuda_kernel(
    *[registry[f"aten::logspace{form}"] for form in ("", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor")]
)
def logspace_cuda(start, end, steps, base, dtype, layout, device, pin_memory):
    """`base` to the power of each number that linspace gives."""
    start, end = ranges.bound(start, "start", "logspace"), ranges.bound(end, "end", "logspace")
    dtype = ranges.series_type("logspace", start, end, dtype, steps)
    if dtype.category < FLOAT:
        start, end = int(start), int(end)
    number = dtype if dtype in (scalar_type.float32, scalar_type.float64) else scalar_type.float64
    exponents = linspace_cuda(start, end, steps, number, layout, device, pin_memory)
    return converted(at.pow(base, exponents), dtype.numpy)


@cuda_kernel(operator_named("range.step"))
def range_cuda(start, end, step, dtype, layout, device, pin_memory):
    """The old form, which includes `end`."""
    ranges.warn_of_range()
    ranges.check_range(start, end, step)
    dtype = dtype or scalar_type.get_default_dtype()
    ranges.check_computable(dtype, "range_cuda")
    number = np.int64 if dtype.category < FLOAT else np.float64
    result = empty((int((end - start) / step) + 1,), dtype.numpy)
    arange(result._array, number(start), number(step))
    return result
