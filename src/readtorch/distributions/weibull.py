"""`Weibull`. In PyTorch: `torch/distributions/weibull.py`."""

from readtorch import ones_like

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Times until a failure: P(draw > x) = exp(-(x / scale)^concentration) for positive x.

    scale, concentration: positive numbers or tensors that broadcast. A concentration below 1: failures become rarer.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self._transform_exponential(Exponential(ones_like(self.scale), validate_args=validate_args), validate_args)

    def _transform_exponential(self, exponential, validate_args):
        self.concentration_reciprocal = self.concentration.reciprocal()
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(exponential, steps, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        new._transform_exponential(self.base_dist.expand(batch_shape), False)  # with the expanded parameters
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self):
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self):
        first, second = (1 + self.concentration_reciprocal).lgamma(), (1 + 2 * self.concentration_reciprocal).lgamma()
        return self.scale.pow(2) * (second.exp() - (2 * first).exp())

    def entropy(self):
        reciprocal = self.concentration_reciprocal
        return euler_constant * (1 - reciprocal) + (self.scale * reciprocal).log() + 1
