"""Special functions: erfinv, lgamma, digamma, zeta, Bessel functions, entropies and logarithms of sums.

In PyTorch: `aten/src/ATen/native/cuda/UnarySpecialOpsKernel.cu`.
"""

import math

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import math_special as special
from readtorch.aten.native.binary_ops.polynomials import POLYNOMIALS
from readtorch.aten.native.math_special import (
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    k0,
    k0e,
    k1,
    k1e,
    limit_of,
    spherical_j0,
    value,
    y0,
    y1,
)
from readtorch.aten.native.tensor_iterator import float_result_type, not_implemented, result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.aten.register_dispatch_key import write_result
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import COMPLEX, op_math_type
from readtorch.c10.tensor_impl import dtype_of

from .register_dispatch_key import cuda_kernel, operator_named
from .tensor_iterator import apply
from .unary_ops_kernel import NEVER, own_float


def is_wide(dtype):
    """Whether it is not a 16-bit float."""
    return op_math_type(dtype) is dtype


def of_one(name, function, narrow=True, scalars=NEVER):
    """narrow: whether it takes 16-bit floats."""
    refusal = not_implemented(f"{name.removeprefix('special_')}_cuda")

    @cuda_kernel(operator_named(name))
    def kernel(self):
        if dtype_of(self).is_complex or not (narrow or is_wide(dtype_of(self))):
            raise refusal(dtype_of(self))
        return apply(function, [self], scalars, own_float(self))


for _name, _function in {
    "erfinv": special.erfinv,
    "lgamma": special.lgamma,
    "digamma": special.digamma,
    "sinc": special.sinc,
    "i0": i0,
    "special_i0e": i0e,
    "special_entr": special.entropy,
}.items():
    of_one(_name, _function)


for _name, _function in {
    "erfcx": special.erfcx,
    "ndtri": special.ndtri,
    "log_ndtr": special.log_ndtr,
    "bessel_j0": j0,
    "bessel_j1": j1,
    "bessel_y0": y0,
    "bessel_y1": y1,
    "i1": i1,
    "i1e": i1e,
    "modified_bessel_i0": i0,
    "modified_bessel_i1": i1,
    "modified_bessel_k0": k0,
    "modified_bessel_k1": k1,
    "scaled_modified_bessel_k0": k0e,
    "scaled_modified_bessel_k1": k1e,
    "spherical_bessel_j0": spherical_j0,
}.items():
    of_one(f"special_{_name}", _function, narrow=False)


of_one("deg2rad", f.times, scalars=(math.pi / 180,))
of_one("rad2deg", f.times, scalars=(180 / math.pi,))


@cuda_kernel(operator_named("logit"))
def logit_cuda(self, eps):
    if dtype_of(self).is_complex:
        raise not_implemented("logit_cuda")(dtype_of(self))
    if eps is None or eps < 0:
        return apply(special.logit, [self], (), own_float(self))
    return apply(special.logit_inside, [self], (eps, 1 - eps), own_float(self))


@cuda_kernel(operator_named("polygamma"))
def polygamma_cuda(n, self):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return at.digamma(self)
    if dtype_of(self).is_complex:
        raise not_implemented("polygamma_cuda")(dtype_of(self))
    if n == 1:
        return apply(special.trigamma, [self], (), own_float(self))
    factor = math.factorial(n) * (1.0 if n % 2 else -1.0)
    return apply(special.polygamma, [self], (n + 1, factor, *special.DIVISORS), own_float(self))


cuda_kernel(operator_named("polygamma_.method"))(lambda self, n: write_result(self, polygamma_cuda(n, self)))


@cuda_kernel(operator_named("mvlgamma"))
def mvlgamma_cuda(self, p):
    """log of the multivariate gamma function."""
    if dtype_of(self) is scalar_type.bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    shifts = at.arange(p, dtype=own_float(self), device=self.device) / 2 - (p - 1) / 2
    return at.lgamma(self.unsqueeze(-1) + shifts).sum(-1) + p * (p - 1) * math.log(math.pi) / 4


def of_two(name, function, first="self", second="other", narrow=False, scalars=lambda common: NEVER):
    """A function of two tensors, and of a tensor and a number. numbers: its own, by the common dtype."""
    refusal = not_implemented(f"{name.removeprefix('special_')}_cuda")

    def kernel(x, y):
        common = float_result_type(x, y)
        if common.category == COMPLEX or not (narrow or is_wide(common)):
            raise refusal(common)
        return apply(function, [x, y], scalars(common), common)

    cuda_kernel(operator_named(name))(kernel)
    cuda_kernel(operator_named(f"{name}.{first}_scalar"))(lambda x, y: kernel(weak(x), y))
    cuda_kernel(operator_named(f"{name}.{second}_scalar"))(lambda x, y: kernel(x, weak(y)))


of_two("special_xlog1py", special.xlog1py, narrow=True)
of_two("special_zeta", special.zeta, scalars=lambda common: special.DIVISORS)
for _name in POLYNOMIALS:
    of_two(
        f"special_{_name}",
        value(_name),
        "x",
        "n",
        scalars=lambda common, name=_name: (limit_of(name, common.itemsize),),
    )


def of_floats(name, function):
    """A function of two tensors of floating-point numbers."""
    refusal = not_implemented(f"{name}_cuda")

    @cuda_kernel(operator_named(name))
    def kernel(self, other):
        common = result_type(self, other)
        if not common.is_floating_point:
            raise refusal(common)
        return apply(function, [self, other], (), common)


for _name, _function in {
    "igamma": special.igamma,
    "igammac": special.igammac,
    "logaddexp": special.logaddexp,
    "logaddexp2": special.logaddexp2,
    "hypot": f.hypot,
}.items():
    of_floats(_name, _function)
