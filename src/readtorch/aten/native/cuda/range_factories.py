"""arange, range, linspace and logspace: evenly spaced scalars.

Grid: blocks of 256 threads with a grid-stride loop.

In PyTorch: `aten/src/ATen/native/cuda/RangeFactories.cu`.
"""

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native import range_factories as ranges
from readtorch.c10 import scalar_type
from readtorch.c10.cuda.launch import blocks_of, launch, strided
from readtorch.c10.scalar_type import FLOAT, op_math_type
from readtorch.c10.tensor_impl import dtype_of

from .copy import copy_elements
from .loops import THREADS
from .register_dispatch_key import cuda_impl, empty


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


def series(out, start, step):
    number = np.int64 if dtype_of(out).category < FLOAT else np.float64
    arange(out._array, number(start), number(step))


@cuda_impl(ranges.arange)
def arange_cuda(start, end, step, dtype, layout, device, pin_memory, out):
    ranges.check_computable(dtype_of(out), "arange_cuda")
    series(out, start, step)


@cuda_impl(ranges.range_)
def range_cuda(start, end, step, dtype, layout, device, pin_memory, out):
    ranges.check_computable(dtype_of(out), "range_cuda")
    series(out, start, step)


@cuda_impl(*ranges.linspace)
def linspace_cuda(start, end, steps, dtype, layout, device, pin_memory, out):
    ranges.check_computable(dtype_of(out), "linspace_cuda")
    even_steps(ranges.number_of(start), ranges.number_of(end), out._array)


def even_steps(start, end, out):
    dtype = scalar_type.by_numpy[out.dtype]
    if dtype.category < FLOAT:
        linspace(out, np.float64(int(start)), np.float64(int(end)))
    else:
        number = op_math_type(dtype).numpy.type
        linspace(out, number(start), number(end))


@cuda_impl(*ranges.logspace)
def logspace_cuda(start, end, steps, base, dtype, layout, device, pin_memory, out):
    """`base` to the power of each number that linspace gives."""
    dtype = dtype_of(out)
    ranges.check_computable(dtype, "logspace_cuda")
    start, end = ranges.number_of(start), ranges.number_of(end)
    if dtype.category < FLOAT:
        start, end = int(start), int(end)
    number = dtype if dtype in (scalar_type.float32, scalar_type.float64) else scalar_type.float64
    exponents = empty((steps,), number.numpy)
    even_steps(start, end, exponents._array)
    copy_elements(at.pow(base, exponents), out)
