"""`Gumbel`. In PyTorch: `torch/distributions/gumbel.py`."""

import math

from readtorch import finfo, full_like, ones_like
from readtorch.types import _Number

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The largest of many numbers: P(draw ≤ x) = exp(-exp(-(x - loc) / scale)) for all real x.

    loc, scale: numbers or tensors that broadcast; scale is positive. A draw is loc - scale log(-log(u)) of a uniform u.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        low, high = limits.tiny, 1 - limits.eps  # log(-log(u)) is finite
        if not isinstance(loc, _Number) or not isinstance(scale, _Number):
            low, high = full_like(self.loc, low), full_like(self.loc, high)
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value):
        """In closed form: the transforms would lose digits where exp(-z) is near 0 or 1."""
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
