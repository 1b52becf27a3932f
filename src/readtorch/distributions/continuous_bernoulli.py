"""`ContinuousBernoulli`. In PyTorch: `torch/distributions/continuous_bernoulli.py`."""

import math

import readtorch
from readtorch import log, log1p, ones_like, where, zeros_like
from readtorch.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._binary_parameter import BinaryParameter
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """Numbers x in [0, 1] with a density proportional to probs^x (1 - probs)^(1 - x): for pixels as a decoder's output.

    probs, logits: numbers or tensors, of which one is given. lims: between these the formulas, which divide by
    1 - 2 probs, give way to Taylor's series.
    Raises ValueError for both or none. G. Loaiza-Ganem, J. P. Cunningham: The continuous Bernoulli (2019).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._take(probs, logits)
        if probs is not None:
            # before they are moved off 0 and 1
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self._param = self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(ContinuousBernoulli, batch_shape, _instance, "probs", "logits", "_param", kept=["_lims"])

    @lazy_property
    def probs(self):
        """The parameter as a probability; it is not the mean."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside_unstable_region(self):
        return readtorch.max(self.probs <= self._lims[0], self.probs > self._lims[1])

    def _cut_probs(self):
        """`probs`, and a number that does no harm where the series is taken: its gradient must be finite."""
        return where(self._outside_unstable_region(), self.probs, self._lims[0] * ones_like(self.probs))

    def _or_series(self, formula, series):
        return where(self._outside_unstable_region(), formula, series)

    def _cont_bern_log_norm(self):
        """The logarithm of what the density is multiplied by, so that its integral is 1."""
        p = self._cut_probs()
        is_low = p <= 0.5
        low = where(is_low, p, zeros_like(p))
        high = where(p >= 0.5, p, ones_like(p))
        log_norm = log((log1p(-p) - log(p)).abs()) - where(is_low, log1p(-2.0 * low), log(2.0 * high - 1.0))
        x = (self.probs - 0.5).pow(2)
        return self._or_series(log_norm, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        p, x = self._cut_probs(), self.probs - 0.5
        mean = p / (2.0 * p - 1.0) + 1.0 / (log1p(-p) - log(p))
        return self._or_series(mean, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self):
        p, x = self._cut_probs(), (self.probs - 0.5).pow(2)
        variance = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / (log1p(-p) - log(p)).pow(2)
        return self._or_series(variance, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(readtorch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        self._check(value)
        p = self._cut_probs()
        cdf = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        within = where(value >= 1.0, ones_like(value), self._or_series(cdf, value))
        return where(value <= 0.0, zeros_like(value), within)

    def icdf(self, value):
        p = self._cut_probs()
        icdf = (log1p(-p + value * (2.0 * p - 1.0)) - log1p(-p)) / (log(p) - log1p(-p))
        return self._or_series(icdf, value)

    def entropy(self):
        log_0, log_1 = log1p(-self.probs), log(self.probs)
        return self.mean * (log_0 - log_1) - self._cont_bern_log_norm() - log_0

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        low, high = (limit - 0.5 for limit in self._lims)
        outside = readtorch.max(x <= low, x > high)
        cut = where(outside, x, low * ones_like(x))
        log_norm = log(cut.expm1().abs()) - log(cut.abs())
        return where(outside, log_norm, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
