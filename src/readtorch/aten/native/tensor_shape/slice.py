"""One index and one slice: select, slice, and their gradients, which are zero everywhere else.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`. Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.tensor_impl import dtype_of, storage_impl, storage_offset, strided, strides_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

select = native_function("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", BOTH, direct=True)


@select.view_kernel
def select_cpu(self, dim, index):
    array = self._array
    if not array.size:
        array = strided(self)
    try:
        if dim == 0:
            return array[index, ...]
        dim = wrap_dim(dim, array.ndim)
        return array[(slice(None),) * dim + (index, ...)]
    except IndexError:
        raise select_error(array.shape, dim, index) from None


def select_error(shape, dim, index):
    if not shape:
        return IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    return IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")


@select.backward
class SelectBackward0:
    def self(grad, self_sym_sizes, dim, index):
        return at.select_backward(grad, self_sym_sizes, dim, index)

    result = "auto_linear"


slice_ = native_function(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", ""
)


@slice_.view_kernel
def slice_cpu(self, dim, start, end, step):
    array = self._array
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if array.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if dim == 0:
        seen = array[start:end:step]
    else:
        dim = wrap_dim(dim, array.ndim)
        seen = array[(slice(None),) * dim + (slice(start, end, step),)]
    if not seen.size:
        seen = empty_slice(self, dim, slice(start, end, step))
    return seen


def empty_slice(self, dim, part):
    """A slice without elements, which still begins where it would begin if it had some."""
    start, stop, step = part.indices(self._array.shape[dim])
    sizes, strides = list(self._array.shape), list(strides_of(self))
    offset = storage_offset(self) + start * strides[dim]
    sizes[dim] = len(range(start, stop, step))
    strides[dim] *= step
    return storage_impl(self).as_strided(self._array.dtype, sizes, strides, offset)


@slice_.backward
class SliceBackward0:
    def self(grad, self_sym_sizes, dim, start, end, step):
        return at.slice_backward(grad, self_sym_sizes, dim, start, end, step)

    result = "auto_linear"


def of_input_sizes(grad, input_sizes, *place):
    """The shape rule of a view's gradient: the sizes of what the view was taken from."""
    return TensorMeta(tuple(input_sizes), dtype_of(grad))


def _scatter_into_zeros(name, text, kernel_index):
    """select_backward and slice_backward: zeros of the input's sizes with `grad` where the slice was."""
    operator = native_function(text, "function")
    operator.meta(of_input_sizes)

    @operator.kernel
    def embed(grad_output, input_sizes, *place):
        result = np.zeros(input_sizes, grad_output._array.dtype)
        result[kernel_index(*place, len(input_sizes))] = grad_output._array
        return wrap(result)

    return operator


select_backward = _scatter_into_zeros(
    "select_backward",
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    lambda dim, index, ndim: (slice(None),) * wrap_dim(dim, ndim) + (index,),
)
slice_backward = _scatter_into_zeros(
    "slice_backward",
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt? start, SymInt? end, SymInt "
    "step) -> Tensor",
    lambda dim, start, end, step, ndim: (slice(None),) * wrap_dim(dim, ndim) + (slice(start, end, step),),
)


@select_backward.backward
class SelectBackwardBackward0:
    def grad_output(grad, dim, index):
        return grad.select(dim, index)

    result = "auto_linear"


@slice_backward.backward
class SliceBackwardBackward0:
    def grad_output(grad, dim, start, end, step):
        return slice_.call(grad, dim, start, end, step)

    result = "auto_linear"
