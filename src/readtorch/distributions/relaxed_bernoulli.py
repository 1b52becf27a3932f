"""`RelaxedBernoulli`. In PyTorch: `torch/distributions/relaxed_bernoulli.py`."""

import readtorch

from . import constraints
from ._binary_parameter import BinaryParameter
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameter, Distribution):
    """The log-odds of a RelaxedBernoulli: all real numbers. Its arguments are described there."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        names = "probs", "logits", "_param"
        return self._expanded(LogitRelaxedBernoulli, batch_shape, _instance, *names, kept=["temperature"])

    def rsample(self, sample_shape=()):
        """(logistic noise + logits) / temperature"""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(readtorch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class _Relaxed(TransformedDistribution):
    """What takes the place of a discrete distribution, with its parameters; near a temperature of 0 it is that one."""

    has_rsample = True

    @property
    def temperature(self):
        """How far draws are from those of the discrete distribution."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The discrete distribution's parameter, as logarithms."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The discrete distribution's parameter, as probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1) near its ends, differentiable in place of 0 and 1: the sigmoid of noisy logits / temperature.

    temperature: a tensor; near 0 the draws are those of a Bernoulli. probs, logits: numbers or tensors, of which one is
    given. Raises ValueError for both or none.
    C. J. Maddison, A. Mnih, Y. W. Teh: The Concrete distribution (2017).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))
