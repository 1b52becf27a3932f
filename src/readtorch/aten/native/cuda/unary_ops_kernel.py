"""Functions of one tensor, element by element.

In PyTorch: `aten/src/ATen/native/cuda/UnaryOpsKernel.cu`.
"""

import math

import ml_dtypes

from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.c10.scalar_type import BOOL, FLOAT
from readtorch.c10.tensor_impl import dtype_of

from .copy import clone_cuda
from .register_dispatch_key import cuda_impl, cuda_kernel, operator_named
from .tensor_iterator import apply


@cuda_impl(operator_named("frexp.Tensor"))
def frexp_cuda(self, mantissa, exponent):
    apply(f.mantissa, [self], out=mantissa)
    apply(f.exponent, [self], out=exponent)


@cuda_kernel(operator_named("bitwise_not"))
def bitwise_not_cuda(self):
    return at.logical_not(self) if dtype_of(self).category == BOOL else -1 - self


@cuda_kernel(operator_named("nan_to_num"))
def nan_to_num_cuda(self, nan, posinf, neginf):
    if dtype_of(self).category < FLOAT:
        return clone_cuda(self, None)
    most = float(ml_dtypes.finfo(self._array.dtype).max)
    self = at.where(self != self, 0.0 if nan is None else nan, self)
    self = at.where(self == math.inf, most if posinf is None else posinf, self)
    return at.where(self == -math.inf, -most if neginf is None else neginf, self)
