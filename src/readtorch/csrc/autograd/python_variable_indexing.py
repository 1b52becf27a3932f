"""`x[index]` and `x[index] = value`: from Python's many kinds of index to select, slice, unsqueeze and index.

In PyTorch: `torch/csrc/autograd/python_variable_indexing.cpp`, `aten/src/ATen/TensorIndexing.h`.
Explained in the chapter "Tensor and Storage".
"""
from collections.abc import Sequence

import numpy as np

from ...aten.functions import at
from ...aten.native.views import alias_, select, slice_, unsqueeze
from ...c10.dispatch_key import tls
from ...c10.tensor_impl import TensorImpl, wrap

_select, _slice = select.table, slice_.table
MAX = 2**63 - 1


def getitem(self, index):
    """`self[index]`: a view for ints, slices, None and Ellipsis; a copy as soon as a tensor, list or bool is among them."""
    kind = type(index)
    if kind is int:
        shape = self._array.shape
        if not shape or not -shape[0] <= index < shape[0]:
            raise out_of_bounds(shape, 0, index, 0)
        return _select[self._keys & tls.mask](self, 0, index)
    if kind is slice:
        return get_slice(self, index)
    if kind is tuple and not index:
        return alias_.call(self)
    indices = as_tuple(index)
    tensors = []
    result = apply_slicing(self, indices, tensors)
    if tensors:
        return at.index(result, tensors)
    return alias_.call(self) if result is self else result


def get_slice(self, part):
    """`self[start:stop:step]` along dimension 0."""
    if not self._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    result = apply_slice(self, 0, part)
    return alias_.call(self) if result is self else result


def setitem(self, index, value):
    """`self[index] = value`: a copy into the view that `self[index]` is, or index_put_."""
    if not isinstance(value, TensorImpl):
        value = value_to_tensor(self, value)
    if index is False:
        return
    kind = type(index)
    if kind is int:
        shape = self._array.shape
        if not shape or not -shape[0] <= index < shape[0]:
            raise out_of_bounds(shape, 0, index, 0)
        return copy_to(_select[self._keys & tls.mask](self, 0, index), value)
    tensors = []
    indices = as_tuple(index)
    target = apply_slicing(self, indices, tensors)
    if not tensors:
        return copy_to(alias_.call(self) if target is self else target, value)
    at.index_put_(target, tensors, without_leading_ones(value) if value._array.ndim > 0 else value)


# ----------------------------------------------------------------------------------------------- basic indexing

def apply_slicing(self, indices, tensors):
    """Apply the views among `indices` to `self`; put the indices that are tensors into `tensors`, at their dimension.

    `tensors` has None where a dimension is taken whole.
    """
    specified = sum(map(dims_of, indices))
    ndim = self._array.ndim
    if specified > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, dim = self, 0
    for place, index in enumerate(indices):
        if type(index) is slice:
            result = apply_slice(result, dim, index)
            dim += 1
        elif index is None:
            result = unsqueeze.call(result, dim)
            dim += 1
        elif index is Ellipsis:
            dim += ndim - specified
        elif is_integer(index):
            result = apply_select(result, dim, int(index), place)
        else:
            if is_boolean(index):
                result = unsqueeze.call(result, dim)
            index = to_index_tensor(index)
            tensors.extend([None] * (dim - len(tensors)))
            tensors.append(index)
            dim += max(dims_of(index), 1) if False else 1
    return result


def dims_of(index):
    """How many dimensions of the tensor an index speaks of."""
    if index is None or index is Ellipsis or isinstance(index, (bool, np.bool_)):
        return 0
    if isinstance(index, TensorImpl) and index._array.dtype in (np.bool_, np.uint8):
        return index._array.ndim
    return 1


def apply_select(self, dim, index, place):
    shape = self._array.shape
    if not shape or not -shape[dim] <= index < shape[dim]:
        raise out_of_bounds(shape, dim, index, place)
    return select.call(self, dim, index)


def apply_slice(self, dim, part):
    """`self` itself when the slice is the whole dimension."""
    start, stop, step = part.start, part.stop, part.step
    size = self._array.shape[dim]
    start = 0 if start is None else as_int(start)
    stop = MAX if stop is None else as_int(stop)
    step = 1 if step is None else as_int(step)
    if step <= 0:
        raise ValueError("slice step cannot be zero" if step == 0 else "step must be greater than zero")
    if start == 0 and step == 1 and stop == size:
        return self
    return _slice[self._keys & tls.mask](self, dim, start, stop, step)


def as_int(number):
    return number if type(number) is int else number.__index__()


def out_of_bounds(shape, dim, index, place):
    if not shape:
        return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                          "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")
    return IndexError(f"index {index} is out of bounds for dimension {place} with size {shape[dim]}")


# --------------------------------------------------------------------------------------------- kinds of index

def is_integer(index):
    """An int, or anything that Python accepts as one; a 0-dimensional integer tensor too, unless it is a mask (uint8)."""
    if isinstance(index, (bool, np.bool_)):
        return False
    if isinstance(index, TensorImpl):
        array = index._array
        return array.ndim == 0 and array.dtype.kind in "iu" and array.dtype != np.uint8
    return hasattr(index, "__index__") and not isinstance(index, np.ndarray)


def is_boolean(index):
    if isinstance(index, TensorImpl):
        return index._array.ndim == 0 and index._array.dtype in (np.bool_, np.uint8)
    return isinstance(index, (bool, np.bool_))


def as_tuple(index):
    """The indices one by one."""
    return index if type(index) is tuple else tuple(index) if isinstance(index, tuple) else (index,)


def to_index_tensor(index):
    """An index that is no view as a tensor of ints, or a mask."""
    if is_boolean(index):
        return wrap(np.zeros(1 if bool(index) else 0, np.int64))
    if isinstance(index, TensorImpl):
        return index
    if isinstance(index, (np.ndarray, Sequence)) and not isinstance(index, str):
        array = np.asarray(index)
        if array.dtype.kind != "b" and array.dtype != np.uint8:
            array = array.astype(np.int64)
        return wrap(array)
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
                     f"valid indices (got {type(index).__name__})")


# ----------------------------------------------------------------------------------------------------- values

def value_to_tensor(self, value):
    """A number to be assigned, as a tensor of `self`'s dtype."""
    if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return wrap(np.asarray(value).astype(self._array.dtype))
    raise TypeError(f"can't assign a {type(value).__name__} to a torch.{self.dtype}")


def without_leading_ones(value):
    shape = value._array.shape
    first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return value.view(shape[first:]) if first else value


def copy_to(target, value):
    """Write `value`, broadcast, to the view `target`."""
    if value._array.shape == target._array.shape:
        target.copy_(value)
    elif value._array.ndim == 0:
        target.fill_(value)
    else:
        target.copy_(without_leading_ones(value).expand(target._array.shape))
