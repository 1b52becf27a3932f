"""`NegativeBinomial`. In PyTorch: `torch/distributions/negative_binomial.py`."""

import readtorch
from readtorch.nn.functional import logsigmoid

from . import constraints
from ._binary_parameter import BinaryParameter
from .distribution import Distribution
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameter, Distribution):
    """How many trials succeed before `total_count` of them have failed: k = 0, 1, 2, …

    total_count: nonnegative, a number or a tensor, not only integers. probs, logits: tensors that broadcast with it, of
    which one is given: of success, in [0, 1). Raises ValueError for both or none.
    A Poisson number whose rate is a Gamma number.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits", "_param")

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self):
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)  # a count of 0 is no concentration

    def sample(self, sample_shape=()):
        with readtorch.no_grad():
            return readtorch.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        orders = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return powers - orders.masked_fill(n + value == 0.0, 0.0)
