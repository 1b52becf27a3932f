"""Maximum and minimum: over everything, along a dimension, with indices (max, min, argmax) or without (amax, amin).

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp`, `aten/src/ATen/native/ReduceAllOps.cpp`,
`aten/src/ATen/native/TensorCompare.cpp`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.gen_python_functions import entry_for
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.functions_manual import evenly_read, evenly_read_along, gathered
from readtorch.aten.native.reduce_ops_utils import (
    axes_along,
    check_not_empty,
    reduced_axes,
    reduction_meta,
    unreduce,
    with_indices_meta,
)
from readtorch.aten.native.tensor_iterator import F4, not_implemented, wrap_reduced
from readtorch.aten.native_function import BOTH, binding_maker, native_function, packets
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.aten.torch_function import Overridden
from readtorch.c10.dispatch_key import CPU, NO_STORAGE
from readtorch.c10.scalar_type import BOOL, int64
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, seen_by_python, type_name, wrap, wrap_result
from readtorch.c10.wrap_dim import wrap_dim


def check_not_complex(name, self):
    if self._array.dtype.kind == "c":
        raise not_implemented(name)(dtype_of(self))


def check_has_elements(name, self):
    if self._array.size == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )


def evenly_distribute(grad, self, result):
    """All elements equal to the extreme share its gradient. Only the CPU looks first whether it is nan."""
    if seen_by_python(self):
        mask = (self == result).logical_or_(at.logical_and(self.isnan(), result.isnan()))
    elif self._keys & CPU and not self._keys & NO_STORAGE:
        mask = self.isnan() if bool(result.isnan()) else self == result
        return grad.new_zeros(self._array.shape, dtype=self.dtype).masked_fill_(mask, grad / mask.sum())
    else:
        mask = (self == result) | (self.isnan() & result.isnan())
    return mask * (grad / mask.sum())


def select_backward(grad, dim, indices, self_sym_sizes, keepdim):
    """Gradient of selecting elements along `dim`: zeros, with grad at `indices`."""
    if not keepdim and self_sym_sizes:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(self_sym_sizes).scatter(dim, indices, grad)


# ------------------------------------------------------------------------------------------ along a dimension


def dim_extreme(name, find):
    """Declare max(self, dim) or min(self, dim): values and the indices where they first occur; nan wins."""
    operator = native_function(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        BOTH,
        out=exact_out(),
    )
    result = getattr(return_types, name)

    @operator.meta
    def extreme_meta(self, dim, keepdim):
        axes = axes_along(self, dim)
        check_not_empty(name, self, axes)
        if self._array.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        return with_indices_meta(self, axes, keepdim)

    @operator.kernel
    def extreme(self, dim, keepdim):
        x = self._array
        if not x.size or x.dtype is not F4:
            extreme_meta(self, dim, keepdim)
        dim = wrap_dim(dim, x.ndim)
        if x.ndim == 0:
            return result(wrap(x.copy()), wrap(np.zeros((), np.int64)))
        indices = find(comparable(x), dim, keepdims=True)
        values = np.take_along_axis(x, indices, dim)
        if not keepdim:
            indices, values = indices.squeeze(dim), values.squeeze(dim)
        return result(wrap_reduced(values), wrap(indices))

    return operator


def comparable(array):
    """bfloat16 as float32: NumPy's searches do not know it."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


# ---------------------------------------------------------------------------------------------- of everything


def total_extreme(name, ufunc):
    """Declare max(self) or min(self); nan wins."""
    operator = native_function(f"{name}(Tensor self) -> Tensor", BOTH, out=True)
    reduce = ufunc.reduce

    @operator.meta
    def extreme_meta(self):
        check_has_elements(name, self)
        return TensorMeta((), dtype_of(self))

    @operator.kernel
    def extreme(self):
        x = self._array
        if not x.size:
            extreme_meta(self)
        if x.dtype is not F4:
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

    @binding_maker(name, BOTH)
    def make(public):
        call_all, call_dim = entry_for(of_all, public), entry_for(of_dim, public)
        parse = make_parser(packets["torch", name], False, public)

        def binding(*args, **kwargs):
            try:
                if not kwargs and args and isinstance(args[0], TensorImpl):
                    if len(args) == 1:
                        return call_all(args[0])
                    if len(args) == 2 and type(args[1]) is int:
                        return call_dim(*args, False)
                return parse(args, kwargs)
            except Overridden:
                pass
            return public.override(args, kwargs)

        binding.__name__ = binding.__qualname__ = name
        return binding


extreme_binding("max", max_all, max_dim)
extreme_binding("min", min_all, min_dim)


@max_dim.backward
class MaxBackward0:
    output_differentiability = [True, False]
    self = select_backward

    def values(self_t, dim, indices, keepdim):
        return gathered(self_t, dim, indices, keepdim)


@max_all.backward
class MaxBackward1:
    self = evenly_distribute

    def result(self_t, self_p, result):
        return evenly_read(self_t, self_p, result)


@min_dim.backward
class MinBackward0:
    output_differentiability = [True, False]
    self = select_backward

    def values(self_t, dim, indices, keepdim):
        return gathered(self_t, dim, indices, keepdim)


@min_all.backward
class MinBackward1:
    self = evenly_distribute

    def result(self_t, self_p, result):
        return evenly_read(self_t, self_p, result)


# ------------------------------------------------------------------------------------------------- amax, amin


def match_input(out, result, *_):
    return (
        f"Expected the dtype for input and out to match, but got {type_name(result)} for input's dtype and "
        f"{type_name(out)} for out's dtype."
    )


def dims_extreme(name, ufunc, refusal):
    """Declare amax or amin: over several dims, and equals share the gradient."""
    operator = native_function(
        f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", BOTH, out=exact_out(match_input)
    )

    @operator.meta
    def extreme_meta(self, dim, keepdim):
        if not dim:
            check_has_elements(name, self)
        axes = reduced_axes(self, dim)
        check_not_empty(name, self, axes)
        return reduction_meta(self, axes, keepdim)

    @operator.kernel
    def extreme(self, dim, keepdim):
        x = self._array
        if not x.size:
            extreme_meta(self, dim, keepdim)
        if x.dtype is not F4:
            check_not_complex(refusal, self)
        return wrap_reduced(ufunc.reduce(x, reduced_axes(self, dim), None, None, keepdim))

    return operator


amax = dims_extreme("amax", np.maximum, "max_values_cpu")
amin = dims_extreme("amin", np.minimum, "min_values_cpu")


def share_by_count(grad, self, result, dim, keepdim):
    sizes = self._array.shape
    mask = unreduce(result, sizes, dim, keepdim) == self
    return unreduce(grad, sizes, dim, keepdim) * mask / mask.sum(dim, True)


@amax.backward
class AmaxBackward0:
    self = share_by_count

    def result(self_p, self_t, result, dim, keepdim):
        return evenly_read_along(self_p, self_t, result, dim, keepdim)


@amin.backward
class AminBackward0:
    self = share_by_count

    def result(self_p, self_t, result, dim, keepdim):
        return evenly_read_along(self_p, self_t, result, dim, keepdim)


aminmax = native_function(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", BOTH, out=exact_out()
)


@aminmax.meta
def aminmax_meta(self, dim, keepdim):
    if dim is None and self._array.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    axes = axes_along(self, dim)
    check_not_empty("aminmax", self, axes, "{}: Expected reduction dim {} to have non-zero size.")
    return (reduction_meta(self, axes, keepdim),) * 2


@aminmax.kernel
def aminmax_cpu(self, dim, keepdim):
    x = self._array
    if not x.size:
        aminmax_meta(self, dim, keepdim)
    if x.dtype is not F4:
        check_not_complex("aminmax_cpu", self)
    axes = axes_along(self, dim)
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

    def min(self_p, self_t, min, dim, keepdim):
        return evenly_read_along(self_p, self_t, min, () if dim is None else (dim,), keepdim)

    def max(self_p, self_t, max, dim, keepdim):
        return evenly_read_along(self_p, self_t, max, () if dim is None else (dim,), keepdim)


# --------------------------------------------------------------------------------------------- argmax, argmin


def index_of(name, find):
    """Declare argmax or argmin: the index of the first extreme, in the flattened tensor if no dim is given."""
    operator = native_function(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", BOTH, out=exact_out()
    )

    @operator.meta
    def place_meta(self, dim, keepdim):
        if dim is None and self._array.size == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        axes = axes_along(self, dim)
        check_not_empty(name, self, axes)
        dtype = dtype_of(self)
        if dtype.is_complex or dtype.category == BOOL:
            kind = "complex" if dtype.is_complex else "bool"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        return reduction_meta(self, axes, keepdim, int64)

    @operator.kernel
    def place(self, dim, keepdim):
        x = self._array
        if not x.size or x.dtype is not F4:
            place_meta(self, dim, keepdim)
        elif dim is not None:
            wrap_dim(dim, x.ndim)
        return wrap_result(find(comparable(x), dim if x.ndim else None, keepdims=keepdim))

    @binding_maker(name, BOTH)
    def make(public):
        call, parse = entry_for(operator, public), make_parser(packets["torch", name], False, public)

        def binding(*args, **kwargs):
            try:
                if not kwargs and 1 <= len(args) <= 2 and isinstance(args[0], TensorImpl):
                    if len(args) == 1 or type(args[1]) is int:
                        return call(args[0], args[1] if len(args) == 2 else None, False)
                return parse(args, kwargs)
            except Overridden:
                pass
            return public.override(args, kwargs)

        binding.__name__ = binding.__qualname__ = name
        return binding


index_of("argmax", np.argmax)
index_of("argmin", np.argmin)
