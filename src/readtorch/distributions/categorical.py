"""`Categorical`. In PyTorch: `torch/distributions/categorical.py`."""

import readtorch
from readtorch import Size, finfo, nan

from . import constraints
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, one_of, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """0, …, K-1 with the probabilities `probs`.

    probs, logits: tensors (…, K), of which one is given: nonnegative numbers, divided by their sum, or logarithms of
    them, of which logsumexp is taken off. Raises ValueError for both or none, and for a tensor without dimensions.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        name, given = one_of(probs=probs, logits=logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self._param = self.probs = given / given.sum(-1, keepdim=True)
        else:
            self._param = self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Categorical, batch_shape, _instance, "probs", "logits", "_param", kept=["_num_events"])

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """The logarithms of the probabilities: (…, K)."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """The probabilities: (…, K), with the sum 1."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        """The shape of `probs` and `logits`."""
        return self._param.size()

    def _undefined(self):
        return readtorch.full(self._extended_shape(), nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self):
        """NaN: categories have no mean."""
        return self._undefined()

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    @property
    def variance(self):
        """NaN, as the mean."""
        return self._undefined()

    def sample(self, sample_shape=()):
        sample_shape = Size(sample_shape)
        probs = self.probs.reshape(-1, self._num_events)
        samples = readtorch.multinomial(probs, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._check(value)
        value, logits = readtorch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)  # 0 log 0 is 0
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return self._enumerated(
            readtorch.arange(self._num_events, dtype=readtorch.long, device=self._param.device), expand
        )
