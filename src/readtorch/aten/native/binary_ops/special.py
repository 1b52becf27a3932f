"""Special functions of two arguments: zeta and the incomplete gamma functions.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/Math.h`.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math_special as special
from readtorch.aten.native.tensor_iterator import (
    computing,
    elementwise,
    float_result_type,
    is_floating,
    is_wide,
    laid_out,
    no_derivative,
    not_implemented,
    result_type,
    takes_number,
)
from readtorch.aten.native.unary_ops.special import scipy_function, zeta_array
from readtorch.aten.native_function import alias_of, native_function


def pairs(name, array_function, function, first, second, constants):
    """Declare `special.<name>` of two tensors, and of a tensor and a number. Returns the three overloads.

    array_function: what computes it on arrays. function, constants: see `elementwise`.
    """
    text = f"special_{name}"
    options = {"module": "special", "name": name, "out": True}
    of_tensors = native_function(f"{text}(Tensor {first}, Tensor {second}) -> Tensor", **options)
    of_number = native_function(f"{text}.{first}_scalar(Scalar {first}, Tensor {second}) -> Tensor", **options)
    with_number = native_function(f"{text}.{second}_scalar(Tensor {first}, Scalar {second}) -> Tensor", **options)
    refusal = not_implemented(f"{name}_cpu")
    elementwise(of_tensors, function, float_result_type, takes=is_wide, constants=constants)

    @of_tensors.kernel
    def pair_cpu(x, y):
        common = float_result_type(x, y)
        if not is_wide(common):
            raise refusal(common)
        return computing(array_function, x, y, common=common)

    takes_number(of_number, of_tensors, first=True)
    takes_number(with_number, of_tensors)
    return of_tensors, of_number, with_number


# ------------------------------------------------------------------------------------------------------- zeta

zeta, zeta_of_number, zeta_with_number = pairs(
    "zeta", lambda x, q: laid_out(zeta_array(x, q), x, q), special.zeta, "self", "other", lambda dtype: special.DIVISORS
)


@zeta.backward
class SpecialZetaBackward0:
    self = no_derivative("zeta")

    def other(grad, self, other):
        return grad * -self * zeta.call(self + 1.0, other)


@zeta_of_number.backward
class SpecialZetaBackward1:
    def other(grad, self, other):
        return grad * -self * zeta_of_number.call(self + 1.0, other)


@zeta_with_number.backward
class SpecialZetaBackward2:
    self = no_derivative("zeta")


# --------------------------------------------------------------------------------- incomplete gamma functions


def at_the_edges(function, at_start, at_end):
    """`function`, whose first or second argument is nan, where PyTorch looks at the other alone: the integral ends at 0, or at
    infinity, or all of it lies there."""

    def incomplete_gamma_array(a, x):
        value = function(a, x)
        if np.isnan(value).any():
            number = value.dtype.type
            value = np.where(np.isnan(a) & (x == 0) | np.isposinf(a) & np.isnan(x), number(at_start), value)
            value = np.where(np.isnan(a) & np.isposinf(x), number(at_end), value)
        return value

    return incomplete_gamma_array


def incomplete_gamma(name, scipy_name, function, at_start):
    """Declare igamma or igammac: the share of the gamma function's integral below, or above, a point."""
    operator = native_function(
        f"{name}(Tensor self, Tensor other) -> Tensor", "function, method", inplace=True, out=True
    )
    elementwise(operator, function, takes=is_floating)
    array_function, refusal = (
        at_the_edges(scipy_function(scipy_name), at_start, 1 - at_start),
        not_implemented(f"{name}_cpu"),
    )

    @operator.kernel
    def incomplete_gamma_cpu(self, other):
        common = result_type(self, other)
        if not is_floating(common):
            raise refusal(common)
        return computing(array_function, self, other, common=common)

    return operator


igamma = incomplete_gamma("igamma", "gammainc", special.igamma, 0)
igammac = incomplete_gamma("igammac", "gammaincc", special.igammac, 1)
alias_of("gammainc", "igamma", module="special")
alias_of("gammaincc", "igammac", module="special")


@igamma.backward
class IgammaBackward0:
    self = no_derivative("igamma: input")

    def other(grad, self, other):
        return grad * ((self - 1) * other.log() - other - at.lgamma(self)).exp()


@igammac.backward
class IgammacBackward0:
    self = no_derivative("igammac: input")

    def other(grad, self, other):
        return -grad * ((self - 1) * other.log() - other - at.lgamma(self)).exp()
