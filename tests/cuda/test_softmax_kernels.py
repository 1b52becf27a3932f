"""softmax as CUDA kernels, on the simulator, against torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from readtorch.aten.native.cuda.persistent_softmax import share_of
from readtorch.aten.native.cuda.softmax import softmax, softmax_backward
from tests.cuda.launches import aligned, checked, floats

FUNCTIONS = {False: torch.softmax, True: torch.log_softmax}
SHAPES = [((3, 5), 1), ((2, 300), 1), ((70, 3), 0), ((2, 4, 5), 1), ((1,), 0), ((), 0), ((0, 4), 1), ((2, 33), -1)]
SHAPES += [((10, 64), 1), ((3, 132), 1), ((2, 1100), 1), ((2, 4100), 1), ((1, 17001), 1), ((2, 3, 40), 1)]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_softmax(shape, dim, log):
    x = 4 * floats(*shape)
    y, out = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    theirs = torch.from_numpy(np.asarray(x)).requires_grad_()
    expected = FUNCTIONS[log](theirs, dim)
    grad = floats(*shape, seed=1)
    expected.backward(torch.from_numpy(np.asarray(grad)))
    checked(softmax, np.asarray(x), dim, y, log=log)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-5, atol=1e-6)
    checked(softmax_backward, np.asarray(grad), y, dim, out, log=log)
    np.testing.assert_allclose(out, theirs.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[:, ::2], lambda x: x.reshape(4, 3, 12).transpose(2, 0, 1)])
def test_strides(view):
    x = view(floats(12, 12))
    out = np.zeros(x.shape, np.float32)
    checked(softmax, x, -1, out)
    np.testing.assert_allclose(out, torch.softmax(torch.from_numpy(x.copy()), -1), rtol=1e-5, atol=1e-6)


def test_masked_and_large():
    x = np.array([[-np.inf, 0, 1], [1e4, 0, -1e4], [np.nan, 0, 1]], np.float32)
    out = np.zeros_like(x)
    checked(softmax, x, 1, out)
    np.testing.assert_allclose(out, torch.softmax(torch.from_numpy(x), 1), rtol=1e-5)


def test_float64():
    x = floats(3, 40).astype(np.float64)
    out = np.zeros_like(x)
    checked(softmax, x, 1, out)
    np.testing.assert_allclose(out, torch.softmax(torch.from_numpy(x), 1), rtol=1e-13)


@given(
    rows=st.integers(1, 20),
    n=st.integers(1, 300),
    dtype=st.sampled_from([np.float32, np.float64]),
    step=st.integers(1, 2),
    offset=st.integers(0, 4),
    log=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_any_rows(rows, n, dtype, step, offset, log):
    """Rows with gaps between them or within them, at any place of memory."""
    memory = aligned(4 * floats(offset + rows * n * step + 8).astype(dtype))
    memory[::7] = -np.inf
    x = memory[offset : offset + rows * n * step].reshape(rows, n * step)
    for view in (x[:, ::step], x[:, :n]):
        out = np.zeros((rows, n), dtype)
        checked(softmax, view, 1, out, log=log)
        theirs = FUNCTIONS[log](torch.from_numpy(view.copy()), 1)
        np.testing.assert_allclose(out, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 70, 17000])
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_not_finite(n, dim):
    """-inf counts as nothing, a row of nothing else is nan, and so is one with nan or +inf in it."""
    x = floats(6, n)
    x[0], x[1, :1], x[2, -1:], x[3, n // 2], x[4, : n // 2] = -np.inf, np.inf, np.nan, -np.inf, -np.inf
    x = x if dim else np.ascontiguousarray(x.T)
    out = np.zeros_like(x)
    if n < 1000 or dim:
        checked(softmax, x, dim, out)
        np.testing.assert_allclose(out, torch.softmax(torch.from_numpy(x), dim), rtol=1e-5, atol=1e-7)


def test_rows_are_shared_out():
    """(pieces, elements of a piece, whether a warp has the row)"""
    x = aligned(np.zeros(1 << 15, np.float32))

    def share(n, begin=0):
        return share_of(n, x[begin : begin + n])

    assert share(64) == (1, 4, True) and share(1024) == (8, 4, True) and share(1024, begin=1) == (32, 1, True)
    assert share(1028) == (2, 4, False) and share(1025) == (8, 1, False) and share(16384) == (4, 4, False)
    assert share(16388) is None and share(3) == (1, 1, True)
