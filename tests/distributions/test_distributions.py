"""Every distribution against the reference: draws from the same seed, densities, moments, gradients, expansion, text."""

import contextlib
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch as rt
from tests.distributions.parameters import KINDS, make
from tests.reference import assert_close, both, seed_both, tensors_in, to_readtorch

pytestmark = pytest.mark.filterwarnings("ignore")  # of singular draws, see Note [ Which Wishart draws are repeated ]

every_test = pytest.mark.parametrize("test", KINDS)
batches = st.sampled_from([(), (1,), (4,), (2, 3)])
EXACT = 2e-6  # relative


def with_gradients(arguments):
    floating = [v for v in arguments.values() if isinstance(v, torch.Tensor) and v.is_floating_point()]
    for tensor in floating:
        tensor.requires_grad_()
    return arguments


def of(T, name, arguments):
    return getattr(T.distributions, name)(**arguments)


def attempt(function, *args):
    """What it gives, or the name of its error: a property that a distribution does not have."""
    try:
        return function(*args)
    except (NotImplementedError, AttributeError) as error:
        return type(error).__name__


def compare(function, *args, **options):
    with both_default_dtypes(next((t.dtype for t in tensors_in(args) if t.is_floating_point()), torch.float32)):
        return compare_values(function, *args, **options)


@contextlib.contextmanager
def both_default_dtypes(dtype):
    """The reference's GeneralizedPareto has densities for parameters of the default dtype only."""
    previous = torch.get_default_dtype()
    try:
        torch.set_default_dtype(dtype)
        rt.set_default_dtype(to_readtorch(dtype))
        yield
    finally:
        torch.set_default_dtype(previous)
        rt.set_default_dtype(to_readtorch(previous))


def compare_values(function, *args, **options):
    return both(function, *args, grad_fn=False, strides=False, alias=False, versions=False, **options)


# ------------------------------------------------------------------------------------------------------------- draws


@every_test
@given(batch=batches, sample=st.sampled_from([(), (3,), (2, 2)]), dtype=st.sampled_from([torch.float32, torch.float64]))
def test_draws(test, batch, sample, dtype):
    name, arguments = make(test, batch, dtype)
    compare(lambda T, a: of(T, name, a).sample(sample), arguments, rtol=close(dtype), atol=close(dtype))


def close(dtype):
    """Draws go through functions that may differ in the last bits (`exp`, `tan`), and matrices that are factored."""
    return 1e-9 if dtype == torch.float64 else 2e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "test",
    [
        *("Bernoulli", "Binomial", "Categorical", "Categorical of logits", "Exponential", "Geometric", "HalfNormal"),
        *("Multinomial", "NegativeBinomial", "Normal", "OneHotCategorical", "Poisson", "Uniform", "Gamma", "Chi2"),
    ],
)
def test_draws_have_the_same_bits(test, dtype):
    name, arguments = make(test, (3, 5), dtype)
    compare(lambda T, a: of(T, name, a).sample((7,)), arguments, exact=True)


@every_test
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_differentiable_draws(test, batch):
    name, arguments = make(test, batch)
    compare(lambda T, a: attempt(of(T, name, a).rsample, (2,)), with_gradients(arguments), rtol=EXACT, atol=1e-8)


# ------------------------------------------------------------------------------------------------- what is computed


def probabilities(T, name, arguments, value):
    p = of(T, name, arguments)
    return {"log_prob": p.log_prob(value), "cdf": attempt(p.cdf, value)}


@every_test
@given(batch=batches, dtype=st.sampled_from([torch.float32, torch.float64]))
def test_probabilities(test, batch, dtype):
    name, arguments = make(test, batch, dtype)
    value = of(torch, name, arguments).sample((2,)).detach()
    if dtype == torch.float64:
        tolerance = dict(rtol=EXACT, atol=1e-6)
    else:  # near 1/2 a ContinuousBernoulli's gradients are differences of large numbers
        tolerance = dict(rtol=2e-4, atol=2e-4, grad=name != "ContinuousBernoulli")
    compare(lambda T, a, v: probabilities(T, name, a, v), with_gradients(arguments), value, **tolerance)


def test_generalized_pareto_in_another_dtype():
    """The reference raises RuntimeError: its zero has the default dtype."""
    arguments = {"loc": 0.5, "scale": 2.0}
    concentrations = torch.tensor([-0.5, 0.0, 0.7])
    value = torch.tensor([0.6, 1.1, 9.0])
    wide = rt.distributions.GeneralizedPareto(**arguments, concentration=to_readtorch(concentrations.double()))
    theirs = torch.distributions.GeneralizedPareto(**arguments, concentration=concentrations)
    for method in ("log_prob", "log_survival_function", "log_cdf", "cdf"):
        assert_close(getattr(wide, method)(to_readtorch(value.double())).float(), getattr(theirs, method)(value))


@every_test
def test_quantiles(test):
    name, arguments = make(test, (3,))
    p = torch.tensor([[0.0], [0.1], [0.5], [0.77]], dtype=torch.float64)
    compare(lambda T, a, p: attempt(of(T, name, a).icdf, p), with_gradients(arguments), p, rtol=EXACT, atol=1e-8)


PROPERTIES = ["mean", "mode", "variance", "stddev"]
FUNCTIONS = ["entropy", "perplexity"]
PARAMETERS = ["probs", "logits", "df", "loc", "scale", "rate", "concentration", "temperature", "param_shape"]
MATRICES = ["scale_tril", "covariance_matrix", "precision_matrix"]


def said(T, name, arguments, names):
    p = of(T, name, arguments)
    names = [each for each in names if (name, each) != ("Geometric", "param_shape")]  # ours has it, for all are alike
    return {each: attempt(lambda: getattr(p, each)() if each in FUNCTIONS else getattr(p, each)) for each in names}  # noqa: B023


@every_test
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_moments_and_entropy(test, batch):
    name, arguments = make(test, batch)
    names = PROPERTIES + FUNCTIONS
    compare(lambda T, a: said(T, name, a, names), with_gradients(arguments), rtol=EXACT, atol=1e-8)


@every_test
def test_parameters(test):
    name, arguments = make(test, (2,))
    names = PARAMETERS + MATRICES
    ours, theirs = compare(lambda T, a: said(T, name, a, names), with_gradients(arguments), rtol=EXACT, atol=1e-8)


@every_test
@pytest.mark.parametrize("expand", [True, False])
def test_enumerated_support(test, expand):
    name, arguments = make(test, (2,))
    if "total_count" in arguments and not isinstance(arguments["total_count"], int):
        arguments["total_count"] = 3
    both(lambda T, a: attempt(of(T, name, a).enumerate_support, expand), arguments)
    both(lambda T, a: of(T, name, a).has_enumerate_support, arguments)


# -------------------------------------------------------------------------------------------------- shapes and kinds


def shapes_of(p):
    return p.batch_shape, p.event_shape, p.has_rsample, repr(p), repr(p.support).replace("readtorch", "torch")


@every_test
@pytest.mark.parametrize("batch", [(), (1,), (2, 3)], ids=str)
def test_shapes_support_and_text(test, batch):
    name, arguments = make(test, batch)
    both(lambda T, a: shapes_of(of(T, name, a)), arguments, grad=False)


NUMBERS = [test for test in KINDS if all(kind.__name__ in ("real", "positive", "probability", "above_two", "counts") for kind in KINDS[test][1].values())]  # fmt: skip


@pytest.mark.parametrize("test", [test for test in NUMBERS if "inomial" not in test])
def test_parameters_may_be_numbers(test):
    name, arguments = make(test)
    numbers = {parameter: value.item() for parameter, value in arguments.items()}
    ours, theirs = (of(T, name, numbers) for T in (rt, torch))
    assert_close(shapes_of(ours), shapes_of(theirs))
    seed_both(3)
    assert_close(ours.sample((4,)), theirs.sample((4,)), rtol=2e-5, atol=2e-5)


@every_test
def test_expanded(test):
    name, arguments = make(test, (2, 1))

    def expanded(T, arguments):
        p = of(T, name, arguments)
        attempt(lambda: (p.probs, p.logits))  # both are there, and both are expanded
        wider = p.expand((3,) + tuple(p.batch_shape[:-1]) + (4 if p.batch_shape[-1] == 1 else p.batch_shape[-1],))
        value = wider.sample()
        return {
            "shapes": (wider.batch_shape, wider.event_shape, wider._validate_args),
            "draws": value,
            "log_prob": wider.log_prob(value),
            "moments": [attempt(getattr, wider, each) for each in PROPERTIES],
            "own": [attempt(getattr, wider, each) for each in ["probs", "logits", "df", "loc", "scale", *MATRICES]],
            "entropy": "differs" if name == "Multinomial" else attempt(wider.entropy),
        }

    compare(expanded, arguments, rtol=EXACT, atol=1e-8)


@pytest.mark.parametrize(
    "test", ["Bernoulli", "ContinuousBernoulli near 1/2", "Exponential", "Gamma", "Normal", "Wishart"]
)
def test_entropy_of_an_exponential_family(test):
    """From the log normalizer's gradient: the closed form that these classes have instead, but for a matrix's parameters."""
    name, arguments = make(test, (2,))

    def entropy(T, arguments):
        return T.distributions.ExponentialFamily.entropy(of(T, name, arguments))

    compare(entropy, arguments, rtol=EXACT, atol=1e-8)


def test_new():
    """Tensors as the parameters are, which some classes make."""
    for test in ("Bernoulli", "Binomial", "Categorical", "Multinomial", "OneHotCategorical"):
        name, arguments = make(test, (2,))
        both(lambda T, a: of(T, name, a)._new((3, 2)).dtype, arguments)  # noqa: B023


def test_entropy_of_an_expanded_multinomial():
    """The reference raises AttributeError."""
    p = rt.distributions.Multinomial(5, rt.tensor([0.2, 0.3, 0.5]))
    assert p.expand((2,)).entropy().tolist() == [p.entropy().item()] * 2


@every_test
def test_constraints_hold_for_what_is_drawn(test):
    name, arguments = make(test, (2,), torch.float64)
    ours = of(rt, name, to_readtorch(arguments))
    assert ours.support.check(ours.sample((20,))).all()
    theirs = of(torch, name, arguments)
    for parameter, constraint in theirs.arg_constraints.items():
        assert repr(ours.arg_constraints[parameter]) == repr(constraint)


@every_test
def test_pickle(test):
    name, arguments = make(test, (2,))
    ours = of(rt, name, to_readtorch(arguments))
    again = pickle.loads(pickle.dumps(ours))
    assert repr(again) == repr(ours)
    rt.manual_seed(1)
    expected = ours.sample()
    rt.manual_seed(1)
    assert again.sample().tolist() == expected.tolist()


def test_names():
    assert set(rt.distributions.__all__) == set(torch.distributions.__all__)
    for name in torch.distributions.__all__:
        assert hasattr(rt.distributions, name)
    modules = [
        name for name in vars(torch.distributions) if isinstance(getattr(torch.distributions, name), type(torch))
    ]
    missing = [name for name in modules if not hasattr(rt.distributions, name)]
    assert missing == []
    for name in modules:
        their_all = getattr(getattr(torch.distributions, name), "__all__", [])
        assert set(their_all) <= set(dir(getattr(rt.distributions, name))), name
