"""The multivariate gamma function. The other special functions follow from their pages: tensor_iterator.py.

In PyTorch: `aten/src/ATen/native/cuda/UnarySpecialOpsKernel.cu`.
"""

import math

from readtorch.aten.functions import at
from readtorch.aten.native.tensor_iterator import float_result_type
from readtorch.aten.native.unary_ops.special import check_mvlgamma

from .register_dispatch_key import cuda_kernel, operator_named


@cuda_kernel(operator_named("mvlgamma"))
def mvlgamma_cuda(self, p):
    """log of the multivariate gamma function."""
    check_mvlgamma(self, p)
    shifts = at.arange(p, dtype=float_result_type(self), device=self.device) / 2 - (p - 1) / 2
    return at.lgamma(self.unsqueeze(-1) + shifts).sum(-1) + p * (p - 1) * math.log(math.pi) / 4
