"""`InverseGamma`. In PyTorch: `torch/distributions/inverse_gamma.py`."""

from readtorch import inf, where

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x of a Gamma(concentration, rate) number x: positive.

    concentration, rate: positive numbers or tensors that broadcast. The mean is infinite for a concentration ≤ 1, the
    variance for one ≤ 2.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        gamma = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(gamma, PowerTransform(-gamma.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self):
        """The Gamma distribution's concentration."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """The Gamma distribution's rate, which is a scale here."""
        return self.base_dist.rate

    @property
    def mean(self):
        return where(self.concentration > 1, self.rate / (self.concentration - 1), inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), inf)

    def entropy(self):
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
