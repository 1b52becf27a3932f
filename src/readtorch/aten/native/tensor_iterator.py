"""What all pointwise operators share: type promotion, broadcasting errors, computing wide and storing narrow.

In PyTorch: `aten/src/ATen/TensorIterator.cpp`, `aten/src/ATen/native/TypeProperties.cpp`.
Explained in the chapter "One operator call".
"""
import numpy as np

from ...c10 import scalar_type
from ...c10.dispatch_key import WRAPPED_NUMBER
from ...c10.scalar_type import COMPLEX, FLOAT, op_math_type, promote_types
from ...c10.tensor_impl import dtype_of, wrap_result


def result_type(*tensors):
    """The dtype in which an operation on these tensors gives its result.

    Three ranks: tensors with dimensions, then 0-dimensional ones, then Python numbers. A lower rank counts only if it is
    of a higher category: `ones(2) * 2.5` stays float32, `arange(2) * 2.5` becomes the default float.
    """
    with_dims = zero_dim = number = None
    for t in tensors:
        current = dtype_of(t)
        if t._array.ndim:
            with_dims = _promote(with_dims, current)
        elif t._keys & WRAPPED_NUMBER:
            number = _promote(number, _default_of(current))
        else:
            zero_dim = _promote(zero_dim, current)
    return _combine(with_dims, _combine(zero_dim, number))


def _promote(a, b):
    return b if a is None else a if b is None else promote_types(a, b)


def _default_of(number_type):
    """The dtype that a Python number stands for: float means the default dtype."""
    if number_type.category == FLOAT:
        return scalar_type.get_default_dtype()
    return scalar_type.get_default_complex_dtype() if number_type.category == COMPLEX else number_type


def _combine(higher, lower):
    if higher is None or lower is None or lower.category <= higher.category:
        return higher or lower
    return higher.to_complex() if lower.is_complex and higher.is_floating_point else promote_types(higher, lower)


def compute(function, arrays, common, result=None):
    """`function` on arrays cast to `common` (widened if it is a 16-bit float), stored as `result` or `common`."""
    wide = op_math_type(common).numpy
    value = function(*[np.asarray(a, wide) for a in arrays])
    target = (result or common).numpy
    return value if value.dtype == target else value.astype(target)


def broadcast_error(*shapes):
    """The RuntimeError for shapes that do not broadcast, or None if they do."""
    result = []
    for shape in shapes:
        width = max(len(result), len(shape))
        a, b = [1] * (width - len(result)) + result, [1] * (width - len(shape)) + list(shape)
        for dim in reversed(range(width)):
            if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
                return RuntimeError(f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at "
                                    f"non-singleton dimension {dim}")
        result = [y if x == 1 else x for x, y in zip(a, b)]
    return None


def inplace_shape_error(shape, *others):
    """The RuntimeError for an in-place write to `shape` whose operands broadcast to something else."""
    error = broadcast_error(shape, *others)
    if error is not None:
        return error
    target = np.broadcast_shapes(shape, *others)
    return RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(target)}")


def cast_error(have, want):
    names = scalar_type.SCALAR_TYPE_NAMES
    return RuntimeError(f"result type {names[have]} can't be cast to the desired output type {names[want]}")


# ------------------------------------------------------------------------------------------- kernel factories

def binary_kernel(ufunc):
    """A CPU kernel for two tensors from a NumPy ufunc."""
    def kernel(self, other):
        x, y = self._array, other._array
        try:
            if x.dtype is y.dtype:
                return wrap_result(ufunc(x, y))
            return wrap_result(compute(ufunc, (x, y), result_type(self, other)))
        except ValueError:
            raise broadcast_error(x.shape, y.shape) or RuntimeError(f"{ufunc.__name__}: shapes {x.shape}, {y.shape}") from None
    return kernel


def binary_inplace_kernel(ufunc):
    """A CPU kernel that writes `ufunc(self, other)` to `self`."""
    def kernel(self, other):
        x, y = self._array, other._array
        try:
            if x.dtype is y.dtype:
                ufunc(x, y, x)
            else:
                common, own = result_type(self, other), dtype_of(self)
                if common is not own and not scalar_type.can_cast(common, own):
                    raise cast_error(common, own)
                np.copyto(x, _fitting(compute(ufunc, (x, y), common), x), casting="unsafe")
        except ValueError:
            raise inplace_shape_error(x.shape, y.shape) from None
        self._counter[0] += 1
        return self
    return kernel


def _fitting(value, target):
    if value.shape != target.shape:
        raise ValueError("shape")
    return value


def unary_kernel(function):
    """A CPU kernel for one tensor; the result has the operand's dtype."""
    def kernel(self):
        x = self._array
        wide = _WIDENED.get(x.dtype)
        return wrap_result(function(x) if wide is None else function(x.astype(wide)).astype(x.dtype))
    return kernel


def unary_float_kernel(function):
    """Like `unary_kernel`, but integers give the default float dtype (exp, sqrt, sin …)."""
    def kernel(self):
        x = self._array
        kind = dtype_of(self)
        if kind.category < FLOAT:
            return wrap_result(function(x.astype(scalar_type.get_default_dtype().numpy)))
        wide = _WIDENED.get(x.dtype)
        return wrap_result(function(x) if wide is None else function(x.astype(wide)).astype(x.dtype))
    return kernel


_WIDENED = {t.numpy: np.dtype(np.float32) for t in scalar_type.REDUCED_FLOATING}
