"""Constraints against the reference: what they accept, their text, and the transforms into them."""

import pytest
import torch

import readtorch as rt
from tests.reference import assert_close, both

SQUARES = torch.stack(
    [
        torch.eye(3),
        torch.tensor([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]]),
        torch.tensor([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),  # symmetric, a negative eigenvalue
        torch.tensor([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]),  # a correlation's factor
        torch.tensor([[1.0, 0.0, 0.0], [5.0, -0.8, 0.0], [0.0, 0.6, 0.8]]),
        torch.tensor([[1.0, 0.3, 0.0], [5.0, 0.8, 0.0], [0.0, 0.6, 0.8]]),
        torch.zeros(3, 3),
    ]
)
VECTORS = torch.tensor(
    [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [-0.5, 0.5, 1.0], [3.0, 2.0, 0.0], [0.5, 0.5, 0.5]]
)
NUMBERS = torch.tensor([-3.0, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.0, 2.5, 7.0, float("nan"), float("inf"), -float("inf")])

# {test: (the constraint of a package's `constraints`, values that satisfy it and values that do not)}
CONSTRAINTS = {
    "boolean": (lambda c, T: c.boolean, NUMBERS),
    "cat": (lambda c, T: c.cat([c.positive, c.unit_interval], dim=0, lengths=[6, 7]), NUMBERS),
    "cat of vectors": (lambda c, T: c.cat([c.positive, c.real], dim=-1, lengths=[1, 2]), VECTORS),
    "corr_cholesky": (lambda c, T: c.corr_cholesky, SQUARES),
    "greater_than": (lambda c, T: c.greater_than(0.5), NUMBERS),
    "greater_than a tensor": (lambda c, T: c.greater_than(T.tensor([0.1, 0.6, 0.4])), VECTORS),
    "greater_than_eq": (lambda c, T: c.greater_than_eq(0.5), NUMBERS),
    "half_open_interval": (lambda c, T: c.half_open_interval(-1.0, 1.0), NUMBERS),
    "independent": (lambda c, T: c.independent(c.positive, 1), VECTORS),
    "independent of two": (lambda c, T: c.independent(c.nonnegative, 2), SQUARES),
    "integer_interval": (lambda c, T: c.integer_interval(-1, 2), NUMBERS),
    "integers up to": (lambda c, T: c._IntegerLessThan(2), NUMBERS),
    "interval": (lambda c, T: c.interval(-1.0, 1.0), NUMBERS),
    "less_than": (lambda c, T: c.less_than(0.5), NUMBERS),
    "lower_cholesky": (lambda c, T: c.lower_cholesky, SQUARES),
    "lower_triangular": (lambda c, T: c.lower_triangular, SQUARES),
    "mixture": (lambda c, T: c.MixtureSameFamilyConstraint(c.interval(T.tensor([0.0, -1.0]), T.tensor([1.0, 2.0]))), NUMBERS),
    "mixture of vectors": (lambda c, T: c.MixtureSameFamilyConstraint(c.simplex), VECTORS),
    "multinomial": (lambda c, T: c.multinomial(3), VECTORS),
    "nonnegative": (lambda c, T: c.nonnegative, NUMBERS),
    "nonnegative_integer": (lambda c, T: c.nonnegative_integer, NUMBERS),
    "one_hot": (lambda c, T: c.one_hot, VECTORS),
    "positive": (lambda c, T: c.positive, NUMBERS),
    "positive_definite": (lambda c, T: c.positive_definite, SQUARES[:3]),
    "positive_definite of others": (lambda c, T: c.positive_definite, SQUARES),
    "positive_integer": (lambda c, T: c.positive_integer, NUMBERS),
    "positive_semidefinite": (lambda c, T: c.positive_semidefinite, SQUARES[:3]),
    "positive_semidefinite of others": (lambda c, T: c.positive_semidefinite, SQUARES),
    "real": (lambda c, T: c.real, NUMBERS),
    "real_vector": (lambda c, T: c.real_vector, VECTORS),
    "simplex": (lambda c, T: c.simplex, VECTORS),
    "square": (lambda c, T: c.square, SQUARES),
    "square of others": (lambda c, T: c.square, SQUARES[:, :2]),
    "symmetric of others": (lambda c, T: c.symmetric, SQUARES[:, :2]),
    "stack": (lambda c, T: c.stack([c.positive, c.real, c.unit_interval], dim=-1), VECTORS),
    "stack in front": (lambda c, T: c.stack([c.simplex, c.real_vector], dim=0), VECTORS[:2]),
    "symmetric": (lambda c, T: c.symmetric, SQUARES),
    "unit_interval": (lambda c, T: c.unit_interval, NUMBERS),
    "dependent": (lambda c, T: c.dependent, NUMBERS),
    "dependent with a size": (lambda c, T: c.dependent(event_dim=1)(is_discrete=True), NUMBERS),
}  # fmt: skip
every_constraint = pytest.mark.parametrize("test", CONSTRAINTS)


def attempt(function, *args):
    """What it gives, or its error."""
    try:
        return function(*args)
    except (NotImplementedError, ValueError, AssertionError, TypeError) as error:
        return type(error).__name__, str(error)


def made(T, test):
    return CONSTRAINTS[test][0](T.distributions.constraints, T)


@every_constraint
def test_check(test):
    both(lambda T, value: attempt(made(T, test).check, value), CONSTRAINTS[test][1], strides=False, alias=False)
    both(
        lambda T, value: attempt(made(T, test).check, value), CONSTRAINTS[test][1].double(), strides=False, alias=False
    )


@every_constraint
def test_what_it_says_of_itself(test):
    def said(T):
        constraint = made(T, test)
        own = [attempt(getattr, constraint, name) for name in ("is_discrete", "event_dim")]
        return own, repr(constraint), T.distributions.constraints.is_dependent(constraint)

    assert_close(said(rt), said(torch))


@every_constraint
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_into_it(test, registry):
    def into(T, value):
        constraint = made(T, test)
        transform = attempt(getattr(T.distributions, registry), constraint)
        if isinstance(transform, tuple):
            return transform
        shape = transform.inverse_shape(T.Size(tuple(value.shape)))
        free = value.nan_to_num(0.4, 2.0, -2.0).reshape(-1)[: shape.numel()].reshape(shape)
        inside = transform(free)
        return repr(transform), inside, constraint.check(inside), transform.inv(inside)

    shown = CONSTRAINTS[test][1]
    both(into, shown, strides=False, alias=False, versions=False, rtol=1e-5, atol=1e-5)


def test_registration():
    def registered(T):
        d = T.distributions
        registry = d.constraint_registry.ConstraintRegistry()

        class Even(d.constraints.Constraint):
            pass

        @registry.register(Even)
        def to_even(constraint):
            return d.AffineTransform(0, 2)

        registry.register(Even(), lambda constraint: d.AffineTransform(0, 4))
        found = registry(Even()).scale
        return found, attempt(registry, d.constraints.real), attempt(registry.register, 3, to_even), repr(Even())

    assert_close(registered(rt), registered(torch))


ERRORS = {
    "no constraint": lambda c, T: c.independent(3, 1),
    "no integer": lambda c, T: c.independent(c.real, 1.5),
    "negative": lambda c, T: c.independent(c.real, -1),
    "few dimensions": lambda c, T: c.independent(c.real, 3).check(T.zeros(2, 2)),
    "no constraint in a mixture": lambda c, T: c.MixtureSameFamilyConstraint(3),
    "no constraint in cat": lambda c, T: c.cat([3]),
    "no constraint in stack": lambda c, T: c.stack([3]),
    "lengths": lambda c, T: c.cat([c.real], lengths=[1, 2]),
    "cat of no dimension": lambda c, T: c.cat([c.real], dim=2).check(T.zeros(3)),
    "stack of no dimension": lambda c, T: c.stack([c.real], dim=2).check(T.zeros(3)),
    "no check": lambda c, T: c.Constraint().check(T.zeros(3)),
}


@pytest.mark.parametrize("test", ERRORS)
def test_errors(test):
    theirs = attempt(ERRORS[test], torch.distributions.constraints, torch)
    assert_close(attempt(ERRORS[test], rt.distributions.constraints, rt), theirs)
    assert isinstance(theirs, tuple)


def test_dependent_property():
    def properties(T):
        c = T.distributions.constraints

        class Box:
            @c.dependent_property
            def plain(self):
                return c.interval(0, self.high)

            @c.dependent_property(is_discrete=False, event_dim=1)
            def said(self):
                return c.real_vector

        box = Box()
        box.high = 3
        names = "is_discrete", "event_dim"
        kinds = [c.is_dependent(Box.plain), c.is_dependent(Box.said), c.is_dependent(box.plain)]
        return (
            repr(box.plain),
            repr(box.said),
            kinds,
            [attempt(getattr, k, n) for k in (Box.plain, Box.said) for n in names],
        )

    assert_close(properties(rt), properties(torch))


def test_names():
    assert set(rt.distributions.constraints.__all__) == set(torch.distributions.constraints.__all__)
    ours, theirs = (vars(T.distributions.constraints) for T in (rt, torch))
    kinds = {
        name for name, kind in theirs.items() if isinstance(kind, type) and kind.__module__.endswith("constraints")
    }
    assert kinds <= set(ours)
