"""Arithmetic on sparse tensors: sums, multiples, totals.

In PyTorch: `aten/src/ATen/native/sparse/SparseTensorMath.cpp`. Explained in the chapter "torch.optim".
"""

import functools

import numpy as np

from readtorch.aten.expand_utils import broadcast_error
from readtorch.aten.native.binary_ops.arithmetic import add, check_alpha, mul, mul_scalar, sub
from readtorch.aten.native.binary_ops.division import div
from readtorch.aten.native.fill import zero_
from readtorch.aten.native.linear_algebra.norm import check_norm_type, p_norm, p_norm_of_all
from readtorch.aten.native.reduce_ops.sum import sum_all
from readtorch.aten.native.tensor_iterator import cast, cast_error, compute, float_result_type, result_type
from readtorch.aten.native.unary_ops.complex import _conj_physical
from readtorch.aten.native.unary_ops.elementary import neg
from readtorch.aten.python_arg_parser import number_as_tensor
from readtorch.aten.sparse_tensor_impl import SparseArray, is_sparse, wrap_sparse
from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, wrap
from readtorch.c10.wrap_dim import wrap_dim

from .conversions import look_up
from .sparse_tensor import coalesced_array, empty_sparse, replace

# ------------------------------------------------------------------------------------------------------- sums


def add_sparse(self, other, alpha):
    """`self + alpha * other`: sparse + sparse is sparse, dense + sparse is dense."""
    if not is_sparse(other):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    common = result_type(self, other)
    check_alpha(common, alpha)
    if is_sparse(self):
        return wrap_sparse(sum_of_sparse(self._array, other._array, alpha, common.numpy))
    check_dense_sparse_sizes(self, other)
    result = wrap(self._array.astype(common.numpy))
    add_to_dense(result._array, other._array, alpha)
    return result


def add_sparse_(self, other, alpha):
    if is_sparse(other) and not is_sparse(self):
        check_dense_sparse_sizes(self, other)
        check_result_type(self, other)
        check_alpha(dtype_of(self), alpha)
        add_to_dense(self._array, other._array, alpha)
        return self
    result = add_sparse(self, other, alpha)
    check_result_type(self, other)
    replace(self, result._array.with_values(cast(result._array.values, self._array.dtype)))
    return self


def check_dense_sparse_sizes(dense, sparse):
    if dense.shape != sparse.shape:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size, but self has size "
            f"{list(dense.shape)} while other has size {list(sparse.shape)} (FYI: "
            "dense-sparse addition does not currently support broadcasting)"
        )


def check_result_type(self, other):
    common, own = result_type(self, other), dtype_of(self)
    if not scalar_type.can_cast(common, own):
        raise RuntimeError(
            f"Can't convert result type {SCALAR_TYPE_NAMES[common]} to output {SCALAR_TYPE_NAMES[own]} in add operation"
        )


def add_to_dense(dense, array, alpha):
    """dense += alpha * array, touching only the elements that `array` has."""
    # NumPy would write an index that occurs twice only once.
    array = coalesced_array(array.with_values(cast(array.values, dense.dtype)))
    dense[tuple(array.indices)] += scaled(array.values, alpha)


def scaled(values, alpha):
    return values if alpha == 1 else values * np.asarray(alpha).astype(values.dtype)


def sum_of_sparse(left, right, alpha, numpy_dtype):
    """left + alpha * right. It may list an index several times: to list what both have would do."""
    if left.shape != right.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(left.shape)} != {list(right.shape)}"
        )
    if left.values.flags.c_contiguous and right.values.flags.c_contiguous:
        return merged(left, right, alpha, numpy_dtype)
    values = np.concatenate([cast(left.values, numpy_dtype), scaled(cast(right.values, numpy_dtype), alpha)])
    return SparseArray(np.concatenate([left.indices, right.indices], axis=1), values, left.shape)


def merged(left, right, alpha, numpy_dtype):
    """The sum by merging both lists of indices in one pass.

    Where equal indices meet, it is shorter; and if both are coalesced, so is the sum.
    """
    from_left, from_right, nnz = places_in_sum(left.flat_indices(), right.flat_indices())
    indices = np.empty((left.sparse_dim, nnz), np.int64)
    indices[:, from_left], indices[:, from_right] = left.indices, right.indices
    values = np.zeros((nnz, *left.values.shape[1:]), numpy_dtype)
    values[from_left] = left.values
    values[from_right] += scaled(cast(right.values, numpy_dtype), alpha)
    return SparseArray(indices, values, left.shape, left.is_coalesced and right.is_coalesced)


# From this many indices on the merge is compiled.
MANY = 256


def places_in_sum(left, right):
    """Where the elements of two lists of flat indices go in the list of their sum, and how long that is."""
    walk = compiled_walk() if left.size + right.size > MANY else merge_walk
    from_left, from_right = np.empty(left.size, np.int64), np.empty(right.size, np.int64)
    return from_left, from_right, walk(left, right, from_left, from_right)


def merge_walk(left, right, from_left, from_right):
    """Always takes the smaller of the two next indices; both, if they are equal."""
    i = j = place = 0
    while i < left.size or j < right.size:
        takes_left = j == right.size or i < left.size and left[i] <= right[j]
        takes_right = i == left.size or j < right.size and right[j] <= left[i]
        if takes_left:
            from_left[i] = place
            i += 1
        if takes_right:
            from_right[j] = place
            j += 1
        place += 1
    return place


@functools.cache
def compiled_walk():
    from readtorch.aten.cpu.compile import kernel

    return kernel(merge_walk)


def sub_sparse(self, other, alpha):
    return add_sparse(self, other, -alpha)


def sub_sparse_(self, other, alpha):
    return add_sparse_(self, other, -alpha)


add.kernel(add_sparse, SPARSE_CPU)
add.inplace.kernel(add_sparse_, SPARSE_CPU)
sub.kernel(sub_sparse, SPARSE_CPU)
sub.inplace.kernel(sub_sparse_, SPARSE_CPU)

# ---------------------------------------------------------------------------------------- products, quotients


def mul_sparse(self, other):
    """The product. A number changes the values; a sparse tensor takes elements away."""
    if not is_sparse(self):
        self, other = other, self
    common = result_type(self, other)
    array = self._array
    if not other._array.ndim:
        factors = other._array
    elif is_sparse(other):
        array, factors = intersection(coalesced_array(array), coalesced_array(other._array))
    else:
        factors = at_indices(other._array, array)
    return wrap_sparse(array.with_values(compute(np.multiply, (array.values, factors), common)))


def at_indices(dense, array):
    """The elements of a dense array, which may have fewer dimensions, where the sparse one has some."""
    try:
        return np.broadcast_to(dense, array.shape)[tuple(array.indices)]
    except ValueError:
        raise broadcast_error(array.shape, dense.shape) from None


def intersection(left, right):
    """Of two coalesced arrays: `left` where `right` has elements, too, and the values of `right` there."""
    if left.shape != right.shape:
        raise RuntimeError(
            f"mul(sparse, sparse): expected sizes to match, but {list(left.shape)} != {list(right.shape)}"
        )
    flat = left.flat_indices()
    in_both = np.isin(flat, right.flat_indices())
    common = SparseArray(left.indices[:, in_both], left.values[in_both], left.shape, True)
    return common, look_up(right, flat[in_both])


def mul_sparse_(self, other):
    product = mul_sparse(self, other)
    if not is_sparse(self):
        return self.copy_(product.to_dense())
    check_can_hold(self, product)
    array = product._array
    # As in PyTorch: the values are new, and the tensor no longer knows that its indices are coalesced.
    replace(self, SparseArray(array.indices, cast(array.values, self._array.dtype), array.shape))
    return self


def div_sparse(self, other):
    """Values divided by a number: 0 / other is 0, unless `other` is 0."""
    if other._array.ndim:
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
            f"{list(other.shape)} for divisor)"
        )
    array = self._array
    return wrap_sparse(
        array.with_values(compute(np.true_divide, (array.values, other._array), float_result_type(self, other)))
    )


def div_sparse_(self, other):
    return put_values(self, div_sparse(self, other))


def check_can_hold(self, result):
    if not scalar_type.can_cast(dtype_of(result), dtype_of(self)):
        raise cast_error(dtype_of(result), dtype_of(self))


def put_values(self, result):
    """Finish an in-place call: the values change where they are, so that tensors which share them change too."""
    check_can_hold(self, result)
    self._array.values[...] = result._array.values
    return self


def mul_by_number_sparse(self, other):
    return mul_sparse(self, number_as_tensor(other))


def conj_sparse(self):
    return wrap_sparse(self._array.with_values(self._array.values.conj()))


mul.kernel(mul_sparse, SPARSE_CPU)
mul_scalar.kernel(mul_by_number_sparse, SPARSE_CPU)
_conj_physical.kernel(conj_sparse, SPARSE_CPU)
mul.inplace.kernel(mul_sparse_, SPARSE_CPU)
div.kernel(div_sparse, SPARSE_CPU)
div.inplace.kernel(div_sparse_, SPARSE_CPU)

# -------------------------------------------------------------------------------------- neg, zero_, sum, norm


def neg_sparse(self):
    return wrap_sparse(self._array.with_values(-self._array.values))


def neg_sparse_(self):
    return put_values(self, neg_sparse(self))


def zero_sparse_(self):
    """No elements are left."""
    array = self._array
    replace(self, empty_sparse(array.shape, array.dtype, array.dense_dim)._array)
    return self


def sum_sparse(self, dtype):
    return sum_all.call(wrap(self._array.values), dtype)


def norm_sparse(self, p, dim, keepdim):
    """The norm of the values, each index having one. Of the whole tensor only."""
    ndim = self._array.ndim
    if dim and (len(dim) != ndim or len({wrap_dim(d, ndim) for d in dim}) != ndim):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    check_norm_type(self)
    return p_norm.call(wrap(coalesced_array(self._array).values), p, [], False)


neg.kernel(neg_sparse, SPARSE_CPU)
neg.inplace.kernel(neg_sparse_, SPARSE_CPU)
zero_.kernel(zero_sparse_, SPARSE_CPU)
sum_all.kernel(sum_sparse, SPARSE_CPU)
p_norm.kernel(norm_sparse, SPARSE_CPU)
p_norm_of_all.kernel(lambda self, p: norm_sparse(self, p, [], False), SPARSE_CPU)
