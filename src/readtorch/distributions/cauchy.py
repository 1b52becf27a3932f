"""`Cauchy`. In PyTorch: `torch/distributions/cauchy.py`."""

import math

import readtorch
from readtorch import inf, nan

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Cauchy (Lorentz) numbers: 1 / (π scale (1 + ((x - loc) / scale)²)) for all real x. They have no mean.

    loc, scale: median and half width at half maximum, numbers or tensors that broadcast; scale is positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Cauchy, batch_shape, _instance, "loc", "scale")

    def _filled(self, number):
        return readtorch.full(self._extended_shape(), number, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def mean(self):
        return self._filled(nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._filled(inf)

    def rsample(self, sample_shape=()):
        noise = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value):
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value):
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
