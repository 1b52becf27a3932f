"""`FisherSnedecor`. In PyTorch: `torch/distributions/fishersnedecor.py`."""

from readtorch import contiguous_format, finfo, nan

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two means of squares of standard normal numbers, df1 of them and df2.

    df1, df2: degrees of freedom, positive numbers or tensors that broadcast. No mean for df2 ≤ 2, no variance for df2 ≤ 4:
    NaN.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(FisherSnedecor, batch_shape, _instance, "df1", "df2", "_gamma1", "_gamma2")

    def _df2_above(self, least):
        """df2, NaN where it is not above `least`."""
        df2 = self.df2.clone(memory_format=contiguous_format)
        df2[df2 <= least] = nan
        return df2

    @property
    def mean(self):
        df2 = self._df2_above(2)
        return df2 / (df2 - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = nan
        return mode

    @property
    def variance(self):
        df2 = self._df2_above(4)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        first = self._gamma1.rsample(sample_shape).view(shape)
        second = self._gamma2.rsample(sample_shape).view(shape)
        tiny = finfo(second.dtype).tiny
        second.clamp_(min=tiny)
        return (first / second).clamp_(min=tiny)

    def log_prob(self, value):
        self._check(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * value.log()
        return normalizer + power - (half1 + half2) * (ratio * value).log1p()
