"""Kernels and derivatives, one family of operators a file.

In PyTorch: `aten/src/ATen/native` and `tools/autograd/derivatives.yaml`, here side by side.
"""
from . import (  # noqa: F401
    binary_ops,
    blas,
    comparison_ops,
    copy,
    extremes,
    linear,
    linear_algebra,
    pow_ops,
    reduce_ops,
    tensor_factories,
    unary_ops,
    views,
)
