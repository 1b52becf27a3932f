"""angle, conj, complex and polar.

In PyTorch: `aten/src/ATen/native/cuda/ComplexKernel.cu`, `aten/src/ATen/native/cuda/UnaryComplexKernels.cu`.
"""

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native.unary_ops.complex import complex_type
from readtorch.aten.register_dispatch_key import write_result
from readtorch.c10.tensor_impl import dtype_of

from .copy import clone_cuda
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .tensor_iterator import apply
from .unary_ops_kernel import own_float


@cuda_kernel(operator_named("angle"))
def angle_cuda(self):
    dtype = dtype_of(self)
    if dtype.is_complex:
        return apply(f.angle_of_complex, [self], (), dtype, dtype.to_real())
    return apply(f.angle, [self], (), own_float(self))


@cuda_kernel(operator_named("_conj"), operator_named("_conj_physical"))
def conj_physical_cuda(self):
    return apply(f.conjugate, [self]) if dtype_of(self).is_complex else clone_cuda(self, None)


@cuda_kernel(operator_named("conj_physical_"))
def conj_physical_cuda_(self):
    return write_result(self, conj_physical_cuda(self)) if dtype_of(self).is_complex else self


@cuda_kernel(operator_named("complex"))
def complex_cuda(real, imag):
    """Written part by part."""
    shape = broadcast_shape(real._array.shape, imag._array.shape)
    result = empty(shape, complex_type(real, imag).numpy)
    parts = at.view_as_real(result)
    parts.select(-1, 0).copy_(real)
    parts.select(-1, 1).copy_(imag)
    return result


@cuda_kernel(operator_named("polar"))
def polar_cuda(abs, angle):
    """abs · (cos angle + i sin angle)"""
    complex_type(abs, angle)
    return complex_cuda(abs * at.cos(angle), abs * at.sin(angle))
