"""Scaling: ldexp and frexp, which multiply by powers of two and take them out, and renorm.

In PyTorch: `aten/src/ATen/native/{BinaryOps,UnaryOps,Normalization}.cpp`; derivatives in
`FunctionsManual.cpp`.
"""

import math

import numpy as np

from ...c10.scalar_type import op_math_type
from ...c10.tensor_impl import dtype_of, wrap, wrap_result
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import below_autograd, native_function
from . import return_types
from .exact_out import exact_out
from .norms import norm_gradient, vector_norm
from .scalar_ops import mul_scalar
from .tensor_iterator import cast, conj

BOTH = "function, method"

# ---------------------------------------------------------------------------------------------- powers of two

ldexp = native_function("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", BOTH, inplace=True, out=True)
frexp = native_function("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", BOTH, out=True)


@ldexp.kernel
def ldexp_cpu(self, other):
    """self · 2 ** other"""
    with below_autograd():
        return at.mul(self, at.pow(2.0, other))


@ldexp.backward
class LdexpBackward0:
    def self(grad, other):
        return grad * conj(at.pow(2, other))

    def other(grad, result):
        return mul_scalar.call(grad * conj(result), math.log(2))


@frexp.kernel
def frexp_cpu(self):
    """(m, e) with self = m · 2 ** e and 1/2 <= |m| < 1"""
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(cast(self._array, op_math_type(dtype).numpy))
    return return_types.frexp(
        wrap_result(mantissa.astype(dtype.numpy)), wrap_result(exponent.astype(np.int32))
    )


def wrong_type(name):
    def message(out, result, *_):
        if name == "exponent":
            return f"torch.frexp() expects exponent to have int dtype but got {dtype_of(out).name}"
        want, have = dtype_of(result).name, dtype_of(out).name
        return f"torch.frexp() expects mantissa to have dtype {want} but got {have}"

    return message


exact_out(frexp, wrong_type("mantissa"), wrong_type("exponent"))


@frexp.backward
class FrexpBackward0:
    output_differentiability = [True, False]

    def self(grad, exponent):
        return grad / exponent.exp2()


# ----------------------------------------------------------------------------------------------------- renorm

renorm = native_function(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", BOTH, inplace=True, out=True
)


def check_renorm(self, p, maxnorm):
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self._array.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self._array.ndim} dimensions")


def other_dims(self, dim):
    dim = wrap_dim(dim, self._array.ndim)
    return tuple([d for d in range(self._array.ndim) if d != dim])


@renorm.kernel
def renorm_cpu(self, p, dim, maxnorm):
    """Each slice along `dim` whose norm is greater than maxnorm is scaled down to it."""
    check_renorm(self, p, maxnorm)
    dims = other_dims(self, dim)
    with below_autograd():
        norm = vector_norm.call(self, p, dims, True, None)._array
    wide = norm.astype(op_math_type(dtype_of(self).to_real()).numpy)
    factor = np.where(wide > maxnorm, maxnorm / (wide + wide.dtype.type(1e-7)), wide.dtype.type(1)).astype(
        norm.dtype
    )
    return wrap((self._array * factor).astype(self._array.dtype))


@renorm.backward
class RenormBackward0:
    def self(grad, self, p, dim, maxnorm):
        """Where a slice was scaled, its norm depends on each of its elements."""
        dims = other_dims(self, dim)
        norm = vector_norm.call(self, p, dims, True, None)
        along = conj(self) * grad
        along = (along.real if dtype_of(along).is_complex else along).sum(dims, True)
        through_norm = norm_gradient(along, self, p, norm, dims, True)
        inverse = (norm + 1e-7).reciprocal()
        scaled = mul_scalar.call(inverse, maxnorm) * (grad - inverse * through_norm)
        return at.where(norm > maxnorm, scaled.to(grad.dtype), grad)
