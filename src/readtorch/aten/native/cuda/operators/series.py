"""Tensors that are made by a rule: logspace, range, indices of triangles, memory laid out in an order.

Windows (hann_window and its relatives) are made of other operators, and need nothing here.

In PyTorch: `aten/src/ATen/native/cuda/{RangeFactories,TensorFactories}.cu`.
"""

import numpy as np

from .....c10 import scalar_type
from .....c10.memory_format import strides_in_order
from .....c10.scalar_type import FLOAT
from ....dispatcher import registry
from ....functions import at
from ... import range_factories as ranges
from ... import tensor_factories as factories
from ...triangular_ops import check_rectangle
from ..fills import arange as arange_kernel
from .factories import linspace_cuda
from .pointwise import operator_named
from .reductions import converted
from .registration import cuda_kernel, empty, here


@cuda_kernel(
    *[
        registry[f"aten::logspace{form}"]
        for form in ("", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor")
    ]
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
    arange_kernel(result._array, number(start), number(step))
    return result


def triangle_indices(name, part):
    @cuda_kernel(operator_named(name))
    def kernel(row, col, offset, dtype, layout, device, pin_memory):
        """The places of ones in such a matrix, for whose number the host waits. (In PyTorch: each thread
        works out its own place.)"""
        check_rectangle(name, dtype, row, col, layout, device)
        ones = at.ones((row, col), dtype=scalar_type.float32, device=here())
        return converted(part(ones, offset).nonzero().t().contiguous(), dtype.numpy)


triangle_indices("tril_indices", at.tril)
triangle_indices("triu_indices", at.triu)


@cuda_kernel(factories.empty_permuted)
def empty_permuted_cuda(size, physical_layout, dtype, layout, device, pin_memory):
    factories.check_permuted(size, physical_layout, layout)
    return empty(size, factories.numpy_type(dtype), strides_in_order(size, reversed(physical_layout)))
