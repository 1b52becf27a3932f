"""The layers as functions: what a module's `forward` calls, with the weights as arguments.

In PyTorch: one file of 7,300 lines, `torch/nn/functional.py`. Here by family: `activation.py`, `dropout.py`,
`loss.py`, and the rest below. Each function checks its arguments and forwards to an operator (`aten/native`).
The chapter "Layers, functional, init" stands at this seam.
"""
import readtorch
from readtorch._C import _nn
from readtorch.nn import grad  # noqa: F401
from readtorch.nn.functional.activation import *  # noqa: F403
from readtorch.nn.functional.attention import *  # noqa: F403
from readtorch.nn.functional.conv import *  # noqa: F403
from readtorch.nn.functional.distance import *  # noqa: F403
from readtorch.nn.functional.dropout import *  # noqa: F403
from readtorch.nn.functional.fold import *  # noqa: F403
from readtorch.nn.functional.embedding import *  # noqa: F403
from readtorch.nn.functional.linear_cross_entropy import *  # noqa: F403
from readtorch.nn.functional.loss import *  # noqa: F403
from readtorch.nn.functional.margin_loss import *  # noqa: F403
from readtorch.nn.functional.normalization import *  # noqa: F403
from readtorch.nn.functional.padding import *  # noqa: F403
from readtorch.nn.functional.pooling import *  # noqa: F403
from readtorch.nn.functional.upsampling import *  # noqa: F403
from readtorch.nn.functional.vision import *  # noqa: F403

# y = x Wᵀ + b: input (*, in_features), weight (out_features, in_features), bias (out_features) or None.
linear = _nn.linear
# A new last dimension, 0 everywhere but 1 at the class that an int64 element names.
one_hot = _nn.one_hot


def bilinear(input1, input2, weight, bias=None):
    """y = x₁ᵀ A x₂ + b: input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out) or None."""
    return readtorch.bilinear(input1, input2, weight, bias)
