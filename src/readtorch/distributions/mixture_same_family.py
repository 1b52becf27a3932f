"""`MixtureSameFamily`. In PyTorch: `torch/distributions/mixture_same_family.py`."""

import readtorch
from readtorch import Size

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A draw of one of k distributions, chosen by a Categorical.

    mixture_distribution: a Categorical of k categories. component_distribution: a distribution with the batch shape
    (…, k), whose last dimension is that of the choice.
    Raises ValueError for other kinds of distributions, and for shapes that do not fit.
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._check_kinds()
        batch_shape = component_distribution.batch_shape[:-1]
        self._check_shapes(mixture_distribution.batch_shape, batch_shape)
        self._num_component = component_distribution.batch_shape[-1]
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=batch_shape, event_shape=event_shape, validate_args=validate_args)

    def _check_kinds(self):
        if not isinstance(self._mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(self._component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")

    def _check_shapes(self, mixture, components):
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(mixture), reversed(components))):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixture}) is not compatible with "
                f"`component_distribution.batch_shape`({components})"
            )
        chosen, given = self._mixture_distribution.logits.shape[-1], self._component_distribution.batch_shape[-1]
        if chosen != given:
            raise ValueError(
                f"`mixture_distribution component` ({chosen}) does not equal `component_distribution.batch_shape[-1]` ({given})"
            )

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        event_shape = new._component_distribution.event_shape
        super(MixtureSameFamily, new).__init__(batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The Categorical that chooses."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The distributions that it chooses from."""
        return self._component_distribution

    def _mixed(self, values):
        """The mean over the components, by their probabilities, of values (…, k) + event_shape."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self):
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self):
        """The mean of the variances plus the variance of the means."""
        between = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._mixed(self.component_distribution.variance) + self._mixed(between)

    def cdf(self, x):
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x):
        self._check(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        return (log_prob + self.mixture_distribution.logits.log_softmax(dim=-1)).logsumexp(dim=-1)

    def sample(self, sample_shape=()):
        """Every component draws, and one is taken: so many numbers the generator gives."""
        with readtorch.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            ones = Size([1] * (len(self.event_shape) + 1))
            index = chosen.reshape(chosen.shape + ones).repeat(Size([1] * (chosen.dim() + 1)) + self.event_shape)
            return drawn.gather(dim, index).squeeze(dim)

    def _pad(self, x):
        """`x` with a dimension of components, of size 1."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        """`x`, (…, k), with dimensions of size 1 for those that only the components have: batch and event."""
        own = len(self.mixture_distribution.batch_shape)
        batch = 0 if own == 1 else len(self.batch_shape) - own
        return x.reshape(x.shape[:-1] + Size(batch * [1]) + x.shape[-1:] + Size(self._event_ndims * [1]))

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
