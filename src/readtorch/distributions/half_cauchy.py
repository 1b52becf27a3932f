"""`HalfCauchy`. In PyTorch: `torch/distributions/half_cauchy.py`."""

from readtorch import as_tensor, full, inf

from ._half import Half
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| of a Cauchy number x around 0: nonnegative, with an infinite mean.

    scale: the half width of x at half maximum, a positive number or tensor; the median of |x|.
    """

    def __init__(self, scale, validate_args=None):
        self._fold(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self):
        return full(self._extended_shape(), inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance

    def log_prob(self, value):
        self._check(value)
        return super().log_prob(as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
