"""Normalization within each example. In PyTorch: `torch/nn/modules/normalization.py`.

The chapter "Normalization" compares it with normalization
over the batch.
"""

import numbers

import readtorch
from readtorch.nn import functional as F
from readtorch.nn import init
from readtorch.nn.parameter import Parameter

from . import _functions
from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """y = x / (k + alpha · mean of the squares in `size` neighbouring channels)^beta, for an input (N, C, *).

    A. Krizhevsky, I. Sutskever, G. E. Hinton: ImageNet classification with deep convolutional neural networks
    (2012).
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """The older form of `LocalResponseNorm`, for (N, C, H, W): a function with a gradient of its own."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input):
        return _functions.CrossMapLRN2d.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LayerNorm(Module):
    """y = (x - mean) / √(var + eps) · weight + bias, over the last dimensions, of sizes `normalized_shape`.

    The variance is the biased one. weight and bias have the shape `normalized_shape` and start at 1 and 0.
    J. L. Ba, J. R. Kiros, G. E. Hinton: Layer normalization (2016).
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine

        def new_parameter():
            return Parameter(readtorch.empty(self.normalized_shape, device=device, dtype=dtype))

        self.register_parameter("weight", new_parameter() if elementwise_affine else None)
        self.register_parameter("bias", new_parameter() if elementwise_affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """y = (x - mean) / √(var + eps) · weight + bias, each group of channels of (N, C, *) by itself.

    The variance is the biased one. weight and bias, one a channel, start at 1 and 0. Raises ValueError unless
    num_groups divides num_channels. Y. Wu, K. He: Group normalization (2018).
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine

        def new_parameter():
            return Parameter(readtorch.empty(num_channels, device=device, dtype=dtype))

        self.register_parameter("weight", new_parameter() if affine else None)
        self.register_parameter("bias", new_parameter() if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """y = x / √(mean of x² + eps) · weight, over the last dimensions, of sizes `normalized_shape`.

    eps=None: the machine epsilon of the type that is computed in. weight has the shape `normalized_shape` and
    starts at 1. B. Zhang, R. Sennrich: Root mean square layer normalization (2019).
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = Parameter(readtorch.empty(self.normalized_shape, device=device, dtype=dtype))
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
