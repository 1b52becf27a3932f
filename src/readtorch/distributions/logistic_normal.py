"""`LogisticNormal`. In PyTorch: `torch/distributions/logistic_normal.py`."""

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probabilities (…, n + 1) that a `StickBreakingTransform` makes of n normal numbers.

    loc, scale: mean and standard deviation of these, numbers or tensors (…, n) that broadcast; scale is positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        normal = Normal(loc, scale, validate_args=validate_args)
        if not normal.batch_shape:
            normal = normal.expand([1])
        super().__init__(normal, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self):
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self):
        """The standard deviations of the normal numbers."""
        return self.base_dist.base_dist.scale
