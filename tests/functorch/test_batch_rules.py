"""Batching rules: op_db's operators with other batch dimensions and under two levels of vmap, as PyTorch has them."""

import warnings

import pytest
import torch

import readtorch as rt
from tests.conformance import catalog
from tests.conformance.checks import is_ours
from tests.conformance.translate import translate
from tests.functorch import op_db
from tests.reference import both, to_readtorch

# Ties may be broken otherwise where the elements lie otherwise.
UP_TO_A_PHASE = {"linalg.eigh", "linalg.eig", "linalg.svd", "svd"}  # of eigenvectors
CORE = [name for name in op_db.core_names() if name not in {"topk"}]


def nested(T, func, in_dims):
    return T.func.vmap(T.func.vmap(func, in_dims=in_dims), in_dims=in_dims)


def at_the_end(T, func, in_dims):
    return T.func.vmap(func, in_dims=tuple(d if d is None else -1 for d in in_dims))


def compare(name, transform, arrange):
    """How many calls of an operator under `transform` gave what PyTorch gives; arrange: of a batch and its in_dim, the argument."""
    compared = 0
    for info in catalog.variants()[name]:
        for sample in op_db.samples_of(info, 2):
            if is_ours(sample):
                for theirs, ours, given, in_dims in op_db.calls(info, sample):
                    given = [arrange(t, d) for t, d in zip(given, in_dims)]
                    compared += compare_call(theirs, ours, given, in_dims, transform)
    return compared


def compare_call(theirs, ours, given, in_dims, transform):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = transform(torch, theirs, in_dims)(*given)
        except Exception:
            return 0  # PyTorch's vmap refuses
        got = transform(rt, ours, in_dims)(*[to_readtorch(t) for t in given])
    op_db.assert_same(got, expected)
    return 1


@pytest.mark.parametrize("name", CORE)
def test_a_batch_dimension_at_the_end(name):
    compare(name, at_the_end, lambda t, d: t if d is None else t.movedim(0, -1))


@pytest.mark.parametrize("name", CORE)
def test_two_levels(name):
    compare(name, nested, lambda t, d: t if d is None else torch.stack([t, t.flip(0)]))


def test_these_tests_compare_something():
    assert compare("nn.functional.conv2d", nested, lambda t, d: t if d is None else torch.stack([t, t])) > 0
    assert translate(torch.sin) is rt.sin


def test_a_number_before_a_batch_is_not_that_of_one_example():
    """1 - x and 2.0 ** x are operators of their own: `rsub.Scalar`, `pow.Scalar`."""
    x = torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    both(lambda T, x: T.func.vmap(lambda row: 1 - row)(x), x)
    both(lambda T, x: T.func.vmap(lambda row: 2.0**row)(x), x)
    both(lambda T, x: T.func.vmap(lambda row: T.eq(row, 1))(x), x)


def test_a_condition_of_numbers_stays_one():
    x = torch.tensor([1.0, -1.0])
    both(lambda T, x: T.func.vmap(lambda v: T.where(v > 0, v, 0.0))(x), x)


def test_the_square_of_a_number_of_each_example():
    both(lambda T, x: T.func.vmap(lambda v: T.pow(v, 2))(x), torch.tensor([1.0, 3.0]))


def test_singular_matrices_of_a_batch_are_told():
    both(lambda T, x: T.func.vmap(T.linalg.inv)(x), torch.zeros(2, 3, 3))


def test_running_statistics_must_be_batched():
    def program(T, x, mean, var):
        return T.func.vmap(lambda e: T.nn.functional.batch_norm(e, mean, var, training=True))(x)

    both(program, torch.randn(2, 4, 3), torch.zeros(3), torch.ones(3))


def of_floats(func, given):
    """(places, g): g takes the floating-point tensors among `given`, at these places, and returns those of func's results."""
    places = [i for i, t in enumerate(given) if t.is_floating_point()]

    def of_these(*floats):
        filled = list(given)
        for i, t in zip(places, floats):
            filled[i] = t
        return tuple([r for r in func(*filled) if r.is_floating_point()])

    return places, of_these


def batched_gradients(T, func, in_dims):
    """vmap over a vjp: of each example the gradients of all inputs that can have one."""

    def gradients(*given):
        places, of_these = of_floats(func, given)
        outputs, pull = T.func.vjp(of_these, *[given[i] for i in places])
        return pull(tuple([o.detach().cos() for o in outputs]))

    return T.func.vmap(gradients, in_dims=in_dims, randomness="different")


def batched_tangents(T, func, in_dims):
    """vmap over a jvp."""

    def tangents(*given):
        places, of_these = of_floats(func, given)
        floats = tuple([given[i] for i in places])
        return T.func.jvp(of_these, floats, tuple([t.detach().cos() for t in floats]))[1]

    return T.func.vmap(tangents, in_dims=in_dims, randomness="different")


@pytest.mark.parametrize("transform", [batched_gradients, batched_tangents])
@pytest.mark.parametrize("name", [name for name in CORE if name not in UP_TO_A_PHASE])
def test_derivatives_of_a_batch(name, transform):
    compare(name, transform, lambda t, d: t)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_noise_of_channels(randomness):
    def program(T, x):
        return [
            T.func.vmap(lambda e: getattr(T, name)(e, 0.5, True), randomness=randomness)(x)
            for name in ("feature_alpha_dropout", "feature_dropout", "alpha_dropout", "dropout")
        ]

    both(program, torch.ones(2, 3, 4, 2), grad=False)


def test_numbers_are_counted():
    both(lambda T, x: [T.func.vmap(lambda e: T.count_nonzero(e, dim))(x) for dim in (None, 0, -1)], torch.arange(3.0))
