"""A copy of a tensor in which one view of it is replaced: slice_scatter, select_scatter, diagonal_scatter,
as_strided_scatter.

In PyTorch: `aten/src/ATen/native/TensorShape.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.c10.tensor_impl import detached, storage_impl, strides_of
from readtorch.c10.tensor_impl import storage_offset as storage_offset_of

from .slice import slice_


def clone_preserve_strides(t):
    """A copy that lies in memory as the original does, gaps included; without gaps if elements overlap."""
    if 0 in t._array.strides and t._array.size:
        return t.clone()
    return at.empty_strided(t._array.shape, strides_of(t), dtype=t.dtype, device=t.device).copy_(t)


def scatter_into(view_of):
    """A kernel that copies `self`, and `src` into the view of the copy that `view_of(copy, *arguments)` gives."""

    @any_device
    def kernel(self, src, *arguments):
        with below_autograd():
            result = clone_preserve_strides(self)
            target = view_of(result, *arguments)
            if target._array.shape != src._array.shape:
                raise RuntimeError(
                    "expected src to have a size equal to the slice of self. src size = "
                    f"{list(src._array.shape)}, slice size = {list(target._array.shape)}"
                )
            target.copy_(src)
        return detached(result)

    return kernel


slice_scatter = native_function(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    BOTH,
    out=exact_out(),
)
slice_scatter.kernel(scatter_into(slice_.call))
select_scatter = native_function(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", BOTH, out=exact_out()
)
select_scatter.kernel(scatter_into(lambda t, dim, index: t.select(dim, index)))
diagonal_scatter = native_function(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", BOTH, out=exact_out()
)
diagonal_scatter.kernel(scatter_into(lambda t, *arguments: t.diagonal(*arguments)))
as_strided_scatter = native_function(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
    "storage_offset=None) -> Tensor",
    BOTH,
    out=exact_out(),
)


@as_strided_scatter.kernel
@any_device
def as_strided_scatter_of_storage(self, src, size, stride, storage_offset):
    """The strides are those of the whole storage, so that is what is copied."""
    if self.requires_grad and not self._array.flags.c_contiguous:
        raise RuntimeError("as_strided_scatter is currently only supported for contiguous inputs")
    with below_autograd():
        whole = at.as_strided(self, (storage_impl(self).nbytes // self._array.itemsize,), (1,), 0).clone()
        result = at.as_strided(whole, self._array.shape, strides_of(self), storage_offset_of(self))
        at.as_strided(result, size, stride, storage_offset).copy_(src)
    return detached(result)


@slice_scatter.backward
class SliceScatterBackward0:
    def self(grad, src, dim, start, end, step):
        return slice_scatter.call(grad, at.zeros_like(src), dim, start, end, step)

    def src(grad, dim, start, end, step):
        return slice_.call(grad, dim, start, end, step)

    result = "auto_linear"


@select_scatter.backward
class SelectScatterBackward0:
    def self(grad, src, dim, index):
        return select_scatter.call(grad, at.zeros_like(src), dim, index)

    def src(grad, dim, index):
        return grad.select(dim, index)

    result = "auto_linear"


@diagonal_scatter.backward
class DiagonalScatterBackward0:
    def self(grad, src, offset, dim1, dim2):
        return diagonal_scatter.call(grad, at.zeros_like(src), offset, dim1, dim2)

    def src(grad, offset, dim1, dim2):
        return grad.diagonal(offset, dim1, dim2)

    result = "auto_linear"


@as_strided_scatter.backward
class AsStridedScatterBackward0:
    def self(grad, src, size, stride, storage_offset):
        return as_strided_scatter.call(grad.contiguous(), at.zeros_like(src), size, stride, storage_offset)

    def src(grad, size, stride, storage_offset):
        return at.as_strided(grad.contiguous(), size, stride, storage_offset)

    result = "auto_linear"
