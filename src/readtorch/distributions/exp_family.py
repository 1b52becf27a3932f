"""`ExponentialFamily`. In PyTorch: `torch/distributions/exp_family.py`."""

from readtorch.autograd import grad

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(⟨t(x), θ⟩ - F(θ) + k(x)): t the statistics, θ the natural parameters, F the log normalizer, k the
    carrier measure.

    A subclass gives `_natural_params`, `_log_normalizer(*θ)` and the mean of k(x), `_mean_carrier_measure`. Entropy and
    KL divergence follow from them, for the gradient of F is the mean of t(x).
    """

    @property
    def _natural_params(self):
        """θ, a tuple of tensors."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        """F(θ)"""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The mean of k(x), a number."""
        raise NotImplementedError

    def _normalizer_and_means(self):
        """θ, cut from the parameters' graph, F(θ) and F's gradient, which is differentiable."""
        natural = [parameter.detach().requires_grad_() for parameter in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        return natural, normalizer, grad(normalizer.sum(), natural, create_graph=True)

    def entropy(self):
        """F(θ) - ⟨θ, ∇F(θ)⟩ - E[k(x)]; classes with a closed form have it instead."""
        natural, normalizer, means = self._normalizer_and_means()
        result = -self._mean_carrier_measure + normalizer
        for parameter, mean in zip(natural, means):
            result -= (parameter * mean).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
