"""Bessel functions, Airy's, and those of the normal distribution: airy_ai, bessel_j0, i0e, ndtri …

SciPy computes them. In PyTorch: `aten/src/ATen/native/UnaryOps.cpp` and `aten/src/ATen/native/Math.h`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native import math_special as f
from readtorch.aten.native.binary_ops.arithmetic import mul_scalar
from readtorch.aten.native.tensor_iterator import (
    elementwise,
    float_result_type,
    is_real,
    is_wide,
    not_implemented,
    unary_float_kernel,
)
from readtorch.aten.native_function import native_function
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of

from .special import scipy_function


def special(name, function, scalar_function, argument="self", half=False):
    """Declare `special.<name>`. scalar_function: None if CUDA has none. half: whether it takes 16-bit floats."""
    operator = native_function(f"special_{name}(Tensor {argument}) -> Tensor", module="special", name=name, out=True)
    elementwise(operator, scalar_function, float_result_type, takes=is_real if half else is_wide)
    refusal = not_implemented(f"{name}_cpu")
    compute = unary_float_kernel(function, refusal)

    @operator.kernel
    def special_cpu(x):
        dtype = dtype_of(x)
        if not half and op_math_type(dtype) is not dtype:
            raise refusal(dtype)
        return compute(x)

    return operator


def of_finite(name):
    """SciPy's function; nan at infinity, where SciPy has the limit and PyTorch's series break down."""
    return lambda x: np.where(np.isinf(x), x.dtype.type(np.nan), scipy_function(name)(x))


def scaled_to_zero(name):
    """SciPy's function, which is nan at infinity, where the limit is 0."""
    return lambda x: np.where(x == np.inf, x.dtype.type(0), scipy_function(name)(x))


# --------------------------------------------------------------------------------------- without a derivative

special("airy_ai", lambda x: np.where(np.isinf(x), x.dtype.type(np.nan), scipy_function("airy")(x)[0]), None, "x")
special("bessel_j0", of_finite("j0"), f.j0)
special("bessel_j1", of_finite("j1"), f.j1)
special("bessel_y0", of_finite("y0"), f.y0)
special("bessel_y1", of_finite("y1"), f.y1)
special("modified_bessel_i0", of_finite("i0"), f.i0)
special("modified_bessel_i1", of_finite("i1"), f.i1)
special("modified_bessel_k0", scipy_function("k0"), f.k0)
special("modified_bessel_k1", scipy_function("k1"), f.k1)
special("scaled_modified_bessel_k0", scaled_to_zero("k0e"), f.k0e, "x")
special("scaled_modified_bessel_k1", scaled_to_zero("k1e"), f.k1e, "x")
special(
    "spherical_bessel_j0",
    lambda x: np.where(np.isinf(x), x.dtype.type(0), np.where(x == 0, x.dtype.type(1), np.sin(x) / x)),
    f.spherical_j0,
    "x",
)


# --------------------------------------------------------------------------- scaled modified Bessel functions

i0e = special("i0e", scipy_function("i0e"), f.i0e, half=True)
i1e = special("i1e", scipy_function("i1e"), f.i1e, half=True)


@i0e.backward
class SpecialI0EBackward0:
    def self(grad, self, result):
        return grad * (i1e.call(self) - self.sgn() * result)

    result = "auto_element_wise"


@i1e.backward
class SpecialI1EBackward0:
    def self(grad, self, result):
        """i0e - i1e · (sign + 1/x), which is 1/2 at 0."""
        tiny = self.abs() <= np.finfo(self._array.dtype).eps
        safe = at.where(tiny, at.full_like(self, np.finfo(self._array.dtype).eps), self)
        slope = i0e.call(safe) - result * (safe.sgn() + safe.reciprocal())
        return grad * at.where(tiny, at.full_like(self, 0.5), slope)

    result = "auto_element_wise"


# ---------------------------------------------------------------------------------------- normal distribution

erfcx = special("erfcx", scipy_function("erfcx"), f.erfcx)
ndtri = special("ndtri", scipy_function("ndtri"), f.ndtri)
log_ndtr = special("log_ndtr", scipy_function("log_ndtr"), f.log_ndtr)


@erfcx.backward
class SpecialErfcxBackward0:
    def self(grad, self, result):
        return (mul_scalar.call(self, 2.0) * result - 2.0 / math.sqrt(math.pi)) * grad

    result = "auto_element_wise"


@ndtri.backward
class SpecialNdtriBackward0:
    def self(grad, result):
        return mul_scalar.call(grad, math.sqrt(2 * math.pi)) * (result.square() / 2).exp()

    result = "auto_element_wise"


@log_ndtr.backward
class SpecialLogNdtrBackward0:
    def self(grad, self, result):
        return grad / math.sqrt(2 * math.pi) * (result + self.pow(2) / 2).neg().exp()

    result = "auto_element_wise"
