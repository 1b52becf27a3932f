"""`Binomial`. In PyTorch: `torch/distributions/binomial.py`."""

import readtorch

from . import constraints
from ._binary_parameter import BinaryParameter
from .distribution import Distribution

__all__ = ["Binomial"]


def _clamp_by_zero(x):
    """max(x, 0), whose gradient at 0 is 1/2."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryParameter, Distribution):
    """How many of `total_count` independent trials succeed, each with probability `probs`: 0, …, total_count.

    total_count: nonnegative integers, a number or a tensor. probs, logits: tensors that broadcast with it, of which one
    is given; logits are log-odds. Raises ValueError for both or none, NotImplementedError in `entropy` and
    `enumerate_support` if the counts differ.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Binomial, batch_shape, _instance, "total_count", "probs", "logits", "_param")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with readtorch.no_grad():
            return readtorch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        """The binomial coefficient's logarithm, plus k logits - n log(1 + exp(logits)), which does not overflow."""
        self._check(value)
        count, logits = self.total_count, self.logits
        log_factorial_n = (count + 1).lgamma()
        log_factorial_k = (value + 1).lgamma()
        log_factorial_rest = (count - value + 1).lgamma()
        normalizer = count * _clamp_by_zero(logits) + count * (-logits.abs()).exp().log1p() - log_factorial_n
        return value * logits - log_factorial_k - log_factorial_rest - normalizer

    def entropy(self):
        self._common_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        count = self._common_count("enumerate_support")
        return self._enumerated(readtorch.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)

    def _common_count(self, asked):
        """The number of trials, which must be one for the whole batch."""
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asked}`.")
        return count
