"""`Multinomial`. In PyTorch: `torch/distributions/multinomial.py`."""

import readtorch
from readtorch import Size, contiguous_format, inf

from . import constraints
from ._over_categorical import OverCategorical
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OverCategorical, Distribution):
    """How often each of K categories comes in `total_count` draws: K counts with that sum.

    total_count: an int. probs, logits: tensors (…, K), of which one is given, as in `Categorical`. `log_prob` takes any
    sum up to total_count. Raises NotImplementedError for counts in a tensor, ValueError as `Categorical`.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        # in PyTorch: without _binomial, so that `entropy` of what is expanded raises AttributeError
        return self._expanded(Multinomial, batch_shape, _instance, "_categorical", "_binomial", kept=["total_count"])

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        draws = draws.permute(*range(1, draws.dim()), 0)
        counts = draws.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, draws, readtorch.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self):
        """That of the draws, less what their order would say: log n! - Σ E[log xᵢ!]."""
        n = readtorch.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        repeats = self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()
        return n * self._categorical.entropy() - (n + 1).lgamma() + repeats.sum([0, -1])

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=contiguous_format)
        orders = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        logits[(value == 0) & (logits == -inf)] = 0  # 0 log 0 is 0
        return orders + (logits * value).sum(-1)
