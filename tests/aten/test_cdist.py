"""Distances between the rows of two matrices: every norm, both algorithms, batches, gradients, errors."""

import pytest
import torch

from tests.reference import both
from tests.test_graphs import graph_of

NORMS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")]
SHAPES = [
    ((3, 4), (5, 4)),
    ((30, 4), (5, 4)),
    ((2, 3, 4), (5, 4)),
    ((7, 1, 5, 4), (2, 30, 4)),
    ((0, 4), (5, 4)),
    ((3, 0), (5, 0)),
]


def leaf(shape):
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_values_graph_and_gradients(p, shapes):
    ours, theirs = both(lambda T, a, b: T.cdist(a, b, p), leaf(shapes[0]), leaf(shapes[1]))
    assert graph_of(ours) == graph_of(theirs)


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", "neither"])
def test_compute_mode(mode):
    both(
        lambda T, a, b: T.cdist(a, b, compute_mode=mode),
        leaf((3, 4)),
        leaf((5, 4)),
        grad=2 if mode.startswith("use") else 1,
    )


@pytest.mark.parametrize("p", NORMS)
def test_equal_rows_have_no_slope(p):
    both(lambda T, a: T.cdist(a, a.detach(), p), leaf((3, 4)))


def test_refusals():
    a, b = leaf((3, 4)).detach(), leaf((5, 4)).detach()
    for call in (
        lambda T, a, b: T.cdist(a[0], b),
        lambda T, a, b: T.cdist(a, b[0]),
        lambda T, a, b: T.cdist(a, b[:, :2]),
        lambda T, a, b: T.cdist(a, b, -1.0),
        lambda T, a, b: T.cdist(a.long(), b),
        lambda T, a, b: T.cdist(a, b.long()),
        lambda T, a, b: T.cdist(a, b.float()),
        lambda T, a, b: T.cdist(a.half(), b.half()),
        lambda T, a, b: T.cdist(a.expand(2, 3, 4), b.expand(3, 5, 4)),
    ):
        _, theirs = both(call, a, b)
        assert isinstance(theirs, Exception)
