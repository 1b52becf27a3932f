"""`LowRankMultivariateNormal`. In PyTorch: `torch/distributions/lowrank_multivariate_normal.py`."""

import math

import readtorch
from readtorch.linalg import cholesky, solve_triangular

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv, _half_log_det
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _one_plus(matrix):
    """I + matrix, (…, n, n); only the diagonal is written."""
    n, matrix = matrix.size(-1), matrix.contiguous()
    matrix.view(-1, n * n)[:, :: n + 1] += 1
    return matrix


def _batch_capacitance_tril(factor, diagonal):
    """The Cholesky factor of the capacitance I + Wᵀ D⁻¹ W, (…, m, m)."""
    return cholesky(_one_plus(readtorch.matmul(factor.mT / diagonal.unsqueeze(-2), factor)))


def _batch_lowrank_logdet(factor, diagonal, capacitance_tril):
    """log det (W Wᵀ + D), by the matrix determinant lemma: that of the capacitance and that of D."""
    return 2 * _half_log_det(capacitance_tril) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(factor, diagonal, x, capacitance_tril):
    """xᵀ (W Wᵀ + D)⁻¹ x, by Woodbury's identity: xᵀ D⁻¹ x less what the capacitance takes off."""
    taken = _batch_mahalanobis(capacitance_tril, _batch_mv(factor.mT / diagonal.unsqueeze(-2), x))
    return (x.pow(2) / diagonal).sum(-1) - taken


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of n numbers whose covariances are W Wᵀ + D, of which m × m systems are solved, not n × n ones.

    loc: the mean, (…, n). cov_factor W: (…, n, m). cov_diag: the diagonal of D, (…, n), positive.
    Raises ValueError for tensors with too few dimensions, and for shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        self._broadcast(loc, cov_factor, cov_diag)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def _broadcast(self, loc, factor, diagonal):
        try:
            columns = readtorch.broadcast_tensors(loc.unsqueeze(-1), factor, diagonal.unsqueeze(-1))
        except RuntimeError as error:
            shapes = f"loc {loc.shape}, cov_factor {factor.shape}, cov_diag {diagonal.shape}"
            raise ValueError(f"Incompatible batch shapes: {shapes}") from error
        self.loc, self.cov_factor, self.cov_diag = columns[0][..., 0], columns[1], columns[2][..., 0]

    def expand(self, batch_shape, _instance=None):
        kept = ["_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"]
        names = "loc", "cov_diag", "cov_factor"
        return self._expanded(LowRankMultivariateNormal, batch_shape, _instance, *names, kept=kept)

    def _expanded_matrix(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def _parts(self):
        """W, D and the capacitance's factor, as the functions above take them."""
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        factor, diagonal, _ = self._parts
        return (factor.pow(2).sum(-1) + diagonal).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The Cholesky factor of the covariances: √D times that of I + D^(-1/2) W Wᵀ D^(-1/2)."""
        factor, diagonal, _ = self._parts
        root = diagonal.sqrt().unsqueeze(-1)
        scaled = factor / root
        return self._expanded_matrix(root * cholesky(_one_plus(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self):
        """The covariances, W Wᵀ + D."""
        factor, diagonal, _ = self._parts
        return self._expanded_matrix(factor @ factor.mT + diagonal.diag_embed())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariances, by Woodbury's identity."""
        factor, diagonal, capacitance_tril = self._parts
        root = solve_triangular(capacitance_tril, factor.mT / diagonal.unsqueeze(-2), upper=False)
        return self._expanded_matrix(diagonal.reciprocal().diag_embed() - root.mT @ root)

    def rsample(self, sample_shape=()):
        """loc + W e + √D f with normal numbers e, of which there are m, and f."""
        shape = self._extended_shape(sample_shape)
        options = self.loc.dtype, self.loc.device
        for_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], *options)
        for_diagonal = _standard_normal(shape, *options)
        factor, diagonal, _ = self._parts
        return self.loc + _batch_mv(factor, for_factor) + diagonal.sqrt() * for_diagonal

    def log_prob(self, value):
        self._check(value)
        factor, diagonal, capacitance_tril = self._parts
        distance = _batch_lowrank_mahalanobis(factor, diagonal, value - self.loc, capacitance_tril)
        log_det = _batch_lowrank_logdet(*self._parts)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self):
        log_det = _batch_lowrank_logdet(*self._parts)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
