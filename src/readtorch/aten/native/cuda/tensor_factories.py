"""Tensors from nothing: empty, zeros, ones, full, their `_like` and `new_` forms, eye, scalar_tensor, and indices of
triangles.

Windows (hann_window and its relatives) are made of other operators, and need nothing here.

In PyTorch: `aten/src/ATen/native/cuda/TensorFactories.cu`.
"""

import numpy as np
from numba import cuda

from readtorch.aten.functions import at
from readtorch.aten.native import tensor_factories as factories
from readtorch.aten.native.tensor_factories import check_options, check_size, numpy_type
from readtorch.aten.native.triangular_ops import check_rectangle
from readtorch.c10 import scalar_type
from readtorch.c10.cuda.launch import blocks_of, launch
from readtorch.c10.memory_format import strides_in_format, strides_in_order
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of

from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import converted
from .register_dispatch_key import cuda_kernel, empty, here, operator_named


def eye(out):
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    if out.size:
        launch(eye_kernel, blocks_of(out.size, THREADS), THREADS, out)


def eye_kernel(out):
    columns = out.shape[1]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[e // columns, e % columns] = 1 if e // columns == e % columns else 0


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
