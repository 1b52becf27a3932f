"""`MultivariateNormal`. In PyTorch: `torch/distributions/multivariate_normal.py`."""

import math

import readtorch
from readtorch.linalg import cholesky, solve_triangular

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property, those_given

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix, vector):
    """Matrices (…, n, m) times vectors (…, m)."""
    return readtorch.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, x):
    """xᵀ M⁻¹ x of vectors x (…, n), where M = L Lᵀ and the factors L are (…, n, n).

    L may have fewer batch dimensions than x, and sizes of 1. Each L is used once, for all the x that go with it: the
    batch of x is cut into what L has and what it lacks, so that nothing is expanded and no L is solved twice.
    """
    n, batch = x.size(-1), x.shape[:-1]
    own = factor.dim() - 2
    outer = len(batch) - own
    split = batch[:outer]
    for size_of_factor, size in zip(factor.shape[:-2], batch[outer:]):
        split += (size // size_of_factor, size_of_factor)
    end = outer + 2 * own
    lacking, having = list(range(outer, end, 2)), list(range(outer + 1, end, 2))
    x = x.reshape(split + (n,)).permute([*range(outer), *lacking, *having, end])
    factors = factor.reshape(-1, n, n)
    columns = x.reshape(-1, factors.size(0), n).permute(1, 2, 0)
    squares = solve_triangular(factors, columns, upper=False).pow(2).sum(-2)
    back = [dim for i in range(own) for dim in (outer + i, outer + own + i)]
    return squares.t().reshape(x.shape[:-1]).permute([*range(outer), *back]).reshape(batch)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse of `precision`, (…, n, n), without inverting it.

    P read backwards is M Mᵀ; M read backwards is upper triangular, and the inverse of its transpose is the factor.
    """
    backwards = cholesky(readtorch.flip(precision, (-2, -1)))
    inverse = readtorch.flip(backwards, (-2, -1)).transpose(-2, -1)
    unit = readtorch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return solve_triangular(inverse, unit, upper=False)


def _half_log_det(factor):
    """log det of a Cholesky factor (…, n, n): half of that of its matrix."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _ByScaleTril:
    """A base for distributions of which covariances, their inverse or their Cholesky factor is given; the others follow.

    Computed from the factor, `_unbroadcasted_scale_tril`, and expanded to batches of matrices, (…, n, n).
    """

    def _expanded_matrix(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariances."""
        return self._expanded_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariances."""
        return self._expanded_matrix(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)


class MultivariateNormal(_ByScaleTril, Distribution):
    """Normal vectors: exp(-(x - loc)ᵀ M⁻¹ (x - loc) / 2) / √det(2π M) for all real x of n numbers.

    loc: the mean, (…, n). covariance_matrix M, precision_matrix M⁻¹ or scale_tril, the Cholesky factor of M: (…, n, n), of
    which one is given. scale_tril saves a decomposition, and is what all computations are made with.
    Raises ValueError for several or none of them, and for tensors with too few dimensions.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = those_given(
            scale_tril=scale_tril, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix
        )
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{what} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = readtorch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _as_scale_tril(name, matrix)

    def expand(self, batch_shape, _instance=None):
        names = "loc", "covariance_matrix", "scale_tril", "precision_matrix"
        kept = ["_unbroadcasted_scale_tril"]
        return self._expanded(MultivariateNormal, batch_shape, _instance, *names, kept=kept)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariances."""
        return self._expanded_matrix(readtorch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value):
        self._check(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half = -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance)
        return half - _half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self):
        n = self._event_shape[0]
        entropy = 0.5 * n * (1.0 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


def _as_scale_tril(name, matrix):
    """The Cholesky factor of the covariances, of which `matrix` says the one thing called `name`."""
    if name == "scale_tril":
        return matrix
    return cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)
