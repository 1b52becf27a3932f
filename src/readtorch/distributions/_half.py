"""What `HalfNormal` and `HalfCauchy` share: the absolute value of a number that is symmetric around 0.

PyTorch has no such file: both classes have the same lines.
"""

import math

from readtorch import inf, where, zeros_like

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class Half(TransformedDistribution):
    """|x| of a symmetric distribution with the parameters 0 and `scale`: twice its density, for x ≥ 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def _fold(self, symmetric, validate_args):
        super().__init__(symmetric, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """The parameter of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self):
        return zeros_like(self.scale)

    def log_prob(self, value):
        self._check(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -inf)

    def cdf(self, value):
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
