"""What a linear layer of integers keeps. In PyTorch: `torch/ao/nn/quantized/modules/linear.py`.

Left out: `Linear` between quantized tensors, and writing and reading a state: it holds a quantized tensor.
"""

import readtorch
from readtorch import nn

from .packed_params import no_quantized_tensors

__all__ = ["LinearPackedParams"]


class LinearPackedParams(nn.Module):
    """The weight and bias, which are no parameters. What shows them as a quantized tensor raises NotImplementedError."""

    _version = 3

    def __init__(self, packed):
        super().__init__()
        self.dtype = readtorch.qint8
        self._packed_params = packed

    def forward(self, x):
        return x

    def set_weight_bias(self, weight, bias):
        raise no_quantized_tensors()

    def _weight_bias(self):
        raise no_quantized_tensors()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        raise no_quantized_tensors()

    def _load_from_state_dict(self, *args):
        raise no_quantized_tensors()
