"""Maximum and minimum: over everything, along a dimension, with indices (max, min, argmax) or without (amax, amin).

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp`, `aten/src/ATen/native/ReduceAllOps.cpp`,
`aten/src/ATen/native/TensorCompare.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.tensor_iterator import F4, not_implemented, wrap_reduced
from readtorch.aten.native_function import BOTH, native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.c10.scalar_type import BOOL
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, type_name, wrap, wrap_result
from readtorch.c10.wrap_dim import wrap_dim

from .sum import reduced_axes, unreduce


def check_not_complex(name, self):
    if self._array.dtype.kind == "c":
        raise not_implemented(name)(dtype_of(self))


def check_reducible(name, array, dim):
    if array.ndim and array.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def check_not_empty(name, array):
    if array.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )


def evenly_distribute(grad, input, value):
    """All elements equal to the extreme share its gradient."""
    mask = input.isnan() if bool(value.isnan()) else input == value
    return mask * (grad / mask.sum())


def select_backward(grad, dim, indices, sizes, keepdim):
    """Gradient of selecting elements along `dim`: zeros, with grad at `indices`."""
    if not keepdim and sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return at.zeros(sizes, dtype=grad.dtype, device=grad.device).scatter(dim, indices, grad)


# ------------------------------------------------------------------------------------------ along a dimension


def dim_extreme(name, find):
    """Declare max(self, dim) or min(self, dim): values and the indices where they first occur; nan wins."""
    operator = native_function(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", BOTH, out=True
    )
    result = getattr(return_types, name)
    exact_out(operator)

    @operator.kernel
    def extreme(self, dim, keepdim):
        x = self._array
        dim = wrap_dim(dim, x.ndim)
        check_reducible(name, x, dim)
        check_not_complex(f"{name}_cpu", self)
        if x.ndim == 0:
            return result(wrap(x.copy()), wrap(np.zeros((), np.int64)))
        indices = find(comparable(x), dim, keepdims=True)
        values = np.take_along_axis(x, indices, dim)
        if not keepdim:
            indices, values = indices.squeeze(dim), values.squeeze(dim)
        return result(wrap(values), wrap(indices))

    return operator


def comparable(array):
    """bfloat16 as float32: NumPy's searches do not know it."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


# ---------------------------------------------------------------------------------------------- of everything


def total_extreme(name, ufunc):
    """Declare max(self) or min(self); nan wins."""
    operator = native_function(f"{name}(Tensor self) -> Tensor", BOTH, out=True)
    reduce = ufunc.reduce

    @operator.kernel
    def extreme(self):
        x = self._array
        if x.dtype is not F4 or not x.size:
            check_not_empty(name, x)
            check_not_complex(f"{name}_all", self)
        return wrap_result(reduce(x, None))

    return operator


def of_two(name, operator):
    """max(self, other) is maximum(self, other)."""
    native_function(f"{name}.other(Tensor self, Tensor other) -> Tensor", BOTH, out=True).compose(
        lambda self, other: getattr(at, operator)(self, other)
    )


# In this order the argument parser tries them: a 0-dimensional tensor of integers may also stand for `dim`.
max_all = total_extreme("max", np.maximum)
of_two("max", "maximum")
max_dim = dim_extreme("max", np.argmax)
min_all = total_extreme("min", np.minimum)
of_two("min", "minimum")
min_dim = dim_extreme("min", np.argmin)


def extreme_binding(name, of_all, of_dim):
    """The Python binding of max and min: the plain ways to call them go straight to their operators."""

    def binding(input, *args, **kwargs):
        if not kwargs and isinstance(input, TensorImpl):
            if not args:
                return of_all.call(input)
            if len(args) == 1 and type(args[0]) is int:
                return of_dim.call(input, args[0], False)
        return parse((input, *args), kwargs)

    binding.__name__ = binding.__qualname__ = name
    parse = make_parser(packets["torch", name], is_method=False)
    return python_binding(name, BOTH)(binding)


extreme_binding("max", max_all, max_dim)
extreme_binding("min", min_all, min_dim)


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


# ------------------------------------------------------------------------------------------------- amax, amin


def match_input(out, result, *_):
    return (
        f"Expected the dtype for input and out to match, but got {type_name(result)} for input's dtype and "
        f"{type_name(out)} for out's dtype."
    )


def dims_extreme(name, ufunc, refusal):
    """Declare amax or amin: over several dims, and equals share the gradient."""
    operator = native_function(f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", BOTH, out=True)
    exact_out(operator, match_input)

    @operator.kernel
    def extreme(self, dim, keepdim):
        x = self._array
        if not dim:
            check_not_empty(name, x)
        axes = reduced_axes(self, dim)
        for axis in axes:
            check_reducible(name, x, axis)
        check_not_complex(refusal, self)
        return wrap_reduced(ufunc.reduce(x, axes, None, None, keepdim))

    return operator


amax = dims_extreme("amax", np.maximum, "max_values_cpu")
amin = dims_extreme("amin", np.minimum, "min_values_cpu")


def share_by_count(grad, self, result, dim, keepdim):
    sizes = self._array.shape
    mask = unreduce(result, sizes, dim, keepdim) == self
    return unreduce(grad, sizes, dim, keepdim) * mask / mask.sum(dim, True)


@amax.backward
class AmaxBackward0:
    def self(grad, self, result, dim, keepdim):
        return share_by_count(grad, self, result, dim, keepdim)


@amin.backward
class AminBackward0:
    def self(grad, self, result, dim, keepdim):
        return share_by_count(grad, self, result, dim, keepdim)


aminmax = native_function(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", BOTH, out=True
)
exact_out(aminmax)


@aminmax.kernel
def aminmax_cpu(self, dim, keepdim):
    x = self._array
    if dim is None and x.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    axes = reduced_axes(self, None if dim is None else (dim,))
    if dim is not None and axes and x.shape[axes[0]] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {axes[0]} to have non-zero size.")
    check_not_complex("aminmax", self)
    return return_types.aminmax(
        *[wrap_reduced(ufunc.reduce(x, axes, None, None, keepdim)) for ufunc in (np.minimum, np.maximum)]
    )


@aminmax.backward
class AminmaxBackward0:
    def self(grads, self, dim, keepdim, min, max):
        dims = () if dim is None else (dim,)
        parts = [
            share_by_count(g, self, extreme, dims, keepdim) for g, extreme in zip(grads, (min, max)) if g is not None
        ]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


# --------------------------------------------------------------------------------------------- argmax, argmin


def index_of(name, find):
    """Declare argmax or argmin: the index of the first extreme, in the flattened tensor if no dim is given."""
    operator = native_function(f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", BOTH, out=True)
    exact_out(operator)

    @operator.kernel
    def place(self, dim, keepdim):
        x = self._array
        if dim is None:
            if x.size == 0:
                raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        else:
            dim = wrap_dim(dim, x.ndim)
            check_reducible(name, x, dim)
        dtype = dtype_of(self)
        if dtype.is_complex or dtype.category == BOOL:
            kind = "complex" if dtype.is_complex else "bool"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        return wrap_result(find(comparable(x), dim if x.ndim else None, keepdims=keepdim))

    @python_binding(name, BOTH)
    def binding(input, *args, **kwargs):
        if not kwargs and isinstance(input, TensorImpl) and (not args or len(args) == 1 and type(args[0]) is int):
            return operator.call(input, args[0] if args else None, False)
        return parse((input, *args), kwargs)

    binding.__name__ = binding.__qualname__ = name
    parse = make_parser(packets["torch", name], is_method=False)


index_of("argmax", np.argmax)
index_of("argmin", np.argmin)
