"""Division and remainders: div with its rounding modes, floor_divide, remainder, fmod.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/cpu/BinaryOpsKernel.cpp`.
"""

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import (
    NUMBERS,
    binary_float_kernel,
    binary_inplace_kernel,
    computing,
    conj,
    elementwise,
    float_result_type,
    is_integer_or_floating,
    not_implemented,
    number_of,
    result_type,
    takes_number,
)
from readtorch.aten.native_function import BOTH, alias_of, native_function, python_binding
from readtorch.aten.tensor_meta import broadcast
from readtorch.c10.scalar_type import BOOL, COMPLEX, FLOAT
from readtorch.c10.tensor_impl import TensorImpl, wrap_result

# -------------------------------------------------------------------------------------------------------- div

div = native_function(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
    numbers_as_tensors=True,
)
div_mode = native_function(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", BOTH, inplace=True, out=True
)
alias_of("divide", "div")

true_divide = native_function(
    "true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
    numbers_as_tensors=True,
)
elementwise(div, f.div, float_result_type)
_true_quotient = binary_float_kernel(np.true_divide, exact_numbers=True)
div.kernel(_true_quotient)
div.inplace.kernel(binary_inplace_kernel(np.true_divide, float_result_type, exact_numbers=True))
true_divide.compose(lambda self, other: div.call(self, other))
true_divide.inplace.compose(lambda self, other: div.inplace.call(self, other))


@div.backward
class DivBackward0:
    def self(grad, other):
        return grad / conj(other)

    def other(grad, self, other):
        slope = conj((self / other) / other)
        return -grad * slope

    def result(self_t, other_p, other_t, result):
        return (self_t - other_t * result) / other_p


@python_binding("__rtruediv__", "method")
def __rtruediv__(self, other):
    """`other / self`, where `other` is not a tensor."""
    return self.reciprocal() * other


@python_binding("__rdiv__", "method")
def __rdiv__(self, other):
    """`other / self`, by its name in Python 2."""
    return self.reciprocal() * other


# ------------------------------------------------------------------------------------------- rounded division


def check_divisor(y):
    """Integers cannot hold infinity, so dividing them by zero is an error."""
    if y.dtype.kind in "iu" and not y.all():
        raise RuntimeError("ZeroDivisionError")


def trunc_quotient(x, y):
    """x / y for integers, rounded towards zero."""
    check_divisor(y)
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)


def floor_quotient(x, y):
    """x / y rounded down."""
    check_divisor(y)
    return np.floor_divide(x, y)


def arithmetic_kernel(function, name, exact_numbers=False):
    """A kernel for two tensors that refuses bool and complex. exact_numbers: see `compute`."""
    refusal = not_implemented(name)

    def kernel(self, other):
        common = result_type(self, other)
        if common.category in (BOOL, COMPLEX):
            raise refusal(common)
        return computing(function, self, other, common=common, exact_numbers=exact_numbers)

    return kernel


_integer_trunc_quotient = arithmetic_kernel(trunc_quotient, "div_trunc_cpu")
_trunc_quotient_by_number = arithmetic_kernel(lambda x, y: np.trunc(x / y), "div_trunc_cpu", exact_numbers=True)


def trunc_division(self, other):
    """Quotients rounded towards zero. 16-bit ones of two tensors are rounded to 16 bits first, as in PyTorch."""
    if result_type(self, other).category == FLOAT:
        if not other._array.ndim:
            return _trunc_quotient_by_number(self, other)
        return wrap_result(np.trunc(_true_quotient(self, other)._array))
    return _integer_trunc_quotient(self, other)


_QUOTIENTS = {
    None: _true_quotient,
    "trunc": trunc_division,
    "floor": arithmetic_kernel(floor_quotient, "div_floor_cpu", exact_numbers=True),
}


@div_mode.meta
def div_mode_meta(self, other, rounding_mode):
    if rounding_mode not in _QUOTIENTS:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return broadcast((result_type if rounding_mode else float_result_type)(self, other), self, other)


@div_mode.kernel
def div_mode_cpu(self, other, rounding_mode):
    if rounding_mode not in _QUOTIENTS:
        div_mode_meta(self, other, rounding_mode)
    return _QUOTIENTS[rounding_mode](self, other)


@div_mode.backward
class DivBackward2:
    def self(grad, other, rounding_mode):
        return grad / conj(other) if rounding_mode is None else at.zeros_like(grad)

    def other(grad, self, other, rounding_mode):
        return -grad * conj((self / other) / other) if rounding_mode is None else at.zeros_like(grad)

    def result(self_p, self_t, other_p, other_t, rounding_mode, result):
        if rounding_mode is not None:
            return at.zeros_like(result)
        return self_t / other_p - other_t * (self_p / other_p) / other_p


floor_divide = native_function(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    BOTH,
    inplace=True,
    out=True,
    direct=True,
    numbers_as_tensors=True,
)
elementwise(floor_divide, f.floor_divide, takes=is_integer_or_floating)
floor_divide.kernel(_QUOTIENTS["floor"])
floor_divide.backward(NOT_IMPLEMENTED)


@python_binding("__rfloordiv__", "method")
def __rfloordiv__(self, other):
    """`other // self`, where `other` is not a tensor."""
    return at.floor_divide(other, self)


# ------------------------------------------------------------------------------------------------- remainders


def remainder_array(x, y):
    """The remainder that has the divisor's sign."""
    if x.dtype.kind in "iu":
        check_divisor(y)
        return np.remainder(x, y)
    rest = np.fmod(x, y)  # not np.remainder, which turns -0.0 into 0.0
    return np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


def fmod_array(x, y):
    """The remainder that has the dividend's sign."""
    check_divisor(y)
    return np.fmod(x, y)


def remainder_like(name, function, scalar_function):
    """Declare the overloads of remainder or fmod; returns (tensor and tensor, tensor and number).

    scalar_function: dtype -> what computes an element.
    """
    of_tensors = native_function(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True, direct=True
    )
    of_number = native_function(f"{name}.Scalar(Tensor self, Scalar other) -> Tensor", BOTH, inplace=True, out=True)
    elementwise(of_tensors, scalar_function, by_dtype=True, takes=is_integer_or_floating)
    of_tensors.kernel(arithmetic_kernel(function, f"{name}_cpu"))
    takes_number(of_number, of_tensors)
    return of_tensors, of_number


remainder, remainder_scalar = remainder_like(
    "remainder", remainder_array, lambda dtype: f.remainder if dtype.category >= FLOAT else f.integer_remainder
)
fmod, fmod_scalar = remainder_like("fmod", fmod_array, lambda dtype: f.fmod)


@remainder_scalar.backward
class RemainderBackward0:
    def self(grad):
        return grad

    result = "auto_element_wise"


@remainder.backward
class RemainderBackward1:
    def self(grad):
        return grad

    def other(grad, self, other):
        return -grad * self.div(other, rounding_mode="floor")

    def result(self_p, self_t, other_p, other_t):
        return self_t - other_t * self_p.div(other_p, rounding_mode="floor")


@fmod_scalar.backward
class FmodBackward0:
    def self(grad):
        return grad

    result = "auto_element_wise"


@fmod.backward
class FmodBackward1:
    def self(grad):
        return grad

    def other(grad, self, other):
        return -grad * self.div(other, rounding_mode="trunc")

    def result(self_p, self_t, other_p, other_t):
        return self_t - other_t * self_p.div(other_p, rounding_mode="trunc")


remainder_of_number = native_function("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", "function")
takes_number(remainder_of_number, remainder, first=True)
remainder_of_number.backward(NOT_IMPLEMENTED)


def remainder_with(self, other):
    """`self % other` for a tensor or a number."""
    if isinstance(other, TensorImpl):
        return remainder.call(self, other)
    return remainder_scalar.call(self, number_of(other)) if isinstance(other, NUMBERS) else NotImplemented


@python_binding("__mod__", "method")
def __mod__(self, other):
    """`self % other`."""
    return remainder_with(self, other)


@python_binding("__rmod__", "method")
def __rmod__(self, other):
    """`other % self`, where `other` is not a tensor."""
    return at.remainder(other, self) if isinstance(other, (TensorImpl, *NUMBERS)) else NotImplemented


@python_binding("__imod__", "method")
def __imod__(self, other):
    """`self %= other`."""
    return self.remainder_(other)
