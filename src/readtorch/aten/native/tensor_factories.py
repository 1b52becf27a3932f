"""Operators that make a tensor from nothing: empty, zeros, ones, full and what is built on them.

In PyTorch: `aten/src/ATen/native/TensorFactories.cpp`. Explained in the chapter "Tensor and Storage".
"""
import numpy as np

from ...c10 import scalar_type
from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import native_function

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def check_size(size):
    """Raises RuntimeError for a negative dimension."""
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")


def numpy_type(dtype):
    return (dtype or scalar_type.get_default_dtype()).numpy


empty = native_function(f"empty.memory_format(SymInt[] size, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", "")


@empty.kernel
def empty_cpu(size, dtype, layout, device, pin_memory, memory_format):
    check_size(size)
    return wrap(np.empty(size, numpy_type(dtype)))


full = native_function(f"full(SymInt[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor", "")


@full.kernel
def full_cpu(size, fill_value, dtype, layout, device, pin_memory):
    check_size(size)
    dtype = dtype or infer_full_type(fill_value)
    return wrap(np.full(size, np.array(fill_value).astype(dtype.numpy), dtype.numpy))


def infer_full_type(value):
    if isinstance(value, float):
        return scalar_type.get_default_dtype()
    if isinstance(value, complex):
        return scalar_type.get_default_complex_dtype()
    return scalar_type.from_python_type(type(value))


zeros = native_function(f"zeros(SymInt[] size, *, {_OPTIONS}) -> Tensor", "")
ones = native_function(f"ones(SymInt[] size, *, {_OPTIONS}) -> Tensor", "")


@zeros.kernel
def zeros_cpu(size, dtype, layout, device, pin_memory):
    check_size(size)
    return wrap(np.zeros(size, numpy_type(dtype)))


@ones.kernel
def ones_cpu(size, dtype, layout, device, pin_memory):
    check_size(size)
    return wrap(np.ones(size, numpy_type(dtype)))


zeros_like = native_function(f"zeros_like(Tensor self, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", "")
ones_like = native_function(f"ones_like(Tensor self, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor", "")


@zeros_like.kernel
def zeros_like_cpu(self, dtype, layout, device, pin_memory, memory_format):
    return wrap(np.zeros_like(self._array, (dtype or dtype_of(self)).numpy))


@ones_like.kernel
def ones_like_cpu(self, dtype, layout, device, pin_memory, memory_format):
    return wrap(np.ones_like(self._array, (dtype or dtype_of(self)).numpy))


