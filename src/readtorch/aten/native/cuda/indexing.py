"""index_select, index_add, index_copy, index_fill and index_reduce: slices named by a vector of indices.

In PyTorch: `aten/src/ATen/native/cuda/Indexing.cu`.
"""

from readtorch.aten.native.tensor_advanced_indexing.index import INT, check_index_reduce, check_index_vector
from readtorch.aten.native.tensor_iterator import refuse_overlap
from readtorch.c10.overflows import number_as
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .copy import clone_cuda
from .fill_kernel import filled
from .loops import broadcast
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .scatter_gather_kernel import gather, reduce_into, scatter, scatter_add
from .tensor_compare import operand


def index_along(index, dim, shape):
    """A vector of indices as an index of `shape` along `dim`."""
    row = index._array.reshape([1] * dim + [-1] + [1] * (len(shape) - dim - 1)) if shape else index._array.reshape(())
    return broadcast(row, shape)


@cuda_kernel(operator_named("index_select"))
def index_select_cuda(self, dim, index):
    dim = wrap_dim(dim, self._array.ndim)
    shape = list(self._array.shape)
    if shape:
        shape[dim] = index._array.size
    out = empty(shape, self._array.dtype)
    gather(self._array, dim, index_along(index, dim, tuple(shape)), out._array)
    return out


def along_vector(name, run):
    operator = operator_named(name)

    def write(self, dim, index, source, *alpha):
        dim = check_index_vector(self, dim, index, source, name)
        source = source if alpha in ((), (1,)) else source * alpha[0]
        shape = source._array.shape if self._array.ndim else ()
        run(self._array, dim, index_along(index, dim, shape), broadcast(source._array, shape))
        return self

    def kernel_(self, dim, index, source, *alpha):
        write(self, dim, index, source, *alpha)
        self._counter[0] += 1
        return self

    cuda_kernel(operator)(
        lambda self, dim, index, source, *alpha: write(clone_cuda(self, None), dim, index, source, *alpha)
    )
    cuda_kernel(operator.inplace)(kernel_)


along_vector("index_add", scatter_add)
along_vector("index_copy", scatter)


def writes(name, change):
    """An operator that changes elements of a copy, and its in-place form: `change(self, *arguments)`."""
    operator = operator_named(name)

    def kernel(self, *arguments):
        result = clone_cuda(self, None)
        change(result, *arguments)
        return result

    def kernel_(self, *arguments):
        refuse_overlap(self)
        change(self, *arguments)
        self._counter[0] += 1
        return self

    cuda_kernel(operator)(kernel)
    cuda_kernel(operator.inplace)(kernel_)


def fill_slices(self, dim, index, value):
    """value: an array without dimensions."""
    dim = wrap_dim(dim, self._array.ndim)
    if index._array.dtype not in (LONG, INT):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise IndexError("Index has to be a vector/scalar")
    shape = list(self._array.shape)
    if shape:
        shape[dim] = index._array.size
    scatter(self._array, dim, index_along(index, dim, tuple(shape)), broadcast(value, tuple(shape)))


def fill_with_number(self, dim, index, value):
    if isinstance(value, complex) and self._array.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    number = number_as(value, dtype_of(self))[()]
    fill_slices(self, dim, index, filled(empty((), self._array.dtype), number)._array)


def fill_with_tensor(self, dim, index, value):
    if value._array.ndim:
        raise RuntimeError(
            f"Only supports 0-dimension value tensor, but got tensor with {value._array.ndim} dimension(s)."
        )
    fill_slices(self, dim, index, operand(value, self._array.dtype))


writes("index_fill.int_Scalar", fill_with_number)
writes("index_fill.int_Tensor", fill_with_tensor)


def index_reduce(self, dim, index, source, reduce, include_self):
    """scatter_reduce with one index for each slice of the source."""
    dim = check_index_reduce(self, dim, index, source, reduce)
    own, other = (t if t._array.ndim else t.unsqueeze(0) for t in (self, source))
    sizes = [1] * own._array.ndim
    sizes[dim] = -1
    places = converted(index, LONG).reshape(sizes).expand(other._array.shape)
    reduce_into(own, dim, places, other, reduce, include_self)


writes("index_reduce", index_reduce)
