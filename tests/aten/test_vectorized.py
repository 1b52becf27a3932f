"""The functions that vectorize, and the compiled loops over many float32: values, special values, any axes, threads."""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
import torch
from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import kernel
from tests.reference import both


@kernel
def exp(x, out):
    for i in range(x.size):
        out[i] = vec.exp(x[i])


@kernel
def log(x, out):
    for i in range(x.size):
        out[i] = vec.log(x[i])


@kernel
def tanh(x, out):
    for i in range(x.size):
        out[i] = vec.tanh(x[i])


@kernel
def erf(x, out):
    for i in range(x.size):
        out[i] = vec.erf(x[i])


@kernel
def sigmoid(x, out):
    for i in range(x.size):
        out[i] = vec.sigmoid(x[i])


def applied(function, x):
    out = np.empty_like(x)
    function(x, out)
    return out


def in_float64(name, x):
    return getattr(torch, name)(torch.from_numpy(x).double()).numpy()


FUNCTIONS = [(exp, np.linspace(-87, 88, 40001), 1.5), (log, np.exp(np.linspace(-87, 88, 40001)), 1.5),
             (tanh, np.linspace(-10, 10, 40001), 6), (erf, np.linspace(-5, 5, 40001), 6),
             (sigmoid, np.linspace(-80, 80, 40001), 3)]


@pytest.mark.parametrize("function, x, units", FUNCTIONS, ids=lambda v: getattr(v, "__name__", ""))
def test_errors_in_units_of_the_last_place(function, x, units):
    x = x.astype(np.float32)
    expected = in_float64(function.__name__, x)
    error = np.abs(applied(function, x) - expected) / np.spacing(np.abs(expected).astype(np.float32))
    assert error.max() <= units


@pytest.mark.parametrize("function", [exp, log, tanh, erf, sigmoid], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(function, dtype):
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, -1e-40, 1000, -1000, 88.72, -103], dtype)
    with np.errstate(all="ignore"):
        expected = in_float64(function.__name__, x).astype(dtype)
    np.testing.assert_allclose(applied(function, x), expected, rtol=1e-4, atol=1e-38)


@given(st.permutations(range(3)), st.sets(st.integers(0, 2)), st.booleans())
@settings(max_examples=40, deadline=None)
def test_sums_and_norms_over_any_axes(order, axes, keepdim):
    x = torch.randn(24, 30, 40).permute(order)
    for name in ("sum", "mean"):
        both(lambda T, x: getattr(x, name)(sorted(axes) or None, keepdim).contiguous(), x)
    both(lambda T, x: T.linalg.vector_norm(x, 2, sorted(axes) or None, keepdim).contiguous(), x)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("program", [
    lambda T, x, y: T.lerp(x, y, 0.3), lambda T, x, y: T.lerp(x, y, 0.8), lambda T, x, y: T.addcmul(x, y, y, value=2.5),
    lambda T, x, y: T.addcdiv(x, y, y + 9, value=-1), lambda T, x, y: x.clamp(-0.5, 0.25), lambda T, x, y: x.clamp(min=0.1),
    lambda T, x, y: (x + 9).rsqrt(), lambda T, x, y: T.erf(x), lambda T, x, y: x ** 3, lambda T, x, y: x.cumsum(0),
    lambda T, x, y: x.view(300, 500).cumsum(1), lambda T, x, y: x.sum(), lambda T, x, y: x.view(300, 500).topk(7)[0],
])
def test_loops_over_many_numbers(program, threads):
    before = readtorch.get_num_threads()
    readtorch.set_num_threads(threads)
    try:
        both(program, torch.randn(150_000), torch.rand(150_000))
    finally:
        readtorch.set_num_threads(before)


def test_clamp_keeps_nan_and_a_nan_bound_gives_nan():
    x = torch.randn(10_000)
    x[5] = math.nan
    both(lambda T, x: x.clamp(-1, 1), x)
    both(lambda T, x: x.clamp(math.nan, 1), x)


def test_a_long_sum_keeps_its_digits():
    x = torch.full((10_000_000,), 0.1)
    assert abs(readtorch.full((10_000_000,), 0.1).sum().item() - x.double().sum().item()) < 1
