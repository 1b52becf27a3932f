"""`TransformedDistribution`. In PyTorch: `torch/distributions/transformed_distribution.py`."""

import readtorch
from readtorch import Size

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of f(x), x from `base_distribution`, f the `transforms` one after the other.

    transforms: a Transform or a list of them. The density of y is that of x, divided by |det ∂y/∂x|: `log_prob` needs
    transforms with an inverse.
    Raises ValueError for what is no transform, and for a base with fewer dimensions than the transforms take.
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = _listed(transforms)
        transform = ComposeTransform(self.transforms)
        taken, given = transform.domain.event_dim, transform.codomain.event_dim
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        if len(base_shape) < taken:
            raise ValueError(f"base_distribution needs to have shape with size at least {taken}, but got {base_shape}.")
        shape = transform.forward_shape(base_shape)
        expanded_shape = transform.inverse_shape(shape)  # parameters of the transforms may broadcast
        if base_shape != expanded_shape:
            base_distribution = base_distribution.expand(expanded_shape[: len(expanded_shape) - base_event_dim])
        if taken > base_event_dim:
            base_distribution = Independent(base_distribution, taken - base_event_dim)
        self.base_dist = base_distribution
        event_dim = max(given, base_event_dim + given - taken)
        if len(shape) < event_dim:
            raise AssertionError(f"forward_shape length {len(shape)} must be >= event_dim {event_dim}")
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        base_shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(base_shape[: len(base_shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        super(TransformedDistribution, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=()):
        """The base's `sample`, which may draw where `rsample` cannot."""
        with readtorch.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        event_dim, log_prob, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(x, y)
            log_prob = log_prob - _sum_rightmost(term, event_dim - transform.domain.event_dim)
            y = x
        return log_prob + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value):
        """1 - value, if the transforms turn the order round."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._monotonize_cdf(value)))


def _listed(transforms):
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(transform, Transform) for transform in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms
