"""Operators as a module, so that an observer can be put behind them. In PyTorch:
`torch/ao/nn/quantized/modules/functional_modules.py`.
"""

import readtorch
from readtorch import nn

__all__ = ["FloatFunctional"]


class FloatFunctional(nn.Module):
    """Its methods do what the functions of their names do; a model writes `self.plus.add(x, y)` for `x + y`.

    activation_post_process: sees what a method gives, the identity at first. What has a number as its second operand passes
    it by. `forward` raises RuntimeError.
    """

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        return self.activation_post_process(readtorch.add(x, y))

    def add_scalar(self, x, y):
        return readtorch.add(x, y)

    def mul(self, x, y):
        return self.activation_post_process(readtorch.mul(x, y))

    def mul_scalar(self, x, y):
        return readtorch.mul(x, y)

    def cat(self, x, dim=0):
        return self.activation_post_process(readtorch.cat(x, dim=dim))

    def add_relu(self, x, y):
        """`relu(x + y)`."""
        return self.activation_post_process(nn.functional.relu(readtorch.add(x, y)))

    def matmul(self, x, y):
        return self.activation_post_process(readtorch.matmul(x, y))
