"""Memory shared with others: NumPy arrays, buffers.

In PyTorch: `torch/csrc/utils/tensor_numpy.cpp`, `torch/csrc/utils/tensor_new.cpp`.
Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.native.tensor_shape.view import told_of
from readtorch.aten.native_function import python_binding
from readtorch.aten.python_arg_parser import require_grad
from readtorch.c10 import scalar_type
from readtorch.c10.exception import warn_once
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls, trace_under_way
from readtorch.c10.storage_impl import storage_over
from readtorch.c10.tensor_impl import wrap

_SUPPORTED = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, "
    "uint16, "
    "uint8, and bool"
)


def check_array(array):
    """`array` itself, if there is a dtype for its elements. Raises TypeError or ValueError if not."""
    if array.dtype not in scalar_type.by_numpy:
        if array.dtype.newbyteorder("=") in scalar_type.by_numpy:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. "
                "Conversion between "
                "byte orders is currently not supported."
            )
        kind = array.dtype.type
        raise TypeError(
            f"can't convert np.ndarray of type {kind.__module__}.{kind.__name__}. The only "
            "supported types "
            f"are: {_SUPPORTED}."
        )
    if any([s < 0 for s in array.strides]):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with "
            "negative strides are "
            "not currently supported. (You can probably work around this by making a copy of "
            "your array "
            " with array.copy().) "
        )
    return array


@python_binding("from_numpy", "function")
def from_numpy(ndarray):
    """A tensor over the memory of a NumPy array: writing to one writes to the other. Raises TypeError,
    ValueError."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name(ndarray)})")
    if trace_under_way():
        trace_under_way().warn_of_constructor("torch.from_numpy")
    check_array(ndarray)
    if not ndarray.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the "
            "array to protect "
            "its data or make it writable before converting it to a tensor. This type of warning "
            "will be "
            "suppressed for the rest of this program.",
            stacklevel=2,
        )
    return told_of(wrap_foreign(ndarray)) if threads_with_modes and tls.functorch else wrap_foreign(ndarray)


def wrap_foreign(array):
    """A tensor over memory that belongs to somebody else, and so cannot be resized.

    Its storage begins where this array begins, whatever memory lies before.
    """
    t = wrap(array)
    t._storage_impl = storage_over(array)
    t._storage_impl.resizable = False
    return t


def type_name(value):
    """How error messages call a value's type: with its module, unless it is built in."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


@python_binding("frombuffer", "function")
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A one-dimensional tensor over the bytes of a Python buffer. Raises ValueError if they do not fit."""
    result = tensor_from_buffer(buffer, dtype, count, offset)
    return require_grad(result) if requires_grad else result


def tensor_from_buffer(buffer, dtype, count=-1, offset=0):
    length, item = memoryview(buffer).nbytes, dtype.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % item:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
            "multiple of "
            f"element size ({item})"
        )
    count = (length - offset) // item if count < 0 else count
    if count * item > length - offset:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) "
            "must not be greater "
            f"than actual buffer length ({length} bytes)"
        )
    if memoryview(buffer).readonly:
        warn_once(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
            "This means you "
            "can write to the underlying (supposedly non-writable) buffer using the tensor. You "
            "may want to copy "
            "the buffer to protect its data or make it writable before converting it to a tensor. "
            "This type of "
            "warning will be suppressed for the rest of this program.",
            stacklevel=3,
        )
    return wrap_foreign(np.frombuffer(buffer, dtype.numpy, count, offset))
