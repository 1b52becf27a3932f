"""Special functions: erfinv, lgamma, digamma, zeta, Bessel functions, entropies and logarithms of sums.

In PyTorch: `aten/src/ATen/native/cuda/UnarySpecialOpsKernel.cu`.
"""

import math

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import math_special as special
from readtorch.aten.native.math_special import POLYNOMIALS, limit_of, value
from readtorch.aten.native.tensor_iterator import float_result_type, is_wide, not_implemented, result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.aten.native.unary_ops.special import mvlgamma_meta
from readtorch.c10.scalar_type import COMPLEX

from .register_dispatch_key import cuda_kernel, operator_named
from .tensor_iterator import apply
from .unary_ops_kernel import NEVER


@cuda_kernel(operator_named("mvlgamma"))
def mvlgamma_cuda(self, p):
    """log of the multivariate gamma function."""
    mvlgamma_meta(self, p)
    shifts = at.arange(p, dtype=float_result_type(self), device=self.device) / 2 - (p - 1) / 2
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
