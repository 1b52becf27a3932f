"""renorm: the slices of a tensor scaled down to a norm.

In PyTorch: `aten/src/ATen/native/cuda/RenormKernel.cu`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.normalization import other_dims, renorm_meta
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of

from .register_dispatch_key import cuda_kernel, operator_named


@cuda_kernel(operator_named("renorm"))
def renorm_cuda(self, p, dim, maxnorm):
    """Each slice along `dim` whose norm is greater than maxnorm is scaled down to it."""
    renorm_meta(self, p, dim, maxnorm)
    norm = at.linalg_vector_norm(self, p, other_dims(self, dim), True).to(op_math_type(dtype_of(self)))
    factor = at.where(norm > maxnorm, maxnorm / (norm + 1e-7), at.ones_like(norm))
    return (self * factor.to(self.dtype)).to(self.dtype)
