"""Numbers so large that a loop up to them would never end."""

import math

import pytest
import torch

import readtorch as rt
from readtorch.aten.native.binary_ops.polynomials import POLYNOMIALS
from tests.attack import limits
from tests.reference import both, to_torch

NUMBERS = [
    -1.5,
    -1.0,
    -0.5,
    0.5,
    1.5,
    4.0,
    5.0,
    7.0,
    8.0,
    9.0,
    100.0,
    10001.0,
    2.0**31,
    2.0**40,
    1e30,
    1e308,
    math.inf,
    math.nan,
    -math.inf,
]


def ends(name, x, number):
    """Whether PyTorch has a short way to this number, or meets a nan early: else it walks."""
    small = abs(x) < 1 if name.startswith("legendre") else 0 < x < 10
    return "ebyshev" in name or "hermite" in name or number < 2**20 or number > 2**62 or not small


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_any_number(name, dtype):
    for number in NUMBERS:
        x = [x for x in (0.0, 1.0, -1.0, 3.0, -3.0, math.inf, 0.5, -0.25) if ends(name, x, number)]
        theirs = getattr(torch.special, name)(torch.tensor(x, dtype=dtype), number)
        ours = getattr(rt.special, name)(rt.tensor(x, dtype=getattr(rt, str(dtype).removeprefix("torch."))), number)
        torch.testing.assert_close(
            to_torch(ours), theirs, rtol=1e-3, atol=1e-3, equal_nan=True, msg=lambda text: f"{number}: {text}"
        )


@pytest.mark.parametrize("decimals", [308, 309, 400, 2**40, 2**62, -308, -309, -(2**62)])
def test_rounding_to_more_decimals_than_there_are(decimals):
    both(lambda T: T.round(T.tensor([1.5, 0.0, -1e300, math.inf, math.nan], dtype=T.float64), decimals=decimals))
    both(lambda T: T.round(T.tensor([1.5, 0.0, -1e30, math.inf, math.nan]), decimals=decimals))


def test_a_long_walk():
    both(lambda T: T.special.legendre_polynomial_p(T.tensor([0.5, 0.9], dtype=T.float64), 1e5))
    both(lambda T: T.special.laguerre_polynomial_l(T.tensor([0.5, 3.0], dtype=T.float64), 1e5))


@pytest.mark.parametrize("count", [1e18, 1e20, 1e30])
@pytest.mark.parametrize("p", [0.5, 0.1, 0.9, 1e-20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_binomial_of_many(count, p, dtype):
    def draw(T):
        T.manual_seed(0)
        return T.binomial(T.full((3,), count, dtype=getattr(T, dtype)), T.full((3,), p, dtype=getattr(T, dtype)))

    both(draw)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sample", [0.5, -1.0, 0.75])
def test_gradients_of_concentrations_far_below_zero(sample, dtype):
    """Digamma steps upwards: from there it would never arrive."""
    shapes = [-math.inf, -1e308, -1e30, -2.5, -1.0, -0.5, -0.0, 0.0, math.nan]

    def outcome():
        def gradients(T):
            shape = T.tensor(shapes, dtype=getattr(T, dtype))
            number = T.full_like(shape, sample)
            return T._standard_gamma_grad(shape, number), [
                T._dirichlet_grad(number, shape, T.full_like(shape, t)) for t in (0.5, 3.0)
            ]

        both(gradients, rtol=2e-3, atol=1e-3)
        return True

    assert limits.alone(outcome, seconds=20) == {"result": True, "peak": pytest.approx(0, abs=limits.GIGABYTE)}


INFINITE = [[0.0, 0.0, 0.0], [math.inf, 0.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", ["svdvals", "pinv", "cond", "matrix_rank", "matrix_norm", "lstsq", "svd"])
def test_singular_values_of_infinite_matrices(name):
    """OpenBLAS's LAPACK does not come back from some. What MKL's `gelsy` makes of them is another on another processor."""

    def call(T, matrix):
        if name == "lstsq":
            return T.linalg.lstsq(matrix, T.ones(*matrix.shape[:-1], 1)).solution
        if name == "svd":
            return T.linalg.svd(matrix).S
        return T.linalg.matrix_norm(matrix, 2) if name == "matrix_norm" else getattr(T.linalg, name)(matrix)

    def among_finite(T):
        middle = T.tensor([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
        return call(T, T.stack([T.eye(3), T.tensor(INFINITE), middle, -T.tensor(INFINITE)]))

    def outcome():
        if name == "lstsq":
            assert call(rt, rt.tensor(INFINITE)).isnan().all()
            both(lambda T: among_finite(T)[::2], strides=False, versions=False)
        else:
            both(lambda T: call(T, T.tensor(INFINITE)), strides=False, versions=False)
            both(among_finite, strides=False, versions=False)
        for refusing in (rt, torch):
            with pytest.raises(RuntimeError):
                call(refusing, refusing.tensor([[1.0, math.nan], [math.inf, 1.0]]))
        return True

    assert limits.alone(outcome, seconds=20).get("result")


def test_binomial_of_nan():
    """PyTorch does not come back."""
    assert rt.binomial(rt.tensor([math.nan]), rt.tensor([0.5])).isnan().all()


def test_geometric_of_a_tiny_chance():
    def draw(T):
        T.manual_seed(0)
        return (
            T.ones(3, dtype=T.float64).geometric_(1e-300),
            T.ones(3).geometric_(1e-16),
            T.ones(3, dtype=T.int64).geometric_(0.25),
        )

    both(draw)
