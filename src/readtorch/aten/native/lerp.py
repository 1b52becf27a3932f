"""lerp: linear interpolation between two tensors.

In PyTorch: `aten/src/ATen/native/Lerp.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.overflows import check_fits
from readtorch.c10.scalar_type import C_TYPE_NAMES, FLOAT
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, wrap

from . import math as f
from .tensor_iterator import computing, conj, elementwise, is_floating_or_complex, not_implemented, scalar_tensor
from .vectorized import are_flat, loop

# ------------------------------------------------------------------------------------------------------- lerp

lerp = native_function("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", BOTH, inplace=True, out=True)
lerp_scalar = native_function(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", BOTH, inplace=True, out=True
)


def check_lerp(self, end, weight):
    """Raises RuntimeError unless all have one dtype; a weight without dimensions may have any."""
    check_same(self, end, "end")
    if isinstance(weight, TensorImpl) and weight._array.ndim:
        check_same(self, weight, "weight")


def check_same(self, other, name):
    if self._array.dtype != other._array.dtype:
        raise RuntimeError(
            f"expected dtype {C_TYPE_NAMES[dtype_of(self)]} for `{name}` but got dtype {C_TYPE_NAMES[dtype_of(other)]}"
        )


for _operator, _function, _scalars in (
    (lerp, f.lerp, lambda: ()),
    (lerp_scalar, f.lerp_by_number, lambda weight: (weight,)),
):
    elementwise(
        _operator,
        _function,
        lambda self, *others: dtype_of(self),
        scalars=_scalars,
        check=check_lerp,
        takes=is_floating_or_complex,
    )


def lerp_array(start, end, weight):
    """Counted from the nearer end, so that weight 1 gives exactly `end`."""
    way = end - start
    result = np.where(np.abs(weight) < 0.5, start + weight * way, end - way * (1 - weight))
    return result.astype(start.dtype, copy=False)


@lerp.kernel
def lerp_cpu(self, end, weight):
    check_lerp(self, end, weight)
    return interpolate(self, end, weight, "lerp_kernel_tensor")


@lerp_scalar.kernel
def lerp_scalar_cpu(self, end, weight):
    check_lerp(self, end, weight)
    check_fits(weight, dtype_of(self))
    if are_flat(self._array, end._array) and not isinstance(weight, complex):
        return wrap(loop(f.lerp_by_number, self._array, end._array, numbers=(weight,)))
    return interpolate(self, end, scalar_tensor(weight), "lerp_kernel_scalar")


def interpolate(self, end, weight, name):
    common = dtype_of(self)
    if common.category < FLOAT:
        raise not_implemented(name)(common)
    return computing(lerp_array, self, end, weight, common=common, exact_numbers=True)


@lerp_scalar.backward
class LerpBackward0:
    def self(grad, weight):
        return grad * (1 - weight.conjugate())

    def end(grad, weight):
        return grad * weight.conjugate()

    def result(self_t, end_t, weight):
        return lerp_scalar.call(self_t, end_t, weight)


@lerp.backward
class LerpBackward1:
    def self(grad, weight):
        return grad * conj(1 - weight)

    def end(grad, weight):
        return grad * conj(weight)

    def weight(grad, self, end):
        return grad * conj(end - self)

    def result(self_p, self_t, end_p, end_t, weight_p, weight_t):
        return lerp.call(self_t, end_t, weight_p) + weight_t * (end_p - self_p)
