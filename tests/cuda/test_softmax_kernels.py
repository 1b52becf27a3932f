"""softmax as CUDA kernels, on the simulator, against torch."""

import numpy as np
import pytest
import torch

from readtorch.aten.native.cuda.softmax import softmax, softmax_backward
from tests.cuda.launches import checked, floats

FUNCTIONS = {False: torch.softmax, True: torch.log_softmax}
SHAPES = [((3, 5), 1), ((2, 300), 1), ((70, 3), 0), ((2, 4, 5), 1), ((1,), 0), ((), 0), ((0, 4), 1), ((2, 33), -1)]


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
