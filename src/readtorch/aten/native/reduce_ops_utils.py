"""What all reductions share: which dimensions they run over, the shape that is left, and which they refuse when empty.

In PyTorch: `aten/src/ATen/native/ReduceOpsUtils.h`.
"""

from readtorch.aten.native.tensor_iterator import cast
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim, wrap_dims


def reduced_axes(t, dim):
    """The axes that `dim` names; no dims at all means every one.

    Raises IndexError or RuntimeError for what is not a dim.
    """
    ndim = t._array.ndim
    if dim and len(dim) == 1:
        axis = wrap_dim(dim[0], ndim)
        return (axis,) if ndim else ()
    axes = wrap_dims(dim, ndim) if dim else range(ndim)
    return tuple(axes) if ndim else ()


def axes_along(t, dim):
    """The one axis that the number `dim` names, or all of them for None."""
    return reduced_axes(t, None if dim is None else (dim,))


def reduction_meta(t, axes, keepdim=False, dtype=None):
    """The output of a reduction of `t` over these axes, row by row whatever the order of t's dimensions.

    In PyTorch: `resize_reduction`.
    """
    shape = [1 if d in axes else n for d, n in enumerate(t._array.shape) if keepdim or d not in axes]
    return TensorMeta(tuple(shape), dtype or dtype_of(t))


def with_indices_meta(t, axes, keepdim):
    """The outputs of a reduction that also says where its values were found."""
    values = reduction_meta(t, axes, keepdim)
    return values, TensorMeta(values.shape, scalar_type.int64)


def check_not_empty(name, t, axes, message="{}(): Expected reduction dim {} to have non-zero size."):
    """Raises IndexError if there is nothing to choose from. In PyTorch: `zero_numel_check_dims`."""
    for axis in axes:
        if not t._array.shape[axis]:
            raise IndexError(message.format(name, axis))


def unreduce(grad, sizes, dim, keepdim):
    """`grad` with the reduced dimensions back, of size 1."""
    if keepdim or not sizes:
        return grad
    axes = wrap_dims(dim, len(sizes)) if dim else range(len(sizes))
    for axis in sorted(axes):
        grad = grad.unsqueeze(axis)
    return grad


def sum_type(array, dtype=None):
    """Integers and bools add up in int64."""
    return dtype or (scalar_type.int64 if array.dtype.kind in "iub" else scalar_type.by_numpy[array.dtype])


def without_imaginary(array, numpy_dtype):
    """`array` as another type; complex numbers whose sum is asked for in a real type lose their imaginary parts, quietly."""
    return cast(array.real if array.dtype.kind == "c" and numpy_dtype.kind not in "cb" else array, numpy_dtype)
