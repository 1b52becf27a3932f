"""kl_divergence: every registered pair against the reference, the registry, and infinite cases."""

import warnings

import pytest
import torch

import readtorch as rt
from tests.distributions.parameters import KINDS, make
from tests.reference import assert_close, both, to_readtorch

PAIRS = sorted((p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY)
WRAPPERS = {"ExponentialFamily", "TransformedDistribution", "Independent"}
OWN_FORMULAS = [pair for pair in PAIRS if pair[0] not in WRAPPERS]


def variants(name):
    return [test for test in KINDS if KINDS[test][0] == name and "near" not in test and "limits" not in test]


def test_the_same_pairs_are_registered():
    ours = sorted((p.__name__, q.__name__) for p, q in rt.distributions.kl._KL_REGISTRY)
    assert ours == PAIRS
    for p, q in PAIRS:
        assert f"- {p} and {q}\n" in rt.distributions.kl_divergence.__doc__


def kl(T, p, q):
    return T.distributions.kl_divergence(*(getattr(T.distributions, name)(**arguments) for name, arguments in (p, q)))


def compare(p, q, **options):
    for _, arguments in (p, q):
        for value in arguments.values():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                value.requires_grad_()
    return both(
        lambda T, p, q: kl(T, p, q), p, q, grad_fn=False, strides=False, versions=False, alias=False, rtol=1e-6, atol=1e-8, **options
    )  # fmt: skip


@pytest.mark.parametrize("names", OWN_FORMULAS, ids="-".join)
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_pairs(names, batch):
    for p_test in variants(names[0]):
        for q_test in variants(names[1]):
            compare(make(p_test, batch), make(q_test, batch))


@pytest.mark.parametrize("names", [pair for pair in OWN_FORMULAS if "Normal" in "".join(pair)], ids="-".join)
def test_batches_broadcast(names):
    compare(make(variants(names[0])[0], (2, 1)), make(variants(names[1])[0], (1, 3)))


CHANCE = torch.Generator().manual_seed(0)


def rand(*shape):
    """The same numbers in every run: beside 0.5 the formulas of ContinuousBernoulli lose digits, the reference's, too."""
    return torch.rand(*shape, generator=CHANCE)


EDGES = [
    (("Bernoulli", dict(probs=torch.tensor([0.0, 1.0, 0.0, 0.3, 0.3, 1.0]))), ("Bernoulli", dict(probs=torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.5])))),
    (("Categorical", dict(probs=torch.tensor([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]]))), ("Categorical", dict(probs=torch.tensor([[0.0, 0.2, 0.8], [0.0, 0.2, 0.8]])))),
    (("Uniform", dict(low=torch.tensor([0.2, -1.0, 0.5, 0.0]), high=torch.tensor([0.8, 2.0, 1.5, 1.0]))), ("Uniform", dict(low=torch.zeros(4), high=torch.ones(4)))),
    (("Uniform", dict(low=torch.tensor([0.2, -1.0, 0.5, 0.0]), high=torch.tensor([0.8, 2.0, 1.5, 1.0]))), ("Beta", dict(concentration1=rand(4) + 1, concentration0=rand(4) + 1))),
    (("Uniform", dict(low=torch.tensor([0.2, -1.0, 0.5, 0.0]), high=torch.tensor([0.8, 2.0, 1.5, 1.0]))), ("ContinuousBernoulli", dict(probs=rand(4)))),
    (("Uniform", dict(low=torch.tensor([0.2, -1.0]), high=torch.tensor([0.8, 2.0]))), ("Exponential", dict(rate=rand(2)))),
    (("Uniform", dict(low=torch.tensor([0.2, -1.0]), high=torch.tensor([0.8, 2.0]))), ("Gamma", dict(concentration=rand(2), rate=rand(2)))),
    (("Uniform", dict(low=torch.tensor([2.2, 0.1]), high=torch.tensor([2.8, 2.0]))), ("Pareto", dict(scale=torch.ones(2), alpha=torch.ones(2)))),
    (("Beta", dict(concentration1=rand(3) + 1, concentration0=rand(3) + 1)), ("Uniform", dict(low=torch.tensor([0.0, -1.0, 0.1]), high=torch.tensor([1.0, 2.0, 3.0])))),
    (("ContinuousBernoulli", dict(probs=rand(3))), ("Uniform", dict(low=torch.tensor([0.0, -1.0, 0.1]), high=torch.tensor([1.0, 2.0, 3.0])))),
    (("Pareto", dict(scale=torch.ones(3), alpha=torch.tensor([0.5, 1.5, 3.0]))), ("Exponential", dict(rate=rand(3)))),
    (("Pareto", dict(scale=torch.ones(3), alpha=torch.tensor([0.5, 1.5, 3.0]))), ("Gamma", dict(concentration=rand(3), rate=rand(3)))),
    (("Pareto", dict(scale=torch.ones(3), alpha=torch.tensor([0.5, 1.5, 3.0]))), ("Normal", dict(loc=rand(3), scale=rand(3)))),
    (("Pareto", dict(scale=torch.tensor([1.0, 2.0]), alpha=torch.ones(2))), ("Pareto", dict(scale=torch.tensor([1.5, 1.5]), alpha=torch.ones(2)))),
    (("Binomial", dict(total_count=torch.tensor([3, 5]), probs=rand(2))), ("Binomial", dict(total_count=torch.tensor([3, 3]), probs=rand(2)))),
    (("Binomial", dict(total_count=torch.tensor([3, 2]), probs=rand(2))), ("Binomial", dict(total_count=torch.tensor([3, 3]), probs=rand(2)))),
    (("Bernoulli", dict(probs=rand(2, 1))), ("Bernoulli", dict(probs=rand(2, 3)))),
    (("MultivariateNormal", dict(loc=torch.zeros(2), scale_tril=torch.eye(2))), ("MultivariateNormal", dict(loc=torch.zeros(3), scale_tril=torch.eye(3)))),
    (("MultivariateNormal", dict(loc=torch.zeros(2), scale_tril=torch.eye(2))), ("LowRankMultivariateNormal", dict(loc=torch.zeros(3), cov_factor=torch.ones(3, 1), cov_diag=torch.ones(3)))),
    (("LowRankMultivariateNormal", dict(loc=torch.zeros(3), cov_factor=torch.ones(3, 1), cov_diag=torch.ones(3))), ("LowRankMultivariateNormal", dict(loc=torch.zeros(2), cov_factor=torch.ones(2, 1), cov_diag=torch.ones(2)))),
    (("LowRankMultivariateNormal", dict(loc=torch.zeros(3), cov_factor=torch.ones(3, 1), cov_diag=torch.ones(3))), ("MultivariateNormal", dict(loc=torch.zeros(2), scale_tril=torch.eye(2)))),
    (("Normal", dict(loc=torch.zeros(2), scale=torch.ones(2))), ("Dirichlet", dict(concentration=torch.ones(2)))),
    (("Normal", dict(loc=torch.zeros(2), scale=torch.ones(2))), ("Cauchy", dict(loc=torch.zeros(2), scale=torch.ones(2)))),
    (("VonMises", dict(loc=torch.zeros(2), concentration=torch.ones(2))), ("Normal", dict(loc=torch.zeros(2), scale=torch.ones(2)))),
    (("LogNormal", dict(loc=torch.zeros(2), scale=torch.ones(2))), ("LogNormal", dict(loc=torch.ones(2), scale=rand(2)))),
    (("LogNormal", dict(loc=torch.zeros(2), scale=torch.ones(2))), ("Weibull", dict(scale=torch.ones(2), concentration=torch.ones(2)))),
    (("LogisticNormal", dict(loc=torch.zeros(2), scale=torch.ones(2))), ("LogisticNormal", dict(loc=torch.ones(2), scale=rand(2)))),
    (("Wishart", dict(df=3.5, scale_tril=torch.eye(2))), ("Wishart", dict(df=4.5, scale_tril=torch.eye(2) * 2))),
]  # fmt: skip


@pytest.mark.parametrize("p, q", EDGES, ids=lambda named: named[0])
def test_edges(p, q):
    compare(p, q)


@pytest.mark.parametrize(
    "name", ["Bernoulli", "Beta", "ContinuousBernoulli", "Dirichlet", "Exponential", "Gamma", "Normal", "Poisson"]
)
def test_of_an_exponential_family(name):
    """The Bregman divergence of the log normalizer, which each of these has in closed form, too."""
    (_, p), (_, q) = make(name, (3,)), make(name, (3,))

    def bregman(T, p, q):
        kind = getattr(T.distributions, name)
        return T.distributions.kl._kl_expfamily_expfamily(kind(**p), kind(**q))

    ours, _ = both(bregman, p, q, grad_fn=False, strides=False, versions=False, rtol=1e-6, atol=1e-8)
    if name != "Beta":  # its parameters are taken for the natural ones, which are less by 1
        assert_close(ours.detach(), kl(torch, (name, p), (name, q)), rtol=1e-6, atol=1e-8)


def test_independent():
    def both_kinds(T, loc, scale, dims):
        normal = T.distributions.Normal(loc, scale), T.distributions.Normal(0 * loc, scale * 2)
        return T.distributions.kl_divergence(*[T.distributions.Independent(p, n) for p, n in zip(normal, dims)])

    for dims in ((0, 0), (1, 1), (2, 2), (1, 2)):
        both(both_kinds, torch.randn(2, 3, requires_grad=True), torch.rand(2, 3), dims)


def registered(T):
    """Subclasses take what is registered for their bases; a new entry is found at once, and may be ambiguous."""
    d = T.distributions

    class A(d.Normal):
        pass

    class B(d.Normal):
        pass

    a, b = A(0.0, 1.0), B(0.5, 2.0)
    seen = [d.kl_divergence(a, b)]
    d.register_kl(A, d.Normal)(lambda p, q: "A, Normal")
    seen.append(d.kl_divergence(a, b))
    d.register_kl(d.Normal, B)(lambda p, q: "Normal, B")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seen.append(d.kl_divergence(a, b))
    seen.append([(w.category, str(w.message)) for w in caught])
    d.register_kl(A, B)(lambda p, q: "A, B")
    seen.append(d.kl_divergence(a, b))
    for pair in ((A, d.Normal), (d.Normal, B), (A, B)):
        del d.kl._KL_REGISTRY[pair]
    d.kl._KL_MEMOIZE.clear()
    return seen


def test_the_most_specific_pair_is_taken():
    assert_close(registered(rt), registered(torch))


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Laplace", "Bernoulli", "Dirichlet", "MultivariateNormal"])
def test_it_is_the_mean_of_the_difference_of_logarithms(name):
    p, q = (getattr(rt.distributions, name)(**to_readtorch(make(name)[1])) for _ in range(2))
    x = p.sample((20000,))
    difference = p.log_prob(x) - q.log_prob(x)
    error = difference.std() / 20000**0.5
    assert abs(difference.mean() - rt.distributions.kl_divergence(p, q)) < 5 * error
