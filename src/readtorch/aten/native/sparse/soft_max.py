"""softmax and log_softmax of the elements that a sparse tensor has: those that it lacks count as minus infinity, not as 0.

In PyTorch: `aten/src/ATen/native/sparse/SoftMax.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import native_function
from readtorch.aten.sparse_tensor_impl import flatten, wrap_sparse
from readtorch.c10.dispatch_key import SPARSE_CPU
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .conversions import look_up
from .sparse_tensor import coalesced_array


def pool(array, dim):
    """`total(function, values)` of `np.add` or `np.maximum` for the elements that differ in the index `dim` alone, given to each of them."""
    if dim >= array.sparse_dim:
        axis = dim - array.sparse_dim + 1
        return lambda function, values: function.reduce(values, axis, keepdims=True)
    others = [d for d in range(array.sparse_dim) if d != dim]
    flat = flatten(array.indices[others], [array.shape[d] for d in others])
    _, where = np.unique(flat, return_inverse=True)

    def total(function, values):
        start = -np.inf if function is np.maximum else 0
        totals = np.full((where.max(initial=-1) + 1, *values.shape[1:]), start, values.dtype)
        function.at(totals, where, values)
        return totals[where]

    return total


def log_of_softmax(array, dim):
    total = pool(array, dim)
    shifted = array.values - total(np.maximum, array.values)
    return shifted - np.log(total(np.add, np.exp(shifted)))


def check_floating(self, name):
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{SCALAR_TYPE_NAMES[dtype]}'")


def declare(name, forward, backward):
    """`_sparse_softmax` or `_sparse_log_softmax`, with their derivative. forward(logarithms), backward(grad, output, total)."""
    softmax = native_function(f"_sparse_{name}(Tensor self, int dim, bool half_to_float) -> Tensor", module="sparse")
    of_dtype = native_function(
        f"_sparse_{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", module="sparse"
    )
    backward_data = native_function(
        f"_sparse_{name}_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor"
    )

    @of_dtype.compose
    def composite(self, dim, dtype):
        return softmax.call(self if dtype is None else self.to(dtype), dim, False)

    def kernel(self, dim, half_to_float):
        check_floating(self, name)
        array = coalesced_array(self._array)
        return wrap_sparse(array.with_values(forward(log_of_softmax(array, wrap_dim(dim, array.ndim)))))

    def backward_kernel(grad_output, output, dim, self):
        array = output._array
        grad = look_up(coalesced_array(grad_output._array), array.flat_indices())
        return wrap_sparse(array.with_values(backward(grad, array.values, pool(array, wrap_dim(dim, array.ndim)))))

    softmax.kernel(kernel, SPARSE_CPU)
    backward_data.kernel(backward_kernel, SPARSE_CPU)
    return softmax, backward_data


_sparse_softmax, _softmax_backward = declare(
    "softmax", np.exp, lambda grad, output, total: output * (grad - total(np.add, grad * output))
)
_sparse_log_softmax, _log_softmax_backward = declare(
    "log_softmax",
    lambda logarithms: logarithms,
    lambda grad, output, total: grad - np.exp(output) * total(np.add, grad),
)


@_sparse_softmax.backward
class SparseSoftmaxBackward0:
    def self(grad, self, result, dim):
        return _softmax_backward.call(grad, result, dim, self)


@_sparse_log_softmax.backward
class SparseLogSoftmaxBackward0:
    def self(grad, self, result, dim):
        return _log_softmax_backward.call(grad, result, dim, self)
