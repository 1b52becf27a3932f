"""`Dirichlet`. In PyTorch: `torch/distributions/dirichlet.py`."""

import readtorch
from readtorch.autograd import Function
from readtorch.autograd.function import once_differentiable
from readtorch.nn.functional import one_hot

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """A draw, whose gradient with respect to the concentrations is that of the marginal distribution functions."""

    @staticmethod
    def forward(ctx, concentration):
        x = readtorch._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        grad = readtorch._dirichlet_grad(x, concentration, total)
        return grad * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Probabilities: vectors x on the simplex with a density proportional to ∏ xᵢ^(concentrationᵢ - 1).

    concentration: positive, (…, K). Raises ValueError for a tensor without dimensions.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Dirichlet, batch_shape, _instance, "concentration")

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        """Where all concentrations are below 1, the density is infinite in the corners: the largest one's is given."""
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        in_corner = (self.concentration < 1).all(dim=-1)
        mode[in_corner] = one_hot(mode[in_corner].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        powers = readtorch.xlogy(self.concentration - 1.0, value).sum(-1)
        return powers + self.concentration.sum(-1).lgamma() - self.concentration.lgamma().sum(-1)

    def entropy(self):
        a, total, k = self.concentration, self.concentration.sum(-1), self.concentration.size(-1)
        volume = a.lgamma().sum(-1) - total.lgamma()
        return volume - (k - total) * total.digamma() - ((a - 1.0) * a.digamma()).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
