"""`StudentT`. In PyTorch: `torch/distributions/studentT.py`."""

import math

from readtorch import contiguous_format, inf, nan

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t: loc + scale * x / √(z / df) of a standard normal x and a Chi2(df) number z; all real numbers.

    df, loc, scale: numbers or tensors that broadcast; df and scale are positive. No mean for df ≤ 1: NaN, an infinite
    variance for df ≤ 2.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(StudentT, batch_shape, _instance, "df", "loc", "scale", "_chi2")

    @property
    def mean(self):
        mean = self.loc.clone(memory_format=contiguous_format)
        mean[self.df <= 1] = nan
        return mean

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance, exists = self.df.clone(memory_format=contiguous_format), self.df > 2
        df = self.df[exists]
        variance[exists] = self.scale[exists].pow(2) * df / (df - 2)
        variance[(self.df <= 2) & (self.df > 1)] = inf
        variance[self.df <= 1] = nan
        return variance

    def rsample(self, sample_shape=()):
        x = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    def log_prob(self, value):
        self._check(value)
        df, y = self.df, (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi)
        normalizer = normalizer + (0.5 * df).lgamma() - (0.5 * (df + 1.0)).lgamma()
        return -0.5 * (df + 1.0) * (y**2.0 / df).log1p() - normalizer

    def entropy(self):
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
