"""`x[index]` and `x[index] = value`: from Python's many kinds of index to select, slice, unsqueeze and index.

In PyTorch: `torch/csrc/autograd/python_variable_indexing.cpp`, `aten/src/ATen/TensorIndexing.h`.
Explained in the chapter "Tensor and Storage".
"""

import warnings
from collections.abc import Sequence
from operator import eq

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_advanced_indexing.index import index as _index
from readtorch.aten.native.tensor_shape.slice import select, slice_
from readtorch.aten.native.tensor_shape.view import alias_, told_of, unsqueeze
from readtorch.aten.torch_function import (
    handle_torch_function,
    has_override,
    is_overridden,
    overloaded_args,
    overriders,
)
from readtorch.c10 import tensor_impl
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.overflows import number_as
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, bfloat16, float16, float64
from readtorch.c10.scalar_type import bool as bool_
from readtorch.c10.sym_int import SymInt
from readtorch.c10.symbolic_shape_meta import is_same
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, wrap
from readtorch.csrc.utils.tensor_new import from_data

from .saved_variable import full_type_name

_select, _slice = select.table, slice_.table
MAX = 2**63 - 1
_BOUND = frozenset({int, type(None)})


def getitem(self, index):
    """`self[index]`: a view for ints, slices, None and Ellipsis; a copy as soon as a tensor, list or bool
    is among them."""
    if overriders and is_overridden(asked := (self, *(index if type(index) is tuple else (index,)))):
        return override_indexing("__getitem__", asked, (self, index))
    kind = type(index)
    if kind is int:
        try:
            return _select[self._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, 0, index)
        except IndexError:
            raise out_of_bounds(self._array.shape, 0, index, 0) from None
    if kind is slice:
        start, stop, step = index.start, index.stop, index.step
        if step is not None or type(start) not in _BOUND or type(stop) not in _BOUND:
            start, stop, step = bounds(index)
        return _slice[self._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](
            self, 0, 0 if start is None else start, MAX if stop is None else stop, 1 if step is None else step
        )
    tensors = []
    if kind is tuple and _BASIC.issuperset(map(type, index)):
        result = apply_views(self, index)
    else:
        if any(map(has_override, asked := (self, *(index if kind is tuple else (index,))))):
            return override_indexing("__getitem__", asked, (self, index))
        result = apply_indices(self, as_tuple(index), tensors)
    if tensors:
        return _index.call(result, tensors)
    return alias_.call(self) if result is self else result


def setitem(self, index, value):
    """`self[index] = value`: a copy into the view that `self[index]` is, or index_put_."""
    if overriders and is_overridden(asked := (self, *(index if type(index) is tuple else (index,)), value)):
        override_indexing("__setitem__", asked, (self, index, value))
        return
    if not isinstance(value, TensorImpl):
        value = value_to_tensor(self, value)
    if index is False:
        return
    tensors = []
    if type(index) is int:
        target = apply_select(self, 0, index, 0)
    elif type(index) is slice:
        target = apply_slice(self, 0, index)
    else:
        target = apply_indices(self, as_tuple(index), tensors)
    if tensors:
        at.index_put_(target, tensors, without_leading_ones(value))
    else:
        copy_to(target, value)


def override_indexing(name, asked, args):
    function = getattr(tensor_impl.tensor_class, name)
    return handle_torch_function(function, overloaded_args(asked), args, {}, f"torch.Tensor.{name}")


# ------------------------------------------------------------------------------------ one index after another

_BASIC = frozenset({int, slice, type(None), type(Ellipsis)})


def apply_views(self, indices):
    """`self` seen through ints, slices, None and Ellipsis: the common case of `apply_indices`, which gives
    the same."""
    specified = len(indices) - indices.count(None) - indices.count(Ellipsis)
    ndim = self._array.ndim
    if specified > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, dim = self, 0
    for position, index in enumerate(indices):
        if type(index) is int:
            result = apply_select(result, dim, index, position)
        elif index is Ellipsis:
            dim += ndim - specified
        else:
            result = unsqueeze.call(result, dim) if index is None else apply_slice(result, dim, index)
            dim += 1
    return result


def apply_indices(self, indices, tensors):
    """Apply the views among `indices` to `self`; put the indices that are tensors into `tensors`, at their
    dimension.

    `tensors` has None where a dimension is taken whole; a mask stands for as many dimensions as it has.
    """
    specified = sum(map(dims_of, indices))
    ndim = self._array.ndim
    if specified > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    result, dim, covered = self, 0, 0
    for position, index in enumerate(indices):
        if type(index) is slice:
            result = apply_slice(result, dim, index)
            dim += 1
        elif index is None:
            result = unsqueeze.call(result, dim)
            dim += 1
        elif index is Ellipsis:
            dim += ndim - specified
        elif is_integer(index):
            result = apply_select(result, dim, index if type(index) is SymInt else int(index), position)
        else:
            index = to_index_tensor(index)
            if index._array.ndim == 0:  # a bool: a new dimension of size 1, kept or dropped
                result = unsqueeze.call(result, dim)
                index = wrap(np.zeros(int(index.item() != 0), np.int64))
            tensors += [*[None] * (dim - covered), index]
            dim = covered = dim + (index._array.ndim if index._array.dtype in _MASKS else 1)
    return result


_MASKS = (np.dtype(np.bool_), np.dtype(np.uint8))


def dims_of(index):
    """How many dimensions of the tensor an index speaks of."""
    if index is None or index is Ellipsis or isinstance(index, bool):
        return 0
    array = array_of(index)
    return array.ndim if array is not None and array.dtype in _MASKS else 1


def array_of(index):
    """The NumPy array of an index that is a tensor or an array, else None."""
    return index._array if isinstance(index, TensorImpl) else index if isinstance(index, np.ndarray) else None


def apply_select(self, dim, index, position):
    """In PyTorch: `impl::applySelect`. Raises IndexError."""
    try:
        return _select[self._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, dim, index)
    except IndexError:
        raise out_of_bounds(self._array.shape, dim, index, position) from None


def apply_slice(self, dim, part):
    """`self` itself when the slice is the whole dimension."""
    start, stop, step = bounds(part)
    shape = self._array.shape
    equal = is_same if SymInt in map(type, (start, stop, step, *shape)) else eq
    whole = shape and equal(start, 0) and equal(step, 1) and (equal is eq and stop == MAX or equal(stop, shape[dim]))
    if whole and not (threads_with_modes and tls.tracer is not None):  # a trace must hold for other sizes
        return self
    return _slice[self._keys & (tls.mask if threads_with_modes else DEFAULT_MASK)](self, dim, start, stop, step)


def bounds(part):
    """(start, stop, step) of a slice as ints. Raises ValueError unless the step is positive."""
    start, stop, step = part.start, part.stop, part.step
    start = 0 if start is None else start if type(start) in _INTS else as_index(start)
    stop = MAX if stop is None else stop if type(stop) in _INTS else as_index(stop)
    step = 1 if step is None else step if type(step) in _INTS else as_index(step)
    if step <= 0:
        raise ValueError("slice step cannot be zero" if step == 0 else "step must be greater than zero")
    return start, stop, step


_INTS = frozenset({int, SymInt})


def as_index(value):
    """One end of a slice as an int. Raises TypeError, also for a tensor that is none."""
    if not hasattr(value, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return value.__index__()


def out_of_bounds(shape, dim, index, position):
    if not shape and index == 0:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
            "`tensor.item<T>()` in C++ "
            "to convert a 0-dim tensor to a number"
        )
    size = shape[dim] if dim < len(shape) else 0
    return IndexError(f"index {index} is out of bounds for dimension {position} with size {size}")


# --------------------------------------------------------------------------------------------- kinds of index


def is_integer(index):
    """An int, or anything that Python accepts as one; a 0-dimensional integer tensor too, unless it is a
    mask."""
    array = array_of(index)
    if array is not None:
        return array.ndim == 0 and array.dtype.kind in "iu" and array.dtype not in _MASKS
    return not isinstance(index, (bool, np.bool_)) and hasattr(index, "__index__")


def as_tuple(index):
    """The indices one by one. A short list that holds sequences, slices or None counts as a tuple, as it
    once did in NumPy."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32 and any(map(_makes_tuple, index)):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
            "changed in pytorch "
            "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
            "tensor index, "
            "x[torch.tensor(seq)], which will result either in an error or a different "
            "result",
            stacklevel=3,
        )
        return tuple(index)
    return (index,)


def _makes_tuple(part):
    return part is None or part is Ellipsis or isinstance(part, (TensorImpl, slice, Sequence, np.ndarray))


def to_index_tensor(index):
    """An index that is no view, as a tensor of ints or a mask. Raises IndexError, TypeError."""
    if isinstance(index, TensorImpl):
        return index
    if isinstance(index, bool):
        return wrap(np.array(index))
    if isinstance(index, np.ndarray) or isinstance(index, Sequence):
        t = from_data(index)
        if threads_with_modes and tls.tracer is not None:
            tls.tracer.constructed(t, detach=False)
        keeps_dtype = isinstance(index, np.ndarray) or t._array.dtype in _MASKS
        return told_of(t if keeps_dtype else wrap(t._array.astype(np.int64)))
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {full_type_name(index)})"
    )


# ----------------------------------------------------------------------------------------------------- values


def value_to_tensor(self, value):
    """A number to be assigned, as a tensor of `self`'s dtype. Raises TypeError for what is none."""
    if isinstance(value, (bool, int, float, complex, np.integer)):
        value = int(value) if isinstance(value, np.integer) else value
        return told_of(wrap(number_assigned(value, dtype_of(self))))
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise TypeError(f"can't assign a {name} to a torch.{SCALAR_TYPE_NAMES[dtype_of(self)]}Tensor")


def number_assigned(value, dtype):
    """A number as an element of `dtype`; one that is too large for the 16-bit floats becomes inf, unlike in `fill_`.

    In PyTorch: `valueToTensor`, and `scalar_fill` in `aten/src/ATen/ScalarOps.cpp`, which converts to them from double.
    """
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if dtype is float16 or dtype is bfloat16:
        with np.errstate(over="ignore"):
            return number_as(value, float64).astype(dtype.numpy)
    return np.array(bool(value)) if dtype is bool_ else number_as(value, dtype)


def without_leading_ones(value):
    shape = shape_without_leading_ones(value)
    return value if shape == value._array.shape else value.view(shape)


def shape_without_leading_ones(value):
    shape = value._array.shape
    return shape[next((i for i, n in enumerate(shape) if n != 1), len(shape)) :]


def copy_to(target, value):
    """Write `value`, broadcast, to the view `target`."""
    if value._array.shape == target._array.shape:
        target.copy_(value)
    elif value._array.ndim == 0:
        target.fill_(value)
    else:
        without = value.view(shape_without_leading_ones(value))
        target.copy_(without if without._array.shape == target._array.shape else without.expand(target._array.shape))
