"""Powers: pow with a number or a tensor on either side, and float_power.

In PyTorch: `aten/src/ATen/native/Pow.cpp` and `cpu/PowKernel.cpp`; derivatives in
`torch/csrc/autograd/FunctionsManual.cpp`.
"""

import cmath
import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native_function import BOTH, native_function, python_binding
from readtorch.aten.tensor_meta import like
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, type_name, wrap_result

from .binary_ops.arithmetic import mul_scalar
from .exact_out import exact_out
from .tensor_iterator import (
    F4,
    F8,
    NUMBERS,
    compute,
    computing,
    conj,
    elementwise,
    not_implemented,
    number_of,
    result_type,
    scalar_tensor,
    takes_number,
)
from .vectorized import or_loop

pow_tensor = native_function("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", BOTH, inplace=True, out=True)
pow_of_number = native_function("pow.Scalar(Scalar self, Tensor exponent) -> Tensor", "function", out=True)
pow_scalar = native_function("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", BOTH, inplace=True, out=True)


TWO_VECTORS = 16  # numbers of float32 that a processor with AVX2 takes at once, twice


def power(x, y):
    """x ** y for arrays of one type.

    NumPy refuses integers to negative powers; PyTorch gives 0, or 1 and -1 for those.
    """
    if x.dtype is F4 and max(x.size, y.size) < TWO_VECTORS:
        # as the C library's `powf`, which PyTorch calls for what does not fill two vectors: a count of steps, for one
        return np.power(x, y, dtype=F8).astype(F4)
    if x.dtype.kind != "i" or (np.min(y, initial=0) >= 0):
        return np.power(x, y)
    odd = np.where(y & 1, x, np.ones_like(x))
    return np.where(
        y >= 0, np.power(x, np.maximum(y, 0)), np.where(x == 1, x, np.where(x == -1, odd, np.zeros_like(x)))
    )


def check_not_bool(common):
    if common is scalar_type.bool:
        raise not_implemented("pow")(common)


elementwise(pow_tensor, f.power, takes=lambda dtype: dtype is not scalar_type.bool)


@pow_tensor.kernel
def pow_tensor_cpu(self, exponent):
    common = result_type(self, exponent)
    check_not_bool(common)
    return computing(power, self, exponent, common=common)


takes_number(pow_of_number, pow_tensor, first=True)


# Exponents that have a quicker and more exact way than a general power.
_SPECIAL = {0: np.ones_like, 1: np.copy, 2: np.square, 3: or_loop(f.cube, lambda x: x * x * x)}
_SPECIAL_FLOAT = {
    0.5: np.sqrt,
    -0.5: or_loop(f.rsqrt, lambda x: 1 / np.sqrt(x)),
    -1: np.reciprocal,
    -2: lambda x: np.reciprocal(x * x),
}


_QUICK = {**_SPECIAL, **_SPECIAL_FLOAT}


@pow_scalar.meta
def pow_scalar_meta(self, exponent):
    common = result_type(self, scalar_tensor(exponent))
    if common.category < FLOAT and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return like(self, common)


@pow_scalar.kernel
def pow_scalar_cpu(self, exponent):
    x = self._array
    if (x.dtype is F4 or x.dtype is F8) and type(exponent) is not complex and exponent in _QUICK:
        return wrap_result(_QUICK[exponent](x))
    number = scalar_tensor(exponent)
    common = pow_scalar_meta(self, exponent).dtype
    special = _SPECIAL.get(exponent) or (_SPECIAL_FLOAT.get(exponent) if common.category >= FLOAT else None)
    if special is not None:
        return wrap_result(compute(special, (x,), common))
    check_not_bool(common)
    return wrap_result(compute(power, (x, number._array), common))


def pow_grad(grad, self, exponent):
    """d(self ** exponent) for a number `exponent`."""
    if exponent == 0:
        return at.zeros_like(self)
    exponent = exponent if isinstance(exponent, complex) else float(exponent)
    return grad * conj(mul_scalar.call(self.pow(exponent - 1), exponent))


def pow_grad_self(grad, self, exponent):
    """The same for a tensor; where the exponent is 0 the derivative is 0 even at 0."""
    slope = grad * conj(exponent * self.pow(exponent - 1))
    return at.where(exponent == 0, at.zeros_like(slope), slope)


def pow_grad_exponent(grad, base, exponent, result):
    """grad * result * log(base), except that 0 ** exponent does not move where the exponent is not negative."""
    flat = _flat_at_zero(base, exponent)
    slope = grad * conj(result * base.to(dtype_of(result)).log())
    return at.where(flat, at.zeros_like(slope), slope)


def _flat_at_zero(base, exponent):
    real = exponent.real if exponent._array.dtype.kind == "c" else exponent
    return (base == 0) & (real >= 0)


@pow_scalar.backward
class PowBackward0:
    def self(grad, self, exponent):
        return pow_grad(grad, self, exponent)

    result = "auto_element_wise"


@pow_tensor.backward
class PowBackward1:
    def self(grad, self, exponent):
        return pow_grad_self(grad, self, exponent)

    def exponent(grad, self, exponent, result):
        return pow_grad_exponent(grad, self, exponent, result)

    def result(self_p, self_t, exponent_p, exponent_t, result):
        by_base = pow_grad_self(self_t.conj(), self_p, exponent_p)
        return (by_base + pow_grad_exponent(exponent_t.conj(), self_p, exponent_p, result)).conj()


@pow_of_number.backward
class PowBackward2:
    def exponent(grad, self, exponent, result):
        if self == 0:
            flat = _flat_at_zero(at.zeros_like(exponent), exponent)
            slope = grad * conj(result * float("-inf"))
            return at.where(flat, at.zeros_like(slope), slope)
        return grad * conj(result * _log_of(self))

    result = "auto_element_wise"


def _log_of(number):
    """The logarithm of a Python number; of a negative real one it is nan."""
    if isinstance(number, complex):
        return cmath.log(number)
    return math.log(number) if number > 0 else math.nan


@python_binding("__pow__", "method")
def __pow__(self, exponent):
    """`self ** exponent`."""
    if isinstance(exponent, TensorImpl):
        return pow_tensor.call(self, exponent)
    return pow_scalar.call(self, number_of(exponent)) if isinstance(exponent, NUMBERS) else NotImplemented


@python_binding("__ipow__", "method")
def __ipow__(self, exponent):
    """`self **= exponent`."""
    return self.pow_(exponent)


@python_binding("__rpow__", "method")
def __rpow__(self, other):
    """`other ** self`, where `other` is not a tensor."""
    return at.pow(other, self)


# ------------------------------------------------------------------------------------------------ float_power


def not_the_result_s(out, result, *_):
    return (
        f"the output given to float_power has dtype {type_name(out)} but the operation's result requires dtype "
        f"{type_name(result)}"
    )


float_power_tensor = native_function(
    "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(not_the_result_s),
)
float_power_of_number = native_function(
    "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", "function", out=exact_out(not_the_result_s)
)
float_power_scalar = native_function(
    "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(not_the_result_s),
)


def double_type(*operands):
    is_complex = any(
        o._array.dtype.kind == "c" if isinstance(o, TensorImpl) else isinstance(o, complex) for o in operands
    )
    return scalar_type.complex128 if is_complex else scalar_type.float64


def float_power_composite(self, exponent):
    """Both sides in double precision, then pow."""
    wide = double_type(self, exponent)
    number = complex if wide.is_complex else float
    base, power_ = [o.to(wide) if isinstance(o, TensorImpl) else number(o) for o in (self, exponent)]
    return at.pow(base, power_)


for _operator in (float_power_tensor, float_power_of_number, float_power_scalar):
    _operator.compose(float_power_composite)


def float_power_(self, exponent):
    wide, own = double_type(self, exponent), dtype_of(self)
    if own is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {_name(own)} but the operation's result requires "
            f"dtype {_name(wide)}"
        )
    number = complex if wide.is_complex else float
    return at.pow_(self, exponent.to(wide) if isinstance(exponent, TensorImpl) else number(exponent))


def _name(dtype):
    return scalar_type.SCALAR_TYPE_NAMES[dtype]


for _operator in (float_power_tensor, float_power_scalar):
    _operator.inplace.kernel(float_power_)
    _operator.inplace.compose(float_power_)
