"""`kl_divergence`, and the formulas for pairs of distributions. In PyTorch: `torch/distributions/kl.py`.

KL(p ‖ q) = E[log p(x) - log q(x)] over x from p. It is infinite where p has values that q has not; such pairs are in a
table, and formulas that hold for some parameters only write inf over the others.
"""

import functools
import math
import warnings

import readtorch
from readtorch import exp, inf, log, log1p, where
from readtorch.linalg import solve_triangular
from readtorch.nn.functional import softplus

from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet, _batch_lowrank_mahalanobis
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY = {}  # (type of p, type of q) -> the formula
_KL_MEMOIZE = {}  # the same for types that were asked for, which may be subclasses of these


def register_kl(type_p, type_q):
    """Decorator: the function computes `kl_divergence(p, q)` for these types and their subclasses.

        @register_kl(Normal, Laplace)
        def kl_normal_laplace(p, q): …

    The most specific pair is taken. Raises TypeError for what is no subclass of Distribution.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type) and issubclass(given, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


def _compare(types, others):
    """Negative if `types` are the more specific: the first pair that differs decides."""
    x, y = next(pair for pair in zip(types, others) if pair[0] is not pair[1])
    return -1 if issubclass(x, y) else 1


_how_specific = functools.cmp_to_key(_compare)


def _dispatch_kl(type_p, type_q):
    """The formula for the most specific types that are registered; NotImplemented if none is.

    Warns if it depends on whether p or q is looked at first.
    """
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left = min(matches, key=_how_specific)
    right = min((pair[::-1] for pair in matches), key=_how_specific)[::-1]
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p, q):
    """KL(p ‖ q), the mean of log p(x) - log q(x) over x from `p`: of the batch's shape.

    Raises NotImplementedError for pairs without a formula. There are formulas for:
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    formula = _KL_MEMOIZE[pair]
    if formula is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return formula(p, q)


# ---------------------------------------------------------------------------------------------------- always infinite


def _infinite_like(tensor):
    return readtorch.full_like(tensor, inf)


def _register_infinite(type_p, parameter, *types_q):
    """KL(p ‖ q) is infinite for these q; `parameter` of p has the batch's shape."""
    for type_q in types_q:
        register_kl(type_p, type_q)(lambda p, q: _infinite_like(getattr(p, parameter)))


_register_infinite(Beta, "concentration1", Pareto)
_register_infinite(ContinuousBernoulli, "probs", Pareto)
_register_infinite(Exponential, "rate", Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gamma, "concentration", Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gumbel, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Laplace, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Normal, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Pareto, "scale", Beta, ContinuousBernoulli, Uniform)
_register_infinite(Poisson, "rate", Bernoulli, Binomial)


# ------------------------------------------------------------------------------------------------ of families and wrappers


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """The Bregman divergence of the log normalizer F: F(q) - F(p) - ⟨q - p, ∇F(p)⟩ in natural parameters."""
    if type(p) is not type(q):
        gap = " " * 28
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot {gap}be computed using Bregman divergences"
        )
    natural, normalizer, means = p._normalizer_and_means()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for own, other, mean in zip(natural, others, means):
        result -= _sum_rightmost((other - own) * mean, len(q.event_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    """A bijection of both changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ------------------------------------------------------------------------------------------------------- of one kind


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones[q.probs == 0] = inf
    ones[p.probs == 0] = 0
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros[q.probs == 1] = inf
    zeros[p.probs == 1] = 0
    return ones + zeros


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    p1, p0, q1, q0 = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    p_sum, q_sum = p1 + p0, q1 + q0
    normalizers = (q1.lgamma() + q0.lgamma() + p_sum.lgamma()) - (p1.lgamma() + p0.lgamma() + q_sum.lgamma())
    return normalizers + (p1 - q1) * p1.digamma() + (p0 - q0) * p0.digamma() + (q_sum - p_sum) * p_sum.digamma()


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    has_more = p.total_count > q.total_count
    kl[has_more] = _infinite_like(kl[has_more])
    return kl


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms[(q.probs == 0).expand_as(terms)] = inf
    terms[(p.probs == 0).expand_as(terms)] = 0
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    own = p._cont_bern_log_norm() + log1p(-p.probs)
    other = -q._cont_bern_log_norm() - log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + own + other


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    a, b = p.concentration, q.concentration
    a_sum, b_sum = a.sum(-1), b.sum(-1)
    normalizers = a_sum.lgamma() - b_sum.lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - a_sum.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    a, b = p.concentration, q.concentration
    normalizers = b * (p.rate / q.rate).log() + (b.lgamma() - a.lgamma())
    return normalizers + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, own, other = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    linear = (-ratio.log() - other + own) + ratio * euler_constant
    return linear + exp(other + (1 + ratio).lgamma() - own) - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    result[p.support.lower_bound < q.support.lower_bound] = inf
    return result


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = inf
    return result


# ---------------------------------------------------------------------------------------------- of multivariate normals
#
# (log det M_q - log det M_p + trace(M_q⁻¹ M_p) + dᵀ M_q⁻¹ d - n) / 2, where d is the difference of the means. Each kind
# has its way to determinants, traces and d, in which no covariance is multiplied out.


def _batch_trace_XXT(matrix):
    """trace(X Xᵀ) = the sum of squares: (…, n, m) -> (…)"""
    return matrix.reshape(-1, matrix.size(-1) * matrix.size(-2)).pow(2).sum(-1).reshape(matrix.shape[:-2])


def _check_events(p, q, kind):
    if p.event_shape != q.event_shape:
        gap = " " * 25
        raise ValueError(f"KL-divergence between two {kind} with {gap}different event shapes cannot be computed")


def _taken_by_capacitance(q):
    """A with M_q⁻¹ = D⁻¹ - Aᵀ A: (…, m, n)."""
    factor, diagonal, capacitance_tril = q._parts
    return solve_triangular(capacitance_tril, factor.mT / diagonal.unsqueeze(-2), upper=False)


def _lowrank_distance(p, q):
    factor, diagonal, capacitance_tril = q._parts
    return _batch_lowrank_mahalanobis(factor, diagonal, q.loc - p.loc, capacitance_tril)


def _solved(q, *matrices):
    """L⁻¹ X for each X, (…, n, k), where L is q's Cholesky factor; batches broadcast."""
    factor = q._unbroadcasted_scale_tril
    batch = readtorch.broadcast_shapes(factor.shape[:-2], *(matrix.shape[:-2] for matrix in matrices))
    factor, *matrices = (matrix.expand(batch + matrix.shape[-2:]) for matrix in (factor, *matrices))
    return [solve_triangular(factor, matrix, upper=False) for matrix in matrices]


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events(p, q, "Low Rank Multivariate Normals")
    log_det = _batch_lowrank_logdet(*q._parts) - _batch_lowrank_logdet(*p._parts)
    taken = _taken_by_capacitance(q)
    (p_factor, p_diagonal, _), (_, q_diagonal, _) = p._parts, q._parts
    given = (p_diagonal / q_diagonal).sum(-1) + _batch_trace_XXT(p_factor * q_diagonal.rsqrt().unsqueeze(-1))
    less = _batch_trace_XXT(taken * p_diagonal.sqrt().unsqueeze(-2))
    trace = given - less - _batch_trace_XXT(taken.matmul(p_factor))
    return 0.5 * (log_det + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    p_factor, q_diagonal = p._unbroadcasted_scale_tril, q._unbroadcasted_cov_diag
    log_det = _batch_lowrank_logdet(*q._parts) - 2 * _half_log_det(p_factor)
    trace = _batch_trace_XXT(p_factor * q_diagonal.rsqrt().unsqueeze(-1))
    trace = trace - _batch_trace_XXT(_taken_by_capacitance(q).matmul(p_factor))
    return 0.5 * (log_det + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    factor, diagonal, _ = p._parts
    log_det = 2 * _half_log_det(q._unbroadcasted_scale_tril) - _batch_lowrank_logdet(*p._parts)
    trace = sum(_batch_trace_XXT(x) for x in _solved(q, factor, diagonal.sqrt().diag_embed()))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return 0.5 * (log_det + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _check_events(p, q, "Multivariate Normals")
    half_log_det = _half_log_det(q._unbroadcasted_scale_tril) - _half_log_det(p._unbroadcasted_scale_tril)
    (solved,) = _solved(q, p._unbroadcasted_scale_tril)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half_log_det + 0.5 * (_batch_trace_XXT(solved) + distance - p.event_shape[0])


# ------------------------------------------------------------------------------------------------------ of two kinds


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    p_sum = p.concentration1 + p.concentration0
    normalizers = -p.entropy() + (q.concentration.lgamma() - q.concentration * q.rate.log())
    mean_log = p.concentration1.digamma() - p_sum.digamma()
    return normalizers - (q.concentration - 1) * mean_log + q.rate * p.concentration1 / p_sum


@register_kl(Beta, Normal)
def _kl_beta_normal(p, q):
    mean, variance = p.mean, q.scale.pow(2)
    normalizers = -p.entropy() + 0.5 * (variance * 2 * math.pi).log()
    half_square = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    return normalizers + (half_square - q.loc * mean + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)] = inf
    return result


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p, q):
    normalizer = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + q.scale.log()
    squares = (p.variance + p.mean.square() - 2.0 * q.loc * p.mean) / (2.0 * q.scale.square())
    return -p.entropy() + normalizer + squares


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    reaches_out = readtorch.max(q.low >= p.support.lower_bound, q.high <= p.support.upper_bound)
    return where(reaches_out, readtorch.ones_like(result) * inf, result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    ratio, a = q.rate / p.rate, q.concentration
    return -a * ratio.log() + ratio + a.lgamma() + a * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    product, ratio = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - ratio + exp(ratio) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p, q):
    variance, square = q.scale.pow(2), p.rate.pow(2)
    squares = square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return 0.5 * log(square * variance * 2 * math.pi) - 1 + squares / variance


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    a, product, ratio = p.concentration, p.rate * q.scale, q.loc / q.scale
    own = (a - 1) * a.digamma() - a.lgamma() - a
    mean_exp = exp(ratio) * (1 + product.reciprocal()).pow(-a)
    return own + (product.log() + a / product) + (mean_exp - ratio)


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p, q):
    a, variance, square = p.concentration, q.scale.pow(2), p.rate.pow(2)
    normalizers = 0.5 * log(square * variance * 2 * math.pi) - a - a.lgamma()
    squares = 0.5 * (a.pow(2) + a) / square - q.loc * a / p.rate + 0.5 * q.loc.pow(2)
    return normalizers + (a - 1) * a.digamma() + squares / variance


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p, q):
    ratio = p.scale / q.scale
    squares = (math.pi * ratio * 0.5).pow(2) / 3 + ((p.mean - q.loc) / q.scale).pow(2) * 0.5
    return -(ratio / math.sqrt(2 * math.pi)).log() + squares - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p, q):
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    squares = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * log(2 * ratio / math.pi) + ratio + squares / variance - 1


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    own, other, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    linear = -ratio.log() * 0.5 + (own - other)
    return linear + exp(-own + 0.5 * ratio + other) - (0.5 * (1 + math.log(2 * math.pi)))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    distance = p.loc - q.loc
    relative = distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * exp(-0.5 * relative.pow(2))
    far = distance * readtorch.erf(math.sqrt(0.5) * relative)
    return -log(p.scale / q.scale) + (near + far) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    result[p.alpha <= 1] = inf
    return result


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    mean_log = p.scale.log() + p.alpha.reciprocal()
    normalizers = p.alpha.log() - mean_log + (q.concentration.lgamma() - q.concentration * q.rate.log())
    mean = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = normalizers + (1 - q.concentration) * mean_log + mean - 1
    result[p.alpha <= 1] = inf
    return result


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    common = p.scale / (p.alpha - 1)
    normalizers = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    squares = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    result = normalizers + squares / (2 * q.scale.pow(2)) - 1
    result[p.alpha <= 2] = inf
    return result


def _mean_log(low, high):
    """The mean of log x over [low, high], with 0 log 0 = 0."""
    width = high - low
    return (readtorch.xlogy(high, high) - readtorch.xlogy(low, low) - width) / width


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    normalizers = a.lgamma() + b.lgamma() - (a + b).lgamma() - log(p.high - p.low)
    result = normalizers - (a - 1) * _mean_log(p.low, p.high) - (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    result[(p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)] = inf
    return result


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    result = -p.entropy() - p.mean * q.logits - log1p(-q.probs) - q._cont_bern_log_norm()
    reaches_out = readtorch.max(p.high >= q.support.upper_bound, p.low <= q.support.lower_bound)
    return where(reaches_out, readtorch.ones_like(result) * inf, result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p, q):
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < q.support.lower_bound] = inf
    return result


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    a = q.concentration
    normalizers = -(p.high - p.low).log() + (a.lgamma() - a * q.rate.log())
    result = normalizers + (1 - a) * _mean_log(p.low, p.high) + q.rate * (p.high + p.low) / 2
    result[p.low < q.support.lower_bound] = inf
    return result


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (exp(-high) - exp(-low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p, q):
    width = p.high - p.low
    squares = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * squares / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    normalizers = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p.low, p.high) * (q.alpha + 1) - normalizers
    result[p.low < q.support.lower_bound] = inf
    return result


def _pairs():
    """The pairs with a formula, for the docstring."""
    names = sorted((p.__name__, q.__name__) for p, q in _KL_REGISTRY)
    return "".join(f"    - {p} and {q}\n" for p, q in names)


if kl_divergence.__doc__:  # Python's option -OO leaves docstrings out
    kl_divergence.__doc__ = kl_divergence.__doc__.rstrip() + "\n\n" + _pairs()
