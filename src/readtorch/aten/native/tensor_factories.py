"""Operators that make a tensor from nothing: empty, zeros, ones, full, their `_like` and `new_` forms, eye.

In PyTorch: `aten/src/ATen/native/TensorFactories.cpp`. Explained in the chapter "Tensor and Storage".
"""
import numpy as np

from ...c10 import layout as layouts
from ...c10.memory_format import contiguous_format, preserve_format
from ...c10 import scalar_type
from ...c10.device import backend_keys, default_device, no_cuda
from ...c10.dispatch_key import DEFAULT_MASK, changed, tls
from ...c10.overflows import number_as
from ...c10.tensor_impl import dtype_of, wrap
from ..dispatcher import NO_TENSOR_KEYS
from ..native_function import contiguous_strides, native_function, packets, python_face
from ..numpy_errors import restate
from ..python_arg_parser import make_parser
from .copy import allocate, allocate_in_order, allocate_like

OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
LIKE_OPTIONS = f"{OPTIONS}, MemoryFormat? memory_format=None"


# -------------------------------------------------------------------------------------------------- arguments

def check_size(size):
    """Raises RuntimeError for a negative dimension."""
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")


def numpy_type(dtype):
    return (dtype or scalar_type.get_default_dtype()).numpy


def check_options(layout, device, pin_memory=None):
    """Raises for a layout that has no tensors here. The device was looked at when the call was dispatched."""
    if pin_memory and backend_keys["cuda"] is no_cuda:
        raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is "
                           "available on this system.")
    if layout is not None and layout is not layouts.strided:
        raise RuntimeError(f"readtorch has strided tensors only, no {layout}")


def made(array, pin_memory):
    """A tensor over `array`, or over a copy of it in pinned memory."""
    t = wrap(array)
    return t.pin_memory() if pin_memory else t


def contiguous_array(make, size, numpy_dtype):
    """`make(size, dtype)`, with PyTorch's strides also if there are no elements (NumPy then makes them all
    0)."""
    try:
        array = make(size, numpy_dtype)
    except (ValueError, MemoryError) as error:
        check_size(size)
        if isinstance(error, ValueError):
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}") from None
        restate(error)
    return array if array.size else allocate(size, contiguous_strides(size), numpy_dtype)


# ------------------------------------------------------------------------------------------------ from a size

empty = native_function(
    f"empty.memory_format(SymInt[] size, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    "function",
                        out=True)


@empty.kernel
def empty_cpu(size, dtype, layout, device, pin_memory, memory_format):
    check_options(layout, device, pin_memory)
    array = contiguous_array(np.empty, size, numpy_type(dtype))
    return made(array if memory_format in (None, contiguous_format) else allocate_like(array,
    memory_format), pin_memory)


zeros = native_function(f"zeros(SymInt[] size, *, {OPTIONS}) -> Tensor", "function", out=True)
ones = native_function(f"ones(SymInt[] size, *, {OPTIONS}) -> Tensor", "function", out=True)


@zeros.kernel
def zeros_cpu(size, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    return made(contiguous_array(np.zeros, size, numpy_type(dtype)), pin_memory)


@ones.kernel
def ones_cpu(size, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    return made(contiguous_array(np.ones, size, numpy_type(dtype)), pin_memory)


full = native_function(
    f"full(SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", "function", out=True)


@full.kernel
def full_cpu(size, fill_value, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    dtype = dtype or infer_full_type(fill_value)
    number = number_as(fill_value, dtype)
    return made(contiguous_array(lambda size, kind: np.full(size, number, kind), size, dtype.numpy), pin_memory)


def infer_full_type(value):
    """full's dtype if none is given: that of the number, floats in the default dtype."""
    if isinstance(value, float):
        return scalar_type.get_default_dtype()
    if isinstance(value, complex):
        return scalar_type.get_default_complex_dtype()
    return scalar_type.bool if isinstance(value, bool) else scalar_type.int64  # a number of a trace is a subclass


empty_strided = native_function(
    f"empty_strided(SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor", "function")


@empty_strided.kernel
def empty_strided_cpu(size, stride, dtype, layout, device, pin_memory):
    check_options(layout, device, pin_memory)
    check_size(size)
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
                           f"({len(stride)})")
    return made(allocate(size, stride, numpy_type(dtype)), pin_memory)


empty_permuted = native_function(f"empty_permuted(SymInt[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor", "function")


@empty_permuted.kernel
def empty_permuted_cpu(size, physical_layout, dtype, layout, device, pin_memory):
    """Memory without gaps; `physical_layout` names the dimensions from the slowest to the fastest."""
    check_permuted(size, physical_layout, layout)
    return wrap(allocate_in_order(size, reversed(physical_layout), numpy_type(dtype)))


def check_permuted(size, physical_layout, layout):
    check_options(layout, None)
    if len(size) != len(physical_layout):
        raise RuntimeError("Number of dimensions in size does not match the length of the physical_layout; i.e. "
                           f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}")
    for i, d in enumerate(physical_layout):
        if not 0 <= d < len(size):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index "
                               f"{i}).  NB: negative dims not currently supported; file an issue if you want it.")
        if d in physical_layout[:i]:
            raise RuntimeError("Duplicate dim not allowed")


eye_square = native_function(f"eye(SymInt n, *, {OPTIONS}) -> Tensor", "function", out=True)
eye = native_function(f"eye.m(SymInt n, SymInt m, *, {OPTIONS}) -> Tensor", "function", out=True)


@eye_square.compose
def eye_square_composite(n, dtype, layout, device, pin_memory):
    return eye.call(n, n, dtype, layout, device, pin_memory)


@eye.kernel
def eye_cpu(n, m, dtype, layout, device, pin_memory):
    check_options(layout, device)
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return wrap(contiguous_array(lambda size, kind: np.eye(*size, dtype=kind), (n, m), numpy_type(dtype)))


scalar_tensor = native_function(f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor", "function")


@scalar_tensor.kernel
def scalar_tensor_cpu(s, dtype, layout, device, pin_memory):
    check_options(layout, device)
    return wrap(number_as(s, dtype or scalar_type.get_default_dtype()))


# --------------------------------------------------------------------------------------- like another tensor

empty_like = native_function(f"empty_like(Tensor self, *, {LIKE_OPTIONS}) -> Tensor", "function")
zeros_like = native_function(f"zeros_like(Tensor self, *, {LIKE_OPTIONS}) -> Tensor", "function")
ones_like = native_function(f"ones_like(Tensor self, *, {LIKE_OPTIONS}) -> Tensor", "function")
full_like = native_function(
    f"full_like(Tensor self, Scalar fill_value, *, {LIKE_OPTIONS}) -> Tensor", "function")


def like(self, dtype, memory_format, numpy_make):
    """What `numpy_make(size, dtype)` makes, laid out like `self`."""
    array = self._array
    kind = array.dtype if dtype is None else dtype.numpy
    if array.flags.c_contiguous and memory_format in (None, preserve_format, contiguous_format):
        return contiguous_array(numpy_make, array.shape, kind)
    result = allocate_like(array, memory_format, kind)
    if numpy_make is not np.empty:
        result[...] = numpy_make((), kind)
    return result


@empty_like.kernel
def empty_like_cpu(self, dtype, layout, device, pin_memory, memory_format):
    return wrap(like(self, dtype, memory_format, np.empty))


@zeros_like.kernel
def zeros_like_cpu(self, dtype, layout, device, pin_memory, memory_format):
    return wrap(like(self, dtype, memory_format, np.zeros))


@ones_like.kernel
def ones_like_cpu(self, dtype, layout, device, pin_memory, memory_format):
    return wrap(like(self, dtype, memory_format, np.ones))


@full_like.kernel
def full_like_cpu(self, fill_value, dtype, layout, device, pin_memory, memory_format):
    number = number_as(fill_value, dtype or dtype_of(self))
    return wrap(like(self, dtype, memory_format, lambda size, kind: np.full(size, number, kind)))


new_empty = native_function(f"new_empty(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", "method")
new_zeros = native_function(f"new_zeros(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", "method")
new_ones = native_function(f"new_ones(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor", "method")
new_full = native_function(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", "method")
new_empty_strided = native_function(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor", "method")


@new_empty.kernel
def new_empty_cpu(self, size, dtype, layout, device, pin_memory):
    return wrap(contiguous_array(np.empty, size, (dtype or dtype_of(self)).numpy))


@new_zeros.kernel
def new_zeros_cpu(self, size, dtype, layout, device, pin_memory):
    return wrap(contiguous_array(np.zeros, size, (dtype or dtype_of(self)).numpy))


@new_ones.kernel
def new_ones_cpu(self, size, dtype, layout, device, pin_memory):
    return wrap(contiguous_array(np.ones, size, (dtype or dtype_of(self)).numpy))


@new_full.kernel
def new_full_cpu(self, size, fill_value, dtype, layout, device, pin_memory):
    return full_cpu(size, fill_value, dtype or dtype_of(self), layout, device, pin_memory)


@new_empty_strided.kernel
def new_empty_strided_cpu(self, size, stride, dtype, layout, device, pin_memory):
    return empty_strided_cpu(size, stride, dtype or dtype_of(self), layout, device, pin_memory)


# --------------------------------------------------------------------------------------------- quick faces

def _quick(name, operator, *more):
    """The face of `zeros(2, 3)` when nothing but plain sizes and perhaps a dtype is given; the parser does
    the rest."""
    table, parse = operator.table, None

    def face(*size, dtype=None, **options):
        nonlocal parse
        sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        plain = not options and not default_device.stack and not default_device.chosen and size and (dtype is None or type(dtype) is scalar_type.dtype)
        if plain and all([type(n) is int for n in sizes]):
            kernel = table[NO_TENSOR_KEYS & (tls.mask if changed else DEFAULT_MASK)]
            return kernel(tuple(sizes), dtype, None, None, None, *more)
        parse = parse or make_parser(packets["torch", name], False)
        return parse(size, options if dtype is None else {"dtype": dtype, **options})
    face.__name__ = face.__qualname__ = name
    face.__doc__ = f"`{operator.schema}`"
    python_face(name, "function")(face)


_quick("zeros", zeros)
_quick("ones", ones)
_quick("empty", empty, None)


def _quick_like(name, operator):
    """The face of `zeros_like(x)`; the parser does the rest."""
    table, parse = operator.table, None

    def face(input=None, **options):
        nonlocal parse
        if not options and hasattr(input, "_keys"):
            kernel = table[input._keys & (tls.mask if changed else DEFAULT_MASK)]
            return kernel(input, None, None, None, None, None)
        parse = parse or make_parser(packets["torch", name], False)
        return parse(() if input is None else (input,), options)
    face.__name__ = face.__qualname__ = name
    face.__doc__ = f"`{operator.schema}`"
    python_face(name, "function")(face)


_quick_like("empty_like", empty_like)
_quick_like("zeros_like", zeros_like)
_quick_like("ones_like", ones_like)

_parse_full = make_parser(packets["torch", "full"], False)


@python_face("full", "function")
def full_face(size=None, fill_value=None, *, dtype=None, **options):
    """A tensor of `size` with every element `fill_value`."""
    plain = not options and type(size) is tuple and all([type(n) is int for n in size])
    if plain and type(fill_value) in (int, float) and (dtype is None or type(dtype) is scalar_type.dtype):
        return full.call(size, fill_value, dtype, None, None, None)
    given = {"size": size, "fill_value": fill_value, "dtype": dtype, **options}
    return _parse_full((), {name: value for name, value in given.items() if value is not None})
