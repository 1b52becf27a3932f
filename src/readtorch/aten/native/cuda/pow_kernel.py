"""Powers of a tensor and a scalar.

In PyTorch: `aten/src/ATen/native/cuda/PowKernel.cu`.
"""

from readtorch.aten.native import math as f
from readtorch.aten.native.pow import check_not_bool, pow_of_number, pow_scalar
from readtorch.aten.native.tensor_iterator import result_type
from readtorch.aten.native.tensor_iterator import scalar_tensor as weak
from readtorch.c10.tensor_impl import dtype_of

from .register_dispatch_key import cuda_impl, cuda_kernel
from .tensor_iterator import apply, run

# The common exponents, without the general power function.
QUICK = {2: f.square, 0.5: f.sqrt}


@cuda_impl(pow_scalar)
def pow_scalar_cuda(self, exponent, out):
    check_not_bool(dtype_of(out))
    if exponent in QUICK:
        run(QUICK[exponent], [self], (), dtype_of(out), out._array)
    else:
        run(f.power_of_number, [self], (exponent,), dtype_of(out), out._array)


@cuda_kernel(pow_of_number)
def pow_of_number_cuda(self, exponent):
    return apply(f.number_to_the_power, [exponent], (self,), result_type(weak(self), exponent))
