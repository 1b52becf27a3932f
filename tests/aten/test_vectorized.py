"""The functions that vectorize, and the compiled loops over many float32: values, special values, any axes, threads."""

import math

import mpmath
import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import fast_kernel, kernel
from readtorch.aten.cpu.vec import vector_math
from readtorch.aten.cpu.vec.interleave import interleave
from tests.reference import both


def over_many(function):
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return kernel(loop), fast_kernel(loop)


LOOPS = {
    name: over_many(getattr(vector_math, name))
    for name in ("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos")
} | {"sigmoid": over_many(vec.sigmoid)}


def applied(name, x, fast=False):
    """fast: in a loop that may reorder sums, as those of softmax."""
    out = np.empty_like(x)
    LOOPS[name][fast](x, out)
    return out


def exact(name, x):
    """Of each number of x, in forty digits."""
    with mpmath.workdps(40):
        function = getattr(mpmath, name, lambda v: 1 / (1 + mpmath.exp(-v)))
        return [function(mpmath.mpf(float(v))) for v in x]


def numbers(name, dtype):
    """Where the function changes, and all over the range in which its value is a normal number."""
    draw, top = np.random.default_rng(0), 87 if dtype is np.float32 else 708
    near = np.concatenate([draw.standard_normal(700), draw.standard_normal(700) * 1e-3, draw.uniform(-12, 12, 700)])
    if name in ("log", "log1p"):
        far = np.exp(draw.uniform(-top, top, 1000))
        return np.concatenate([np.abs(near), far]) if name == "log" else np.concatenate([near[near > -1], far])
    if name in ("sin", "cos"):
        hard = [2.5229175724488532e38, 1.2614587862244266e38]  # next to a zero
        return np.concatenate(
            [near, hard, draw.uniform(-1e4, 1e4, 700), 10 ** draw.uniform(4, 38 if dtype is np.float32 else 300, 700)]
        )
    far = draw.uniform(-top, top, 1000)
    return np.concatenate([near, far, [-top - 1.5, -top - 1.4, top + 1.5, 3.9008439, 2e-38, -1e-30]])


UNITS = {"exp": 2, "expm1": 2, "log": 2, "log1p": 3, "tanh": 6, "erf": 8, "sin": 3, "cos": 3, "sigmoid": 3}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOOPS)
def test_errors_in_units_of_the_last_place(name, dtype, fast):
    x = numbers(name, dtype).astype(dtype)
    for value, found, expected in zip(x, applied(name, x, fast), exact(name, x)):
        unit = np.spacing(max(abs(dtype(float(expected))), np.finfo(dtype).tiny))
        assert abs(mpmath.mpf(float(found)) - expected) <= UNITS[name] * float(unit), (value, found, expected)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(name, dtype):
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, -1e-40, 1000, -1000, 88.72, -103, 1, -1], dtype)
    expected = getattr(torch, name)(torch.from_numpy(x).double()).to(getattr(torch, dtype.__name__)).numpy()
    found = applied(name, x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-38)
    assert np.array_equal(np.signbit(found[3:5]), np.signbit(expected[3:5])), "the sign of zero"


@kernel
def powers(x, y, out):
    for i in range(x.size):
        out[i] = vector_math.pow(x[i], y[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers(dtype):
    some = [
        math.nan,
        math.inf,
        -math.inf,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        -2.5,
        1e30,
        -1e30,
        1e-30,
        -1e-30,
        1e9,
        1e9 + 64,
        16777217,
    ]
    x, y = (m.ravel().astype(dtype) for m in np.meshgrid(some, some))
    draw = np.random.default_rng(0)
    x, y = np.append(x, draw.exponential(3, 5000).astype(dtype)), np.append(y, draw.normal(0, 20, 5000).astype(dtype))
    out = np.empty_like(x)
    powers(x, y, out)
    with np.errstate(all="ignore"):
        expected = (x.astype(np.longdouble) ** y).astype(dtype)
    np.testing.assert_allclose(out, expected, rtol=2 * np.finfo(dtype).eps, atol=np.finfo(dtype).smallest_subnormal)
    numbers_only = ~np.isnan(expected)
    assert np.array_equal(np.signbit(out)[numbers_only], np.signbit(expected)[numbers_only])


@pytest.mark.parametrize("size", [5, 100_000])
@pytest.mark.parametrize("name", ["silu", "sigmoid"])
def test_what_is_left_of_silu_far_below_zero(name, size):
    x = torch.full((size,), -88.5)
    both(lambda T, x: getattr(T.nn.functional, name)(x), x, rtol=1e-5, atol=0)


def test_what_tends_to_one_does_not_exceed_it():
    x = np.linspace(3, 30, 400_001).astype(np.float32)
    for name in ("tanh", "erf", "sigmoid"):
        found = applied(name, x)
        assert found.max() == found[-1] == 1


@kernel
def interleaved(x, out):
    for i in range(x.size):
        out[i] = vec.tanh(vec.exp(x[i]))
        interleave()


@given(st.integers(0, 700), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=30, deadline=None)
def test_several_vectors_at_a_time_and_the_rest(n, dtype):
    """See Note [ Several vectors at a time ]: every length leaves another rest."""
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    out = np.empty_like(x)
    interleaved(x, out)
    np.testing.assert_allclose(out, np.tanh(np.exp(x)), rtol=1e-6)


@given(st.permutations(range(3)), st.sets(st.integers(0, 2)), st.booleans())
@settings(max_examples=40, deadline=None)
def test_sums_and_norms_over_any_axes(order, axes, keepdim):
    x = torch.randn(24, 30, 40).permute(order)
    both(
        lambda T, x: x.sum(sorted(axes) or None, keepdim).contiguous(), x, rtol=1.3e-6, atol=1e-4
    )  # up to 28,800 numbers
    both(lambda T, x: x.mean(sorted(axes) or None, keepdim).contiguous(), x)
    both(lambda T, x: T.linalg.vector_norm(x, 2, sorted(axes) or None, keepdim).contiguous(), x)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "program",
    [
        lambda T, x, y: T.lerp(x, y, 0.3),
        lambda T, x, y: T.lerp(x, y, 0.8),
        lambda T, x, y: T.addcmul(x, y, y, value=2.5),
        lambda T, x, y: T.addcdiv(x, y, y + 9, value=-1),
        lambda T, x, y: x.clamp(-0.5, 0.25),
        lambda T, x, y: x.clamp(min=0.1),
        lambda T, x, y: (x + 9).rsqrt(),
        lambda T, x, y: T.erf(x),
        lambda T, x, y: x**3,
        lambda T, x, y: x.cumsum(0),
        lambda T, x, y: x.view(300, 500).cumsum(1),
        lambda T, x, y: x.sum(),
        lambda T, x, y: x.view(300, 500).topk(7)[0],
    ],
)
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


@pytest.mark.parametrize("name, limits", [("hardtanh_backward", (-1, 1)), ("hardswish_backward", ())])
def test_gradients_of_nan_are_those_of_vector_instructions(name, limits):
    x = np.full(4096, np.nan, np.float32)
    x[::3] = 0.5
    grad = np.linspace(1, 2, 4096, dtype=np.float32)
    theirs = getattr(torch.ops.aten, name)(torch.from_numpy(grad), torch.from_numpy(x), *limits)
    ours = getattr(readtorch.ops.aten, name)(readtorch.from_numpy(grad), readtorch.from_numpy(x), *limits)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


def test_mish_far_from_zero():
    """tanh(softplus(x)) is computed from one exponential."""
    x = np.concatenate([np.linspace(-40, 40, 9999), [25.0]]).astype(np.float32)
    both(lambda lib, t: lib.nn.functional.mish(t), torch.from_numpy(x))


def square_and_one(out):
    for i in range(out.size):
        out[i] = out[i] * out[i] + np.float32(1)


def square_and_one_interleaved(out):
    for i in range(out.size):
        out[i] = out[i] * out[i] + np.float32(1)
        interleave()


def test_a_loop_works_on_several_vectors_at_a_time():
    def products(loop):
        """How many products of vectors the compiled text has."""
        compiled = numba.njit(loop)
        compiled(np.ones(3, np.float32))
        (text,) = compiled.inspect_llvm().values()
        return text.count("fmul <")

    assert products(square_and_one_interleaved) >= 8 > products(square_and_one) > 0
