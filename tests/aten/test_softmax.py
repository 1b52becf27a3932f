"""softmax, log_softmax and cross entropy where compiled loops serve: every dimension, layout and length."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from tests.reference import both, to_readtorch

SHAPES = [(64, 10), (3, 700), (2, 5, 40), (4, 3, 5, 7), (1, 300), (300, 1), (5, 260), (1000,)]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["softmax", "log_softmax"]), st.sampled_from(SHAPES), st.integers(0, 3), st.booleans())
def test_every_dimension(name, shape, dim, transposed):
    x = torch.randn(shape) * 4
    if transposed:
        x = x.transpose(0, -1)
    dim = dim % x.dim()
    gradient = torch.randn(x.shape)

    def run(T, x, gradient):
        x = x.requires_grad_()
        y = getattr(T, name)(x, dim)
        return y, *T.autograd.grad(y, x, gradient)

    ours, theirs = run(rt, to_readtorch(x), to_readtorch(gradient)), run(torch, x, gradient)
    for a, b in zip(ours, theirs):
        assert a.stride() == b.stride()
        torch.testing.assert_close(torch.tensor(a.tolist()), b.detach(), rtol=1e-5, atol=1e-5)


def test_rows_with_infinities_and_nan():
    x = torch.randn(6, 100)
    x[0, 3], x[1], x[2, 5], x[3, :50], x[4] = math.inf, -math.inf, math.nan, -math.inf, 1e30
    both(lambda T, x: (T.softmax(x, 1), T.log_softmax(x, 1), T.softmax(x.t(), 0), T.log_softmax(x.t(), 0)), x)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(64, 10), (40, 500)], ids=str)
def test_cross_entropy_of_a_batch(shape, reduction):
    target = torch.randint(0, shape[1], shape[:1])
    target[3] = -100
    both(
        lambda T, x, t: T.nn.functional.cross_entropy(x, t, reduction=reduction),
        torch.randn(shape).requires_grad_(),
        target,
    )


def test_a_class_that_does_not_exist_is_refused():
    for label in (-1, 10):
        both(lambda T, x: T.nn.functional.cross_entropy(x, T.full((64,), label)), torch.randn(64, 10))


@pytest.mark.parametrize("name", ["_softmax", "_log_softmax"])
def test_only_cuda_computes_floats_of_halves_in_one_step(name):
    for dtype in (torch.float16, torch.float32):
        both(lambda T, x: getattr(T.ops.aten, name)(x, 0, True), torch.randn(3, 4).to(dtype))


def test_two_threads_compute_what_one_computes():
    x, results = rt.randn(600, 300), []
    before = rt.get_num_threads()
    for threads in (1, 2):
        rt.set_num_threads(threads)
        results.append((rt.softmax(x, 1), rt.log_softmax(x, 0)))
    rt.set_num_threads(before)
    assert all(rt.equal(a, b) for a, b in zip(*results))
