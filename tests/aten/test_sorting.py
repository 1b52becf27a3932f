"""Sorting, ranking, searching, counting."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import both, tensors

NAN = float("nan")


@given(st.data())
def test_stable_sort(data):
    shape = data.draw(st.tuples(*[st.integers(0, 5)] * 3))
    x = data.draw(
        tensors(
            shape,
            st.sampled_from([torch.float64, torch.int8, torch.float16, torch.bfloat16, torch.bool]),
            low=-2,
            high=2,
            requires_grad=True,
        )
    )
    dim, descending = data.draw(st.integers(-3, 2)), data.draw(st.booleans())
    both(lambda T, x: T.sort(x, stable=True, dim=dim, descending=descending), x, strides=False)
    both(lambda T, x: T.argsort(x, stable=True, dim=dim, descending=descending), x, strides=False)


@given(st.data())
def test_topk_of_different_numbers(data):
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    x = torch.randperm(60, generator=generator).double().view(3, 4, 5)
    dim = data.draw(st.integers(-3, 2))
    k = data.draw(st.integers(0, x.shape[dim]))
    largest = data.draw(st.booleans())
    both(lambda T, x: x.topk(k, dim, largest), x.requires_grad_(), strides=False)
    both(lambda T, x: x.sort(dim, descending=largest), x, strides=False)


def test_gradients_reach_what_was_picked():
    x = torch.randn(3, 4, dtype=torch.float64).requires_grad_()
    both(lambda T, x: (x.sort(0)[0], x.topk(2)[0] ** 2, x.kthvalue(2)[0], x.msort()), x, grad=2)


def test_nan_counts_as_the_largest():
    x = torch.tensor([[2.0, NAN, -1.0, float("inf")], [NAN, 0.0, -float("inf"), 1.0]])
    both(
        lambda T, x: (
            x.sort(),
            x.sort(descending=True),
            x.topk(2),
            x.topk(2, largest=False),
            x.argsort(0),
            x.kthvalue(4),
        ),
        x,
    )


def test_zero_dimensions():
    both(lambda T, x: (x.sort(), x.argsort(), x.topk(1), x.kthvalue(1), x.mode(), x.unique()), torch.tensor(3.0))


@pytest.mark.parametrize("dim", [None, 0, 1])
@given(
    tensors(
        st.tuples(st.integers(1, 4), st.integers(1, 4)),
        st.sampled_from([torch.int64, torch.float32, torch.bool]),
        low=0,
        high=2,
    )
)
def test_unique(dim, x):
    both(
        lambda T, x: T.unique(
            x.round() if x.is_floating_point() else x, return_inverse=True, return_counts=True, dim=dim
        ),
        x,
        strides=False,
    )
    both(lambda T, x: T.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim), x, strides=False)


def test_unique_gives_what_is_asked_for():
    x = torch.tensor([3, 1, 3, 2])
    both(
        lambda T, x: (
            x.unique(),
            T.unique(x, return_counts=True),
            x.unique(return_inverse=True),
            T.unique_consecutive(x),
        ),
        x,
    )
    both(lambda T, x: x.unique(), torch.tensor([1.0, NAN, NAN]))
    both(lambda T, x: x.unique().sum().backward(), torch.tensor([1.0, 2.0]).requires_grad_())


@given(st.data())
def test_searchsorted(data):
    edges = torch.tensor(sorted(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=6)))).double()
    x = data.draw(tensors(dtype=torch.float64, low=-1, high=10)).round()
    right = data.draw(st.booleans())
    both(
        lambda T, e, x: (T.searchsorted(e, x, right=right), T.bucketize(x, e, right=right, out_int32=True)),
        edges,
        x,
        strides=False,
    )


def test_searchsorted_in_rows():
    rows, x = torch.tensor([[1, 3, 5], [2, 4, 6]]), torch.tensor([[3, 6, 0, 5], [3, 6, 2, 5]])
    both(
        lambda T, r, x: (
            T.searchsorted(r, x),
            T.searchsorted(r, x, side="right"),
            T.searchsorted(r[0], 3),
            T.bucketize(4, r[1]),
        ),
        rows,
        x,
    )
    both(lambda T, r, s: T.searchsorted(r, T.tensor([2]), sorter=s), torch.tensor([5, 1, 3]), torch.tensor([1, 2, 0]))


def test_counting():
    x = torch.tensor([0, 3, 3, 1])
    both(
        lambda T, x: (
            T.bincount(x),
            x.bincount(minlength=6),
            T.bincount(x, weights=T.tensor([0.5, 1.0, 2.0, 4.0])),
            T.bincount(x, T.tensor([1, 2, 3, 4])),
        ),
        x,
    )
    both(
        lambda T, x: (T.histc(x), T.histc(x, 4), T.histc(x, 3, 0, 2), x.histc(2, -1, 1)),
        torch.tensor([0.5, 1.0, 1.0, 2.0, -3.0]),
    )
    both(
        lambda T, x: (T.isin(x, T.tensor([3, 7])), T.isin(x, 3), T.isin(0, x), T.isin(x, T.tensor([3]), invert=True)), x
    )


ERRORS = {
    "sort complex": lambda T: T.ones(2, dtype=T.complex64).sort(),
    "sort dim": lambda T: T.ones(2).sort(1),
    "topk k": lambda T: T.ones(2).topk(3),
    "topk bool": lambda T: T.ones(2, dtype=T.bool).topk(1),
    "bincount negative": lambda T: T.bincount(T.tensor([-1])),
    "bincount float": lambda T: T.bincount(T.ones(2)),
    "bincount weights": lambda T: T.bincount(T.tensor([1]), T.ones(2)),
    "bincount minlength": lambda T: T.bincount(T.tensor([1]), minlength=-1),
    "searchsorted side": lambda T: T.searchsorted(T.ones(2), T.ones(2), side="up"),
    "searchsorted both": lambda T: T.searchsorted(T.ones(2), T.ones(2), side="left", right=True),
    "searchsorted rows": lambda T: T.searchsorted(T.ones(2, 3), T.ones(3, 2)),
    "bucketize": lambda T: T.bucketize(T.ones(2), T.ones(2, 2)),
    "histc bins": lambda T: T.histc(T.ones(2), 0),
    "histc range": lambda T: T.histc(T.ones(2), 3, 2, 1),
    "sort out": lambda T: T.sort(T.ones(2), out=(T.empty(2), T.empty(2, dtype=T.int32))),
    "unique complex": lambda T: T.ones(2, dtype=T.complex64).unique(),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    both(ERRORS[name])


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dim": 0},
        {"dim": 1, "keepdim": True},
        {"keepdim": True},
        {"dim": -1, "interpolation": "nearest"},
        {"interpolation": "midpoint"},
        {"interpolation": "higher"},
        {"interpolation": "lower"},
    ],
    ids=str,
)
def test_quantile(name, options):
    x = torch.randn(3, 4, 5, dtype=torch.float64)
    x[0, 0, 0] = NAN
    for q in (0.5, torch.tensor(0.3, dtype=torch.float64), torch.tensor([0.2, 0.4, 1.0], dtype=torch.float64)):
        both(
            lambda T, x, q: getattr(T, name)(x, q, **options),
            x.clone().requires_grad_(),
            q,
            strides=False,
            grad_fn=False,
            alias=False,
            versions=False,
        )


def test_quantile_refuses():
    both(lambda T: T.quantile(T.arange(3), 0.5))
    both(lambda T: T.quantile(T.ones(3), 1.5))
    both(lambda T: T.quantile(T.ones(3), 0.5, interpolation="mean"))
