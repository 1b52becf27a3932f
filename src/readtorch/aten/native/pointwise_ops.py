"""addcmul and addcdiv: a product or a quotient of two tensors, scaled and added to a third.

In PyTorch: `aten/src/ATen/native/PointwiseOps.cpp`.
"""

import numpy as np

from readtorch.aten.native.functions_manual import scaled_by
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10 import scalar_type
from readtorch.c10.overflows import check_fits
from readtorch.c10.scalar_type import C_TYPE_NAMES, FLOAT
from readtorch.c10.tensor_impl import wrap

from . import math as f
from .tensor_iterator import computing, conj, elementwise, not_implemented, result_type
from .vectorized import are_flat, loop

# ------------------------------------------------------------------------------------------- addcmul, addcdiv

addcmul = native_function(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", BOTH, inplace=True, out=True
)
addcdiv = native_function(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", BOTH, inplace=True, out=True
)


elementwise(addcmul, f.addcmul, scalars=lambda value: (value,), takes=lambda dtype: dtype is not scalar_type.bool)


@addcmul.kernel
def addcmul_cpu(self, tensor1, tensor2, value):
    common = result_type(self, tensor1, tensor2)
    if common is scalar_type.bool:
        raise not_implemented("addcmul_cpu_out")(common)
    factor = factor_in(common, value)
    if are_flat(self._array, tensor1._array, tensor2._array):
        return wrap(loop(f.addcmul, self._array, tensor1._array, tensor2._array, numbers=(factor,)))
    return computing(lambda x, a, b: x + factor * a * b, self, tensor1, tensor2, common=common)


def check_addcdiv(self, tensor1, tensor2, value):
    if result_type(tensor1, tensor2).category < FLOAT:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
            "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented "
            "as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
            "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the "
            "latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
        )


elementwise(addcdiv, f.addcdiv, scalars=lambda value: (value,), check=check_addcdiv)


@addcdiv.kernel
def addcdiv_cpu(self, tensor1, tensor2, value):
    check_addcdiv(self, tensor1, tensor2, value)
    common = result_type(self, tensor1, tensor2)
    factor = factor_in(common, value)
    if are_flat(self._array, tensor1._array, tensor2._array):
        return wrap(loop(f.addcdiv, self._array, tensor1._array, tensor2._array, numbers=(factor,)))
    return computing(lambda x, a, b: x + factor * a / b, self, tensor1, tensor2, common=common)


def factor_in(dtype, value):
    """A Python number as an element of the type in which `dtype` is computed.

    Raises RuntimeError if it would lose a part.
    """
    wide = scalar_type.op_math_type(dtype)
    if isinstance(value, complex) and not wide.is_complex:
        raise RuntimeError(
            f"value cannot be converted to type {C_TYPE_NAMES[wide].replace(' int', '')} without overflow"
        )
    check_fits(value, wide)
    return np.asarray(value).astype(wide.numpy)[()]


@addcmul.backward
class AddcmulBackward0:
    def self(grad):
        return grad

    def tensor1(grad, tensor2, value):
        return grad * conj(tensor2 * value)

    def tensor2(grad, tensor1, value):
        return grad * conj(tensor1 * value)

    def result(self_t, tensor1_p, tensor1_t, tensor2_p, tensor2_t, value):
        return self_t + scaled_by(tensor1_t * tensor2_p, value) + scaled_by(tensor2_t * tensor1_p, value)


@addcdiv.backward
class AddcdivBackward0:
    def self(grad):
        return grad

    def tensor1(grad, tensor2, value):
        return grad * conj(value / tensor2)

    def tensor2(grad, tensor1, tensor2, value):
        return -grad * conj(value * tensor1 / (tensor2 * tensor2))

    def result(self_t, tensor1_p, tensor1_t, tensor2_p, tensor2_t, value):
        by_second = tensor2_t * (tensor1_p / tensor2_p) / tensor2_p
        return self_t + scaled_by(tensor1_t / tensor2_p, value) - scaled_by(by_second, value)
