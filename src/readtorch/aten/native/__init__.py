"""Kernels and derivatives, one family of operators a file.

In PyTorch: `aten/src/ATen/native` and `tools/autograd/derivatives.yaml`, here side by side.
"""
from . import (  # noqa: F401
    binary_ops,
    blas,
    copy,
    linear,
    linear_algebra,
    reduce_ops,
    tensor_factories,
    views,
)
