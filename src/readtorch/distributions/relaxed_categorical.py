"""`RelaxedOneHotCategorical`. In PyTorch: `torch/distributions/relaxed_categorical.py`."""

import readtorch

from . import constraints
from ._over_categorical import OverCategorical
from .categorical import Categorical
from .distribution import Distribution
from .relaxed_bernoulli import _Relaxed
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategorical, Distribution):
    """The logarithm of a RelaxedOneHotCategorical, which rounds less. Its arguments are described there."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # of these, vectors whose exp has the sum 1
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(ExpRelaxedCategorical, batch_shape, _instance, "_categorical", kept=["temperature"])

    def rsample(self, sample_shape=()):
        """The log-softmax of (Gumbel noise + logits) / temperature."""
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(readtorch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits + -(-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        self._check(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        log_scale = readtorch.full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(-(k - 1))
        scores = logits - value.mul(self.temperature)
        return (scores - scores.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors on the simplex near its corners, differentiable in place of one-hot ones: softmax of noisy logits / temperature.

    temperature: a tensor; near 0 the draws are those of a OneHotCategorical. probs, logits: tensors (…, K), of which one
    is given, as in `Categorical`, and with its errors.
    C. J. Maddison, A. Mnih, Y. W. Teh: The Concrete distribution (2017).
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        logarithm = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(logarithm, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))
