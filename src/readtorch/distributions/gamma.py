"""`Gamma`. In PyTorch: `torch/distributions/gamma.py`."""

import readtorch
from readtorch import finfo

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Nonnegative numbers with a density proportional to x^(concentration - 1) exp(-rate x).

    concentration, rate: positive numbers or tensors that broadcast.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Gamma, batch_shape, _instance, "concentration", "rate")

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=()):
        """Differentiable: the gradient of `torch._standard_gamma` is that of the inverse distribution function."""
        shape = self._extended_shape(sample_shape)
        value = readtorch._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # off 0, and autograd does not see it
        return value

    def log_prob(self, value):
        value = readtorch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        powers = readtorch.xlogy(self.concentration, self.rate) + readtorch.xlogy(self.concentration - 1, value)
        return powers - self.rate * value - self.concentration.lgamma()

    def cdf(self, value):
        self._check(value)
        return readtorch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log()
