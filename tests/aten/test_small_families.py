"""Divisors, complex parts, covariance, windows of signals, filled diagonals."""

import pytest
import torch
from hypothesis import given, settings

from tests.reference import both, dtypes, tensor_lists
from tests.test_graphs import graph_of


@settings(max_examples=40, deadline=None)
@given(tensor_lists(2, dtypes("i"), low=-100, high=100))
def test_divisors(pair):
    both(lambda T, a, b: (T.gcd(a, b), T.lcm(a, b)), *pair)


def test_divisors_of_the_least_integer_and_of_what_is_none():
    both(
        lambda T, a, b: (T.gcd(a, b), T.lcm(a, b)),
        torch.tensor([-128, 100, 0], dtype=torch.int8),
        torch.tensor([0, 77, 0], dtype=torch.int8),
    )
    for bad in (torch.ones(2), torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.complex64)):
        both(lambda T, a: T.gcd(a, a), bad)
        both(lambda T, a: T.lcm(a, a), bad)
    both(lambda T, a: T.gcd(a, 4), torch.tensor([8]))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.complex128]
)
def test_angle(dtype):
    both(lambda T, a: T.angle(a), torch.tensor([1.5, -2, 0, 3]).to(dtype))


def test_angles_of_odd_numbers_and_their_gradients():
    both(lambda T, a: T.angle(a), torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0]))
    both(lambda T, a: T.angle(a), torch.randn(5, dtype=torch.complex128, requires_grad=True), grad=2)
    both(lambda T, a: T.angle(a), torch.randn(5, requires_grad=True))


@pytest.mark.parametrize("name", ["complex", "polar"])
def test_two_numbers_make_one(name):
    a, b = torch.randn(3, 1, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    ours, theirs = both(lambda T, a, b: getattr(T, name)(a, b), a.requires_grad_(), b.requires_grad_(), grad=2)
    assert graph_of(ours) == graph_of(theirs)
    a, b = a.detach(), b.detach()
    both(lambda T, a: getattr(T, name)(a, a), torch.tensor([float("inf"), 1.0, float("nan")]))
    for call in (
        lambda F, a, b: F(a, b.float()),
        lambda F, a, b: F(a.long(), b.long()),
        lambda F, a, b: F(a[:2], b[:3]),
    ):
        both(lambda T, a, b: call(getattr(T, name), a, b), a, b)
    both(lambda T, a, b, out: getattr(T, name)(a, b, out=out), a, b, torch.empty(0, dtype=torch.complex64))


def test_diagflat():
    for offset in (-1, 0, 2):
        ours, theirs = both(lambda T, a: T.diagflat(a, offset), torch.randn(2, 3).t().requires_grad_())
        assert graph_of(ours) == graph_of(theirs)


@pytest.mark.parametrize("shape", [(3, 3), (7, 3), (4, 3), (2, 5), (2, 2, 2), (3,), (2, 3, 2), ()], ids=str)
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape, wrap):
    both(lambda T, a: a.fill_diagonal_(2.5, wrap), torch.zeros(shape))
    both(lambda T, a: (a * 1).fill_diagonal_(2.5, wrap), torch.zeros(shape, requires_grad=True))
    both(lambda T, a: a.fill_diagonal_(2, wrap=wrap), torch.zeros(shape).T if len(shape) == 2 else torch.zeros(shape))


WEIGHTS = {
    "none": {},
    "correction": {"correction": 2},
    "how often": {"fweights": torch.tensor([1, 2, 0, 1, 3])},
    "how reliable": {"aweights": torch.tensor([0.5, 1, 0, 2, 1], dtype=torch.float64), "correction": 0},
    "both": {
        "fweights": torch.tensor([1, 2, 0, 1, 3]),
        "aweights": torch.tensor([0.5, 1, 0, 2, 1], dtype=torch.float64),
    },
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shape", [(3, 5), (5,)])
def test_cov(weights, shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    ours, theirs = both(lambda T, a, **w: T.cov(a, **w), x, grad=2, **WEIGHTS[weights])
    assert graph_of(ours) == graph_of(theirs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_corrcoef(dtype):
    for shape in ((3, 5), (1, 5), (5,)):
        ours, theirs = both(lambda T, a: T.corrcoef(a), torch.randn(shape, dtype=dtype, requires_grad=True))
        assert graph_of(ours) == graph_of(theirs)
    both(lambda T, a: T.corrcoef(a), torch.ones(2, 2, 2))
    both(lambda T, a: T.corrcoef(a), torch.tensor(2.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"fweights": torch.ones(5)},
        {"fweights": torch.ones(1, 5).long()},
        {"fweights": torch.ones(4).long()},
        {"fweights": -torch.ones(5).long()},
        {"aweights": torch.ones(5).long()},
        {"aweights": -torch.ones(5)},
        {"aweights": torch.zeros(5)},
        {"aweights": torch.ones(4)},
    ],
    ids=range(8),
)
def test_cov_refuses(wrong):
    _, theirs = both(lambda T, a, **w: T.cov(a, **w), torch.randn(3, 5), **wrong)
    assert isinstance(theirs, RuntimeError)


@pytest.mark.parametrize("name", ["hann", "hamming", "bartlett", "blackman", "kaiser"])
def test_windows(name):
    def window(T, *args, **kwargs):
        return getattr(T, f"{name}_window")(*args, **kwargs)

    for length in (0, 1, 2, 5, 12):
        both(lambda T: window(T, length))
        both(lambda T: window(T, length, False))
        both(lambda T: window(T, length, periodic=False, dtype=T.float64))
    both(lambda T: window(T, -1))
    both(lambda T: window(T, 5, dtype=T.int64))
    both(lambda T: window(T, 5.0))
    both(lambda T: window(T, 5, requires_grad=True).is_leaf)


def test_windows_with_parameters():
    both(lambda T: T.hamming_window(7, True, 0.6))
    both(lambda T: T.hamming_window(7, False, 0.6, 0.3))
    both(lambda T: T.kaiser_window(7, False, 5.0))
    both(lambda T: T.kaiser_window(7, beta=5.0, periodic=True))


def test_what_programs_assert():
    mask = torch.tensor([True, False])
    both(
        lambda T, m: (
            T._is_all_true(m),
            T._is_all_true(m[:1]),
            T._is_any_true(m),
            m._is_all_true(),
            m[1:]._is_any_true(),
            T._is_all_true(m[:0]),
            T._is_any_true(m[:0]),
        ),
        mask,
    )
    both(lambda T, m: T._is_all_true(m.float()), mask, message=False)
    for call in (
        lambda T, m: T._assert_async(m[0]),
        lambda T, m: T._assert_async(m[1]),
        lambda T, m: T._assert_async(m),
        lambda T, m: T._assert_async(m[1], "no"),
        lambda T, m: T._assert_async(m[:0]),
        lambda T, m: T._assert_async(T.tensor(0.5)),
        lambda T, m: T._assert_async(m[0], "no"),
    ):
        both(call, mask)
    both(lambda T: (T._shape_as_tensor(T.zeros(2, 3)), T._shape_as_tensor(T.zeros(()))))
