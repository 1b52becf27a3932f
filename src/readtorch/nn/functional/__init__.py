"""The layers as functions: what a module's `forward` calls, with the weights as arguments.

In PyTorch: one file of 7,300 lines, `torch/nn/functional.py`. Here by family: `activation.py`, `dropout.py`,
`loss.py`, and the rest below. Each function checks its arguments and forwards to an operator (`aten/native`).
The chapter "Layers: convolution, embedding, recurrence" stands at this seam.
"""

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.nn import grad

from .activation import *  # noqa: F403
from .activation import _threshold  # the name that `threshold` has there, too
from .attention import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .fold import *  # noqa: F403
from .embedding import *  # noqa: F403
from .linear_cross_entropy import *  # noqa: F403
from .loss import *  # noqa: F403
from .margin_loss import *  # noqa: F403
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .upsampling import *  # noqa: F403
from .vision import *  # noqa: F403

# y = x Wᵀ + b: input (*, in_features), weight (out_features, in_features), bias (out_features) or None.
linear = _nn.linear
# A new last dimension, 0 everywhere but 1 at the class that an int64 element names.
one_hot = _nn.one_hot


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """y = x₁ᵀ A x₂ + b: input1 (*, in1), input2 (*, in2), weight (out, in1, in2), bias (out) or None."""
    return readtorch.bilinear(input1, input2, weight, bias)


# As users know them, whatever file they are in.
for _value in list(globals().values()):
    if getattr(_value, "__module__", "").startswith(f"{__name__}."):
        _value.__module__ = __name__
