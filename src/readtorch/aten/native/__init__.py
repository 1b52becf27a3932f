"""Kernels and derivatives, one family of operators a file.

In PyTorch: `aten/src/ATen/native` and `tools/autograd/derivatives.yaml`, here side by side.
"""
from . import (  # noqa: F401
    binary_ops,
    blas,
    comparison_ops,
    copy,
    distributions,
    dropout,
    extremes,
    fill,
    linear,
    linear_algebra,
    masking,
    pow_ops,
    range_factories,
    random,
    reduce_ops,
    sampling,
    tensor_factories,
    tensor_shape,
    unary_ops,
    views,
)
