"""Which dtype an operation gives: all pairs of dtypes; tensors, 0-dimensional tensors, Python numbers."""

import itertools

import pytest
import torch

import readtorch as rt
from tests.reference import DTYPES, both, default_dtype, to_readtorch

RANKS = ((3,), ())
NUMBERS = (True, 2, 2.5, 1 + 2j)
PAIRS = list(itertools.product(DTYPES, DTYPES))


def ones(dtype, shape):
    return torch.ones(shape, dtype=dtype)


def is_half_complex(*operands):
    """complex32 is the one dtype of the reference that NumPy has no room for; here complex64 takes its
    place.
    """
    return torch.result_type(*operands) == torch.complex32


@pytest.mark.parametrize("a", DTYPES, ids=str)
def test_result_type_of_tensors(a):
    for b, left, right in itertools.product(DTYPES, RANKS, RANKS):
        x, y = ones(a, left), ones(b, right)
        if is_half_complex(x, y):
            continue
        assert str(rt.result_type(to_readtorch(x), to_readtorch(y))) == str(torch.result_type(x, y))


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_result_type_with_a_number(number):
    for dtype, shape in itertools.product(DTYPES, RANKS):
        x = ones(dtype, shape)
        if is_half_complex(x, number):
            continue
        assert str(rt.result_type(to_readtorch(x), number)) == str(torch.result_type(x, number))
        assert str(rt.result_type(number, to_readtorch(x))) == str(torch.result_type(number, x))


def test_promote_types_and_can_cast():
    for a, b in PAIRS:
        ours = rt.promote_types(to_readtorch(a), to_readtorch(b))
        assert str(ours) == str(torch.promote_types(a, b))
        assert rt.can_cast(to_readtorch(a), to_readtorch(b)) == torch.can_cast(a, b)


@pytest.mark.parametrize("name", ["add", "mul", "div", "maximum", "eq", "atan2", "pow", "true_divide"])
def test_results_of_all_pairs(name):
    for (a, b), left, right in itertools.product(PAIRS, RANKS, RANKS):
        x, y = ones(a, left), ones(b, right)
        if not is_half_complex(x, y):
            both(lambda T, x, y: getattr(T, name)(x, y), x, y, grad=False)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow"])
def test_in_place_never_changes_the_dtype(name):
    for a, b in PAIRS:
        both(lambda T, x, y: getattr(x, name + "_")(y), ones(a, (3,)), ones(b, (3,)), grad=False)


@pytest.mark.parametrize(
    "expression",
    [
        lambda x, n: x + n,
        lambda x, n: n + x,
        lambda x, n: x - n,
        lambda x, n: n - x,
        lambda x, n: x * n,
        lambda x, n: x / n,
        lambda x, n: n / x,
        lambda x, n: x**n,
        lambda x, n: n**x,
        lambda x, n: x // n,
        lambda x, n: x % n,
        lambda x, n: x == n,
        lambda x, n: x < n,
    ],
    ids=range(13),
)
def test_numbers(expression):
    for dtype, shape, number in itertools.product(DTYPES, RANKS, NUMBERS):
        x = ones(dtype, shape)
        if not is_half_complex(x, number):
            both(lambda T, x: expression(x, number), x, grad=False)


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "sigmoid", "erf", "reciprocal", "abs", "neg", "floor", "sgn"])
def test_functions_of_every_dtype(name):
    for dtype in DTYPES:
        both(lambda T, x: getattr(T, name)(x), ones(dtype, (3,)), grad=False)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "mean", "amax", "argmax", "all", "median", "std"])
def test_reductions_of_every_dtype(name):
    for dtype in DTYPES:
        both(lambda T, x: getattr(T, name)(x, *((0,) if name == "cumsum" else ())), ones(dtype, (3,)), grad=False)


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16], ids=str)
def test_the_default_dtype_is_what_integers_become(default):
    with default_dtype(default):
        both(lambda T, x: (x / 2, x * 2.5, x.sqrt(), x + 1j), torch.arange(3), grad=False)
