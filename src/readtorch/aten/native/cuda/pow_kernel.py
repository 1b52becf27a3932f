"""Powers of a tensor and a scalar.

In PyTorch: `aten/src/ATen/native/cuda/PowKernel.cu`.
"""

from readtorch.aten.native import math as f
from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak

from .register_dispatch_key import cuda_kernel, operator_named
from .tensor_iterator import apply


@cuda_kernel(operator_named("pow.Tensor_Scalar"))
def pow_number_cuda(self, exponent):
    common = result_type(self, weak(exponent))
    return apply_power(self, exponent, common)


def apply_power(self, exponent, common):
    """The common exponents without the general power function."""
    if exponent == 2:
        return apply(f.square, [self], (), common)
    if exponent == 0.5:
        return apply(f.sqrt, [self], (), common)
    return apply(f.power_of_number, [self], (exponent,), common)


@cuda_kernel(operator_named("pow.Scalar"))
def number_to_the_power_cuda(self, exponent):
    return apply(f.number_to_the_power, [exponent], (self,), result_type(weak(self), exponent))
