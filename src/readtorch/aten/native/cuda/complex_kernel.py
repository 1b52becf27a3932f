"""complex and polar: complex numbers from pairs of real ones.

In PyTorch: `aten/src/ATen/native/cuda/ComplexKernel.cu`, `aten/src/ATen/native/cuda/UnaryComplexKernels.cu`.
"""

from readtorch.aten.functions import at

from .register_dispatch_key import cuda_impl, operator_named


@cuda_impl(operator_named("complex"))
def complex_cuda(real, imag, out):
    """Written part by part."""
    parts = at.view_as_real(out)
    parts.select(-1, 0).copy_(real)
    parts.select(-1, 1).copy_(imag)


@cuda_impl(operator_named("polar"))
def polar_cuda(abs, angle, out):
    """abs · (cos angle + i sin angle)"""
    complex_cuda(abs * at.cos(angle), abs * at.sin(angle), out)
