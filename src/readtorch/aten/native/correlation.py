"""How variables vary together: covariance and correlation. Their derivatives are those of their parts.

In PyTorch: `aten/src/ATen/native/Correlation.cpp`.
"""

import warnings

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, native_function
from readtorch.c10.scalar_type import BOOL, INTEGRAL, int64
from readtorch.c10.tensor_impl import dtype_of, type_name

cov = native_function(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor", BOTH
)
corrcoef = native_function("corrcoef(Tensor self) -> Tensor", BOTH)


def check_ndim(name, self):
    if self.dim() > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )


def check_weights(name, weights, fits, kind, observations):
    """Raises RuntimeError unless there is a weight for each observation, of the right kind and not negative."""
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions"
        )
    if not fits:
        raise RuntimeError(
            f"cov(): expected {name} to have {kind} dtype but got {name} with {type_name(weights)} dtype"
        )
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {weights.numel()} != {observations}"
        )
    if observations and is_true(weights.min() < 0):
        raise RuntimeError(f"cov(): {name} cannot be negative")


def is_true(t):
    """The truth of a tensor of one element, which the Meta device has not: `equal` says so there, as in PyTorch."""
    return at.equal(t, at.ones_like(t))


def weights_of(fweights, aweights, observations):
    """The weight of each observation: its frequency times its reliability; None if all are equal."""
    if fweights is not None:
        check_weights("fweights", fweights, dtype_of(fweights).category == INTEGRAL, "integral", observations)
    if aweights is None:
        return fweights
    check_weights("aweights", aweights, dtype_of(aweights).is_floating_point, "floating point", observations)
    return aweights if fweights is None else fweights * aweights


def divisor_of(total, weights, aweights, correction):
    """What the sums of products are divided by: how many observations there were, less the correction for the mean."""
    if weights is not None and aweights is not None and correction != 0:
        divisor = total - correction * (weights * aweights).sum() / total
    else:
        divisor = total - correction if correction else total
    if is_true(divisor <= 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=2,
        )
        divisor.zero_()
    return divisor


@cov.compose
def cov_composite(self, correction, fweights, aweights):
    """A row a variable, a column an observation: the mean products of deviations from the mean, a square matrix.

    fweights: how often each observation was made; aweights: how reliable it is; correction: what the divisor is less
    than the number of observations.
    """
    check_ndim("cov", self)
    if dtype_of(self).category == BOOL:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = self if self.dim() == 2 else self.view(1, -1)
    observations = x.shape[1]
    weights = weights_of(fweights, aweights, observations)
    total = at.scalar_tensor(observations, dtype=int64, device=self.device) if weights is None else weights.sum()
    if weights is not None and not is_true(total != 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    weighted = (lambda x: x) if weights is None else (lambda x: x * weights)
    mean = weighted(x).sum(1) / total
    divisor = divisor_of(total, weights, aweights, correction)
    x = x - mean.unsqueeze(1)
    c = at.mm(x, weighted(x).t().conj())
    if x.shape[0] == 1 and dtype_of(c).is_complex:  # one variable: |deviation|², without what rounding left
        length = at.real(c)
        c = at.complex(length, at.zeros_like(length))
    with np.errstate(divide="ignore", invalid="ignore"):  # the divisor may be 0, which has been warned of
        return at.true_divide(c, divisor).squeeze()


@corrcoef.compose
def corrcoef_composite(self):
    """The covariances over the product of both standard deviations: from -1 to 1, and 1 on the diagonal."""
    check_ndim("corrcoef", self)
    c = at.cov(self)
    if c.dim() == 0:
        return c / c
    variances = c.diagonal()
    deviations = (at.real(variances) if dtype_of(c).is_complex else variances).sqrt()
    c = c / deviations.view(-1, 1) / deviations.view(1, -1)
    if dtype_of(c).is_complex:  # rounding must not lead out of the range
        return at.complex(at.clip(at.real(c), -1, 1), at.clip(at.imag(c), -1, 1))
    return at.clip(c, -1, 1)
