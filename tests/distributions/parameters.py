"""Random parameters for every distribution: of any batch shape and dtype, or numbers.

`make(name, shape, dtype)` gives the keyword arguments of the distribution `name`, tensors of the reference; what is
drawn for a parameter is said in `KINDS`, once.
"""

import torch


def real(shape, dtype):
    return torch.randn(shape, dtype=dtype)


def positive(shape, dtype):
    return torch.rand(shape, dtype=dtype) * 4 + 0.2


def probability(shape, dtype):
    return torch.rand(shape, dtype=dtype) * 0.9 + 0.05


def weights(shape, dtype):
    return torch.rand(shape + (4,), dtype=dtype) + 0.05


def logits(shape, dtype):
    return torch.randn(shape + (4,), dtype=dtype)


def concentrations(shape, dtype):
    return torch.rand(shape + (3,), dtype=dtype) * 3 + 0.3


def vector(shape, dtype):
    return torch.randn(shape + (3,), dtype=dtype)


def positive_vector(shape, dtype):
    return torch.rand(shape + (3,), dtype=dtype) + 0.5


def factor(shape, dtype):
    return torch.randn(shape + (3, 2), dtype=dtype)


def triangle(shape, dtype):
    matrix = torch.randn(shape + (3, 3), dtype=dtype).tril(-1) * 0.5
    return matrix + (torch.rand(shape + (3,), dtype=dtype) + 0.5).diag_embed()


def definite(shape, dtype):
    matrix = triangle(shape, dtype)
    return (matrix @ matrix.mT).contiguous()


def above_two(shape, dtype):
    return torch.rand(shape, dtype=dtype) * 3 + 3.5


def temperature(shape, dtype):
    return torch.rand((), dtype=dtype) + 0.3


def whole(n):
    return lambda shape, dtype: n


def counts(shape, dtype):
    return torch.randint(0, 9, shape).to(dtype)


def spread(shape, dtype):
    """Below and above the limits at which moments cease to exist, and 0."""
    return torch.linspace(-1.3, 1.4, 9, dtype=dtype) if shape else torch.tensor(0.0, dtype=dtype)


def degrees(shape, dtype):
    return torch.linspace(0.5, 5, 10, dtype=dtype)


def near_half(shape, dtype):
    return torch.tensor([0.1, 0.499, 0.4995, 0.5, 0.5005, 0.501, 0.9, 1e-6], dtype=dtype)


# {test: (the distribution, {parameter: how it is drawn})}
KINDS = {
    "Bernoulli": ("Bernoulli", dict(probs=probability)),
    "Bernoulli of logits": ("Bernoulli", dict(logits=real)),
    "Beta": ("Beta", dict(concentration1=positive, concentration0=positive)),
    "Binomial": ("Binomial", dict(total_count=counts, probs=probability)),
    "Binomial of logits": ("Binomial", dict(total_count=whole(5), logits=real)),
    "Categorical": ("Categorical", dict(probs=weights)),
    "Categorical of logits": ("Categorical", dict(logits=logits)),
    "Cauchy": ("Cauchy", dict(loc=real, scale=positive)),
    "Chi2": ("Chi2", dict(df=positive)),
    "ContinuousBernoulli": ("ContinuousBernoulli", dict(probs=probability)),
    "ContinuousBernoulli near 1/2": ("ContinuousBernoulli", dict(probs=near_half)),
    "ContinuousBernoulli of logits": ("ContinuousBernoulli", dict(logits=real)),
    "Dirichlet": ("Dirichlet", dict(concentration=concentrations)),
    "Exponential": ("Exponential", dict(rate=positive)),
    "FisherSnedecor": ("FisherSnedecor", dict(df1=positive, df2=positive)),
    "FisherSnedecor at limits": ("FisherSnedecor", dict(df1=degrees, df2=degrees)),
    "Gamma": ("Gamma", dict(concentration=positive, rate=positive)),
    "GeneralizedPareto": ("GeneralizedPareto", dict(loc=real, scale=positive, concentration=real)),
    "GeneralizedPareto at limits": ("GeneralizedPareto", dict(loc=whole(0.5), scale=whole(2.0), concentration=spread)),
    "Geometric": ("Geometric", dict(probs=probability)),
    "Geometric of logits": ("Geometric", dict(logits=real)),
    "Gumbel": ("Gumbel", dict(loc=real, scale=positive)),
    "HalfCauchy": ("HalfCauchy", dict(scale=positive)),
    "HalfNormal": ("HalfNormal", dict(scale=positive)),
    "InverseGamma": ("InverseGamma", dict(concentration=positive, rate=positive)),
    "Kumaraswamy": ("Kumaraswamy", dict(concentration1=positive, concentration0=positive)),
    "LKJCholesky": ("LKJCholesky", dict(dim=whole(3), concentration=positive)),
    "LKJCholesky of pairs": ("LKJCholesky", dict(dim=whole(2), concentration=positive)),
    "Laplace": ("Laplace", dict(loc=real, scale=positive)),
    "LogNormal": ("LogNormal", dict(loc=real, scale=positive)),
    "LogisticNormal": ("LogisticNormal", dict(loc=real, scale=positive)),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        dict(loc=vector, cov_factor=factor, cov_diag=positive_vector),
    ),
    "Multinomial": ("Multinomial", dict(total_count=whole(7), probs=weights)),
    "Multinomial of logits": ("Multinomial", dict(total_count=whole(7), logits=logits)),
    "MultivariateNormal": ("MultivariateNormal", dict(loc=vector, scale_tril=triangle)),
    "MultivariateNormal of covariances": ("MultivariateNormal", dict(loc=vector, covariance_matrix=definite)),
    "MultivariateNormal of precisions": ("MultivariateNormal", dict(loc=vector, precision_matrix=definite)),
    "NegativeBinomial": ("NegativeBinomial", dict(total_count=positive, probs=probability)),
    "NegativeBinomial of logits": ("NegativeBinomial", dict(total_count=counts, logits=real)),
    "Normal": ("Normal", dict(loc=real, scale=positive)),
    "OneHotCategorical": ("OneHotCategorical", dict(probs=weights)),
    "OneHotCategoricalStraightThrough": ("OneHotCategoricalStraightThrough", dict(logits=logits)),
    "Pareto": ("Pareto", dict(scale=positive, alpha=positive)),
    "Poisson": ("Poisson", dict(rate=positive)),
    "RelaxedBernoulli": ("RelaxedBernoulli", dict(temperature=temperature, probs=probability)),
    "RelaxedBernoulli of logits": ("RelaxedBernoulli", dict(temperature=temperature, logits=real)),
    "RelaxedOneHotCategorical": ("RelaxedOneHotCategorical", dict(temperature=temperature, probs=weights)),
    "RelaxedOneHotCategorical of logits": ("RelaxedOneHotCategorical", dict(temperature=temperature, logits=logits)),
    "StudentT": ("StudentT", dict(df=positive, loc=real, scale=positive)),
    "StudentT at limits": ("StudentT", dict(df=degrees)),
    "Uniform": ("Uniform", dict(low=real, high=above_two)),
    "VonMises": ("VonMises", dict(loc=real, concentration=positive)),
    "Weibull": ("Weibull", dict(scale=positive, concentration=positive)),
    "Wishart": ("Wishart", dict(df=above_two, covariance_matrix=definite)),
    "Wishart of precisions": ("Wishart", dict(df=whole(4.5), precision_matrix=definite)),
    "Wishart of triangles": ("Wishart", dict(df=above_two, scale_tril=triangle)),
}


def make(test, shape=(), dtype=torch.float64):
    """The name of the distribution of a test in KINDS, and its arguments."""
    name, kinds = KINDS[test]
    return name, {parameter: draw(tuple(shape), dtype) for parameter, draw in kinds.items()}
