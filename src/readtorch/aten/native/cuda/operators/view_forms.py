"""Views in other forms: as copies, as a copy in which a view is replaced; turned, shuffled and put side by
side.

In PyTorch: `aten/src/ATen/native/{TensorShape,TensorTransformations}.cpp`, for all devices.
"""

from .....c10.dispatch_key import CPU
from .....c10.memory_format import contiguous_format
from .....c10.scalar_type import get_default_dtype
from .....c10.tensor_impl import storage_impl, strides_of
from .....c10.tensor_impl import storage_offset as storage_offset_of
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ...tensor_shape.cat import check_chunk_cat
from ...tensor_iterator import result_type
from ...tensor_transformations import check_rot90
from ...composite_view_copy_kernels import COPIED
from .arranging import flip_cuda
from .copies import clone_cuda, copy_elements
from .factories import filled
from .pointwise import operator_named
from .registration import cuda_kernel, empty, owned, still_on_device

# ----------------------------------------------------------------------------------------------------- copies


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


# -------------------------------------------------------------------------------------------- a view replaced


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


# ------------------------------------------------------------------------------------ turned and put together


@cuda_kernel(operator_named("rot90"))
def rot90_cuda(self, k, dims):
    """`k` quarter turns in the plane of two dimensions: a quarter is a flip and a transposition."""
    ndim = self._array.ndim
    check_rot90(ndim, dims)
    first, second = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if k % 4 == 0:
        return clone_cuda(self, None)
    if k % 4 == 2:
        return flip_cuda(self, dims)
    return owned(flip_cuda(self, (second if k % 4 == 1 else first,)).transpose(first, second))


@cuda_kernel(operator_named("block_diag"))
def block_diag_cuda(tensors):
    for i, t in enumerate(tensors):
        if t._array.ndim > 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                               f"{i} has {t._array.ndim} dimensions")
    if not tensors:
        return empty((1, 0), get_default_dtype().numpy)
    blocks = [t.reshape((1, 1, *t._array.shape)[-2:]) for t in tensors]
    rows, columns = (sum(b._array.shape[d] for b in blocks) for d in (0, 1))
    result = filled(empty((rows, columns), result_type(*tensors).numpy), 0)
    row = column = 0
    for b in blocks:
        height, width = b._array.shape
        copy_elements(b, result.narrow(0, row, height).narrow(1, column, width))
        row, column = row + height, column + width
    return result


@cuda_kernel(operator_named("_chunk_cat"))
def chunk_cat_cuda(tensors, dim, num_chunks):
    """Each tensor is cut into so many chunks along `dim`, padded with zeros; chunk i of all of them form row
    i."""
    dim = check_chunk_cat(tensors, dim, num_chunks)
    rows = []
    for t in tensors:
        shape = t._array.shape
        padding = [0, 0] * (len(shape) - dim - 1) + [0, -shape[dim] % num_chunks]
        rows.append(at.constant_pad_nd(t, padding).reshape((*shape[:dim], num_chunks, -1)))
    return at.cat(rows, -1)
