"""Distributions made of others: mixtures, independent batches, and what has parts of its own; shapes that broadcast."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch as rt
from tests.distributions.parameters import KINDS, make
from tests.reference import both, tensors_in

NUMBERS = ["Beta", "Binomial of logits", "Exponential", "Gamma", "Gumbel", "LogNormal", "Normal", "Poisson", "StudentT", "Uniform", "Weibull"]  # fmt: skip
VECTORS = ["Dirichlet", "LowRankMultivariateNormal", "MultivariateNormal", "OneHotCategorical"]
MATRICES = ["LKJCholesky", "Wishart"]
MOMENTS = ["mean", "variance", "stddev", "mode", "entropy"]


def attempt(function, *args):
    try:
        return function(*args)
    except (NotImplementedError, AttributeError) as error:
        return type(error).__name__


def moments(p):
    return {name: attempt(lambda: p.entropy() if name == "entropy" else getattr(p, name)) for name in MOMENTS}  # noqa: B023


def compare(function, arguments):
    for tensor in tensors_in(arguments):
        if tensor.is_floating_point():
            tensor.requires_grad_()
    both(function, arguments, grad_fn=False, strides=False, versions=False, alias=False, rtol=2e-6, atol=1e-8)


def shapes(p):
    return p.batch_shape, p.event_shape, p.has_rsample, p.has_enumerate_support, repr(p), repr(p.support)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("test", NUMBERS + VECTORS + MATRICES)
@given(batch=st.sampled_from([(), (2,), (3, 2)]), sample=st.sampled_from([(), (4,), (2, 1)]))
def test_mixtures(test, batch, sample):
    name, arguments = make(test, (*batch, 5))
    weights = torch.rand((*batch, 5), dtype=torch.float64)

    def mixture(T, given):
        d = T.distributions
        chooses, parameters = given
        p = d.MixtureSameFamily(d.Categorical(chooses), getattr(d, name)(**parameters))
        drawn = p.sample(sample)
        wider = p.expand((6, *batch))
        more = [
            attempt(p.cdf, drawn) if test in NUMBERS else None,
            wider.sample().shape,
            wider.log_prob(wider.sample()),
        ]
        return shapes(p), drawn, p.log_prob(drawn), moments(p), more

    compare(mixture, (weights, arguments))


def test_a_mixture_with_one_choice_for_a_batch():
    def mixture(T, given):
        d, (weights, loc) = T.distributions, given
        p = d.MixtureSameFamily(d.Categorical(weights), d.Normal(loc, 1.0))
        return (
            p.sample((3,)).shape if weights.dim() == loc.dim() else p.batch_shape,
            p.mean,
            p.variance,
            p.log_prob(loc[..., 0]),
        )

    compare(mixture, (torch.rand(4), torch.randn(3, 2, 4)))
    compare(mixture, (torch.rand(3, 2, 4), torch.randn(3, 2, 4)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("test", [test for test in KINDS if "limits" not in test and "near" not in test])
@pytest.mark.parametrize("dims", [0, 1, 2])
def test_independent(test, dims):
    name, arguments = make(test, (2, 3), torch.float32)

    def independent(T, arguments):
        p = T.distributions.Independent(getattr(T.distributions, name)(**arguments), p_dims(name, dims))
        wider = p.expand((5, *p.batch_shape))
        drawn = p.sample((2,))
        return [
            shapes(p),
            shapes(wider),
            p.support.check(drawn).all(),
            attempt(p.rsample, (2,)) if p.has_rsample else None,
            attempt(p.enumerate_support),
        ]

    both(
        independent,
        arguments,
        grad=False,
        grad_fn=False,
        strides=False,
        versions=False,
        alias=False,
        rtol=1e-4,
        atol=1e-4,
    )

    def computed(T, arguments):
        p = T.distributions.Independent(getattr(T.distributions, name)(**arguments), p_dims(name, dims))
        return p.log_prob(p.sample((2,)).detach()), moments(p)

    if name != "GeneralizedPareto":  # whose densities in float64 the reference has not
        compare(computed, make(test, (2, 3))[1])


def p_dims(name, dims):
    return min(dims, 1 if "Logistic" in name else 2)


PAIRS = [test for test in KINDS if sum(k.__name__ in ("real", "positive", "probability", "above_two", "counts") for k in KINDS[test][1].values()) == 2]  # fmt: skip


@pytest.mark.parametrize("test", PAIRS)
def test_parameters_broadcast(test):
    (name, first), (_, second) = make(test, (3, 1)), make(test, (4,))
    names = list(first)
    arguments = {names[0]: first[names[0]], names[1]: second[names[1]]}

    def used(T, arguments):
        p = getattr(T.distributions, name)(**arguments)
        drawn = p.sample((2,))
        return shapes(p), drawn, p.log_prob(drawn), p.log_prob(drawn[:, :1]), p.log_prob(drawn[0])

    compare(used, arguments)


@pytest.mark.parametrize("test", ["Normal", "Gamma", "Bernoulli", "Categorical", "MultivariateNormal", "Weibull"])
def test_parameters_of_modules(test):
    """A Parameter as a parameter: draws have no graph, densities have one."""
    name, arguments = make(test, (2,), torch.float32)

    def used(T, arguments):
        arguments = {k: T.nn.Parameter(v.detach()) if isinstance(v, T.Tensor) else v for k, v in arguments.items()}
        p = getattr(T.distributions, name)(**arguments)
        drawn = p.sample()
        loss = p.log_prob(drawn).sum()
        loss.backward()
        return drawn, drawn.requires_grad, loss.detach(), [v.grad for v in arguments.values()], repr(p.expand((3, 2)))

    both(used, arguments, grad_fn=False, versions=False, alias=False, strides=False, rtol=1e-5, atol=1e-5)


def test_second_derivatives():
    for test in ("Normal", "Gamma", "Beta", "StudentT", "Dirichlet", "MultivariateNormal", "LowRankMultivariateNormal"):
        name, arguments = make(test)
        for tensor in tensors_in(arguments):
            tensor.requires_grad_()
        value = getattr(torch.distributions, name)(**arguments).sample((3,)).detach()

        def log_prob(T, arguments, value):
            return getattr(T.distributions, name)(**arguments).log_prob(value)  # noqa: B023

        both(
            log_prob,
            arguments,
            value,
            grad=2,
            grad_fn=False,
            strides=False,
            versions=False,
            alias=False,
            rtol=1e-6,
            atol=1e-8,
        )


@pytest.mark.parametrize("diagonal", [(1.0, 1.0, 1.0), (1.0, 1.0, 0.0)], ids=["regular", "singular"])
@pytest.mark.parametrize("tries", [None, 0, 1, 4])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_draws_of_a_wishart_that_are_repeated(diagonal, tries, batch):
    """Note [ Which Wishart draws are repeated ]: the regular ones once, those that are singular until there are no tries."""
    both_factors = torch.eye(3), torch.tensor(diagonal).diag()

    def drawn(T, factors):
        factor = T.stack(factors) if batch else factors[1]
        p = T.distributions.Wishart(T.full(batch, 5.0), scale_tril=factor, validate_args=False)
        return p.rsample((6,), tries), T.rand(2)

    both(drawn, list(both_factors), grad_fn=False, strides=False, versions=False, alias=False, rtol=1e-4, atol=1e-5)


def test_a_simulated_device_draws():
    """Distributions make their tensors on the parameters' device."""
    rt.cuda.simulate(1)
    try:
        for test in ("Normal", "Categorical", "Gumbel", "StudentT", "MultivariateNormal", "LKJCholesky", "VonMises"):
            name, arguments = make(test, (2,), torch.float32)
            moved = {
                k: rt.tensor(v.tolist(), device="cuda") if isinstance(v, torch.Tensor) else v
                for k, v in arguments.items()
            }
            p = getattr(rt.distributions, name)(**moved)
            drawn = p.sample((3,))
            assert drawn.device.type == "cuda" and p.log_prob(drawn).device.type == "cuda"
    finally:
        rt.cuda.simulate(0)
