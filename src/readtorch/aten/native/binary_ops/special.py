"""Special functions of two arguments: zeta and the incomplete gamma functions.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp` and `aten/src/ATen/native/Math.h`.
"""

from readtorch.aten.expand_utils import broadcast_error
from readtorch.aten.functions import at
from readtorch.aten.native.tensor_iterator import (
    compute,
    float_result_type,
    laid_out,
    no_derivative,
    not_implemented,
    result_type,
    scalar_tensor,
)
from readtorch.aten.native.unary_ops.special import scipy_function, zeta_array
from readtorch.aten.native_function import alias_of, native_function
from readtorch.c10.scalar_type import COMPLEX, op_math_type
from readtorch.c10.tensor_impl import wrap_result


def pairs(name, function, first, second):
    """Declare `special.<name>` of two tensors, and of a tensor and a number. Returns the three overloads."""
    text = f"special_{name}"
    options = {"module": "special", "name": name, "out": True}
    of_tensors = native_function(f"{text}(Tensor {first}, Tensor {second}) -> Tensor", **options)
    of_number = native_function(f"{text}.{first}_scalar(Scalar {first}, Tensor {second}) -> Tensor", **options)
    with_number = native_function(f"{text}.{second}_scalar(Tensor {first}, Scalar {second}) -> Tensor", **options)
    refusal = not_implemented(f"{name}_cpu")

    @of_tensors.kernel
    def pair_cpu(x, y):
        common = float_result_type(x, y)
        if common.category == COMPLEX or op_math_type(common) is not common:
            raise refusal(common)
        try:
            return wrap_result(compute(function, (x._array, y._array), common))
        except ValueError:
            raise broadcast_error(x._array.shape, y._array.shape) from None

    of_number.kernel(lambda x, y: pair_cpu(scalar_tensor(x), y))
    with_number.kernel(lambda x, y: pair_cpu(x, scalar_tensor(y)))
    return of_tensors, of_number, with_number


# ------------------------------------------------------------------------------------------------------- zeta

zeta, zeta_of_number, zeta_with_number = pairs("zeta", lambda x, q: laid_out(zeta_array(x, q), x, q), "self", "other")


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


def incomplete_gamma(name, scipy_name):
    """Declare igamma or igammac: the share of the gamma function's integral below, or above, a point."""
    operator = native_function(
        f"{name}(Tensor self, Tensor other) -> Tensor", "function, method", inplace=True, out=True
    )
    function, refusal = scipy_function(scipy_name), not_implemented(f"{name}_cpu")

    @operator.kernel
    def incomplete_gamma_cpu(self, other):
        common = result_type(self, other)
        if not common.is_floating_point:
            raise refusal(common)
        try:
            return wrap_result(compute(function, (self._array, other._array), common))
        except ValueError:
            raise broadcast_error(self._array.shape, other._array.shape) from None

    return operator


igamma = incomplete_gamma("igamma", "gammainc")
igammac = incomplete_gamma("igammac", "gammaincc")
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
