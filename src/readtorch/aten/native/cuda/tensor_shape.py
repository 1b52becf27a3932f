"""Copying forms of views, scatters into views, and the gradients of views: a tensor of zeros (or a copy), part of
which is written through the view itself.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.composite_view_copy_kernels import COPIED
from readtorch.c10.dispatch_key import CPU
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.tensor_impl import storage_impl, strides_of
from readtorch.c10.tensor_impl import storage_offset as storage_offset_of
from readtorch.c10.wrap_dim import wrap_dim

from .copy import clone_cuda, copy_elements
from .fill_kernel import filled
from .register_dispatch_key import cuda_kernel, empty, operator_named, owned, still_on_device


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


@cuda_kernel(operator_named("unfold_backward"))
def unfold_backward_cuda(grad_in, input_sizes, dim, size, step):
    """Windows may overlap: their elements are added one place of the window after the other."""
    result = filled(empty(input_sizes, grad_in._array.dtype), 0)
    dim = wrap_dim(dim, len(input_sizes))
    count = grad_in._array.shape[dim]
    for k in range(size):
        seen = at.slice(result, dim, k, k + (count - 1) * step + 1, step)
        seen.add_(grad_in.select(-1, k))
    return result


def copying_form(name):
    """`<name>_copy`: the view, which only looks at sizes and strides, then a copy of its elements."""
    compute = operator_named(name).kernels[CPU]
    base, dot, overload = name.partition(".")

    @cuda_kernel(operator_named(f"{base}_copy{dot}{overload}"))
    def kernel(self, *arguments):
        views = still_on_device(compute(self, *arguments))
        return tuple(map(copied, views)) if isinstance(views, (tuple, list)) else copied(views)


def copied(view):
    return clone_cuda(view, contiguous_format)


for _name in COPIED:
    if _name not in ("view_as_real", "view_as_complex"):
        copying_form(_name)


@cuda_kernel(operator_named("diagonal_copy"))
def diagonal_copy_cuda(self, offset, dim1, dim2):
    return copied(self.diagonal(offset, dim1, dim2))


@cuda_kernel(operator_named("narrow_copy"))
def narrow_copy_cuda(self, dim, start, length):
    return copied(self.narrow(dim, start, length))


def with_same_strides(self):
    """A copy that lies in memory as the original does, gaps included; without gaps if elements overlap."""
    array = self._array
    if 0 in array.strides and array.size:
        return clone_cuda(self, None)
    result = empty(array.shape, array.dtype, strides_of(self))
    copy_elements(self, result)
    return result


def scatter_into(name, view_of):
    @cuda_kernel(operator_named(name))
    def kernel(self, src, *arguments):
        result = with_same_strides(self)
        target = view_of(result, *arguments)
        if target._array.shape != src._array.shape:
            raise RuntimeError(
                "expected src to have a size equal to the slice of self. src size = "
                f"{list(src._array.shape)}, slice size = {list(target._array.shape)}"
            )
        copy_elements(src, target)
        return result


scatter_into("slice_scatter", lambda t, *place: at.slice(t, *place))
scatter_into("select_scatter", lambda t, dim, index: t.select(dim, index))
scatter_into("diagonal_scatter", lambda t, *place: t.diagonal(*place))


@cuda_kernel(operator_named("as_strided_scatter"))
def as_strided_scatter_cuda(self, src, size, stride, storage_offset):
    """The strides are those of the whole storage, so that is what is copied."""
    count = storage_impl(self).nbytes // self._array.itemsize
    whole = clone_cuda(at.as_strided(self, (count,), (1,), 0), None)
    result = at.as_strided(whole, self._array.shape, strides_of(self), storage_offset_of(self))
    target = at.as_strided(result, size, stride, storage_offset)
    copy_elements(src, target)
    return owned(result)
