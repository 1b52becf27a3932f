"""max and min in all their forms: over everything, along a dimension, of two tensors, with or without indices.

In PyTorch: `aten/src/ATen/native/{ReduceAllOps,TensorCompare,ReduceOps}.cpp`.
"""
import numpy as np

from ...c10.tensor_impl import dtype_of, wrap, wrap_result
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function
from . import return_types
from .tensor_iterator import not_implemented

BOTH = "function, method"


def check_not_complex(name, self):
    if self._array.dtype.kind == "c":
        raise not_implemented(name)(dtype_of(self))


def evenly_distribute(grad, input, value):
    """All elements that equal the extreme share its gradient."""
    mask = input.isnan() if bool(value.isnan()) else input == value
    return mask * (grad / mask.sum())


def select_backward(grad, dim, indices, sizes, keepdim):
    """Gradient of picking elements along `dim`: zeros with grad at the places that were picked."""
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return at.zeros(sizes, dtype=grad.dtype).scatter(dim, indices, grad)


# ---------------------------------------------------------------------------------------------- of everything

def total_extreme(name, ufunc):
    """Declare max(self) or min(self); nan wins."""
    operator = native_function(f"{name}(Tensor self) -> Tensor", BOTH, out=True)

    @operator.kernel
    def extreme(self):
        check_not_complex(f"{name}_all", self)
        if self._array.size == 0:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                               "with the 'dim' argument.")
        return wrap_result(ufunc.reduce(self._array, None))
    return operator


# ------------------------------------------------------------------------------------------- along a dimension

def dim_extreme(name, find):
    """Declare max(self, dim) or min(self, dim): values and the indices where they first occur."""
    operator = native_function(f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", BOTH,
                               out=True)
    result = getattr(return_types, name)

    @operator.kernel
    def extreme(self, dim, keepdim):
        x = self._array
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input") if False else not_implemented(f"{name}_cpu")(dtype_of(self))
        dim = wrap_dim(dim, x.ndim)
        if x.ndim == 0:
            return result(wrap(x.copy()), wrap(np.zeros((), np.int64)))
        check_reducible(name, x, dim)
        indices = find(x, dim, keepdims=True)
        values = np.take_along_axis(x, indices, dim)
        if not keepdim:
            indices, values = indices.squeeze(dim), values.squeeze(dim)
        return result(wrap(values), wrap(indices))
    return operator


def check_reducible(name, array, dim):
    if array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


max_dim = dim_extreme("max", np.argmax)
max_all = total_extreme("max", np.maximum)
min_dim = dim_extreme("min", np.argmin)
min_all = total_extreme("min", np.minimum)


@max_dim.backward
class MaxBackward0:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes, keepdim):
        return select_backward(grad, dim, indices, self_sym_sizes, keepdim)


@max_all.backward
class MaxBackward1:
    def self(grad, self, result):
        return evenly_distribute(grad, self, result)


@min_dim.backward
class MinBackward0:
    output_differentiability = [True, False]

    def self(grad, dim, indices, self_sym_sizes, keepdim):
        return select_backward(grad, dim, indices, self_sym_sizes, keepdim)


@min_all.backward
class MinBackward1:
    def self(grad, self, result):
        return evenly_distribute(grad, self, result)
