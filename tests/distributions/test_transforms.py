"""Transforms against the reference: values, inverses, determinants, shapes, composition, caches, text and errors."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch as rt
from tests.reference import assert_close, both

# {test: (the transform of a package's `distributions`, the last sizes of what it takes)}
TRANSFORMS = {
    "abs": (lambda d, T: d.AbsTransform(), ()),
    "affine of numbers": (lambda d, T: d.AffineTransform(1.5, -2.0), ()),
    "affine of integers": (lambda d, T: d.AffineTransform(1, 3), ()),
    "affine of tensors": (lambda d, T: d.AffineTransform(T.tensor([1.0, 2.0, 3.0]), T.tensor([-1.0, 0.5, 2.0])), (3,)),
    "affine of an event": (lambda d, T: d.AffineTransform(T.tensor([1.0, 2.0, 3.0]), T.tensor([-1.0, 0.5, 2.0]), 1), (3,)),
    "affine of an event and a number": (lambda d, T: d.AffineTransform(0.0, 3.0, event_dim=2), (3, 2)),
    "cat": (lambda d, T: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], dim=-1), (2,)),
    "cat of lengths": (lambda d, T: d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [3, 2]), (5,)),
    "cat of vectors": (lambda d, T: d.CatTransform([d.AffineTransform(0, 2, 1), d.ExpTransform()], -2, [2, 1]), (3, 4)),
    "cat within an event": (lambda d, T: d.CatTransform([d.AffineTransform(0, 2, 1), d.AffineTransform(1, 3, 1)], -1, [2, 1]), (3,)),
    "compose": (lambda d, T: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(2.0, 3.0), d.ExpTransform().inv]), ()),
    "compose with events": (lambda d, T: d.ComposeTransform([d.ExpTransform(), d.StickBreakingTransform(), d.ExpTransform().inv]), (3,)),
    "compose nothing": (lambda d, T: d.identity_transform, ()),
    "correlations": (lambda d, T: d.CorrCholeskyTransform(), (6,)),
    "distribution": (lambda d, T: d.CumulativeDistributionTransform(d.Normal(0.5, 2.0)), ()),
    "exp": (lambda d, T: d.ExpTransform(), ()),
    "independent": (lambda d, T: d.IndependentTransform(d.ExpTransform(), 1), (3,)),
    "independent of two": (lambda d, T: d.IndependentTransform(d.AffineTransform(1.0, 2.0), 2), (3, 2)),
    "lower cholesky": (lambda d, T: d.LowerCholeskyTransform(), (3, 3)),
    "positive definite": (lambda d, T: d.PositiveDefiniteTransform(), (3, 3)),
    "power": (lambda d, T: d.PowerTransform(T.tensor(2.0)), ()),
    "power of tensors": (lambda d, T: d.PowerTransform(T.tensor([-1.0, 0.5, 3.0])), (3,)),
    "reshape": (lambda d, T: d.ReshapeTransform((2, 3), (6,)), (2, 3)),
    "reshape to a number": (lambda d, T: d.ReshapeTransform((1, 1), ()), (1, 1)),
    "sigmoid": (lambda d, T: d.SigmoidTransform(), ()),
    "softmax": (lambda d, T: d.SoftmaxTransform(), (4,)),
    "softplus": (lambda d, T: d.SoftplusTransform(), ()),
    "stack": (lambda d, T: d.StackTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)], dim=-1), (2,)),
    "stack in front": (lambda d, T: d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.SigmoidTransform()], dim=-2), (3, 2)),
    "stick breaking": (lambda d, T: d.StickBreakingTransform(), (3,)),
    "tanh": (lambda d, T: d.TanhTransform(), ()),
}  # fmt: skip
every_transform = pytest.mark.parametrize("test", TRANSFORMS)


def attempt(function, *args):
    """What it gives, or its error."""
    try:
        return function(*args)
    except (NotImplementedError, ValueError, AssertionError, AttributeError, RuntimeError) as error:
        return type(error).__name__, str(error).replace("readtorch", "torch")


def given_to(test, batch, dtype=torch.float32):
    x = torch.randn(batch + TRANSFORMS[test][1], dtype=dtype)
    return (x.abs() + 0.1 if "power" in test else x).requires_grad_()


def values(T, test, x):
    transform = TRANSFORMS[test][0](T.distributions, T)
    y = transform(x)
    back = transform.inv(y)
    return {
        "y": y,
        "x": back,
        "log det": attempt(transform.log_abs_det_jacobian, x, y),
        "of the inverse": attempt(transform.inv.log_abs_det_jacobian, y, x),
    }


@every_transform
@given(batch=st.sampled_from([(), (2,), (2, 4)]))
def test_values(test, batch):
    both(
        lambda T, x: values(T, test, x), given_to(test, batch, torch.float64), grad_fn=False, strides=False, versions=False, alias=False, rtol=1e-6, atol=1e-8
    )  # fmt: skip


@every_transform
def test_log_det_is_that_of_the_jacobian(test):
    transform = TRANSFORMS[test][0](rt.distributions, rt)
    if not transform.bijective:
        return
    x = rt.from_numpy(given_to(test, (), torch.float64).detach().numpy())
    y = transform(x)
    if y.numel() != x.numel():
        return  # onto a surface: the determinant is that of coordinates on it
    jacobian = rt.autograd.functional.jacobian(transform, x).reshape(x.numel(), x.numel())
    expected = jacobian.abs().logdet() if x.numel() == 1 else rt.linalg.slogdet(jacobian).logabsdet
    assert_close(
        transform.log_abs_det_jacobian(x, y).sum().double(),
        torch.tensor(expected.item()).double(),
        rtol=1e-5,
        atol=1e-5,
    )


def description(T, test):
    transform = TRANSFORMS[test][0](T.distributions, T)
    shape = T.Size((5,) + TRANSFORMS[test][1])
    names = ["domain", "codomain", "event_dim", "sign", "bijective"]
    described = {name: attempt(getattr, transform, name) for name in names}
    described |= {name: repr(described[name]) for name in ("domain", "codomain")}
    described["inverse"] = {name: attempt(getattr, transform.inv, name) for name in ("event_dim", "sign", "bijective")}
    described["text"] = repr(transform), repr(transform.inv)
    described["shape"] = attempt(transform.forward_shape, shape)
    if isinstance(described["shape"], T.Size):
        described["back"] = attempt(transform.inverse_shape, described["shape"])
        described["through the inverse"] = attempt(transform.inv.inverse_shape, shape)
    for wrong in ((), (7,), (3, 5)):
        described[f"shape {wrong}"] = attempt(transform.forward_shape, T.Size(wrong))
        described[f"inverse of {wrong}"] = attempt(transform.inverse_shape, T.Size(wrong))
    return described


@every_transform
def test_what_it_says_of_itself(test):
    assert_close(description(rt, test), description(torch, test))


@every_transform
def test_cache(test):
    made = TRANSFORMS[test][0](rt.distributions, rt)
    assert made.with_cache(0) is made
    transform = made.with_cache()
    assert transform.with_cache(1) is transform and type(transform) is type(made)
    x = rt.from_numpy(given_to(test, (2,)).detach().numpy())
    y = transform(x)
    if test != "compose nothing":
        assert transform(x) is y
    assert transform.inv(y) is x
    assert_close(y, torch.from_numpy(made(x).numpy()), exact=True)
    assert transform.inv.with_cache(0)._cache_size == 0


@every_transform
def test_equality_and_copies(test):
    make, _ = TRANSFORMS[test]
    assert (make(rt.distributions, rt) == make(rt.distributions, rt)) == (
        make(torch.distributions, torch) == make(torch.distributions, torch)
    )
    transform = make(rt.distributions, rt)
    assert (
        transform == transform
        and not transform != transform
        and transform.inv == transform.inv
        and transform.inv.inv is transform
    )
    for other in TRANSFORMS:
        theirs = make(torch.distributions, torch) == TRANSFORMS[other][0](torch.distributions, torch)
        same_size = TRANSFORMS[other][1] == TRANSFORMS[test][1]
        if same_size:
            assert (transform == TRANSFORMS[other][0](rt.distributions, rt)) == theirs
    x = rt.from_numpy(given_to(test, (2,)).detach().numpy())
    for again in (
        copy.deepcopy(transform),
        pickle.loads(pickle.dumps(transform)),
        pickle.loads(pickle.dumps(transform.inv)).inv,
    ):
        assert again(x).tolist() == transform(x).tolist()


ERRORS = {
    "cache size": lambda d, T: d.ExpTransform(cache_size=2),
    "reshape": lambda d, T: d.ReshapeTransform((2, 3), (5,)),
    "reshape of another shape": lambda d, T: d.ReshapeTransform((2, 3), (6,)).forward_shape(T.Size((3, 2))),
    "few dimensions": lambda d, T: d.IndependentTransform(d.ExpTransform(), 2)(T.zeros(3)),
    "few dimensions back": lambda d, T: d.IndependentTransform(d.ExpTransform(), 2).inv(T.zeros(3)),
    "no transform in cat": lambda d, T: d.CatTransform([d.ExpTransform(), 3]),
    "no transform in stack": lambda d, T: d.StackTransform([3]),
    "lengths": lambda d, T: d.CatTransform([d.ExpTransform()], lengths=[1, 2]),
    "cat of another size": lambda d, T: d.CatTransform([d.ExpTransform()], lengths=[2])(T.zeros(3)),
    "cat back of another size": lambda d, T: d.CatTransform([d.ExpTransform()], lengths=[2]).inv(T.zeros(3)),
    "cat of no dimension": lambda d, T: d.CatTransform([d.ExpTransform()], dim=1)(T.zeros(3)),
    "determinant of cat": lambda d, T: d.CatTransform([d.ExpTransform()], dim=1).log_abs_det_jacobian(T.zeros(3), T.zeros(3)),
    "determinant of cat, y": lambda d, T: d.CatTransform([d.ExpTransform()]).log_abs_det_jacobian(T.zeros(1), T.zeros(2)),
    "stack of another size": lambda d, T: d.StackTransform([d.ExpTransform()])(T.zeros(3)),
    "stack back of another size": lambda d, T: d.StackTransform([d.ExpTransform()]).inv(T.zeros(3)),
    "stack of no dimension": lambda d, T: d.StackTransform([d.ExpTransform()], dim=1)(T.zeros(3)),
    "determinant of stack": lambda d, T: d.StackTransform([d.ExpTransform()]).log_abs_det_jacobian(T.zeros(2), T.zeros(1)),
    "correlations": lambda d, T: d.CorrCholeskyTransform()(T.zeros(4)),
    "correlations of no size": lambda d, T: d.CorrCholeskyTransform()(T.zeros(5)),
    "no function": lambda d, T: d.Transform()(T.zeros(3)),
    "no inverse": lambda d, T: d.Transform().inv(T.zeros(3)),
    "no determinant": lambda d, T: d.Transform().log_abs_det_jacobian(T.zeros(3), T.zeros(3)),
    "vector": lambda d, T: d.utils.tril_matrix_to_vec(T.zeros(3, 3), 3),
    "sign": lambda d, T: d.SoftmaxTransform().sign,
    "no with_cache": lambda d, T: type("A", (d.Transform,), {"__init__": lambda self: d.Transform.__init__(self)})().with_cache(),
    "no transform": lambda d, T: d.TransformedDistribution(d.Normal(0, 1), 3),
    "no transforms": lambda d, T: d.TransformedDistribution(d.Normal(0, 1), [3]),
    "base is too small": lambda d, T: d.TransformedDistribution(d.Normal(0, 1), d.StickBreakingTransform()),
}  # fmt: skip


@pytest.mark.parametrize("test", ERRORS)
def test_errors(test):
    assert_close(attempt(ERRORS[test], rt.distributions, rt), attempt(ERRORS[test], torch.distributions, torch))
    assert isinstance(attempt(ERRORS[test], rt.distributions, rt), tuple)


def test_subclass_of_its_own():
    """A transform of the user's: what the base class does for it."""

    def made(T):
        class Cubed(T.distributions.Transform):
            domain = codomain = T.distributions.constraints.real
            bijective, sign = True, 1

            def _call(self, x):
                return x**3

            def _inverse(self, y):
                return y.sign() * y.abs() ** (1 / 3)

            def log_abs_det_jacobian(self, x, y):
                return (3 * x**2).log()

        transform = Cubed(cache_size=1)
        p = T.distributions.TransformedDistribution(T.distributions.Normal(0.0, 1.0), [transform.inv, Cubed()])
        x = T.tensor([0.5, -0.7])
        return transform(x), transform.inv(transform(x)) is x, p.log_prob(x), p.cdf(x), repr(transform.with_cache(0))

    assert_close(made(rt), made(torch))


def transformed(T, loc, scale, value):
    d = T.distributions
    base = d.Normal(loc, scale)
    kinds = [
        d.TransformedDistribution(base, []),
        d.TransformedDistribution(base, d.ExpTransform()),
        d.TransformedDistribution(base, [d.AffineTransform(1.0, -2.0), d.SigmoidTransform()]),
        d.TransformedDistribution(base, [d.AffineTransform(T.zeros(4, 1, 3), T.ones(3) * 2)]),
        d.TransformedDistribution(base, [d.StickBreakingTransform(), d.ReshapeTransform((4,), (2, 2))]),
        d.TransformedDistribution(d.Independent(base, 1), [d.ExpTransform()]),
        d.TransformedDistribution(d.Uniform(T.zeros(3), T.ones(3)), [d.CumulativeDistributionTransform(base).inv]),
    ]
    results = []
    for p in kinds:
        draw = p.rsample((2,))
        results.append((p.batch_shape, p.event_shape, repr(p.support), draw, p.log_prob(draw.detach())))
        results.append((attempt(p.cdf, draw.detach()), attempt(p.icdf, value), p.has_rsample))
        wider = p.expand((5,) + tuple(p.batch_shape))
        results.append(
            (
                wider.batch_shape,
                wider.event_shape,
                wider.log_prob(draw.detach()[:, None] if p.batch_shape else draw.detach()),
            )
        )
    return results


def test_transformed_distributions():
    loc, scale = torch.randn(2, 3, requires_grad=True), (torch.rand(2, 3) + 0.5).requires_grad_()
    both(transformed, loc, scale, torch.rand(2, 3), grad_fn=False, strides=False, versions=False, alias=False, rtol=1e-5, atol=1e-5)  # fmt: skip
