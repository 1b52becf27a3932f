"""lerp: linear interpolation between two tensors.

In PyTorch: `aten/src/ATen/native/Lerp.cpp`.
"""

import numpy as np

from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.overflows import check_fits
from readtorch.c10.scalar_type import C_TYPE_NAMES, FLOAT
from readtorch.c10.tensor_impl import dtype_of, wrap

from .tensor_iterator import computing, conj, not_implemented, scalar_tensor
from .vectorized import are_flat, loop

# ------------------------------------------------------------------------------------------------------- lerp

lerp = native_function("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", BOTH, inplace=True, out=True)
lerp_scalar = native_function(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", BOTH, inplace=True, out=True
)


def lerp_array(start, end, weight):
    """Counted from the nearer end, so that weight 1 gives exactly `end`."""
    way = end - start
    result = np.where(np.abs(weight) < 0.5, start + weight * way, end - way * (1 - weight))
    return result.astype(start.dtype, copy=False)


def check_lerp(self, other, name):
    if self._array.dtype != other._array.dtype:
        raise RuntimeError(
            f"expected dtype {C_TYPE_NAMES[dtype_of(self)]} for `{name}` but got dtype {C_TYPE_NAMES[dtype_of(other)]}"
        )


@lerp.kernel
def lerp_cpu(self, end, weight):
    check_lerp(self, end, "end")
    if weight._array.ndim:
        check_lerp(self, weight, "weight")
    return interpolate(self, end, weight, "lerp_kernel_tensor")


@lerp_scalar.kernel
def lerp_scalar_cpu(self, end, weight):
    check_lerp(self, end, "end")
    check_fits(weight, dtype_of(self))
    if are_flat(self._array, end._array) and not isinstance(weight, complex):
        return wrap(loop("lerp", self._array, end._array, numbers=(weight,)))
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


@lerp.backward
class LerpBackward1:
    def self(grad, weight):
        return grad * conj(1 - weight)

    def end(grad, weight):
        return grad * conj(weight)

    def weight(grad, self, end):
        return grad * conj(end - self)
