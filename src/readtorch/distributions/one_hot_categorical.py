"""`OneHotCategorical` and its straight-through form. In PyTorch: `torch/distributions/one_hot_categorical.py`."""

import readtorch
from readtorch.nn.functional import one_hot

from . import constraints
from ._over_categorical import OverCategorical
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OverCategorical, Distribution):
    """One of K categories, as a vector of zeros with a 1 in its place.

    probs, logits: tensors (…, K), of which one is given, as in `Categorical`, and with its errors.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(OneHotCategorical, batch_shape, _instance, "_categorical")

    @property
    def _param(self):
        return self._categorical._param

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        index = self._categorical.sample(sample_shape)
        return one_hot(index, self._categorical._num_events).to(self.probs)

    def log_prob(self, value):
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        """The rows of the unit matrix: (K,) + batch_shape + (K,)."""
        n = self.event_shape[0]
        values = readtorch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A OneHotCategorical whose draws pass gradients on to `probs`, as if they were `probs`: a biased estimate.

    Y. Bengio, N. Léonard, A. Courville: Estimating or propagating gradients through stochastic neurons (2013).
    """

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
