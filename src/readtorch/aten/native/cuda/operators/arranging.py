"""The same elements in other places: flip, roll, repeat, tril and triu, padding, the gradients of views.

In PyTorch: `aten/src/ATen/native/cuda/{TensorTransformations,TriangularOps,Shape}.cu`, and composite
functions.
"""

import numpy as np

from .....c10.memory_format import dense_strides
from .....c10.wrap_dim import wrap_dim, wrap_dims
from ....functions import at
from ...tensor_factories import check_size
from ..compaction import triangle
from ..copy import copy as copy_kernel
from ..rows import contiguous
from .copies import clone_cuda, copy_elements
from .factories import filled
from .pointwise import operator_named
from .registration import cuda_kernel, empty, owned


@cuda_kernel(operator_named("flip"))
def flip_cuda(self, dims):
    """A copy from a view with negative strides, which only kernels see."""
    array = self._array
    axes = tuple(wrap_dims(dims, array.ndim))
    result = empty(array.shape, array.dtype, dense_strides(array))
    copy_kernel(np.flip(array, axes) if array.ndim else array, result._array)
    return result


@cuda_kernel(operator_named("roll"))
def roll_cuda(self, shifts, dims):
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return owned(roll_cuda(self.reshape(-1), shifts, (0,)).view(self._array.shape))
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for shift, dim in zip(shifts, dims):
        size = self._array.shape[wrap_dim(dim, self._array.ndim)]
        if size and shift % size:
            start = size - shift % size
            self = at.cat([self.narrow(dim, start, size - start), self.narrow(dim, 0, start)], dim)
    return at.clone(self)


@cuda_kernel(operator_named("repeat"))
def repeat_cuda(self, repeats):
    """Each dimension of the result is seen as (copies, size): one copy of a broadcast view fills it."""
    added = len(repeats) - self._array.ndim
    if added < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    sizes = (*[1] * added, *self._array.shape)
    check_size([n * size for n, size in zip(repeats, sizes)])
    result = empty([n * size for n, size in zip(repeats, sizes)], self._array.dtype)
    if result._array.size:
        pairs = [n for pair in zip(repeats, sizes) for n in pair]
        source = contiguous(self._array).reshape([n for size in sizes for n in (1, size)])
        copy_kernel(np.broadcast_to(source, pairs), result._array.reshape(pairs))
    return result


def part_of_matrix(name, upper):
    @cuda_kernel(operator_named(name))
    def kernel(self, diagonal):
        if self._array.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        result = empty(self._array.shape, self._array.dtype)
        if result._array.size:
            matrices = (-1, *self._array.shape[-2:])
            triangle(
                contiguous(self._array).reshape(matrices), diagonal, upper, result._array.reshape(matrices)
            )
        return result


part_of_matrix("tril", upper=False)
part_of_matrix("triu", upper=True)


# ------------------------------------------------------------------------------------------- gradients of
# views


def zeros_of(grad, sizes):
    return filled(empty(sizes, grad._array.dtype), 0)


def put_into_zeros(name, view_of):
    """Zeros of the input's sizes, with `grad` where the view was: `view_of(tensor, *the view's
    arguments)`."""

    @cuda_kernel(operator_named(name))
    def kernel(grad_output, input_sizes, *place):
        result = zeros_of(grad_output, input_sizes)
        copy_elements(grad_output, view_of(result, *place))
        return result


put_into_zeros("select_backward", lambda t, dim, index: t.select(dim, index))
put_into_zeros("slice_backward", lambda t, dim, start, end, step: at.slice(t, dim, start, end, step))
put_into_zeros("diagonal_backward", lambda t, offset, dim1, dim2: t.diagonal(offset, dim1, dim2))


@cuda_kernel(operator_named("diag_embed"))
def diag_embed_cuda(self, offset, dim1, dim2):
    """Zeros in two more dimensions, with `self` on their diagonals."""
    rank, n = self._array.ndim + 1, (self._array.shape or (1,))[-1] + abs(offset)
    first, second = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    shape = list(self._array.shape[:-1])
    for d in sorted((first, second)):
        shape.insert(d, n)
    result = zeros_of(self, shape)
    copy_elements(self, result.diagonal(offset, first, second))
    return result


@cuda_kernel(operator_named("constant_pad_nd"))
def constant_pad_cuda(self, pad, value):
    """A filled tensor, with `self` in its middle; negative padding cuts off."""
    shape = list(self._array.shape)
    inner, outer = [slice(None)] * len(shape), [slice(None)] * len(shape)
    for i in range(len(pad) // 2):
        d, before, after = len(shape) - 1 - i, pad[2 * i], pad[2 * i + 1]
        inner[d] = slice(max(0, -before), shape[d] + min(0, after))
        shape[d] += before + after
        outer[d] = slice(max(0, before), shape[d] - max(0, after))
    result = filled(empty(shape, self._array.dtype), value)
    if not shape:  # NumPy would read the element
        return clone_cuda(self, None)
    copy_kernel(self._array[tuple(inner)], result._array[tuple(outer)])
    return result
