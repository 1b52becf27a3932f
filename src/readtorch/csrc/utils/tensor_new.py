"""Tensors from Python data: `tensor`, `as_tensor`, `from_numpy`.

In PyTorch: `torch/csrc/utils/tensor_new.cpp`, `tensor_numpy.cpp`. Explained in the chapter "Tensor and Storage".
"""
import warnings

import numpy as np

from ...aten.functions import at
from ...aten.native.copy import cast
from ...aten.native_function import python_face
from ...c10 import scalar_type
from ...c10.scalar_type import promote_types
from ...c10.size import Size
from ...c10.tensor_impl import TensorImpl, dtype_of, wrap

# How error messages call the types: by their C++ names.
C_NAMES = {"bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t",
           "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
           "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


@python_face("tensor", "function")
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new leaf tensor that holds a copy of `data`: numbers, nested sequences of numbers, an array, a tensor.

    dtype: by default the smallest that holds every element; a Python float counts as the default dtype.
    Raises ValueError for ragged sequences, TypeError for strings, RuntimeError for what cannot be converted.
    """
    if isinstance(data, TensorImpl):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).", stacklevel=2)
    result = from_data(data, dtype)
    return result.requires_grad_() if requires_grad else result


def from_data(data, dtype=None):
    """A new tensor with a copy of `data`'s elements."""
    if isinstance(data, TensorImpl):
        return wrap(cast(data._array, dtype.numpy if dtype else data._array.dtype))
    if isinstance(data, np.ndarray):
        return wrap(cast(numpy_elements(data), dtype.numpy if dtype else data.dtype))
    return wrap(to_array(data, dtype or infer_scalar_type(data)))


@python_face("new_tensor", "method")
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """`tensor(data)` with this tensor's dtype, unless another is given."""
    result = from_data(data, dtype or dtype_of(self))
    return result.requires_grad_() if requires_grad else result


def legacy_tensor_new(data=None, *sizes):
    """What `Tensor(…)` makes: of sizes an uninitialized tensor, of a sequence one of the default dtype, of a tensor
    an alias.

    Raises TypeError for anything else. In PyTorch: `legacy_tensor_ctor`.
    """
    if isinstance(data, TensorImpl):
        return at.alias(data)
    if isinstance(data, Size) or type(data) is int:
        return at.empty((*data, *sizes) if isinstance(data, Size) else (data, *sizes))
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if sizes or not is_sequence(data):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return from_data(data, scalar_type.get_default_dtype())


# ------------------------------------------------------------------------------------------ nested sequences

_PLAIN = {bool: lambda: scalar_type.bool, int: lambda: scalar_type.int64, float: scalar_type.get_default_dtype,
          complex: scalar_type.get_default_complex_dtype}


def infer_scalar_type(data):
    """The dtype that holds every number in `data` (`torch::utils::infer_scalar_type`)."""
    plain = _PLAIN.get(type(data))
    if plain is not None:
        return plain()
    if isinstance(data, TensorImpl):
        return dtype_of(data)
    if isinstance(data, (np.ndarray, np.generic)):
        return scalar_type.get_default_dtype() if type(data) is np.float64 else scalar_type.by_numpy[numpy_elements(data).dtype]
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not is_sequence(data):
        return infer_number_type(data)
    return infer_sequence_type(data)


def infer_sequence_type(data):
    if len(data) == 0:
        return scalar_type.get_default_dtype()
    kinds = set(map(type, data))
    found = [_PLAIN[kind]() for kind in kinds] if kinds <= _PLAIN.keys() else list(map(infer_scalar_type, data))
    common = found[0]
    for dtype in found[1:]:
        common = promote_types(common, dtype)
    return common


def infer_number_type(data):
    for kind in (bool, int, float, complex):
        if isinstance(data, kind):
            return _PLAIN[kind]()
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def is_sequence(data):
    return isinstance(data, (list, tuple)) or (hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, dict))


def to_array(data, dtype):
    """A new NumPy array of nested sequences of numbers."""
    try:
        return np.array(data, dtype.numpy)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        sizes = compute_sizes(data)
        check_sizes(data, sizes)
        if isinstance(error, OverflowError):
            raise RuntimeError(f"value cannot be converted to type {C_NAMES[dtype.name]} without overflow") from None
        numbers = np.array([as_number(v, dtype) for v in leaves(data)])
        return cast(numbers, dtype.numpy).reshape(sizes)


def compute_sizes(data):
    """The sizes of nested sequences, read off their first elements."""
    sizes = []
    while is_sequence(data) and not (isinstance(data, TensorImpl) and data._array.ndim == 0):
        sizes.append(len(data))
        if len(sizes) > 128:
            raise ValueError("too many dimensions 'str'" if isinstance(data, str) else "too many dimensions")
        if not len(data):
            break
        data = data[0]
    return sizes


def check_sizes(data, sizes, dim=0):
    """Raises ValueError unless every sequence has the length that its place asks for."""
    if dim == len(sizes):
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    for part in data:
        check_sizes(part, sizes, dim + 1)


def leaves(data):
    """Every number in nested sequences, in order."""
    if is_sequence(data) and not (isinstance(data, TensorImpl) and data._array.ndim == 0):
        for part in data:
            yield from leaves(part)
    else:
        yield data


def as_number(value, dtype):
    return value.item() if isinstance(value, (TensorImpl, np.generic)) else value


# ------------------------------------------------------------------------------------------------- NumPy

def numpy_elements(array):
    """`array` itself, if there is a dtype for its elements. Raises TypeError if not."""
    if array.dtype not in scalar_type.by_numpy:
        supported = ("float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, "
                     "and bool")
        raise TypeError(f"can't convert np.ndarray of type {array.dtype.type.__module__}.{array.dtype.type.__name__}. The only "
                        f"supported types are: {supported}.")
    return array


@python_face("from_numpy", "function")
def from_numpy(ndarray):
    """A tensor over the memory of a NumPy array: writing to one writes to the other. Raises TypeError."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if any(s < 0 for s in ndarray.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                         "currently supported. (You can probably work around this by making a copy of your array  with "
                         "array.copy().) ")
    return wrap(numpy_elements(ndarray))


@python_face("as_tensor", "function")
def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor, without a copy if it is a tensor or an array of that dtype already."""
    if isinstance(data, TensorImpl):
        return data if dtype is None or dtype is dtype_of(data) else data.to(dtype)
    if isinstance(data, np.ndarray) and (dtype is None or dtype.numpy == data.dtype):
        return from_numpy(data)
    return from_data(data, dtype)
