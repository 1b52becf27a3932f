"""index_select, index_add, index_copy, index_fill and index_reduce: slices named by a vector of indices; masked_fill.

In PyTorch: `aten/src/ATen/native/cuda/Indexing.cu`.
"""

from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_advanced_indexing import masked
from readtorch.aten.native.tensor_advanced_indexing.index import BOOL
from readtorch.aten.native.tensor_iterator import refuse_overlap
from readtorch.c10.overflows import number_as
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .fill_kernel import filled
from .index_kernel import stride_of_index
from .loops import broadcast, pointwise
from .reduce_ops import LONG, converted
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, operator_named
from .scatter_gather_kernel import gather, reduce_into, scatter, scatter_add, writes
from .tensor_compare import operand


def index_along(index, dim, shape):
    """A vector of indices as an index of `shape` along `dim`."""
    row = index._array.reshape([1] * dim + [-1] + [1] * (len(shape) - dim - 1)) if shape else index._array.reshape(())
    return broadcast(row, shape)


@cuda_impl(operator_named("index_select"))
def index_select_cuda(self, dim, index, out):
    if out._array.size:
        dim = wrap_dim(dim, self._array.ndim)
        gather(self._array, dim, index_along(index, dim, out._array.shape), out._array)


def along_vector(run):
    def write(self, dim, index, source, *alpha):
        dim = wrap_dim(dim, self._array.ndim)
        source = source if alpha in ((), (1,)) else source * alpha[0]
        shape = source._array.shape if self._array.ndim else ()
        run(self._array, dim, index_along(index, dim, shape), broadcast(source._array, shape))

    return write


writes("index_add", along_vector(scatter_add))
writes("index_copy", along_vector(scatter))


def fill_slices(self, dim, index, value):
    """value: an array without dimensions."""
    dim = wrap_dim(dim, self._array.ndim)
    shape, places = list(self._array.shape), empty(index._array.shape, LONG)
    size = shape[dim] if shape else 1
    pointwise(stride_of_index, [index._array], places._array, (LONG.type(size), LONG.type(1)))  # -1 is the last
    if shape:
        shape[dim] = index._array.size
    scatter(self._array, dim, index_along(places, dim, tuple(shape)), broadcast(value, tuple(shape)))


def fill_with_number(self, dim, index, value):
    fill_slices(self, dim, index, filled(empty((), self._array.dtype), value)._array)


def fill_with_tensor(self, dim, index, value):
    fill_slices(self, dim, index, operand(value, self._array.dtype))


writes("index_fill.int_Scalar", fill_with_number)
writes("index_fill.int_Tensor", fill_with_tensor)


def index_reduce(self, dim, index, source, reduce, include_self):
    """scatter_reduce with one index for each slice of the source."""
    dim = wrap_dim(dim, self._array.ndim)
    own, other = (t if t._array.ndim else t.unsqueeze(0) for t in (self, source))
    sizes = [1] * own._array.ndim
    sizes[dim] = -1
    places = converted(index, LONG).reshape(sizes).expand(other._array.shape)
    reduce_into(own, dim, places, other, reduce, include_self)


writes("index_reduce", index_reduce)


@cuda_impl(masked.masked_fill)
def masked_fill_cuda(self, mask, value, out):
    number = number_as(value, dtype_of(self))[()]
    pointwise(f.fill_masked, [self._array, operand(mask, BOOL)], out._array, (number,))


@cuda_kernel(masked.masked_fill.inplace)
def masked_fill_cuda_(self, mask, value):
    refuse_overlap(self)
    masked.masked_fill.inplace.shape_rule(self, mask, value)
    masked_fill_cuda(self, mask, value, self)
    return self


@cuda_impl(masked.masked_fill_tensor)
def masked_fill_tensor_cuda(self, mask, value, out):
    pointwise(f.where, [operand(mask, BOOL), operand(value, self._array.dtype), self._array], out._array)
