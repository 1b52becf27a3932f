"""Memory shared with others: NumPy arrays, buffers, arrays on a GPU.

In PyTorch: `torch/csrc/utils/tensor_numpy.cpp`, `torch/csrc/utils/tensor_new.cpp`.
Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.native.tensor_shape.view import told_of
from readtorch.aten.native_function import python_binding
from readtorch.aten.python_arg_parser import require_grad
from readtorch.c10 import scalar_type
from readtorch.c10.cuda.device_memory import empty_on, tensor_over
from readtorch.c10.device import cuda_device, current_device, has_accelerator
from readtorch.c10.exception import warn_once
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls, trace_under_way
from readtorch.c10.storage_impl import storage_over
from readtorch.c10.tensor_impl import contiguous_strides, wrap

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
    if any([s % array.itemsize for s in array.strides]):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
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


def tensor_from_cuda_array_interface(obj):
    """A tensor over the memory of a device that another library's array describes: Numba's, CuPy's. TypeError, ValueError."""
    found = obj.__cuda_array_interface__
    if not isinstance(found, dict):
        raise TypeError("`__cuda_array_interface__` must be a dict")
    for name in ("shape", "typestr"):
        if name not in found:
            raise TypeError(f"attribute `{name}` must exist")
    shape, numpy_dtype = tuple(found["shape"]), dtype_of_typestr(found["typestr"])
    if "data" not in found:
        raise TypeError("attribute `shape` data exist")
    if not isinstance(found["data"], tuple) or len(found["data"]) != 2:
        raise TypeError("`data` must be a 2-tuple of (int, bool)")
    address, is_read_only = found["data"]
    if is_read_only:
        raise TypeError("the read only flag is not supported, should always be False")
    strides = element_strides(found.get("strides"), shape, numpy_dtype.itemsize)
    has_accelerator()  # finds real ones
    if not address:  # no elements
        return empty_on(cuda_device(current_device.index), shape, numpy_dtype, strides)
    return tensor_over(address, numpy_dtype, shape, strides, obj)


def dtype_of_typestr(text):
    try:
        numpy_dtype = np.dtype(text)
    except TypeError:
        raise ValueError("cannot parse `typestr`") from None
    return check_array(np.empty(0, numpy_dtype)).dtype


def element_strides(strides, shape, itemsize):
    """Strides in bytes, or None for a contiguous array, as strides in elements."""
    if strides is None:
        return contiguous_strides(shape)
    if len(strides) != len(shape):
        raise TypeError("strides must be a sequence of the same length as shape")
    if any(stride % itemsize for stride in strides):
        raise ValueError(
            "given array strides not a multiple of the element byte size. Make a copy of the array to reallocate the memory."
        )
    return tuple(stride // itemsize for stride in strides)


def type_name(value):
    """How error messages call a value's type: with its module, unless it is built in."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


@python_binding("frombuffer", "function")
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A one-dimensional tensor over the bytes of a Python buffer. Raises ValueError if they do not fit."""
    result = tensor_from_buffer(buffer, dtype, count, offset)
    return require_grad(result) if requires_grad else result


def buffer_of(obj):
    try:
        return memoryview(obj)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None


def tensor_from_buffer(buffer, dtype, count=-1, offset=0):
    length, item = buffer_of(buffer).nbytes, dtype.itemsize
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
