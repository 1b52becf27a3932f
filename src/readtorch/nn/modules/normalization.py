"""Normalization over the features of each sample. In PyTorch: `torch/nn/modules/normalization.py`.

Chapter 10 compares it with normalization over the batch.
"""
import numbers

import readtorch
from readtorch.nn import functional as F
from readtorch.nn import init
from readtorch.nn.modules.module import Module
from readtorch.nn.parameter import Parameter

__all__ = ["LayerNorm"]


class LayerNorm(Module):
    """y = (x - mean) / √(var + eps) · weight + bias, over the last dimensions, of sizes `normalized_shape`.

    The variance is the biased one. weight and bias have the shape `normalized_shape` and start at 1 and 0.
    J. L. Ba, J. R. Kiros, G. E. Hinton: Layer normalization (2016).
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None
    ) -> None:
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
