"""`HalfNormal`. In PyTorch: `torch/distributions/half_normal.py`."""

import math

from ._half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|x| of a normal number x with mean 0: nonnegative.

    scale: the standard deviation of x, a positive number or tensor.
    """

    def __init__(self, scale, validate_args=None):
        self._fold(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)
