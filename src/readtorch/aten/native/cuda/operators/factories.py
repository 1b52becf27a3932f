"""Tensors from nothing: empty, zeros, ones, full, their `_like` and `new_` forms, arange, eye, scalar_tensor.

In PyTorch: `aten/src/ATen/native/cuda/{TensorFactories,RangeFactories}.cu`.
"""

import math

import numpy as np

from .....c10 import scalar_type
from .....c10.memory_format import strides_in_format
from .....c10.overflows import number_as
from .....c10.scalar_type import FLOAT, op_math_type
from .....c10.tensor_impl import contiguous_strides, dtype_of
from ....dispatcher import registry
from ... import range_factories as ranges
from ... import tensor_factories as factories
from ...tensor_factories import check_options, check_size, numpy_type
from ..fills import arange, eye, fill, linspace
from .registration import cuda_kernel, empty


def filled(t, number):
    """`t`, every element `number`."""
    fill(t._array, number_as(number, dtype_of(t))[()])
    return t


# ------------------------------------------------------------------------------------------------ from a size


@cuda_kernel(factories.empty)
def empty_cuda(size, dtype, layout, device, pin_memory, memory_format):
    check_options(layout, device)
    check_size(size)
    return empty(size, numpy_type(dtype), format_strides(size, memory_format))


def format_strides(size, memory_format):
    if memory_format is None:
        return contiguous_strides(size)
    return strides_in_format(np.broadcast_to(np.empty((), np.int8), size), memory_format)


@cuda_kernel(factories.zeros)
def zeros_cuda(size, dtype, layout, device, pin_memory):
    return filled(empty_cuda(size, dtype, layout, device, pin_memory, None), 0)


@cuda_kernel(factories.ones)
def ones_cuda(size, dtype, layout, device, pin_memory):
    return filled(empty_cuda(size, dtype, layout, device, pin_memory, None), 1)


@cuda_kernel(factories.full)
def full_cuda(size, fill_value, dtype, layout, device, pin_memory):
    dtype = dtype or factories.infer_full_type(fill_value)
    return filled(empty_cuda(size, dtype, layout, device, pin_memory, None), fill_value)


@cuda_kernel(factories.empty_strided)
def empty_strided_cuda(size, stride, dtype, layout, device, pin_memory):
    check_options(layout, device)
    check_size(size)
    return empty(size, numpy_type(dtype), stride)


@cuda_kernel(factories.scalar_tensor)
def scalar_tensor_cuda(s, dtype, layout, device, pin_memory):
    return full_cuda((), s, dtype or scalar_type.get_default_dtype(), layout, device, pin_memory)


@cuda_kernel(factories.eye)
def eye_cuda(n, m, dtype, layout, device, pin_memory):
    result = empty_cuda((n, m), dtype, layout, device, pin_memory, None)
    eye(result._array)
    return result


# --------------------------------------------------------------------------------------- like another tensor


@cuda_kernel(factories.empty_like)
def empty_like_cuda(self, dtype, layout, device, pin_memory, memory_format):
    kind = self._array.dtype if dtype is None else dtype.numpy
    return empty(self._array.shape, kind, strides_in_format(self._array, memory_format))


@cuda_kernel(factories.zeros_like)
def zeros_like_cuda(self, dtype, layout, device, pin_memory, memory_format):
    return filled(empty_like_cuda(self, dtype, layout, device, pin_memory, memory_format), 0)


@cuda_kernel(factories.ones_like)
def ones_like_cuda(self, dtype, layout, device, pin_memory, memory_format):
    return filled(empty_like_cuda(self, dtype, layout, device, pin_memory, memory_format), 1)


@cuda_kernel(factories.full_like)
def full_like_cuda(self, fill_value, dtype, layout, device, pin_memory, memory_format):
    return filled(empty_like_cuda(self, dtype, layout, device, pin_memory, memory_format), fill_value)


@cuda_kernel(factories.new_empty)
def new_empty_cuda(self, size, dtype, layout, device, pin_memory):
    return empty_cuda(size, dtype or dtype_of(self), layout, device, pin_memory, None)


@cuda_kernel(factories.new_zeros)
def new_zeros_cuda(self, size, dtype, layout, device, pin_memory):
    return filled(new_empty_cuda(self, size, dtype, layout, device, pin_memory), 0)


@cuda_kernel(factories.new_ones)
def new_ones_cuda(self, size, dtype, layout, device, pin_memory):
    return filled(new_empty_cuda(self, size, dtype, layout, device, pin_memory), 1)


@cuda_kernel(factories.new_full)
def new_full_cuda(self, size, fill_value, dtype, layout, device, pin_memory):
    return filled(new_empty_cuda(self, size, dtype, layout, device, pin_memory), fill_value)


@cuda_kernel(factories.new_empty_strided)
def new_empty_strided_cuda(self, size, stride, dtype, layout, device, pin_memory):
    return empty_strided_cuda(size, stride, dtype or dtype_of(self), layout, device, pin_memory)


# ---------------------------------------------------------------------------------------------- numbers in a
# row


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
    *[
        registry[f"aten::linspace{form}"]
        for form in ("", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor")
    ]
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
