"""`GeneralizedPareto`. In PyTorch: `torch/distributions/generalized_pareto.py`."""

import readtorch
from readtorch import inf, nan, ones_like, where

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What is left of a quantity above a high threshold: P(x > loc + scale z) = (1 + concentration z)^(-1/concentration).

    loc, scale, concentration: numbers or tensors that broadcast; scale is positive. A concentration of 0 means exp(-z), a
    negative one an upper bound, loc - scale / concentration. No mean for a concentration ≥ 1, no variance from 1/2: NaN.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        upper = where(self.concentration < 0, self.loc - self.scale / self.concentration, inf)
        return constraints.interval(self.loc, upper)

    def _is_zero_and_safe(self):
        """Where the concentration is 0, and a concentration by which one may divide."""
        # in PyTorch: `log_prob` compares with a zero of the default dtype, and raises RuntimeError if that is another one
        is_zero = readtorch.isclose(self.concentration, readtorch.zeros_like(self.concentration))
        return is_zero, where(is_zero, ones_like(self.concentration), self.concentration)

    def _z(self, x):
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(readtorch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        self._check(value)
        z = self._z(value)
        is_zero, concentration = self._is_zero_and_safe()
        y = 1 / concentration + ones_like(z)
        minus_log = where(y == 0, y, y * (concentration * z).log1p())  # 0 times infinity is 0
        return -self.scale.log() - where(is_zero, z, minus_log)

    def log_survival_function(self, value):
        """The logarithm of the probability of a draw above `value`."""
        self._check(value)
        z = self._z(value)
        is_zero, concentration = self._is_zero_and_safe()
        return where(is_zero, -z, -(concentration * z).log1p() / concentration)

    def log_cdf(self, value):
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return self.log_cdf(value).exp()

    def icdf(self, value):
        is_zero, concentration = self._is_zero_and_safe()
        log_survival = (-value).log1p()
        power = self.loc + self.scale / concentration * (-concentration * log_survival).expm1()
        return where(is_zero, self.loc - self.scale * log_survival, power)

    @property
    def mean(self):
        exists = self.concentration < 1
        mean = self.loc + self.scale / (1 - where(exists, self.concentration, 0.5))
        return where(exists, mean, nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        exists = self.concentration < 0.5
        concentration = where(exists, self.concentration, 0.25)
        return where(exists, self.scale**2 / ((1 - concentration) ** 2 * (1 - 2 * concentration)), nan)

    def entropy(self):
        return (self.scale.log() + self.concentration + 1).broadcast_to(self._batch_shape)
