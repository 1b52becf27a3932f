"""`Wishart`. In PyTorch: `torch/distributions/wishart.py`."""

import math
import warnings

import readtorch
from readtorch import Size, cholesky_solve, finfo, mvlgamma, nan
from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.linalg import slogdet
from readtorch.types import _Number

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _as_scale_tril, _ByScaleTril, _half_log_det
from .utils import lazy_property, those_given

__all__ = ["Wishart"]

_log_2 = math.log(2)


def _mvdigamma(x, p):
    """The derivative of mvlgamma(x, p): the sum of digamma(x - i / 2), i < p. Raises AssertionError unless x > (p - 1) / 2."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    halves = readtorch.arange(p, dtype=x.dtype, device=x.device).div(2)
    return (x.unsqueeze(-1) - halves.expand(x.shape + (-1,))).digamma().sum(-1)


class Wishart(_ByScaleTril, ExponentialFamily):
    """The sum of `df` matrices x xᵀ of normal vectors x with mean 0: positive definite matrices, (n, n).

    df: degrees of freedom, a number or a tensor above n - 1, and not only integers. covariance_matrix, precision_matrix
    or scale_tril: of x, (…, n, n), of which one is given, see `MultivariateNormal`.
    Raises AssertionError for several or none of them, ValueError for a tensor with too few dimensions and for a smaller df.
    Warns of a df below n: draws are then likely to be singular.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = those_given(
            covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril
        )
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = self._set_df(df, matrix)
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        if self.df.lt(matrix.shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _as_scale_tril(name, matrix)
        fewer = readtorch.arange(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - fewer.expand(batch_shape + (-1,)))

    def _set_df(self, df, matrix):
        """Keep `df` as a tensor of the batch's shape, which is returned."""
        if isinstance(df, _Number):
            batch_shape = Size(matrix.shape[:-2])
            self.df = readtorch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = readtorch.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        least = matrix.shape[-1] - 1
        if self.df.le(least).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {least}.")
        return batch_shape

    def expand(self, batch_shape, _instance=None):
        names = "covariance_matrix", "scale_tril", "precision_matrix", "_dist_chi2"
        new = self._expanded(Wishart, batch_shape, _instance, *names)
        new.df = self.df.expand(new.batch_shape)  # a number's has no batch
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(new.batch_shape + self.event_shape)
        return new

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @lazy_property
    def precision_matrix(self):
        """The inverse of the vectors' covariances."""
        factor = self._unbroadcasted_scale_tril
        unit = readtorch.eye(self._event_shape[-1], device=factor.device, dtype=factor.dtype)
        return self._expanded_matrix(cholesky_solve(unit, factor))

    def _for_matrices(self, numbers):
        """Numbers of the batch's shape, with two dimensions of size 1."""
        return numbers.view(self._batch_shape + (1, 1))

    @property
    def mean(self):
        return self._for_matrices(self.df) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor[factor <= 0] = nan
        return self._for_matrices(factor) * self.covariance_matrix

    @property
    def variance(self):
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        squares = self.covariance_matrix.pow(2) + readtorch.einsum("...i,...j->...ij", diagonal, diagonal)
        return self._for_matrices(self.df) * squares

    def _bartlett_sampling(self, sample_shape=()):
        """L A Aᵀ Lᵀ, where A has roots of Chi2 numbers on the diagonal and normal numbers below it."""
        p = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        below = readtorch.tril_indices(p, p, offset=-1)
        shape = Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., below[0], below[1]] = readtorch.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Drawn anew, `max_try_correction` times at most (10; 3 in a trace), and with a warning, where `_to_redraw` says."""
        if max_try_correction is None:
            max_try_correction = 3 if trace_under_way() else 10
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        redraw = self._over_batch(self.support.check(sample))  # not ~: see Note [ Which Wishart draws are repeated ]
        if trace_under_way():  # which has no branches that depend on values
            for _ in range(max_try_correction):
                sample = readtorch.where(redraw, self._bartlett_sampling(sample_shape), sample)
                redraw = self._over_batch(~self.support.check(sample))
        elif redraw.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            self._redraw(sample, redraw, max_try_correction)
        return sample

    # Note [ Which Wishart draws are repeated ]
    #
    # Rounding makes some draws singular, and these shall be drawn again. PyTorch's first question is the wrong way round: it
    # takes the draws that are positive definite for singular ones, says so in a warning, and draws them again; from then on
    # it repeats the singular ones. What comes from a seed depends on it, and so it is the same here.

    def _redraw(self, sample, redraw, tries):
        """Replace, in place, the draws where `redraw` is True, and again those that are singular."""
        for _ in range(tries):
            new = self._bartlett_sampling(redraw[redraw].shape)
            sample[redraw] = new
            redraw[redraw.clone()] = self._over_batch(~self.support.check(new))
            if not redraw.any():
                break

    def _over_batch(self, checked):
        """Whether it is so anywhere in the batch."""
        return checked.amax([-(i + 1) for i in range(len(self._batch_shape))]) if self._batch_shape else checked

    def log_prob(self, value):
        self._check(value)
        df, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        normalizer = -df * (p * _log_2 / 2 + _half_log_det(factor)) - mvlgamma(df / 2, p=p)
        return normalizer + (df - p - 1) / 2 * slogdet(value).logabsdet - trace / 2

    def entropy(self):
        df, p = self.df, self._event_shape[-1]
        volume = (p + 1) * (p * _log_2 / 2 + _half_log_det(self._unbroadcasted_scale_tril))
        return volume + mvlgamma(df / 2, p=p) - (df - p - 1) / 2 * _mvdigamma(df / 2, p=p) + df * p / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        a = y + (p + 1) / 2
        return a * (-slogdet(-2 * x).logabsdet + _log_2 * p) + mvlgamma(a, p=p)
